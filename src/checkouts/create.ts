// A merchant makes a checkout, changes it, and takes it away.

import { timingSafeEqual } from 'node:crypto'
import type { ParameterError } from '../contract/formCheck.ts'
import { limits } from '../contract/limits.ts'
import type { Values } from '../contract/parameters/table.ts'
import { requests } from '../contract/requests.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { Channel } from '../merchants/directory.ts'
import { keyHours, keyReused } from '../payments/idempotency.ts'
import { type Refusal, resultUrlWrong } from '../payments/initial/choose.ts'
import type { PaymentRequest } from '../payments/initial/pay.ts'
import { findPayment } from '../payments/store/read.ts'
import type { Connection } from '../platform/database/connect.ts'
import { addDue } from '../platform/due/store.ts'
import type { DueHandler } from '../platform/due/worker.ts'
import { type Checkout, isOpen, keptValues, offeredRegistrations, openValues, sealValues, wireIdOf } from './checkout.ts'
import type { CheckoutParts } from './parts.ts'
import {
  type CheckoutRow,
  changeCheckout,
  endCheckout,
  eraseCheckout,
  findCheckout,
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

/** `id`: 32 hex characters by chance. A request with an Idempotency-Key has an id that follows from it, so that its twin makes none. */
export async function createCheckout(
  parts: CheckoutParts,
  { channel, values, known, key, tokenId }: PaymentRequest,
  id: string,
): Promise<NewCheckout | Refusal> {
  const refused = refusalOf(parts, channel, values) ?? lifeRefused(channel, values)
  if (refused) return refused
  const { merchantId } = channel
  const now = parts.directory.businessTime(merchantId)
  const minutes = Number(values.get('validMinutes') ?? limits.checkoutMinutes)
  const build = values.get('integrity') === 'true' ? parts.formBuild() : undefined
  const idOf = (hash: Buffer) => hash.toString('hex', 0, 16)
  // While the lookup key is changed a twin may come under the one before it.
  const before = key?.older && (await findCheckout(parts.database.work, merchantId, idOf(key.older.hash)))
  const name = { merchantId, id: before ? before.id : key ? idOf(key.hash) : id }
  const row: CheckoutRow = {
    ...name,
    channelId: channel.id,
    tokenId: tokenId!,
    sealed: sealValues(parts, name, keptValues(values, known)),
    fingerprint: key?.fingerprint ?? null,
    scriptBuild: build?.build ?? null,
    createdAt: now,
    expiresAt: now + minutes * 60_000,
    endedAt: null,
  }
  // First what takes it away again: a process that dies in between leaves nothing that stays.
  const hours = Math.max(minutes / 60 + erasedAfterHours, key ? keyHours : 0)
  const erasedAt = parts.clock.real() + hours * 3_600_000
  await addDue(parts.database.work, checkoutErasure, merchantId, row.id, erasedAt)
  const made = await insertCheckout(parts.database.work, row)
  const first = made ? row : (await findCheckout(parts.database.work, merchantId, row.id))!
  const fingerprint = before ? key!.older!.fingerprint : key?.fingerprint
  if (!made && !(fingerprint && first.fingerprint && timingSafeEqual(first.fingerprint, fingerprint))) return keyReused
  const wireId = wireIdOf(merchantId, row.id)
  return {
    ...name,
    wireId,
    createdAt: first.createdAt,
    ...(build && { integrity: build.integrity }),
    ...(values.has('validMinutes') && { link: `${parts.publicUrl()}/pay/${wireId}` }),
  }
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
    const payment = last && (await findPayment(db, merchantId, last.subjectId))
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
