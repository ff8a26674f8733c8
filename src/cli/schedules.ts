// tollgate schedules: reports that go to a server by themselves, and the files that are owed by each.

import type { Command } from 'commander'
import { periods } from '../reporting/owedFiles/period.ts'
import { countOwed } from '../reporting/owedFiles/store.ts'
import {
  makeSchedule,
  type ReportSchedule,
  retrySchedule,
  scheduledForms,
  scheduledReports,
  stopSchedule,
} from '../reporting/schedules/schedule.ts'
import { listSchedules } from '../reporting/schedules/store.ts'
import { choice, wholeNumber } from './choices.ts'
import { looksLikeId, readDate, refuseCommand, table, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

type ScheduleOptions = Readonly<Record<string, string | number>> & { readonly entity: string; readonly mode?: string }

export default (program: Command): void => {
  const schedules = program.command('schedules').description('reports that are put on a server after each day, week or month')

  const list = schedules
    .command('list')
    .description(
      'the schedules that run, and their files: made = delivered + scheduled + given up; ends with 1 when any was given up',
    )
  reads(list, {
    'schedules[]': 'id ownerId report every form mode server madeAt made delivered scheduled givenUp oldest failure',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const owed = new Map((await countOwed(database.work)).map(one => [one.ownerId + one.source, one]))
      const found = (await listSchedules(database.work)).map(one => {
        const {
          made = 0,
          delivered = 0,
          scheduled = 0,
          givenUp = 0,
          oldest = null,
          failure = null,
        } = owed.get(one.ownerId + one.id) ?? {}
        return { one, files: { made, delivered, scheduled, givenUp, oldest, failure } }
      })
      show(options, { schedules: found.map(({ one, files }) => ({ ...documentOf(one), ...files })) }, () =>
        table([
          ['schedule', 'of', 'report', 'every', 'server', 'made', 'delivered', 'scheduled', 'given up', 'why'],
          ...found.map(({ one, files }) => [
            one.id,
            one.ownerId,
            `${one.settings.report}.${one.settings.form}`,
            one.settings.every,
            serverText(one),
            files.made,
            files.delivered,
            files.scheduled,
            files.givenUp,
            files.failure,
          ]),
        ]),
      )
      if (found.some(({ files }) => files.givenUp > 0)) process.exitCode = 1
    }),
  )

  schedules
    .command('add')
    .description('a report from the present period on; its server is known by its key, and we log in with that of SFTP_KEY_FILE')
    .requiredOption('--entity <id>', 'merchant, division or PSP')
    .addOption(choice('--report <report>', 'which report', scheduledReports).makeOptionMandatory())
    .addOption(choice('--every <period>', 'after each of these, in UTC', periods).makeOptionMandatory())
    .addOption(choice('--form <form>', 'as which file', scheduledForms).default('csv'))
    .addOption(
      choice('--mode <mode>', 'which payments; those of the simulator in a sandbox, else live ones', [
        'internal',
        'external',
        'live',
      ]),
    )
    .requiredOption('--host <name>', 'SFTP server')
    .option('--port <number>', 'its port', wholeNumber(1, 65_535), 22)
    .requiredOption('--user <name>', 'who we are there')
    .requiredOption('--host-key <key>', 'as ssh-keyscan prints it, without the name')
    .option('--folder <path>', 'as the server names it', '.')
    .action(({ entity, mode, ...given }: ScheduleOptions) =>
      withOpened(async opened => {
        const settings = { ...given, mode: mode ?? (opened.config.mode === 'live' ? 'live' : 'internal') }
        const made = await makeSchedule(opened, entity, settings)
        if ('refused' in made) return refuseCommand(made.refused)
        process.stdout.write(`${made.id}\n`)
      }),
    )

  schedules
    .command('end <entity> <schedule>')
    .description('no more files; what is owed still is given up')
    .action((entity: string, id: string) =>
      withOpened(async opened => {
        if (!looksLikeId(entity) || !looksLikeId(id) || !(await stopSchedule(opened, entity, id)))
          refuseCommand(`There is no schedule ${id} of ${entity}.`)
      }),
    )

  schedules
    .command('again <entity> <schedule>')
    .description('files that were given up are tried again')
    .requiredOption('--from <day>', 'from this day on, yyyy-MM-dd')
    .action((entity: string, id: string, { from }: { from: string }) =>
      withOpened(async opened => {
        readDate('--from', from)
        const count = looksLikeId(entity) && looksLikeId(id) ? await retrySchedule(opened, entity, id, from) : undefined
        if (count === undefined) return refuseCommand(`There is no schedule ${id} of ${entity}.`)
        process.stdout.write(`${count} files are tried again.\n`)
      }),
    )
}

const serverText = ({ settings: { user, host, port, folder } }: ReportSchedule): string => `${user}@${host}:${port} ${folder}`

const documentOf = (one: ReportSchedule) => {
  const { report, every, form, mode } = one.settings
  return { id: one.id, ownerId: one.ownerId, report, every, form, mode, server: serverText(one), madeAt: timeField(one.madeAt) }
}
