// A merchant makes a checkout, changes it, and takes it away.

import type { ParameterError } from '../contract/formCheck.ts'
import { limits } from '../contract/limits.ts'
import type { Values } from '../contract/parameters/table.ts'
import { requests } from '../contract/requests.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { Channel } from '../merchants/directory.ts'
import { isBodyOf, keyReused, storeOnce } from '../payments/idempotency.ts'
import { type Refusal, resultUrlWrong } from '../payments/initial/choose.ts'
import type { PaymentRequest } from '../payments/initial/pay.ts'
import { keyHours } from '../payments/kept.ts'
import { findConcluded } from '../payments/read/concluded.ts'
import { idOf, type RequestKey } from '../payments/store/keys.ts'
import type { Connection } from '../platform/database/connect.ts'
import { addDue } from '../platform/due/store.ts'
import type { DueHandler } from '../platform/due/worker.ts'
import {
  type Checkout,
  checkoutId,
  isOpen,
  keptValues,
  offeredRegistrations,
  openValues,
  sealValues,
  wireIdOf,
} from './checkout.ts'
import type { CheckoutParts } from './parts.ts'
import {
  type CheckoutRow,
  changeCheckout,
  endCheckout,
  eraseCheckout,
  findCheckout,
  findCheckouts,
  findLastAttempt,
  insertCheckout,
  lockCheckout,
} from './store.ts'

/** Soon its records are not needed any more: a shopper who pays at the last moment, and whoever reads then, are done by now. */
const erasedAfterHours = 24

/** The hash of the form's script, where the checkout keeps to it. */
export type NewCheckout = Pick<CheckoutRow, 'merchantId' | 'id' | 'createdAt'> & {
  readonly wireId: string
  readonly integrity?: string
  readonly link?: string
}

/**
 * `chance`: 32 hex characters. A request with an Idempotency-Key has an id that follows from it: of a gateway of an older release, which claims no key, its twin
 * makes none; and it makes no second one for as long as it lives, if that is longer than keys are good.
 */
export async function createCheckout(
  parts: CheckoutParts,
  { channel, values, known, publicUrl, key, tokenId }: PaymentRequest,
  chance: string,
): Promise<NewCheckout | Refusal> {
  const refused = refusalOf(parts, channel, values) ?? lifeRefused(channel, values)
  if (refused) return refused
  const { merchantId } = channel
  const now = parts.directory.businessTime(merchantId)
  const minutes = Number(values.get('validMinutes') ?? limits.checkoutMinutes)
  const build = values.get('integrity') === 'true' ? parts.formBuild() : undefined
  const ids = key ? [...key.ruled, ...key.named].map(idOf) : [checkoutId(parts, chance)]
  const name = { merchantId, id: ids[0]! }
  const row: CheckoutRow = {
    ...name,
    channelId: channel.id,
    tokenId: tokenId!,
    sealed: sealValues(parts, name, keptValues(values, known)),
    fingerprint: key ? key.named[0]!.fingerprint : null,
    scriptBuild: build?.build ?? null,
    createdAt: now,
    expiresAt: now + minutes * 60_000,
    endedAt: null,
  }
  const hours = Math.max(minutes / 60 + erasedAfterHours, key ? keyHours : 0)
  const erasedAt = parts.clock.real() + hours * 3_600_000
  const stored = await storeCheckout(parts, row, key, ids, erasedAt)
  if (typeof stored !== 'string') return stored
  const first = key ? await findCheckout(parts.database.work, merchantId, stored) : row
  if (!first) return { refused: 'checkoutGone', stored: false } // and its key is not over yet
  if (key && !(first.fingerprint && isBodyOf(key, first.fingerprint))) return keyReused
  const wireId = wireIdOf(merchantId, first.id)
  return {
    merchantId,
    id: first.id,
    wireId,
    createdAt: first.createdAt,
    ...(build && { integrity: build.integrity }),
    ...(values.has('validMinutes') && { link: `${publicUrl}/pay/${wireId}` }),
  }
}

/** Its id, or that of what its twin has made: `ids` are those that a gateway of an older release makes of the key. */
async function storeCheckout(
  parts: CheckoutParts,
  row: CheckoutRow,
  key: RequestKey | undefined,
  ids: readonly string[],
  erasedAt: number,
): Promise<string | Refusal> {
  const there = key ? await findCheckouts(parts.database.work, row.merchantId, ids) : []
  const twin = there.find(({ fingerprint }) => fingerprint && isBodyOf(key!, fingerprint))
  if (twin) return twin.id
  return storeOnce(parts, row.merchantId, row.id, key, async db => {
    await addDue(db, checkoutErasure, row.merchantId, row.id, erasedAt) // what takes it away again
    await insertCheckout(db, row)
  })
}

