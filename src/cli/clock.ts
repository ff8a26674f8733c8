// tollgate clock: shows and moves the time of a sandbox's merchant. The running gateway moves it, because all that falls due happens there.

import type { Command } from 'commander'
import { duration } from '../sandbox/clock.ts'
import { refuseWords, runCommand } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'
import { openSandbox, type SandboxOptions } from './sandbox.ts'

export default (program: Command): void => {
  const clock = program.command('clock').description('the movable clock of a sandbox')
  const options = (command: Command) =>
    command
      .option('--base-url <url>', 'another gateway than the one of DATA_DIR')
      .option('--entity <id>', 'an entity of the merchant whose clock is meant')
      .option('--token-file <path>', 'its access token: a file that holds it, or - for standard input')
  const shows = reads(options(clock.command('show').description('show the business time of the merchant')), {
    '': 'merchantId now',
  })
  shows.action((given: SandboxOptions & ReadOptions) => runCommand(() => move(given, undefined)))
  options(clock.command('advance <by>').description('move it forward, for example 29m, 72h or 3d; never backwards')).action(
    (by: string, given: SandboxOptions) =>
      runCommand(() => {
        if (!duration(by)) refuseWords('A clock is moved by a number and ms, s, m, h or d, for example 29m; at most ten years.')
        return move(given, by)
      }),
  )
}

async function move(given: SandboxOptions & ReadOptions, by: string | undefined): Promise<void> {
  const { merchantId, now } = await openSandbox(given).post('/sandbox/clock', by === undefined ? {} : { advance: by })
  show(given, { merchantId, now: timeField(Date.parse(now)) }, () => `It is ${now}.\n`)
}
