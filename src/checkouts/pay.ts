// The shopper presses pay. One attempt at a time: the same form again gets the answer of the first, another form ends what still waits for its shopper.
// Nothing is paid twice: whoever begins an attempt holds the lock on the checkout, and begins none beside one that is under way or has succeeded.

import { isDeepStrictEqual } from 'node:util'
import { currentName } from '../contract/brands.ts'
import { beginningOf, maskCardNumbers } from '../contract/cardNumbers.ts'
import type { Form } from '../contract/form.ts'
import { type FormCheck, formChecker, type ParameterError } from '../contract/formCheck.ts'
import type { Values } from '../contract/parameters/table.ts'
import { isOfShoppersForm, isPayers, isShoppers, requests, shoppersPrefix, storesOnly } from '../contract/requests.ts'
import { results } from '../contract/results/results.ts'
import type { Channel } from '../merchants/directory.ts'
import { cardNumberRules } from '../merchants/settings.ts'
import type { PaymentResponse } from '../payments/execute.ts'
import { type Refusal, resultUrlWrong } from '../payments/initial/choose.ts'
import { type PaymentClaim, type PaymentRequest, pay } from '../payments/initial/pay.ts'
import type { Payment } from '../payments/payment.ts'
import { findConcluded } from '../payments/read/concluded.ts'
import { givenText, readPayment } from '../payments/read/status.ts'
import { abandon, settledState } from '../payments/redirects/resume.ts'
import { insertClaimed } from '../payments/store/payments.ts'
import { insertRegistration } from '../payments/store/registrations.ts'
import type { Connection } from '../platform/database/connect.ts'
import { triedBefore } from '../platform/database/fairPool.ts'
import { chooseRegistration } from '../registrations/create.ts'
import { registrationRecord } from '../registrations/record.ts'
import { findRegistrations, type Registration } from '../registrations/store.ts'
import { usableRegistration, withRegistration } from '../registrations/use.ts'
import { keyedHashes } from '../vault/keys.ts'
import { type Checkout, isOpen, offeredRegistrations, openValues, resourcePathOf } from './checkout.ts'
import { scheduleMissedReturn } from './missedReturn.ts'
import type { CheckoutParts } from './parts.ts'
import { type CheckoutAttempt, findLastAttempt, insertAttempt, lockCheckout } from './store.ts'

/** Longer than a connector usually takes; then the shopper is told that it is pending. */
const patienceSeconds = 20
/** Of one checkout: enough for a forgetful shopper, too few to try out cards. */
export const attemptsMost = 20

/** What came of pressing pay, and where the shopper's shop is. */
export type PressResult = { readonly said: PaymentResponse | Refusal; readonly shopperResultUrl?: string }

/** The shopper's request. `number`: 32 hex characters, the id of a registration. */
export type Press = {
  readonly number: string
  readonly address: string
  readonly publicUrl: string
  /** Work in a turn of whoever presses. */
  inTurn<Value>(work: () => Value): Value | Promise<Value>
}

export async function pressPay(parts: CheckoutParts, checkout: Checkout, form: Form, press: Press): Promise<PressResult> {
  const registration = await registrationOf(parts, checkout, form)
  // All that its merchant said is judged again, whoever presses.
  const asked = await press.inTurn(() => requestOf(parts, checkout, form, press, registration))
  if ('refused' in asked) return { said: asked }
  const request = registration && 'id' in registration ? await withRegistration(parts, asked, registration) : asked
  if (typeof request === 'string') return { said: notPayable(request) }
  const shopperResultUrl = request.values.get('shopperResultUrl')
  const hashes = formHashes(parts, checkout, form)
  const last = await findLastAttempt(parts.database.work, checkout)
  triedBefore(last?.attempt ?? 0)
  const said = storesOnly(checkout.values)
    ? await store(parts, checkout, request, hashes, press.number)
    : ((await unlessBegun(parts, checkout, hashes, last)) ??
      (await pay(parts, { ...request, claim: claimFor(parts, checkout, hashes, shopperResultUrl) })))
  return { said, ...(shopperResultUrl !== undefined && { shopperResultUrl }) }
}

/** So many wrong names are told. */
const wrongMost = 20

