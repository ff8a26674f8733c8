// Endpoints: who is told of what, and with which secret. Made inactive, active once a test notification got a 2xx.

import { tellAndDo } from '../../audit/act.ts'
import { type Recorder, record } from '../../audit/chain.ts'
import type { AuditAction, AuditEntry } from '../../audit/entry.ts'
import { type Clock, type Random, randomHex, timeOrderedId } from '../../platform/clock.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { lockCounted } from '../../platform/database/locks.ts'
import { urlRefusal } from '../../platform/egress/address.ts'
import { type CallResult, isAcknowledged } from '../../platform/egress/call.ts'
import type { Keys } from '../../vault/keys.ts'
import { seal, unseal } from '../../vault/seal.ts'
import { type FieldChoice, onTheWire, testNotification, type Wrapper } from '../notification.ts'
import type { NotificationParts } from '../parts.ts'
import {
  beforeAllWaiting,
  findEndpoint,
  giveUpNext,
  insertEndpoint,
  isOwedAny,
  listEndpoints,
  lockEndpoint,
  type StoredEndpoint,
  setSecrets,
  setState,
  type WaitingPlace,
} from './store.ts'

export type EndpointKind = 'webhook' | 'cursor' | 'request'

export type Endpoint = {
  readonly merchantId: string
  readonly id: string
  readonly kind: EndpointKind
  /** Absent: all channels of the merchant. */
  readonly channelId: string | null
  readonly name: string | null
  readonly url: string | null
  readonly types: readonly string[]
  readonly fields: FieldChoice
  readonly wrapper: Wrapper
  readonly sealedSecrets: Buffer
  readonly alertAddress: string | null
  readonly state: 'inactive' | 'active' | 'disabled' | 'deleted'
  readonly emitted: number
  readonly createdAt: number
  readonly activatedAt: number | null
}

export type NewEndpoint = Pick<Endpoint, 'merchantId' | 'kind'> &
  Partial<Pick<Endpoint, 'channelId' | 'name' | 'url' | 'types' | 'fields' | 'wrapper' | 'alertAddress'>> & {
    /** 64 hex characters, for merchants who bring the secret that their receivers know; absent = a new one. */
    readonly secret?: string
  }

export type EndpointParts = Pick<NotificationParts, 'clock' | 'random' | 'keys' | 'database' | 'call' | 'egress'> & Recorder

/** Something that can be mended by whoever asked; the sentence says what. */
export type EndpointRefusal = { readonly refused: string }

/** As long as a `notificationUrl` may be: all of a merchant are read for each batch of his events. */
const urlMost = 2048
/** Of one merchant: each is looked at for every event. */
export const endpointsMost = 100

export const eventTypes: readonly string[] = ['PAYMENT', 'REGISTRATION']

export async function createEndpoint(
  parts: EndpointParts,
  wanted: NewEndpoint,
): Promise<{ endpoint: Endpoint; secret: string } | EndpointRefusal> {
  const { kind, url = null, types = eventTypes, secret } = wanted
  if ((kind === 'webhook') !== (url !== null))
    return { refused: kind === 'webhook' ? 'A webhook needs a url.' : 'Only a webhook has a url.' }
  const refusal = url === null ? undefined : urlRefusal(url, parts.egress)
  if (refusal !== undefined) return { refused: `The url ${refusal}.` }
  if ((url ?? '').length > urlMost) return { refused: `The url must have at most ${urlMost} characters.` }
  const unknown = types.find(type => !eventTypes.includes(type))
  if (unknown !== undefined || types.length === 0) return { refused: `types must be some of ${eventTypes.join(', ')}.` }
  if (secret !== undefined && !/^[0-9a-fA-F]{64}$/.test(secret)) return { refused: 'The secret must be 64 hex characters.' }
  const made = newEndpoint(parts, wanted)
  return inTransaction(parts.database.work, async db => {
    await lockCounted(db, 'endpoints', [made.endpoint.merchantId])
    const all = await listEndpoints(db, [made.endpoint.merchantId])
    // A channel whose payments name a URL of their own has one of the gateway's making.
    if (all.filter(one => one.kind !== 'request').length >= endpointsMost)
      return { refused: `A merchant has at most ${endpointsMost} endpoints: delete some first.` }
    if (!(await insertEndpoint(db, made.endpoint))) return { refused: `There is an endpoint called ${wanted.name} already.` }
    await note(db, parts, 'endpointMade', made.endpoint, { kind })
    return made
  })
}

