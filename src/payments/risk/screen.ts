// The risk check of a channel that has one: before the payment is written, so that its score stands in the payment's own row.
// A check that itself fails lets the payment pass with a review, or stops it, as the rules say.

import type { ParameterError } from '../../contract/formCheck.ts'
import { valueNamed } from '../../contract/parameters/table.ts'
import type { ResultName } from '../../contract/results/results.ts'
import type { Channel } from '../../merchants/directory.ts'
import { keyedHashes } from '../../vault/keys.ts'
import type { PaymentParts } from '../parts.ts'
import { factsOf, type ScreenedPayment, subjectsOf, velocitiesOf } from './facts.ts'
import { judge } from './judge.ts'
import { listable, type RiskList } from './lists/lists.ts'
import { fittingEntries, rehashEntry } from './lists/store.ts'
import type { RuleSet } from './rules.ts'
import { countAttempt } from './store.ts'

/** What the check leaves with the payment. */
export type Screening = { readonly score?: string; readonly review?: ResultName }

export type Screen =
  | { readonly passed: Screening }
  | { readonly refused: ResultName; readonly screening: Screening; readonly parameterErrors?: readonly ParameterError[] }

/** The screening service takes so many characters (decisions, 50). */
const shortFields: Readonly<Record<string, readonly [max: number, result: ResultName]>> = {
  'risk.channelId': [12, 'riskChannelIdTooLong'],
  'risk.serviceId': [1, 'riskServiceIdTooLong'],
}

export async function screen(
  parts: PaymentParts,
  channel: Channel,
  paymentId: string,
  screened: ScreenedPayment,
): Promise<Screen | undefined> {
  const name = channel.settings.riskRules
  if (name === '') return undefined
  for (const [field, [max, refused]] of Object.entries(shortFields)) {
    if ([...(valueNamed(screened.fields, field) ?? '')].length > max)
      return {
        refused,
        screening: {},
        parameterErrors: [{ name: field, message: `is at most ${max} long where payments are screened` }],
      }
  }
  const set = parts.riskRules?.get(name)
  if (!set) {
    parts.log.error({ entityId: channel.id, why: `there are no risk rules ${name}` }, 'the risk check failed')
    return { refused: 'riskCheckBroken', screening: {} }
  }
  try {
    return await check(parts, channel, paymentId, screened, set)
  } catch (error) {
    parts.log.error({ paymentId, why: (error as Error).message }, 'the risk check failed')
    return set.whenBroken === 'closed'
      ? { refused: 'riskCheckBroken', screening: {} }
      : { passed: { review: 'reviewRiskServiceDown' } }
  }
}

async function check(
  parts: PaymentParts,
  channel: Channel,
  paymentId: string,
  screened: ScreenedPayment,
  set: RuleSet,
): Promise<Screen> {
  const subjects = new Map(
    [...subjectsOf(screened)].map(([subject, value]) => [subject, keyedHashes(parts.keys, `risk ${subject}`, value)] as const),
  )
  const attempt = {
    merchantId: channel.merchantId,
    paymentId,
    at: screened.now,
    amount: screened.amount,
    currency: screened.currency,
    subjects,
  }
  const counts = await countAttempt(parts.database.work, attempt, velocitiesOf(set))
  const { score, outcome, result, fired } = judge(
    set,
    factsOf(screened, set, counts, await listsOf(parts, channel, screened, set)),
  )
  if (fired.length > 0) parts.log.info({ paymentId, names: fired, result: outcome }, 'risk rules fired')
  const screening = { score: String(score) }
  if (outcome === 'deny') return { refused: result!, screening }
  return { passed: outcome === 'review' ? { ...screening, review: 'reviewSuspectedFraud' } : screening }
}

/** The lists in which something of the payment stands; nothing is read where no rule asks. */
async function listsOf(
  { database, directory, keys }: PaymentParts,
  { id }: Channel,
  screened: ScreenedPayment,
  { rules }: RuleSet,
): Promise<ReadonlySet<RiskList>> {
  if (!rules.some(({ fact }) => fact.startsWith('list.'))) return new Set()
  const owners = directory.lineage(id)
  const sought = listable(keys, screened)
  const [newest, ...older] = sought.cardHashes
  const found = await fittingEntries(database.work, owners, sought, screened.now)
  for (const { value } of found)
    if (older.includes(value)) await rehashEntry(database.work, owners, value, newest!, keys.lookup[0]!.id)
  return new Set(found.map(({ list }) => list))
}