/** What merchant and shopper say together: the shopper may say what the interface gives to shoppers, and nothing else. */
function requestOf(
  parts: CheckoutParts,
  checkout: Checkout,
  form: Form,
  { address, publicUrl }: Press,
  registration: Registration | Refusal | undefined,
): PaymentRequest | Refusal {
  const channel = parts.directory.entity(checkout.channelId)
  if (channel?.kind !== 'channel' || !isOpen(parts, checkout)) return { refused: 'checkoutGone', stored: false }
  const brand = form.pairs.findLast(([name]) => name === 'paymentBrand')?.[1] ?? checkout.values.get('paymentBrand') ?? ''
  const isSlip = parts.methods.get(currentName(brand))?.code === 'PP'
  const sent = form.pairs.filter(([name, value]) => (isShoppers(name) || (isSlip && isPayers(name))) && value !== '')
  const wrong = sent.filter(
    ([name]) => /^customParameters\[/.test(name) && !name.startsWith(`customParameters[${shoppersPrefix}`),
  )
  const { values } = checkout
  const otherShop = sent.some(([name, value]) => name === 'shopperResultUrl' && values.has(name) && values.get(name) !== value)
  const errors: ParameterError[] = [
    ...wrong.slice(0, wrongMost).map(([name]) => ({
      name: beginningOf(maskCardNumbers(name), 100),
      message: `must begin with ${shoppersPrefix} where a shopper sends it`,
    })),
    ...(otherShop ? [{ name: 'shopperResultUrl', message: 'is not the one that the checkout was made with' }] : []),
  ]
  if (errors.length > 0) return { refused: 'invalidParameter', stored: false, parameterErrors: errors }
  if (registration && 'refused' in registration) return registration

  const merged = new Map<string, string>([...sent, ...values])
  if (isSlip && !merged.has('customer.ip')) merged.set('customer.ip', address)
  // These two are the shopper's to choose; how a brand pays is the merchant's.
  for (const name of ['paymentBrand', 'createRegistration']) {
    const chosen = sent.findLast(([one]) => one === name)?.[1]
    if (chosen !== undefined) merged.set(name, chosen)
  }
  if (registration)
    for (const name of ['card.number', 'card.expiryMonth', 'card.expiryYear', 'paymentBrand', 'createRegistration'])
      merged.delete(name)
  const type = overriddenType(parts, values, registration?.brand ?? merged.get('paymentBrand'), merged.get('card.number'))
  if (type !== undefined) merged.set('paymentType', type)
  // What cannot be stored is paid all the same.
  if (parts.methods.has(currentName(merged.get('paymentBrand') ?? ''))) merged.delete('createRegistration')
  const pairs = [...merged].filter(([name]) => !/^(overridePaymentType|registrations)\[/.test(name))
  const { settings } = channel
  const judge = judges(parts)[storesOnly(values) ? 'registration' : registration ? 'saved' : 'payment']
  const checked = judge({ pairs, broken: form.broken }, settings.lenient, cardNumberRules(settings), values)
  if (checked.errors.length > 0) return { refused: 'invalidParameter', stored: false, parameterErrors: checked.errors }
  const url = checked.values.has('shopperResultUrl') ? resultUrlWrong(checked.values, channel, parts.sandbox) : undefined
  if (url) return url
  const { wireId, tokenId } = checkout
  const said = checked.values.get('shopperResultUrl')
  const isMerchants = said === undefined || values.has('shopperResultUrl') || isOfShop(said, channel)
  return {
    channel,
    values: checked.values,
    known: checked.known,
    ndc: wireId,
    publicUrl,
    tokenId,
    checkout: wireId,
    ...(!isMerchants && { shopSaidBy: 'shopper' as const }),
  }
}

/** On a site that the channel lets hold the form, or in an app of its: the merchant stands for it, whoever says it. */
function isOfShop(url: string, { settings }: Channel): boolean {
  const { origin, protocol } = new URL(url)
  return settings.formOrigins.includes(origin) || settings.appSchemes.includes(protocol.slice(0, -1))
}

/** What the merchant wants of a brand, whoever names it: the registration, the shopper, or the number of the card. */
function overriddenType(
  { cardBrands }: CheckoutParts,
  values: Values,
  brand: string | undefined,
  number: string | undefined,
): string | undefined {
  const detected = number === undefined ? undefined : cardBrands.detect(number)?.name
  const types = [brand && currentName(brand), brand, detected].map(name => values.get(`overridePaymentType[${name}]`))
  return types.find(type => type !== undefined)
}

const notPayable = (refused: Refusal['refused']): Refusal => ({
  refused,
  stored: false,
  parameterErrors: [{ name: 'registrationId', message: 'cannot be paid with here' }],
})

/** Payment details that the merchant offered to this shopper, where the shopper has chosen some. */
async function registrationOf(
  parts: CheckoutParts,
  { values, channelId }: Checkout,
  { pairs }: Form,
): Promise<Registration | Refusal | undefined> {
  const id = pairs.findLast(([name, value]) => name === 'registrationId' && value !== '')?.[1]
  if (id === undefined) return undefined
  if (!offeredRegistrations(values).includes(id)) return notPayable('registrationDoesNotExist')
  const registration = await usableRegistration(parts, channelId, id)
  return typeof registration === 'string' ? notPayable(registration) : registration
}

type Judges = Readonly<Record<'payment' | 'saved' | 'registration', FormCheck>>
const made = new WeakMap<object, Judges>()
function judges({ cardBrands }: CheckoutParts): Judges {
  const known = made.get(cardBrands) ?? {
    payment: formChecker(requests.checkoutPayment, cardBrands),
    saved: formChecker(requests.registrationPayment, cardBrands),
    registration: formChecker(requests.registration, cardBrands),
  }
  made.set(cardBrands, known)
  return known
}

/** The first is stored; where the lookup key is changed another gateway may have stored one of the others. */
type FormHashes = ReturnType<typeof keyedHashes>

/** What the shopper sent, without the CVV: keyed hashes of it say whether the same comes again. */
function formHashes({ keys }: CheckoutParts, { wireId }: Checkout, form: Form): FormHashes {
  const sent = form.pairs.filter(([name]) => isOfShoppersForm(name) && name !== 'card.cvv')
  return keyedHashes(keys, 'checkout form', JSON.stringify([wireId, ...sent.map(pair => JSON.stringify(pair)).sort()]))
}

/** What the last attempt came to, where that forbids another one. What waits for its shopper is ended for a form that is another one. */
async function unlessBegun(
  parts: CheckoutParts,
  checkout: Checkout,
  hashes: FormHashes,
  last: CheckoutAttempt | undefined,
): Promise<PaymentResponse | undefined> {
  const payment = last && (await findConcluded(parts.database.work, checkout.merchantId, last.subjectId))
  if (!payment || (payment.answer && !payment.answer.approved)) return undefined
  if (payment.answer) return standing(parts, payment)
  const isSame = hashes.some(hash => last.form.equals(hash))
  if (!isSame) await abandon(parts, payment)
  const state = await settledState(parts, payment.merchantId, payment.id, undefined, patienceSeconds)
  const failed = state.payment.answer && !state.payment.answer.approved
  return failed && !isSame ? undefined : standing(parts, payment)
}

/** How a payment stands now, in the words in which it was answered. */
async function standing(parts: CheckoutParts, { merchantId, id }: Pick<Payment, 'merchantId' | 'id'>): Promise<PaymentResponse> {
  const payment = (await readPayment(parts, merchantId, id))!
  return { outcome: payment.answer ? results[payment.answer.result].outcome : 'pending', body: givenText(parts, payment) }
}

/** The attempt, its payment and the call that a missed return will be are one transaction. */
function claimFor(
  parts: CheckoutParts,
  checkout: Checkout,
  hashes: FormHashes,
  shopperResultUrl: string | undefined,
): PaymentClaim {
  return async row => {
    const begun = await begin(parts, checkout, hashes, row.payment.id, shopperResultUrl, async db => {
      if (row.registration) await insertRegistration(db, row.registration, parts.clock.real())
      await insertClaimed(db, row)
    })
    if (begun === 'ours' || 'refused' in begun) return begun
    await settledState(parts, checkout.merchantId, begun.subjectId, undefined, patienceSeconds)
    return standing(parts, { merchantId: checkout.merchantId, id: begun.subjectId })
  }
}

/** Where nothing is paid the registration is the attempt, and there is one only. */
async function store(
  parts: CheckoutParts,
  checkout: Checkout,
  request: PaymentRequest,
  hashes: FormHashes,
  id: string,
): Promise<PaymentResponse | Refusal> {
  const row = chooseRegistration(parts, request, checkout.merchantId, id)
  if ('refused' in row) return row
  const begun = await begin(parts, checkout, hashes, id, request.values.get('shopperResultUrl'), db =>
    insertRegistration(db, row, parts.clock.real()),
  )
  if (begun !== 'ours' && 'refused' in begun) return begun
  const subjectId = begun === 'ours' ? row.id : begun.subjectId
  const [stored] = await findRegistrations(parts.database.work, [checkout.merchantId], [subjectId])
  const body = registrationRecord(stored!, parts.build, parts.directory.businessTime(checkout.merchantId))
  return { outcome: 'success', body: JSON.stringify(body) }
}

/** Begins an attempt, or tells of the one that is in its way. */
async function begin(
  parts: CheckoutParts,
  checkout: Checkout,
  [form]: FormHashes,
  subjectId: string,
  shopperResultUrl: string | undefined,
  write: (db: Connection) => Promise<unknown>,
): Promise<'ours' | CheckoutAttempt | Refusal> {
  const { merchantId, id, wireId } = checkout
  const lock = (db: Connection) => lockCheckout(db, merchantId, id)
  return parts.database.inChain(merchantId, id, lock, async (db, row) => {
    if (!row || !isOpen(parts, row)) return { refused: 'checkoutGone', stored: false }
    const last = await findLastAttempt(db, row)
    const payment = last && (await findConcluded(db, merchantId, last.subjectId))
    if (last && !(payment?.answer && !payment.answer.approved)) return last
    if (last?.attempt === attemptsMost) return { refused: 'tooManyAttempts', stored: false }
    // What was changed meanwhile is not what the shopper saw.
    if (!isDeepStrictEqual(openValues(parts, row), checkout.values)) return { refused: 'checkoutChanged', stored: false }
    const madeAt = parts.directory.businessTime(merchantId)
    await insertAttempt(db, row, { attempt: (last?.attempt ?? 0) + 1, subjectId, form, madeAt })
    await write(db)
    if (shopperResultUrl !== undefined) {
      const resourcePath = resourcePathOf(checkout)
      const pressed = { merchantId, subjectId: id, id: wireId, resourcePath, shopperResultUrl, expiresAt: row.expiresAt }
      await scheduleMissedReturn(parts, db, pressed)
    }
    return 'ours'
  })
}