/** Whoever is told of payments, and with which secret, is told of in the audit. Addresses stay out: they may hold credentials. */
const note = (db: Connection, recorder: Recorder, action: AuditAction, endpoint: Endpoint, details = {}): Promise<number> =>
  record(db, recorder, [{ ...noted(action, endpoint), details }])

const noted = (action: AuditAction, { merchantId, channelId, id }: Endpoint) =>
  ({ action, entityId: channelId ?? merchantId, subject: id }) satisfies AuditEntry

/** The row of an endpoint that is not stored yet. One that is not called needs no test and is active at once. */
export function newEndpoint(
  { clock, random, keys }: { clock: Clock; random: Random; keys: Keys },
  wanted: NewEndpoint,
): { endpoint: Endpoint; secret: string } {
  const { merchantId, kind } = wanted
  const now = clock.real()
  const id = timeOrderedId(now, random)
  const secret = (wanted.secret ?? random.bytes(32).toString('hex')).toUpperCase()
  const active = kind !== 'webhook'
  const endpoint: Endpoint = {
    merchantId,
    id,
    kind,
    channelId: wanted.channelId ?? null,
    name: wanted.name ?? null,
    url: wanted.url ?? null,
    types: wanted.types ?? eventTypes,
    fields: wanted.fields ?? 'all',
    wrapper: wanted.wrapper ?? 'none',
    sealedSecrets: seal(keys, random, endpointSecretPlace(merchantId, id), JSON.stringify([secret])),
    alertAddress: wanted.alertAddress ?? null,
    state: active ? 'active' : 'inactive',
    emitted: 0,
    createdAt: now,
    activatedAt: active ? now : null,
  }
  return { endpoint, secret }
}

/** The valid secrets in hex, the older first. */
export const secretsOf = (
  keys: Keys,
  { merchantId, id, sealedSecrets }: Pick<Endpoint, 'merchantId' | 'id' | 'sealedSecrets'>,
): string[] => JSON.parse(unseal(keys, endpointSecretPlace(merchantId, id), sealedSecrets))

/** The valid secrets for somebody who asks to see them. */
export async function showSecrets(parts: EndpointParts, endpoint: Endpoint): Promise<string[]> {
  await inTransaction(parts.database.work, db => note(db, parts, 'secretShown', endpoint))
  return secretsOf(parts.keys, endpoint)
}

/** What binds secrets to their endpoint. */
export const endpointSecretPlace = (merchantId: string, id: string) => `endpoint ${merchantId} ${id}`

/** Sends the test notification, outside any transaction, and tells the audit what came of it. */
export const testEndpoint = (parts: EndpointParts, endpoint: Endpoint): Promise<CallResult> =>
  tellAndDo(parts.database.work, parts, noted('endpointTested', endpoint), async ({ came }) => {
    const called = await callForTest(parts, endpoint)
    came.status = called.status ?? 'no answer'
    return called
  })

async function callForTest(parts: EndpointParts, endpoint: Endpoint): Promise<CallResult> {
  const { headers, body } = onTheWire(testNotification, {
    id: randomHex(parts.random),
    sequence: 0,
    attempt: 1,
    seconds: Math.floor(parts.clock.real() / 1000),
    wrapper: endpoint.wrapper,
    secrets: secretsOf(parts.keys, endpoint).map(secret => Buffer.from(secret, 'hex')),
    iv: parts.random.bytes(12),
  })
  return parts.call({ owner: endpoint.merchantId, method: 'POST', url: endpoint.url!, headers, body })
}

/**
 * Active from now on, if the test notification got a 2xx and nobody has changed it since it was asked for: whoever closed it meanwhile, or gave it another secret, knew nothing
 * of this call. It is owed what is recorded after this moment, and nothing of before it was closed.
 */
