// What the form of a checkout shows: made for the shopper's page, nothing secret.

import { type Method, type MethodQuestions, methodConnector, modeOf } from '../connectors/registry.ts'
import { amountText, hundredths } from '../contract/amounts.ts'
import type { ParameterName, Values } from '../contract/parameters/table.ts'
import { storesOnly } from '../contract/requests.ts'
import type { Channel } from '../merchants/directory.ts'
import { type Shop, shopOf } from '../merchants/shop.ts'
import { isMode } from '../payments/initial/choose.ts'
import type { RegistrationRecord } from '../payments/initial/register.ts'
import { findConcluded } from '../payments/read/concluded.ts'
import { detailsOf } from '../registrations/record.ts'
import type { Registration } from '../registrations/store.ts'
import { registrationsFor } from '../registrations/use.ts'
import { type Checkout, isOpen, looksLikeCheckoutId, offeredRegistrations, openCheckout } from './checkout.ts'
import type { CheckoutParts } from './parts.ts'
import { findLastAttempt } from './store.ts'

/** How the form asks for a brand's data. */
export type FormMethod = 'card' | 'virtualAccount' | 'onlineTransfer' | 'prepayment'

/** Payment details that the shopper may pay with again. Nothing in it pays elsewhere. */
export type SavedDetails = {
  readonly id: string
  readonly brand: string
  readonly holder?: string
  readonly last4?: string
  readonly expiryMonth?: string
  readonly expiryYear?: string
  readonly accountId?: string
}

export type FormView = {
  readonly id: string
  /** Over: paid, expired or unknown; a shopper is never told which. */
  readonly state: 'open' | 'over'
  /** Payment details are stored and nothing is paid. */
  readonly standalone: boolean
  readonly paymentType?: string
  /** As on the wire: `92.00`. */
  readonly amount?: string
  readonly currency?: string
  /** Real time, milliseconds. */
  readonly expiresAt: number
  readonly shop: Shop
  /** What the channel takes, in its order. */
  readonly brands: readonly { readonly name: string; readonly method: FormMethod; readonly asks?: MethodQuestions }[]
  /** The merchant has set createRegistration. */
  readonly offersRegistration: boolean
  readonly registrations: readonly SavedDetails[]
  readonly requireCvv: boolean
  /** The same for saved details. */
  readonly requireCvvForRegistrations: boolean
  readonly billingName?: string
  readonly shopperResultUrl?: string
  /** The channel's setting `formOrigins`: the pages that may show the form; empty = any over https, in a sandbox any. */
  readonly frameAncestors: readonly string[]
  /** The build of the widget's script that a checkout with integrity=true is pinned to. */
  readonly scriptBuild?: string
}

/** `checkoutId`: as the wire names it. */
export async function formView(parts: CheckoutParts, checkoutId: string): Promise<FormView> {
  const looked = await look(parts, checkoutId)
  if (!looked) return nothing(checkoutId)
  const { checkout, offered, shown } = looked
  return {
    ...shown,
    state: (await isPayable(parts, checkout, shown.standalone)) ? 'open' : 'over',
    registrations: await savedDetails(parts, checkout.channelId, offered),
  }
}

/** What the form has to know of a checkout. What its merchant said is let go of before anything else is asked for: many may ask for the form of a large one. */
async function look(parts: CheckoutParts, checkoutId: string) {
  const opened = await openCheckout(parts, checkoutId)
  const channel = opened && parts.directory.entity(opened.channelId)
  if (!opened || channel?.kind !== 'channel') return undefined
  const { values, ...checkout } = opened
  return { checkout, offered: offeredRegistrations(values), shown: shownOf(parts, opened, channel) }
}

function shownOf(
  parts: CheckoutParts,
  { wireId, merchantId, values, scriptBuild, expiresAt }: Checkout,
  channel: Channel,
): Omit<FormView, 'state' | 'registrations'> {
  const { settings } = channel
  const said = (name: ParameterName) => values.get(name)
  const names = [said('customer.givenName'), said('customer.surname')].filter(name => name !== undefined)
  return {
    id: wireId,
    standalone: storesOnly(values),
    ...defined({
      paymentType: said('paymentType'),
      amount: said('amount') === undefined ? undefined : amountText(hundredths(said('amount')!)),
      currency: said('currency'),
      billingName: names.length === 2 ? names.join(' ') : undefined,
      shopperResultUrl: said('shopperResultUrl'),
      scriptBuild: scriptBuild ?? undefined,
    }),
    expiresAt: parts.clock.real() + expiresAt - parts.directory.businessTime(merchantId),
    shop: shopOf(parts.directory, channel.id, said('merchant.name')),
    brands: brandsOn(parts, channel, values),
    offersRegistration: said('createRegistration') === 'true',
    requireCvv: settings.requireCvv,
    requireCvvForRegistrations: settings.requireCvvForRegistrations,
    frameAncestors: settings.formOrigins,
  }
}

