// Which connector carries a payment: by its brand, the channel's mode and the request's test mode (decisions, 6).

import type { CardBrands } from '../contract/brands.ts'
import type { ParameterError } from '../contract/formCheck.ts'
import type { Values } from '../contract/parameters/table.ts'
import type { ResultName } from '../contract/results/results.ts'
import type { ChannelSettings } from '../merchants/settings.ts'
import type { Connector, Mode, OperationRequest, OperationType } from './connector.ts'

/** The connectors of this process, handed in by `main`. */
export type Connectors = ReadonlyMap<string, Connector>

/** INTERNAL on a test channel goes to the simulator; so does INTERNAL on a live channel, marked as such. */
export function modeOf(channel: Pick<ChannelSettings, 'mode'>, testMode: string | undefined): Mode | ResultName {
  if (channel.mode === 'test') return testMode === 'EXTERNAL' ? 'external' : 'internal'
  if (testMode === 'EXTERNAL') return 'testModeOnLive'
  return testMode === 'INTERNAL' ? 'internal' : 'live'
}

/** The connector for cards in a mode. */
export function cardConnector(connectors: Connectors, mode: Mode): Connector | 'processorNotConfigured' {
  return connectors.get(mode === 'internal' ? 'simulator' : `cards ${mode}`) ?? 'processorNotConfigured'
}

/** 3-D Secure without a payment in a mode. */
export function authenticationConnector(connectors: Connectors, mode: Mode): Connector | 'processorNotConfigured' {
  return connectors.get(`threeDSecure ${mode}`) ?? 'processorNotConfigured'
}

/** A payment method that is no card: what it needs beyond the common parameters, and which connector carries it in a mode. */
export type Method = {
  readonly brand: string
  /** In searches: VA account-based, OT online transfer, PP slips that are paid before. */
  readonly code: 'VA' | 'OT' | 'PP'
  /** The connector's name without its mode. */
  readonly connector: string
  /** Absent = every mode that has the connector. */
  readonly modes?: readonly Mode[]
  readonly types: readonly OperationType[]
  /** Empty = every currency. */
  readonly currencies: readonly string[]
  /** Parameters that must be there before any call. */
  readonly needs: readonly string[]
  /** What else of a request the method does not take, all at once. */
  wrong?(values: Values, asked: OperationRequest): readonly ParameterError[]
  /** What a shopper's form asks for, by wire name, where the merchant has not said it; with what goes along unasked. */
  asks?(values: Values, settings: ChannelSettings, mode: Mode): MethodQuestions | undefined
}

export type MethodQuestions = {
  readonly fields: readonly string[]
  readonly along: Readonly<Record<string, string>>
  /** Whose language the form speaks where the shopper's has no texts for it. */
  readonly country: 'BR' | 'MX'
}

export const methodConnector = (
  connectors: Connectors,
  { connector, modes }: Method,
  mode: Mode,
): Connector | 'processorNotConfigured' =>
  (modes?.includes(mode) === false ? undefined : connectors.get(`${connector} ${mode}`)) ?? 'processorNotConfigured'

/** The methods of this process by brand, cards apart. */
export type Methods = ReadonlyMap<string, Method>

/** The brands behind the codes of a search: CC cards, VA accounts, OT transfers, PP slips. */
export function brandsOf(codes: readonly string[], methods: Methods, cards: CardBrands): string[] {
  const others = [...methods.values()].filter(({ code }) => codes.includes(code)).map(({ brand }) => brand)
  return codes.includes('CC') ? [...cards.rows.map(({ name }) => name), ...others] : others
}

/** The code of the method that has a brand; what has no brand, as an authentication alone, counts as by card. */
export const methodCodeOf = (brand: string | undefined, { methods }: { readonly methods: Methods }): 'CC' | Method['code'] =>
  methods.get(brand ?? '')?.code ?? 'CC'

/** The success code of each mode. */
export const successOf: Readonly<Record<Mode, ResultName>> = {
  internal: 'succeededInTestMode',
  external: 'succeededInConnectorTestMode',
  live: 'succeeded',
}