export async function activateEndpoint(
  parts: EndpointParts,
  merchantId: string,
  id: string,
  businessNow: number,
): Promise<CallResult | EndpointRefusal> {
  const endpoint = await findEndpoint(parts.database.work, merchantId, id)
  if (endpoint?.kind !== 'webhook' || endpoint.state === 'deleted') return { refused: 'There is no such webhook.' }
  if (endpoint.state === 'disabled') await giveUpOwed(parts, merchantId, id, businessNow, patiently(parts))
  const called = await testEndpoint(parts, endpoint)
  if (!isAcknowledged(called)) return called
  return changeLocked(parts, merchantId, id, async (db, locked) => {
    // The moment is taken under the lock that fan-out takes too: no event falls between the two.
    if (locked.state === 'active') return called
    if (locked.version !== endpoint.version) return { refused: 'It was changed meanwhile: look at it, and try again.' }
    if (await isOwedAny(db, merchantId, id))
      return { refused: 'What it was owed when it was closed is still being given up: try again in a minute.' }
    await setState(db, merchantId, id, 'active', parts.clock.real())
    await note(db, parts, 'endpointActivated', locked)
    return called
  })
}

/** The first step of a rotation makes a second secret that is valid beside the first; the second step ends the first. */
export async function rotateSecret(
  parts: EndpointParts,
  merchantId: string,
  id: string,
  step: 'begin' | 'finish',
): Promise<{ secrets: string[] } | EndpointRefusal> {
  return changeLocked(parts, merchantId, id, async (db, endpoint) => {
    const secrets = secretsOf(parts.keys, endpoint)
    if (step === 'begin' && secrets.length > 1) return { refused: 'A rotation is under way: finish it first.' }
    if (step === 'finish' && secrets.length < 2) return { refused: 'No rotation is under way.' }
    const next = step === 'begin' ? [secrets[0]!, parts.random.bytes(32).toString('hex').toUpperCase()] : secrets.slice(1)
    await setSecrets(
      db,
      merchantId,
      id,
      seal(parts.keys, parts.random, endpointSecretPlace(merchantId, id), JSON.stringify(next)),
    )
    await note(db, parts, 'secretRotated', endpoint, { step })
    return { secrets: next }
  })
}

/**
 * No more is sent, from this moment on; what was still scheduled is given up behind it, in steps. What nobody has given up after a while, or who was killed in between, is
 * left to a round of deliveries. `disabled` can be activated again.
 */
export async function closeEndpoint(
  parts: EndpointParts,
  merchantId: string,
  id: string,
  state: 'disabled' | 'deleted',
  businessNow: number,
  mayGoOn: () => boolean = patiently(parts),
): Promise<{ givenUp: number } | EndpointRefusal> {
  const refused = await changeLocked(parts, merchantId, id, async (db, endpoint): Promise<EndpointRefusal | undefined> => {
    if (state === 'disabled' && endpoint.kind !== 'webhook') return { refused: 'Only a webhook can be disabled.' }
    await setState(db, merchantId, id, state)
    await note(db, parts, 'endpointClosed', endpoint, { state })
    return undefined
  })
  return refused ?? { givenUp: await giveUpOwed(parts, merchantId, id, businessNow, mayGoOn) }
}

/** So many are given up at once, and locked for no longer than that takes. */
const giveUpStep = 1000

/** Gives up what a closed endpoint is owed, while it may. Returns how many. What others have locked in this moment is left. */
export async function giveUpOwed(
  { database }: Pick<EndpointParts, 'database'>,
  merchantId: string,
  id: string,
  businessNow: number,
  mayGoOn: () => boolean,
): Promise<number> {
  let total = 0
  let place: WaitingPlace | undefined = beforeAllWaiting
  while (place && mayGoOn()) {
    const { givenUp, cameTo } = await giveUpNext(database.work, merchantId, id, place, businessNow, giveUpStep)
    total += givenUp
    place = cameTo
  }
  return total
}

/** As long as somebody waits for a page. */
function patiently({ clock }: Pick<EndpointParts, 'clock'>): () => boolean {
  const until = clock.elapsed() + 2000
  return () => clock.elapsed() < until
}

async function changeLocked<Value>(
  { database }: Pick<EndpointParts, 'database'>,
  merchantId: string,
  id: string,
  change: (db: Connection, endpoint: StoredEndpoint) => Promise<Value>,
): Promise<Value | EndpointRefusal> {
  return inTransaction(database.work, async db => {
    const endpoint = await lockEndpoint(db, merchantId, id)
    return endpoint && endpoint.state !== 'deleted' ? change(db, endpoint) : { refused: 'There is no such endpoint.' }
  })
}