/** What a shopper sees of a checkout that is none. What only stands in the address in its place is not repeated. */
const nothing = (id: string): FormView => ({
  id: looksLikeCheckoutId(id) ? id : '',
  state: 'over',
  standalone: false,
  expiresAt: 0,
  shop: { name: '' },
  brands: [],
  offersRegistration: false,
  registrations: [],
  requireCvv: true,
  requireCvvForRegistrations: false,
  frameAncestors: [],
})

/** Not when it has been paid: whoever pays again pays nothing, and should not be asked. */
async function isPayable(parts: CheckoutParts, checkout: Omit<Checkout, 'values'>, isStandalone: boolean): Promise<boolean> {
  if (!isOpen(parts, checkout)) return false
  const last = await findLastAttempt(parts.database.work, checkout)
  if (!last) return true
  if (isStandalone) return false
  const payment = await findConcluded(parts.database.work, checkout.merchantId, last.subjectId)
  return !payment?.answer?.approved
}

/** The channel's own list in its order; else all cards, then what this process carries in the mode. */
function brandsOn(parts: CheckoutParts, { settings }: Channel, values: Values): FormView['brands'] {
  const mode = modeOf(settings, values.get('testMode'))
  const cards = parts.cardBrands.rows.map(({ name }) => name)
  const others = [...parts.methods.values()].filter(
    method => isMode(mode) && typeof methodConnector(parts.connectors, method, mode) !== 'string' && takes(method, values),
  )
  const stored = storesOnly(values)
  const methods = new Map<string, FormMethod>([
    ...cards.map(name => [name, 'card'] as const),
    ...(stored ? [] : others.map(({ brand, code }) => [brand, formMethods[code]] as const)),
  ])
  const { brands } = settings
  return (brands.length > 0 ? brands : [...methods.keys()])
    .filter(name => methods.has(name))
    .map(name => {
      const asks = isMode(mode) ? parts.methods.get(name)?.asks?.(values, settings, mode) : undefined
      return { name, method: methods.get(name)!, ...(asks && { asks }) }
    })
}

const formMethods: Readonly<Record<Method['code'], FormMethod>> = {
  VA: 'virtualAccount',
  OT: 'onlineTransfer',
  PP: 'prepayment',
}

/** A slip that could only be refused is not offered. */
function takes({ brand, code, types, currencies }: Method, values: Values): boolean {
  if (code !== 'PP') return true
  const type = values.get(`overridePaymentType[${brand}]`) ?? values.get('paymentType')
  return types.some(one => one === type) && currencies.includes(values.get('currency') ?? '')
}

/** In the merchant's order; of one card that was stored twice the later one alone. */
async function savedDetails(parts: CheckoutParts, channelId: string, ids: readonly string[]): Promise<SavedDetails[]> {
  if (ids.length === 0) return []
  const found = await registrationsFor(parts, channelId, ids)
  const usable = found.filter(({ usable, deletedAt }) => usable && deletedAt === null)
  const newest = new Map(usable.toSorted((one, other) => one.madeAt - other.madeAt).map(one => [shownAs(one), one.id]))
  const shown = new Set(newest.values())
  return [...new Set(ids)].flatMap(id => usable.filter(one => one.id === id && shown.has(id))).map(savedOf)
}

/** By it a shopper would know a card again: one that looks the same is taken for the same. */
function shownAs(registration: Registration): string {
  const { brand, last4, expiryMonth, expiryYear } = savedOf(registration)
  const bin = cardOf(registration)?.bin ?? ''
  return last4 === undefined ? registration.id : [brand, bin, last4, expiryMonth, expiryYear].join(' ')
}

const cardOf = ({ record }: Registration): RegistrationRecord['card'] => (JSON.parse(record) as RegistrationRecord).card

function savedOf(registration: Registration): SavedDetails {
  const details = detailsOf(registration)
  return {
    id: registration.id,
    brand: registration.brand,
    ...defined({
      holder: details.get('card.holder'),
      last4: cardOf(registration)?.last4Digits,
      expiryMonth: details.get('card.expiryMonth'),
      expiryYear: details.get('card.expiryYear'),
      accountId: details.get('virtualAccount.accountId'),
    }),
  }
}

/** Without the names that have no value. */
const defined = <Value extends object>(value: Value): { [Name in keyof Value]?: Exclude<Value[Name], undefined> } =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as never
