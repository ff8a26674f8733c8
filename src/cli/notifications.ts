// tollgate notifications: are they all accounted for, what became of each, and telling them again.

import type { Command } from 'commander'
import { checkNotifications } from '../notifications/deliveries/check.ts'
import { replay } from '../notifications/deliveries/replay.ts'
import { listAttempts, listDeliveries, type ReplayFilter } from '../notifications/deliveries/store.ts'
import { find, merchantAndChannel } from './endpoints.ts'
import { readTime, refuseCommand, table, timeText, withOpened } from './open.ts'

const states = ['scheduled', 'acknowledged', 'given up'] as const
type State = (typeof states)[number]

export default (program: Command): void => {
  const notifications = program.command('notifications').description('what merchants were told')

  notifications
    .command('check')
    .description('of every endpoint: emitted = acknowledged + scheduled + given up. Ends with 1 when that is not so')
    .option('--entity <id>', 'only one merchant')
    .action(({ entity }: { entity?: string }) =>
      withOpened(async opened => {
        const merchantId = entity === undefined ? null : merchantAndChannel(opened.directory, entity).merchantId
        const check = await checkNotifications(opened.database.work, merchantId)
        process.stdout.write(
          table([
            ['endpoint', 'kind', 'state', 'emitted', 'acknowledged', 'scheduled', 'given up', 'without proof', 'lost', ''],
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
              one.balanced ? 'balanced' : 'NOT BALANCED',
            ]),
          ]),
        )
        process.stdout.write(`${check.waiting} events wait to be turned into notifications.\n`)
        if (!check.balanced) process.exitCode = 1
      }),
    )

  notifications
    .command('list <endpoint>')
    .description('the newest notifications of an endpoint; with --position the attempts of one')
    .option('--state <state>', states.join(', '))
    .option('--limit <count>', 'how many', '20')
    .option('--position <number>', 'show every attempt of this one')
    .action((id: string, options: { state?: string; limit: string; position?: string }) =>
      withOpened(async opened => {
        const { merchantId } = await find(opened, id)
        const db = opened.database.work
        if (options.position !== undefined) {
          const attempts = await listAttempts(db, merchantId, id, whole('--position', options.position)!)
          process.stdout.write(
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
        const rows = await listDeliveries(db, merchantId, id, stateOf(options.state) ?? null, whole('--limit', options.limit)!)
        process.stdout.write(
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
    .option('--state <state>', states.join(', '))
    .option('--all', 'everything, when no filter is given')
    .action((id: string, options: Record<string, string | undefined>) =>
      withOpened(async opened => {
        const { merchantId } = await find(opened, id)
        const filter = filterOf(options)
        if (Object.keys(filter).length === 0 && !options.all) return refuseCommand('Give a filter, or --all.')
        const replayed = await replay(opened, merchantId, id, filter)
        if ('refused' in replayed) return refuseCommand(replayed.refused)
        process.stdout.write(`${replayed.replayed} notifications are sent again.\n`)
      }),
    )
}

function filterOf(options: Record<string, string | undefined>): ReplayFilter {
  const [from, to] = [whole('--from', options.from), whole('--to', options.to)]
  const [since, until] = [readTime('--since', options.since), readTime('--until', options.until)]
  const state = stateOf(options.state)
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

function stateOf(text: string | undefined): State | undefined {
  if (text === undefined || states.includes(text as State)) return text as State | undefined
  return refuseCommand(`--state must be one of ${states.join(', ')}.`)
}

function whole(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  return /^\d{1,15}$/.test(text) ? Number(text) : refuseCommand(`${name} must be a number.`)
}

function identifier(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  return /^[0-9a-f]{32}$/.test(text) ? text : refuseCommand(`${name} must be 32 hex characters.`)
}
