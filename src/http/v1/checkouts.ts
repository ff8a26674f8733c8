// Checkouts by the interface: a merchant makes, changes, reads and deletes them; a shopper's browser pays.

import { type Checkout, openCheckout, resourcePathOf, wireIdOf } from '../../checkouts/checkout.ts'
import { changeCheckoutValues, createCheckout, deleteCheckout, type NewCheckout } from '../../checkouts/create.ts'
import { type PressResult, pressPay } from '../../checkouts/pay.ts'
import { readCheckout } from '../../checkouts/status.ts'
import type { Form } from '../../contract/form.ts'
import { limits } from '../../contract/limits.ts'
import type { Nested } from '../../contract/nested.ts'
import { isOfShoppersForm } from '../../contract/requests.ts'
import { isGood, results } from '../../contract/results/results.ts'
import { withStatusPath } from '../../contract/statusPath.ts'
import type { Action } from '../../merchants/access/may.ts'
import type { Channel } from '../../merchants/directory.ts'
import type { PaymentResponse } from '../../payments/execute.ts'
import type { Refusal } from '../../payments/initial/choose.ts'
import { plainRecord } from '../../payments/read/record.ts'
import { randomHex } from '../../platform/clock.ts'
import { turnedOutToBe } from '../../platform/database/fairPool.ts'
import { heldForm } from '../../reporting/requests/record.ts'
import { type HttpAnswer, json, type Request, redirectAnswer, resultAnswer, tooManyAtOnce } from '../answer.ts'
import { type Caller, hasCredentials, keptTo, type Meant, sentForm, tokenWithoutEntity } from '../authenticate.ts'
import { isForeign } from '../host.ts'
import type { HttpParts } from '../parts.ts'
import type { RequestFunction } from '../router.ts'
import { isHeldForBrowser, isHeldForMerchant, isWithinNetwork } from '../underWay.ts'
import { type Admission, admit, admitRead, identify, ruledChannel } from './admission.ts'

export const postCheckout =
  (admission: Admission): RequestFunction =>
  async request => {
    const { parts } = admission
    const identified = identify(admission, request)
    if (!('caller' in identified)) return identified
    // A refusal names what would have been its id. It lets its holder pay, and is no number of a request, which stands in logs and traces.
    const id = randomHex(parts.random)
    const named = { ...identified, ndc: wireIdOf(identified.caller.merchantId, id) }
    const admitted = await admit(admission, request, named, ruledChannel(admission, identified), admission.checks.checkout)
    if (!('channel' in admitted)) return admitted
    const made = await createCheckout(parts, admitted, id)
    return 'refused' in made ? refusalAnswer(parts, request, admitted.channel, named.ndc, made) : json(200, created(parts, made))
  }

const created = ({ build }: HttpParts, { wireId, createdAt, integrity, link }: NewCheckout): Nested => ({
  ...plainRecord(results.checkoutCreated, build, createdAt, wireId),
  id: wireId,
  ...(integrity !== undefined && { integrity }),
  ...(link !== undefined && { link }),
})

/** Who names no entity means the channel of the checkout. It is looked for when a token of ours has come, in the turns of that token, and not before. */
async function meantBy({ parts }: Admission, request: Request, id: string): Promise<Meant> {
  const form = sentForm(request)
  const token = form === 'tooManyParameters' ? undefined : tokenWithoutEntity(parts, request, form)
  if (!token) return { form }
  turnedOutToBe(token.id)
  return { form, otherwise: (await openCheckout(parts, id))?.channelId }
}

export const postCheckoutUpdate =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const identified = identify(admission, request, await meantBy(admission, request, id))
    if (!('caller' in identified)) return identified
    const checkout = await openCheckout(parts, id)
    const channel = channelFor(parts, checkout, identified.caller, 'pay')
    if (!checkout || !channel) return gone(parts, request, identified.caller.entityId)
    if (!isHeldForMerchant(parts, request, channel.merchantId, checkout.values)) return tooManyAtOnce(parts, request)
    const admitted = await admit(admission, request, { ...identified, ndc: id }, channel, admission.checks.checkoutUpdate)
    if (!('channel' in admitted)) return admitted
    const refused = await changeCheckoutValues(parts, { ...admitted, checkout })
    if (refused) return refusalAnswer(parts, request, channel, id, refused)
    return resultAnswer(parts, request, 200, 'checkoutUpdated', { entityId: channel.id, ndc: id, more: { id } })
  }

