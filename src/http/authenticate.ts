// Who is calling, and for which channel: 401 for a header that is none, 403 for a wrong token or an entity that is not the token's, then 400.

import type { Actor } from '../audit/entry.ts'
import type { LogInAttempt } from '../audit/failures.ts'
import { type Form, peek, readForm } from '../contract/form.ts'
import { matches } from '../contract/formats.ts'
import { hex32 } from '../contract/parameters/common.ts'
import type { ResultName } from '../contract/results/results.ts'
import { legacyParts, legacyToken } from '../merchants/access/legacy.ts'
import type { Action } from '../merchants/access/may.ts'
import { tokenLetters } from '../merchants/access/tokens.ts'
import type { Channel, Merchant, Token } from '../merchants/directory.ts'
import { heldForm } from '../reporting/requests/record.ts'
import { keyedHash } from '../vault/keys.ts'
import type { HttpAnswer, Request } from './answer.ts'
import { resultAnswer, takeBody } from './answer.ts'
import type { HttpParts } from './parts.ts'
import { merchantLine } from './turns.ts'

/** A caller and the entity that its request names: a channel, or a merchant whose rules choose the channel. Registrations can be a division's: then it
 * stands in the place of both. */
export type Caller = {
  readonly token: Token
  readonly entityId: string
  readonly entity: Channel | Merchant
  readonly merchantId: string
}

/** The channel whose payments alone are there for a caller; undefined: those of all channels of its merchant are. */
export const keptTo = ({ entity }: Caller): string | undefined =>
  entity.kind === 'channel' && entity.settings.ownChannelOnly ? entity.id : undefined

/** `action`: what is asked for. `otherwise`: the entity that is meant where none is named. */
export type Authenticate = (
  request: Request,
  form: Form,
  action: Action,
  otherwise?: string,
) => Caller | HttpAnswer | Promise<HttpAnswer>

export function authenticator(parts: HttpParts): Authenticate {
  const find = callerFinder(parts)
  return (request, ...asked) => {
    const found = find(request, ...asked)
    if (!isCaller(found)) return found
    const { merchantId, entityId, token } = found
    request.seen.caller = { merchantId, entityId, tokenId: token.id }
    request.isServers(merchantId)
    return found
  }
}

function callerFinder(parts: HttpParts): Authenticate {
  const { directory, failures, clock } = parts
  return (request, form, action, otherwise) => {
    const named = entityIn(form) ?? otherwise
    const credentials = credentialsOf(request, form)
    const refuse = (status: number, name: ResultName, parameter?: { name: string; message: string }) =>
      resultAnswer(parts, request, status, name, {
        entityId: named,
        tokenId: credentials && knownToken(parts, credentials.sent),
        ...(parameter && { parameterErrors: [parameter] }),
      })
    if (!credentials) return refuse(401, 'unauthenticated')
    const token = directory.token(credentials.sent)
    const failed = async (name: ResultName) => {
      const credential = knownToken(parts, credentials.sent)
      // Who asks with a good token for entities of others has guessed no password.
      const attempt = token
        ? { address: request.address, credential: token.id }
        : { ...guessOf(parts, request, credentials), ...(credential && { credential }) }
      return (await failures.count(attempt, clock.real())) ? refuse(429, 'tooManyFailures') : refuse(403, name)
    }

    if (!isGood(token, credentials)) return failed('unauthenticated')
    // Counted as a wrong one is, and as long on its way: else the next failure of its address would tell that one was right.
    if (mustWait(parts, request, token, credentials))
      return failures.count(guessOf(parts, request, credentials), clock.real()).then(() => refuse(429, 'tooManyFailures'))
    if (named === undefined) {
      const channels = directory.channelsOf(token)
      const actsElsewhere = token.entities.some(id => !directory.entity(id)) // in other cells
      if (channels.length !== 1 || actsElsewhere)
        return refuse(400, 'entityMissing', { name: 'entityId', message: 'is required: the token acts for several channels' })
      directory.mustServe(channels[0]!.merchantId)
      return callerFor(parts, token, channels[0]!.id, credentials.legacy) ?? failed('legacyCredentialsOff')
    }
    if (!matches(hex32, named)) return refuse(400, 'invalidParameter', { name: 'entityId', message: hex32.rule })
    const other = peek(form, 'authentication.entityId')
    if (other !== undefined && other !== named)
      return refuse(400, 'invalidParameter', { name: 'authentication.entityId', message: 'differs from entityId' })
    const entity = directory.entity(named)
    if (!entity || !directory.may(token, action, named)) return failed('entityNotTheTokens')
    // A division stands for a channel that has what it gives to those below it.
    if (action === 'register' && entity.kind === 'division' && !credentials.legacy) {
      const { id, name, channelDefaults: settings } = entity
      return { token, entityId: id, entity: { kind: 'channel', id, merchantId: id, name, settings }, merchantId: id }
    }
    if ('merchantId' in entity) directory.mustServe(entity.merchantId)
    if (
      entity.kind === 'psp' ||
      entity.kind === 'division' ||
      (entity.kind === 'merchant' && action !== 'report' && entity.settings.channelDispatching.length === 0)
    ) {
      return refuse(400, 'entityTooBroad', {
        name: 'entityId',
        message: 'must name a channel, or a merchant with channel dispatching',
      })
    }
    return callerFor(parts, token, named, credentials.legacy) ?? failed('legacyCredentialsOff')
  }
}