/** What a checkout says anew replaces what it said; the rest stays. Not while somebody pays it. */
export const changeCheckoutValues = (
  parts: CheckoutParts,
  { checkout, channel, values, known }: Pick<PaymentRequest, 'channel' | 'values' | 'known'> & { readonly checkout: Checkout },
): Promise<Refusal | undefined> =>
  whileNobodyPays(parts, checkout, async (db, row) => {
    const merged = new Map([...openValues(parts, row), ...keptValues(values, known)]) as Values
    const refused = refusalOf(parts, channel, merged)
    if (!refused) await changeCheckout(db, row, sealValues(parts, row, merged))
    return refused
  })

export const deleteCheckout = (parts: CheckoutParts, checkout: Checkout): Promise<Refusal | undefined> =>
  whileNobodyPays(parts, checkout, async (db, row) => {
    await endCheckout(db, row, parts.directory.businessTime(row.merchantId))
    return undefined
  })

type Work = (db: Connection, row: CheckoutRow) => Promise<Refusal | undefined>

async function whileNobodyPays(parts: CheckoutParts, { merchantId, id }: Checkout, work: Work): Promise<Refusal | undefined> {
  const lock = (db: Connection) => lockCheckout(db, merchantId, id)
  return parts.database.inChain(merchantId, id, lock, async (db, row) => {
    if (!row || !isOpen(parts, row)) return { refused: 'checkoutGone', stored: false }
    const last = await findLastAttempt(db, row)
    const payment = last && (await findConcluded(db, merchantId, last.subjectId))
    const settled = !last || (payment?.answer && !payment.answer.approved)
    return settled ? work(db, row) : { refused: 'checkoutUnderWay', stored: false }
  })
}

/** What would be refused of every payment. What depends on the brand is judged when the shopper has chosen one. */
function refusalOf({ sandbox }: CheckoutParts, channel: Channel, values: Values): Refusal | undefined {
  const types = Object.keys(initialTypes).join(', ')
  const wrong: ParameterError[] = [...values]
    .filter(([name, type]) => /^(p|overrideP)aymentType/.test(name) && initialTypes[type] !== 'here')
    .map(([name, type]) => ({ name, value: type, message: `must be one of ${types} here` }))
  if (wrong.length > 0) return form('invalidParameter', ...wrong)
  const offered = offeredRegistrations(values).length
  if (offered > limits.offeredRegistrations)
    return form('invalidParameter', {
      name: `registrations[${offered - 1}].id`,
      message: `is one more than the ${limits.offeredRegistrations} that a form offers`,
    })
  if (values.has('amount') && Number(values.get('amount')) === 0 && !channel.settings.accountChecks)
    return form('zeroAmount', { name: 'amount', message: 'must be above zero' })
  return values.has('shopperResultUrl') ? resultUrlWrong(values, channel, sandbox) : undefined
}

const initialTypes: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(requests.payment.types).filter(([, place]) => place === 'here'),
)

function lifeRefused({ settings }: Channel, values: Values): Refusal | undefined {
  const most = settings.checkoutMinutesMost
  const asked = values.get('validMinutes')
  if (asked === undefined || Number(asked) <= most) return undefined
  return form('invalidParameter', { name: 'validMinutes', value: asked, message: `is at most ${most} on this channel` })
}

const form = (refused: ResultName, ...parameterErrors: ParameterError[]): Refusal => ({ refused, stored: false, parameterErrors })

/** Due work: the checkout ended long ago. Its payments stay, and know its id. A twin that was refused had asked for it earlier. */
export const checkoutErasure = 'checkoutErasure'
export const eraseOldCheckout: DueHandler<CheckoutParts> = async ({ database, directory, clock }, { merchantId, subjectId }) => {
  const row = await findCheckout(database.work, merchantId, subjectId)
  const stays = row ? row.expiresAt + erasedAfterHours * 3_600_000 - directory.businessTime(merchantId) : 0
  if (stays > 0) return { again: clock.real() + stays }
  await eraseCheckout(database.work, merchantId, subjectId)
  return 'done'
}
