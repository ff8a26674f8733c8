// The commands that let files go out again that wait behind a database which was put back.

import type { Command } from 'commander'
import { type FileSeries, releaseFiles } from '../clearing/fileSeries.ts'
import type { Config } from '../start/config.ts'
import { wholeNumber } from './choices.ts'
import { refuseCommand, withOpened } from './open.ts'

/** `refuseUnknown`: what no file of the operator names has no files. */
export function addRelease(group: Command, series: FileSeries, refuseUnknown: (config: Config, of: string) => void): void {
  const { files, lines, whose, other } = series
  group
    .command(`release <${whose}>`)
    .description(`${files} wait in a database that was put back, until somebody has heard of the ${other} what it has already`)
    .requiredOption('--behind <number>', `of the last file that the ${other} has; 0 if it has none`, wholeNumber(0, 999_998))
    .action((of: string, { behind }: { behind: number }) =>
      withOpened(async opened => {
        refuseUnknown(opened.config, of)
        const released = await releaseFiles(opened, series, of, behind, opened.by.id)
        if (released === 'notHeld') return refuseCommand(`No ${files} of ${of} wait to be released.`)
        if (typeof released === 'object')
          return refuseCommand(
            `The last file of ${of} that this database knows is ${released.last}: --behind must be that or not far above.`,
          )
        process.stdout.write(`${of} goes on with file ${behind + 1}, for which ${released} ${lines} wait.\n`)
      }),
    )
}

export const refuseNoBank = ({ slips }: Config, name: string): void => {
  if (slips.get(name)?.kind !== 'bank') refuseCommand(`SLIPS_FILE has no bank account ${name}.`)
}