export const removeCheckout =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const admitted = admitRead(admission, request, admission.checks.read, 'pay', await meantBy(admission, request, id))
    if (!('caller' in admitted)) return admitted
    const checkout = await openCheckout(parts, id)
    const channel = channelFor(parts, checkout, admitted.caller, 'pay')
    if (!checkout || !channel) return gone(parts, request, admitted.caller.entityId)
    if (!isHeldForMerchant(parts, request, channel.merchantId, checkout.values)) return tooManyAtOnce(parts, request)
    const refused = await deleteCheckout(parts, checkout)
    if (refused) return refusalAnswer(parts, request, channel, id, refused)
    return resultAnswer(parts, request, 200, 'checkoutDeleted', { entityId: channel.id, ndc: id, more: { id } })
  }

/** The status of a checkout. Where the channel allows it the id alone opens it, because some clients send nothing else. */
export const getCheckout =
  (ofMerchants: Admission, ofShoppers: Admission, kind: 'payment' | 'registration'): RequestFunction =>
  async (request, { id = '' }) => {
    const form = sentForm(request)
    const isNamed = form === 'tooManyParameters' || hasCredentials(request, form)
    const admission = isNamed ? ofMerchants : ofShoppers
    const { parts } = admission
    if (!isNamed && !isWithinNetwork(admission.underWay, request)) return tooManyAtOnce(parts, request)
    const opened = isNamed ? undefined : await openCheckout(parts, id)
    const isOpen = channelOfCheckout(parts, opened)?.settings.statusReadsWithoutCredentials
    const meant = isNamed ? await meantBy(ofMerchants, request, id) : { form, otherwise: opened?.channelId }
    const admitted = isOpen ? undefined : admitRead(admission, request, admission.checks.read, 'read', meant)
    if (admitted && !('caller' in admitted)) return admitted
    const checkout = opened ?? (await openCheckout(parts, id))
    const channel = channelOfCheckout(parts, checkout)
    const entityId = admitted?.caller.entityId ?? channel?.id
    if (!checkout || !channel || (admitted && !channelFor(parts, checkout, admitted.caller, 'read')))
      return gone(parts, request, entityId)
    // Whoever has seen the id may read where that alone opens it: he uses up nobody else's readings.
    const reader = admitted ? 'its merchant' : request.networks[0]!
    const { statusReadsPerMinute } = channel.settings
    const wait = admission.reads(channel.merchantId, `${id} ${reader}`, statusReadsPerMinute, parts.clock.real())
    if (wait > 0)
      return resultAnswer(parts, request, 429, 'tooManyReads', {
        entityId,
        ndc: id,
        more: { id },
        headers: { 'Retry-After': String(wait) },
      })
    const mayHold = admitted
      ? isHeldForMerchant(parts, request, channel.merchantId, checkout.values)
      : isHeldForBrowser(parts, request, checkout.values)
    if (!mayHold) return tooManyAtOnce(parts, request)
    const status = await readCheckout(parts, checkout, kind)
    if (status === 'gone') return gone(parts, request, entityId)
    return status === 'pending'
      ? resultAnswer(parts, request, 200, 'pending', { entityId: channel.id, ndc: id })
      : json(200, status)
  }

/** What is looked at of a shopper's form, and no more: it is held for as long as its payment takes, and those of second clicks with it. */
function shoppersForm(request: Request): Form | 'tooManyParameters' {
  const form = sentForm(request)
  if (form === 'tooManyParameters') return form
  request.seen.form = heldForm(form)
  const pairs = form.pairs.filter(([name]) => isOfShoppersForm(name))
  const broken = new Set(pairs.map(([name]) => name).filter(name => form.broken.has(name)))
  return pairs.length > limits.shoppersParametersMax ? 'tooManyParameters' : { pairs, broken }
}

/** Of one checkout: a second click waits for the first, and more than a few are no shopper's. */
const pressesAtOnce = 8

