// tollgate notifications: are they all accounted for, what became of each, and telling them again.

import type { Command } from 'commander'
import { checkNotifications } from '../notifications/deliveries/check.ts'
import { listAttempts, listDeliveries } from '../notifications/deliveries/store.ts'
import { replay } from '../notifications/replay/replay.ts'
import type { ReplayFilter } from '../notifications/replay/store.ts'
import { choice } from './choices.ts'
import { find, merchantAndChannel } from './endpoints.ts'
import { looksLikeId, readTime, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

const states = ['scheduled', 'acknowledged', 'given up'] as const
type State = (typeof states)[number]

export default (program: Command): void => {
  const notifications = program.command('notifications').description('what merchants were told')

  const check = notifications
    .command('check')
    .description('of every endpoint: emitted = acknowledged + scheduled + given up. Ends with 1 when that is not so')
    .option('--entity <id>', 'only one merchant')
  reads(check, {
    '': 'waiting balanced',
    'endpoints[]':
      'merchantId endpointId kind state url name emitted acknowledged scheduled givenUp withoutProof lost stranded unaccounted balanced',
  }).action((options: ReadOptions & { entity?: string }) =>
    withOpened(async opened => {
      const { entity } = options
      const merchantId = entity === undefined ? null : merchantAndChannel(opened.directory, entity).merchantId
      const check = await checkNotifications(opened.database.work, merchantId)
      show(
        options,
        check,
        () =>
          `${table([
            [
              'endpoint',
              'kind',
              'state',
              'emitted',
              'acknowledged',
              'scheduled',
              'given up',
              'without proof',
              'lost',
              'stranded',
              '',
            ],
            ...check.endpoints.map(one => [
              one.endpointId,
              one.kind,
              one.state,
              one.emitted,
              one.acknowledged,
              one.scheduled,
              one.givenUp,
              one.withoutProof,
              one.lost,
              one.stranded,
              one.balanced ? 'balanced' : 'NOT BALANCED',
            ]),
          ])}${check.waiting} events wait to be turned into notifications.\n`,
      )
      if (!check.balanced) process.exitCode = 1
    }),
  )

  const list = notifications
    .command('list <endpoint>')
    .description('the newest notifications of an endpoint; with --position the attempts of one')
    .addOption(choice('--state <state>', 'what became of it', states))
    .option('--limit <count>', 'how many', '20')
    .option('--position <number>', 'show every attempt of this one')
  reads(list, {
    'notifications[]': 'position notificationId paymentId sequence state replay attempts lastStatus lastFailure emittedAt dueAt',
    'attempts[]': 'merchantId endpointId position attempt attemptedAt milliseconds status failure answer acknowledged',
  }).action((id: string, options: ReadOptions & { state?: string; limit: string; position?: string }) =>
    withOpened(async opened => {
      const { merchantId } = await find(opened, id)
      const db = opened.database.work
      if (options.position !== undefined) {
        const attempts = await listAttempts(db, merchantId, id, whole('--position', options.position)!)
        show(options, { attempts: attempts.map(one => ({ ...one, attemptedAt: timeField(one.attemptedAt) })) }, () =>
          table([
            ['attempt', 'at', 'ms', 'status', 'answer'],
            ...attempts.map(one => [
              one.attempt,
              timeText(one.attemptedAt),
              one.milliseconds,
              one.status ?? one.failure,
              JSON.stringify(one.answer.slice(0, 80)),
            ]),
          ]),
        )
        return
      }
      const rows = await listDeliveries(db, merchantId, id, options.state ?? null, whole('--limit', options.limit)!)
      const notifications = rows.map(one => ({
        position: one.position,
        notificationId: one.notificationId,
        paymentId: one.paymentId,
        sequence: one.sequence,
        state: one.state,
        replay: one.replay,
        attempts: one.attempts,
        lastStatus: one.lastStatus,
        lastFailure: one.lastFailure,
        emittedAt: timeField(one.emittedAt),
        dueAt: one.state === 'scheduled' ? timeField(one.dueAt) : null,
      }))
      show(options, { notifications }, () =>
        table([
          ['position', 'notification', 'payment', 'state', 'attempts', 'last', 'emitted', 'due'],
          ...rows.map(one => [
            one.position,
            one.notificationId,
            one.paymentId,
            one.replay ? `${one.state} (replay)` : one.state,
            one.attempts,
            one.lastStatus ?? one.lastFailure,
            timeText(one.emittedAt),
            one.state === 'scheduled' ? timeText(one.dueAt) : '-',
          ]),
        ]),
      )
    }),
  )

  notifications
    .command('replay <endpoint>')
    .description('tells again: one, a range or what a filter finds; also what happened before the endpoint was active')
    .option('--id <notification>', 'one notification')
    .option('--payment <id>', 'all of one payment')
    .option('--from <position>', 'first position')
    .option('--to <position>', 'last position')
    .option('--since <time>', 'what happened at or after, for example 2026-01-31T12:00Z')
    .option('--until <time>', 'what happened before')
    .addOption(choice('--state <state>', 'what became of it', states))
    .option('--all', 'everything, when no filter is given')
    .action((id: string, options: Record<string, string | undefined>) =>
      withOpened(async opened => {
        const filter = filterOf(options)
        if (Object.keys(filter).length === 0 && !options.all) return refuseWords('Give a filter, or --all.')
        const { merchantId } = await find(opened, id)
        const replayed = await replay(opened, merchantId, id, filter)
        if ('refused' in replayed) return refuseCommand(replayed.refused)
        process.stdout.write(`${replayed.replayed} notifications are sent again.\n`)
      }),
    )
}

function filterOf(options: Record<string, string | undefined>): ReplayFilter {
  const [from, to] = [whole('--from', options.from), whole('--to', options.to)]
  const [since, until] = [readTime('--since', options.since), readTime('--until', options.until)]
  const state = options.state as State | undefined
  const [notificationId, paymentId] = [identifier('--id', options.id), identifier('--payment', options.payment)]
  return {
    ...(notificationId !== undefined && { notificationId }),
    ...(paymentId !== undefined && { paymentId }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(state !== undefined && { state }),
  }
}

function whole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  return /^\d{1,15}$/.test(text) ? Number(text) : refuseWords(`${name} must be a number.`)
}

function identifier(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  return looksLikeId(text) ? text : refuseWords(`${name} must be 32 hex characters.`)
}