const entityIn = (form: Form): string | undefined => peek(form, 'entityId') ?? peek(form, 'authentication.entityId')

const isGood = (token: Token | undefined, { legacy }: Credentials): token is Token =>
  token !== undefined && (!legacy || token.legacy)

const mustWait = (parts: HttpParts, request: Request, token: Token, credentials: Credentials): boolean =>
  token.legacy &&
  parts.failures.mustWait(token.id, request.address, () => guessOf(parts, request, credentials), parts.clock.real())

/** The token of ours that a caller has shown who names no entity: then the one that is meant is worth looking for. */
export function tokenWithoutEntity(parts: HttpParts, request: Request, form: Form): Token | undefined {
  const credentials = entityIn(form) === undefined ? credentialsOf(request, form) : undefined
  if (!credentials) return undefined
  const token = parts.directory.token(credentials.sent)
  return isGood(token, credentials) && !mustWait(parts, request, token, credentials) ? token : undefined
}

/** A caller and the form that was read. */
export type CalledForm = { readonly form: Form; readonly caller: Caller }

/** The body of a POST, the query of a GET, and both of a DELETE. The body is taken. */
export function sentForm(request: Request): Form | 'tooManyParameters' {
  const { method, query, charset } = request
  if (method === 'POST') return readForm(takeBody(request), charset)
  const form = readForm(query)
  const more = method === 'DELETE' ? readForm(takeBody(request), charset) : undefined
  if (form === 'tooManyParameters' || more === 'tooManyParameters' || !more) return form
  return { pairs: [...form.pairs, ...more.pairs], broken: new Set([...form.broken, ...more.broken]) }
}

/** `form`: what was sent, where it has been read. `otherwise`: the entity that is meant where it names none. */
export type Meant = { readonly form?: Form | 'tooManyParameters'; readonly otherwise?: string | undefined }

export function readCaller(
  parts: HttpParts,
  authenticate: Authenticate,
  request: Request,
  action: Action,
  { form = sentForm(request), otherwise }: Meant = {},
): CalledForm | HttpAnswer | Promise<HttpAnswer> {
  if (form === 'tooManyParameters') return resultAnswer(parts, request, 400, form)
  request.seen.form = heldForm(form)
  const caller = authenticate(request, form, action, otherwise)
  if (!isCaller(caller)) return caller
  return { form, caller }
}

export const isCaller = (found: Caller | HttpAnswer | Promise<HttpAnswer>): found is Caller => 'token' in found

/**
 * In whose line a request waits for its turn: a merchant has one, from however many networks he asks. A password says nothing where it never came from before: one that
 * is right may have to wait like a wrong one.
 */
