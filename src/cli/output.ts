// Where commands write to: a reader who leaves (`| head`) ends nothing, but what cannot be written for another reason is no success.

import { once } from 'node:events'
import { fstatSync, statSync } from 'node:fs'
import { errorText, OperatorError } from '../platform/errors.ts'

let isTold = false

/** Once for a process, before its command. */
export function watchOutput(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE' || isTold) return
    isTold = true
    process.stderr.write(`The output could not be written. ${errorText(error)}\n`)
    process.exitCode = 1
  })
}

/** One of many pieces: the next one when this one is on its way. `false`: nobody will read it. */
export async function writeOutput(piece: string): Promise<boolean> {
  const { stdout } = process
  if (!stdout.destroyed && !stdout.write(piece))
    await Promise.race([once(stdout, 'drain'), once(stdout, 'close')]).catch(() => {})
  return !stdout.destroyed
}

/** A secret that is shown once, before it counts: when nobody could read it nothing is to be changed. `what`: for the error, with an article. */
export async function printOnce(secret: string, what: string): Promise<void> {
  const unread = () => {
    isTold = true
    return new OperatorError(`${what} could not be printed. Nothing was changed.`)
  }
  if (leadsNowhere()) throw unread()
  await new Promise<void>((resolve, reject) =>
    process.stdout.write(`${secret}\n`, error => (error ? reject(unread()) : resolve())),
  )
}

/** Node opens /dev/null where it was given no output at all (`>&-`). */
function leadsNowhere(): boolean {
  const nowhere = statSync('/dev/null', { throwIfNoEntry: false })
  const own = fstatSync(1)
  return nowhere !== undefined && own.isCharacterDevice() && own.rdev === nowhere.rdev
}
