// An SFTP server as operators write it down: where it is, who we are there, and the key that it must show.

import { createHash } from 'node:crypto'
import { line, type Output, object, optional, text, whole } from '../schema.ts'

const hostName = text(/^[a-zA-Z0-9.:-]{1,255}$/, 'must be a host name or an address')

/** `hostKey`: a line as `ssh-keyscan` prints it, without the name of the host. `folder`: as the server names it. */
export const sftpServer = object({
  host: hostName,
  port: optional(whole(1, 65_535), 22),
  user: line,
  hostKey: text(
    /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+={0,2}$/,
    'must be a host key as ssh-keyscan prints it, for example ssh-ed25519 AAAA…',
  ),
  folder: optional(line, '.'),
})
export type SftpPlace = Output<typeof sftpServer>

export type HostKey = { readonly type: string; readonly blob: Buffer }

export type SftpServer = {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly hostKey: HostKey
  /** Our private key, PEM or OpenSSH, without a passphrase. */
  readonly key: string
}

export function serverOf({ host, port, user, hostKey }: SftpPlace, key: string): SftpServer {
  const [type, blob] = hostKey.split(' ') as [string, string]
  return { host, port, user, hostKey: { type, blob: Buffer.from(blob, 'base64') }, key }
}

/** As `ssh-keygen` makes it, without a passphrase: whether it is one is seen when it is used. */
export const looksLikeKey = (text: string): boolean =>
  /^-----BEGIN (OPENSSH|RSA|EC) PRIVATE KEY-----\r?\n(?!Proc-Type)/.test(text)

/** As `ssh-keygen -l` shows the public part of a private key. */
export async function keyFingerprint(text: string): Promise<string> {
  const { default: ssh2 } = await import('ssh2') // most processes never need it
  const key = ssh2.utils.parseKey(text)
  if (key instanceof Error) throw key
  return `SHA256:${createHash('sha256').update(key.getPublicSSH()).digest('base64').replace(/=+$/, '')}`
}
