// What of all that waits for somebody is new, and how it is told. Pure.

import type { CaseKind } from '../payments/cases/cases.ts'
import { caseKinds } from '../payments/cases/cases.ts'

/** Something that waits: `newest` is when the last of it came, in milliseconds, where that is known. */
export type Alert = { readonly kind: AlertKind; readonly count: number; readonly newest: number | null }

/** What was told of a kind, and when. */
export type ToldAlert = { readonly count: number; readonly newest: number | null; readonly at: number }
export type ToldAlerts = Readonly<Record<string, ToldAlert>>

const others = {
  givenUp: 'notifications of the last seven days were given up: nobody acknowledged any attempt',
  disabledWebhook: 'webhooks are disabled: nothing is sent to them',
  failingWork: 'pieces of work failed five times or more, and are tried on',
  databaseAway: 'the database did not answer for a while',
  clockWrong: 'the clock of a process was too far from that of the database: it took no requests',
} as const

export type AlertKind = `case ${CaseKind}` | keyof typeof others

const sentenceOf = (kind: AlertKind): string =>
  Object.hasOwn(others, kind) ? others[kind as keyof typeof others] : caseKinds[kind.slice('case '.length) as CaseKind]

/** However fast more of a kind comes, somebody who was told of it is left alone so long. */
const againAfterMilliseconds = 3_600_000

/** What nobody was told yet: more than then, or one that came since. */
export const newsOf = (found: readonly Alert[], told: ToldAlerts, now: number): readonly Alert[] =>
  found.filter(({ kind, count, newest }) => {
    const before = told[kind]
    if (!before) return count > 0
    return now - before.at >= againAfterMilliseconds && (count > before.count || (newest ?? 0) > (before.newest ?? 0))
  })

/** What was told, where less of it is left: when there is more again, that is news. */
export const remembered = (found: readonly Alert[], told: ToldAlerts): ToldAlerts => {
  const left = new Map(found.map(({ kind, count }) => [kind as string, count]))
  return Object.fromEntries(
    Object.entries(told).map(([kind, one]) => [kind, { ...one, count: Math.min(one.count, left.get(kind) ?? 0) }]),
  )
}

/** Counts and sentences of our own alone: nothing in it was made by callers, and no entity is named. */
export function digestOf(
  news: readonly Alert[],
  found: readonly Alert[],
  publicUrl: string,
): { readonly subject: string; readonly text: string } {
  const line = ({ kind, count, newest }: Alert) =>
    `  ${count}  ${sentenceOf(kind)}${newest === null ? '' : ` (the last one ${new Date(newest).toISOString().slice(0, 19)}Z)`}`
  const rest = found.filter(one => one.count > 0 && !news.includes(one))
  const text = [
    'New since the last mail:',
    '',
    ...news.map(line),
    ...(rest.length > 0 ? ['', 'Still there:', '', ...rest.map(line)] : []),
    '',
    `The back office shows them: ${publicUrl}/office`,
    'Another mail comes in ten minutes at the soonest, and of the same kind in an hour.',
    '',
  ].join('\n')
  return { subject: `[Tollgate] ${news.length === 1 ? '1 thing needs' : `${news.length} things need`} somebody`, text }
}