/** The shopper's browser: our own form asks for JSON, a plain one is sent on to where the shopper belongs. */
export const postCheckoutPayment =
  (admission: Admission): RequestFunction =>
  async (request, { id = '' }) => {
    const { parts } = admission
    const asJson = (request.headers.accept ?? '').includes('application/json')
    if (asJson && isForeign(request, parts.publicUrl())) return resultAnswer(parts, request, 403, 'foreignOrigin')
    if (!admission.underWay(request, id, pressesAtOnce)) return tooManyAtOnce(parts, request)
    const form = shoppersForm(request)
    if (form === 'tooManyParameters') return resultAnswer(parts, request, 400, form)
    const checkout = await openCheckout(parts, id, true)
    if (!checkout) return resultAnswer(parts, request, 400, 'checkoutGone')
    // What its merchant said is held as well.
    if (!isHeldForBrowser(parts, request, checkout.values)) return tooManyAtOnce(parts, request)
    request.seen.caller = { merchantId: checkout.merchantId, entityId: checkout.channelId }
    const pressed = await pressPay(parts, checkout, form, request)
    parts.count.payment('refused' in pressed.said ? 'refused' : pressed.said.outcome)
    return asJson ? formAnswer(parts, request, checkout, pressed) : browserAnswer(parts, request, checkout, pressed)
  }

/** What the form has to know: the result, and where the shopper goes from here. */
function formAnswer(parts: HttpParts, request: Request, checkout: Checkout, { said, shopperResultUrl }: PressResult): HttpAnswer {
  if ('refused' in said) return refusalOf(parts, request, checkout, said)
  const { result, buildNumber, timestamp, ndc } = JSON.parse(said.body) as Nested
  const redirect = onwards(said)
  const leaves = redirect === undefined && isGood(said.outcome)
  return json(isGood(said.outcome) ? 200 : 400, {
    result: result!,
    ...(redirect !== undefined && { redirect }),
    ...(leaves && shopperResultUrl !== undefined && { shopperResultUrl: backTo(checkout, shopperResultUrl) }),
    buildNumber: buildNumber!,
    timestamp: timestamp!,
    ndc: ndc!,
  })
}

/** A form that a browser sent by itself: it goes on to the page of the redirect, or back to the shop, whatever came of it. */
function browserAnswer(parts: HttpParts, request: Request, checkout: Checkout, pressed: PressResult): HttpAnswer {
  const { said, shopperResultUrl } = pressed
  const redirect = 'refused' in said ? undefined : onwards(said)
  const url = redirect?.url ?? (shopperResultUrl === undefined ? undefined : backTo(checkout, shopperResultUrl))
  return url === undefined ? formAnswer(parts, request, checkout, pressed) : redirectAnswer(url)
}

/** Where the shopper goes before going back to the shop: to the other side, or to the slip that was issued. */
function onwards({ body }: PaymentResponse): { url: string } | undefined {
  const { redirect, resultDetails } = JSON.parse(body) as {
    redirect?: { url: string }
    resultDetails?: { EXTERNAL_SYSTEM_LINK?: string }
  }
  const link = resultDetails?.EXTERNAL_SYSTEM_LINK
  return redirect ?? (link === undefined ? undefined : { url: link })
}

const backTo = (checkout: Checkout, url: string): string => withStatusPath(url, checkout.wireId, resourcePathOf(checkout))

const refusalOf = (parts: HttpParts, request: Request, { wireId, channelId }: Checkout, refused: Refusal): HttpAnswer =>
  refusalAnswer(parts, request, { id: channelId }, wireId, refused)

function refusalAnswer(
  parts: HttpParts,
  request: Request,
  { id: entityId }: Pick<Channel, 'id'>,
  ndc: string,
  { refused, parameterErrors }: Refusal,
): HttpAnswer {
  if (refused === 'checkoutGone') return gone(parts, request, entityId)
  const status = refused === 'tooManyAttempts' ? 429 : 400
  return resultAnswer(parts, request, status, refused, { entityId, ndc, ...(parameterErrors && { parameterErrors }) })
}

/** Nobody is told whether it is paid, over, another merchant's, or never was. */
const gone = (parts: HttpParts, request: Request, entityId: string | undefined): HttpAnswer =>
  resultAnswer(parts, request, 400, 'checkoutGone', { entityId })

/** The channel of a checkout, for whoever may act for it: a token of another channel of the merchant may not. */
function channelFor(parts: HttpParts, checkout: Checkout | undefined, caller: Caller, action: Action): Channel | undefined {
  const channel = channelOfCheckout(parts, checkout)
  if (channel?.merchantId !== caller.merchantId) return undefined
  if ((keptTo(caller) ?? channel.id) !== channel.id) return undefined
  return parts.directory.may(caller.token, action, channel.id) ? channel : undefined
}

function channelOfCheckout(parts: HttpParts, checkout: Checkout | undefined): Channel | undefined {
  const channel = checkout && parts.directory.entity(checkout.channelId)
  return channel?.kind === 'channel' ? channel : undefined
}
