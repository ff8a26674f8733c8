// A checkout: what a merchant wants to be paid, until its shopper has paid it in the form, or its time is over.

import type { NamedParameter, ParameterName, Values } from '../contract/parameters/table.ts'
import { storesOnly } from '../contract/requests.ts'
import { shortTail } from '../merchants/merchantTail.ts'
import { refuseElsewhere } from '../platform/database/elsewhere.ts'
import { asksFor, pressedWeight } from '../platform/database/fairPool.ts'
import { isMarked, marked } from '../vault/marks.ts'
import { seal, unseal } from '../vault/seal.ts'
import type { CheckoutParts } from './parts.ts'
import { type CheckoutName, type CheckoutRow, findCheckout } from './store.ts'

export type Checkout = Omit<CheckoutRow, 'sealed'> & {
  /** As the wire names it: 32 upper-case hex characters, a dot, and what names its merchant; at most 48 characters. */
  readonly wireId: string
  /** What the merchant said. */
  readonly values: Values
}

export const wireIdOf = (merchantId: string, id: string): string => `${id.toUpperCase()}.${shortTail(merchantId)}`

/** Where the merchant reads what became of it. */
export const resourcePathOf = (checkout: Pick<Checkout, 'wireId' | 'values'>): string =>
  `/v1/checkouts/${checkout.wireId}/${storesOnly(checkout.values) ? 'registration' : 'payment'}`

/** The last of the 32 signs of its id, by which it is known again. */
const mark = { signs: 8, encoding: 'hex' } as const
/** `chance`: 32 hex characters. */
export const checkoutId = ({ keys }: Pick<CheckoutParts, 'keys'>, chance: string): string =>
  marked(keys, chance.slice(0, -mark.signs), mark)

const shape = /^([0-9A-F]{32})\.([0-9a-z]{1,14})$/
export const looksLikeCheckoutId = (text: string): boolean => shape.test(text)

/** A checkout that was not deleted; its time may be over. `isPressed`: somebody presses Pay. */
export async function openCheckout(parts: CheckoutParts, wireId: string, isPressed = false): Promise<Checkout | undefined> {
  const [, hex, tail] = shape.exec(wireId) ?? []
  const merchantId = tail === undefined ? undefined : parts.directory.merchantOfTail(tail)
  if (merchantId === undefined) return undefined
  parts.directory.mustServe(merchantId)
  const id = hex!.toLowerCase()
  if (isMarked(parts.keys, id, mark)) asksFor(id, isPressed ? pressedWeight : 1)
  const row = await findCheckout(parts.database.work, merchantId, id)
  if (!row) await refuseElsewhere(parts.database.work, merchantId)
  if (!row) return undefined
  const { sealed, ...rest } = row // as many bytes again, for as long as the checkout is held
  return { ...rest, wireId, values: openValues(parts, { ...rest, sealed }) }
}

/** Until then the shopper may pay. */
export const isOpen = (
  { directory }: Pick<CheckoutParts, 'directory'>,
  { merchantId, expiresAt, endedAt }: Pick<CheckoutRow, 'merchantId' | 'expiresAt' | 'endedAt'>,
): boolean => endedAt === null && directory.businessTime(merchantId) < expiresAt

/** What of a request stays with its checkout: nothing secret, nothing of the caller, and not what its shopper says better. */
export const keptValues = (values: Values, known: ReadonlyMap<string, NamedParameter>): Values =>
  new Map([...values].filter(([name]) => !known.get(name)!.parameter.secret && !passing.test(name))) as Values
const passing = /^((card|virtualAccount|customer\.browser|authentication)\.|(entityId|integrity|validMinutes)$)/

export const sealValues = (
  { keys, random }: Pick<CheckoutParts, 'keys' | 'random'>,
  { merchantId, id }: CheckoutName,
  values: Values,
): Buffer => seal(keys, random, checkoutPlace(merchantId, id), JSON.stringify([...values]))

export const openValues = (
  { keys }: Pick<CheckoutParts, 'keys'>,
  { merchantId, id, sealed }: Pick<CheckoutRow, 'merchantId' | 'id' | 'sealed'>,
): Values => new Map(JSON.parse(unseal(keys, checkoutPlace(merchantId, id), sealed)) as [ParameterName, string][])

/** What binds the parameters of a checkout to it. */
export const checkoutPlace = (merchantId: string, id: string): string => `checkout ${merchantId} ${id}`

/** The registrations that the form offers, as the merchant listed them. */
export const offeredRegistrations = (values: Values): readonly string[] =>
  [...values].filter(([name]) => /^registrations\[\d+\]\.id$/.test(name)).map(([, id]) => id)
