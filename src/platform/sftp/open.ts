// How a process reaches the servers of others by SFTP: with its one key, to merchants' servers only where other calls for merchants may go.

import type { Clock } from '../clock.ts'
import { type Egress, findAddress, type Resolve } from '../egress/address.ts'
import { type SftpPlace, serverOf } from './server.ts'
import { type Sftp, SftpError, withSftp } from './sftp.ts'

/** `guarded`: on behalf of a merchant, so that no private or special address is called. Rejects with an SftpError. */
export type OpenSftp = <Value>(
  place: SftpPlace,
  work: (sftp: Sftp) => Promise<Value>,
  more?: { readonly guarded?: boolean },
) => Promise<Value>

/** `key`: absent when the operator has given none. */
export const sftpOpener =
  (clock: Clock, key: string | undefined, egress: Egress, resolve: Resolve): OpenSftp =>
  async (place, work, { guarded = false } = {}) => {
    if (key === undefined) throw new SftpError('there is no key to log in with: SFTP_KEY_FILE names it', 'identity')
    if (!guarded) return withSftp(clock, serverOf(place, key), work)
    const found = await findAddress(place.host, egress, resolve)
    if ('refused' in found) throw new SftpError(`the host ${found.refused}`, 'lost')
    return withSftp(clock, serverOf(place, key), work, { address: found.address })
  }
