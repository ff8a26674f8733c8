// DATA_DIR belongs to one gateway at a time. A dead holder's lock is taken over, and the holder alone may stop what that one left running.

import { accessSync, constants, mkdirSync, realpathSync, statSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../clock.ts'
import { OperatorError } from '../errors.ts'
import { whoMayPlace } from '../files.ts'
import { type Holder, isHere, type LockFile, takeLock } from './lockFile.ts'
import { killDescendants } from './running.ts'

/** What people can mend themselves: the message is written for them and says which folder and what to do. */
export class FolderError extends OperatorError {}

/** So often a holder shows that it lives, and looks whether the folder is still its own. */
const renewMs = 5_000

export type FolderClaim = { release(): void }

/**
 * Makes DATA_DIR if it is missing (mode 0700) and takes it for this process. Throws FolderError when it cannot be ours. Whoever loses it later ends at once, with
 * all that it has started: what it went on to write would destroy the files of the other.
 */
export function claimFolder(dataDir: string): FolderClaim {
  const folder = makeFolder(dataDir)
  const lock = orNotWritable(folder, () => takeLock(join(folder, 'gateway.lock')))
  if ('pid' in lock) throw new FolderError(inUse(folder, lock))
  claimed.set(folder, lock)
  const renewing = systemClock.every(renewMs, () => {
    if (lock.renew()) return
    killDescendants()
    process.stderr.write(
      `${folder} is another gateway's by now, or was meanwhile: this process and its database server were ended at once. If it had stood still until now, ` +
        'what the other one has answered since may be lost: compare with the acquirers before you trust it.\n',
    )
    process.exit(1)
  })
  return {
    release() {
      if (!claimed.delete(folder)) return
      renewing.cancel()
      lock.release()
    },
  }
}

function inUse(folder: string, holder: Holder): string {
  const { lock, pid, life, touchedAt } = holder
  const advice = 'Stop that one first, or give this one its own DATA_DIR.'
  if (isHere(holder)) {
    const who = pid === process.pid ? `this process (pid ${pid})` : `another gateway (pid ${pid})`
    return `The folder ${folder} is in use by ${who}. ${advice}`
  }
  if (life === 'seen')
    return `The folder ${folder} is in use by another gateway, of another container (pid ${pid} there), or by the database server that it left. ${advice}`
  return (
    `The folder ${folder} is in use by another gateway, of another container or machine (pid ${pid} there), or was when that died, which nothing shows here: ` +
    `it last wrote to ${lock} at ${new Date(touchedAt).toISOString()}. ${advice} If its machine is off, or surely runs neither it nor its postgres, remove ` +
    `${lock} and start again. Who only stands still, as a machine that is suspended, goes on later and destroys what was written meanwhile.`
  )
}

/** That of the folder (its real path), if this process has the claim on it. */
export const lockOfFolder = (folder: string): LockFile | undefined => claimed.get(folder)

const claimed = new Map<string, LockFile>()

/** The real path of DATA_DIR, which is made if it is missing. Throws FolderError when it cannot be ours. */
export function makeFolder(dataDir: string): string {
  refuseOpen(dataDir)
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' || code === 'ENOTDIR') throw new FolderError(`${dataDir} is not a folder. Set DATA_DIR to a folder.`)
    throw new FolderError(`The folder ${dataDir} cannot be made by user ${ownName()} (${code}). Make it, or set DATA_DIR.`)
  }
  const folder = orNotWritable(dataDir, () => realpathSync(dataDir))
  orNotWritable(folder, () => accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK))
  refuseOpen(dataDir)
  refuseStrangers(folder)
  return folder
}

/** Whoever may put names into the folder, or another folder in its place, could have root write, read and open to others what a link of theirs leads to. */
export function refuseOpen(dataDir: string): void {
  const who = process.getuid?.() === 0 ? whoMayPlace(dataDir, { strict: false }) : undefined
  if (who !== undefined)
    throw new FolderError(
      `DATA_DIR names ${dataDir}, which ${who}. Root works in no such folder: give this as the user whose it is, or put DATA_DIR elsewhere.`,
    )
}

/** Their owner could replace what we write there. */
function refuseStrangers(folder: string): void {
  const { uid } = statSync(folder)
  if (uid !== (process.getuid?.() ?? uid) && uid !== 0)
    throw new FolderError(
      `The folder ${folder} belongs to user ${uid}, who could replace what ${ownName()} writes there: start the gateway as that user, or take it over (chown ${ownName()} ${folder}; chmod go-w ${folder}).`,
    )
}

function orNotWritable<T>(folder: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new FolderError(`The folder ${folder} is not writable for user ${ownName()} (${code}${ownerHint(folder)}).`)
  }
}

function ownerHint(folder: string): string {
  try {
    const { uid, mode } = statSync(folder)
    return `; it belongs to uid ${uid}, mode ${(mode & 0o777).toString(8).padStart(4, '0')}`
  } catch {
    return ''
  }
}

function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.()) // a uid without an entry in the user table, as containers have
  }
}