export function linesOf(
  { directory, failures }: HttpParts,
  authorization: string | undefined,
  { address, networks }: Pick<Request, 'address' | 'networks'>,
): readonly string[] {
  const sent = authorization && bearer.exec(authorization)?.[1]
  const token = sent ? directory.token(sent) : undefined
  const isMerchants = token && (!token.legacy || failures.cameFrom(token.id, address))
  const entity = isMerchants ? directory.entity(token.entities[0]!) : undefined
  return entity ? [merchantLine('merchantId' in entity ? entity.merchantId : entity.id)] : networks
}

/** As the audit names a caller. */
export const actorOf = ({ address }: Request, { token }: Caller): Actor => ({ kind: 'token', id: token.id, address })

/** The channel of a request: the one named, or the first that the merchant's rules choose by brand and currency. */
export function channelOf(
  parts: HttpParts,
  { entity }: Caller,
  brand: string | undefined,
  currency: string | undefined,
): Channel | undefined {
  if (entity.kind === 'channel') return entity
  const fits = (listed: readonly string[] | undefined, value: string | undefined) =>
    listed === undefined || listed.length === 0 || (value !== undefined && listed.includes(value))
  const rule = entity.settings.channelDispatching.find(
    ({ brands, currencies }) => fits(brands, brand) && fits(currencies, currency),
  )
  const channel = rule && parts.directory.entity(rule.channel)
  return channel?.kind === 'channel' && channel.merchantId === entity.id ? channel : undefined
}

function callerFor(parts: HttpParts, token: Token, entityId: string, legacy: boolean): Caller | undefined {
  const entity = parts.directory.entity(entityId) as Channel | Merchant
  const merchant = parts.directory.merchant(entity.merchantId)
  if (legacy && !merchant?.settings.legacyCredentials) return undefined
  return { token, entityId, entity, merchantId: entity.merchantId }
}

/** Whether the caller says who he is, rightly or not. */
export const hasCredentials = (request: Request, form: Form): boolean =>
  request.headers.authorization !== undefined || credentialsOf(request, form) !== undefined

const bearer = new RegExp(`^Bearer +([${tokenLetters}]+) *$`, 'i')

type Credentials = { readonly sent: string; readonly legacy: boolean }

/** The bearer token, or the user id and password of old clients when there is no header: in the body of a POST, in the query of a GET. */
function credentialsOf({ headers }: Request, form: Form): Credentials | undefined {
  const header = headers.authorization
  if (header !== undefined) {
    const sent = bearer.exec(header)?.[1]
    return sent === undefined ? undefined : { sent, legacy: false }
  }
  const userId = peek(form, 'authentication.userId')
  const password = peek(form, 'authentication.password')
  if (userId === undefined || password === undefined) return undefined
  return { sent: legacyToken(userId, password), legacy: true }
}

/** A guess as it is counted: neither the credential nor the user id stands in it. A bearer token may be made of the two as well. */
function guessOf({ keys }: HttpParts, { address }: Request, { sent }: Credentials): LogInAttempt {
  const start = (purpose: string, text: string) => keyedHash(keys, purpose, text).toString('hex').slice(0, 16)
  const name = legacyParts(sent)?.userId
  const user = name === undefined ? undefined : start('user id', name)
  return { address, user, credential: user ?? start('token', sent) }
}

const turnedAway: ReadonlySet<number> = new Set([401, 403, 429])

/** A line for whoever watches over the house: who was turned away, from where, and with which token where it is one of ours, or was. */
export function noteRefusal(
  { log }: HttpParts,
  { number: ndc, address }: Request,
  { status, result, tokenId }: HttpAnswer,
): void {
  if (!turnedAway.has(status)) return
  log.warn({ ndc, status, address, ...(result && { result }), ...(tokenId && { tokenId }) }, 'a caller was turned away')
}

/** The id of a token of ours, also of one that was revoked. */
const knownToken = ({ directory }: HttpParts, sent: string): string | undefined =>
  directory.token(sent)?.id ?? directory.revokedToken(sent)
