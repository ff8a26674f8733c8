// Endpoints in the database.

import { type Connection, timeParameter } from '../../platform/database/connect.ts'
import { servedHere } from '../../platform/database/elsewhere.ts'
import { owing } from '../store.ts'
import type { Endpoint } from './endpoint.ts'

const columns = `merchant_id as "merchantId", id, kind, channel_id as "channelId", name, url, types, fields, wrapper, sealed_secrets as "sealedSecrets",
  alert_address as "alertAddress", state, emitted, created_at as "createdAt", activated_at as "activatedAt"`

/** `version`: another one after each change. */
export type StoredEndpoint = Endpoint & { readonly version: string }
const versioned = `${columns}, xmin::text as version`

/** False when the name is taken, or the channel has its endpoint for requests already. */
export async function insertEndpoint(db: Connection, endpoint: Endpoint): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into endpoints (merchant_id, id, kind, channel_id, name, url, types, fields, wrapper, sealed_secrets, alert_address, state, created_at, activated_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) on conflict do nothing`,
    [
      endpoint.merchantId,
      endpoint.id,
      endpoint.kind,
      endpoint.channelId,
      endpoint.name,
      endpoint.url,
      endpoint.types,
      endpoint.fields,
      endpoint.wrapper,
      endpoint.sealedSecrets,
      endpoint.alertAddress,
      endpoint.state,
      timeParameter(endpoint.createdAt),
      endpoint.activatedAt === null ? null : timeParameter(endpoint.activatedAt),
    ],
  )
  return rowCount === 1
}

export async function findEndpoint(db: Connection, merchantId: string, id: string): Promise<StoredEndpoint | undefined> {
  const { rows } = await db.query<StoredEndpoint>(`select ${versioned} from endpoints where merchant_id = $1 and id = $2`, [
    merchantId,
    id,
  ])
  return rows[0]
}

/** By its id alone, for the operator; none that was deleted. */
export async function findEndpointOfAny(db: Connection, id: string): Promise<Endpoint | undefined> {
  const { rows } = await db.query<Endpoint>(`select ${columns} from endpoints where id = $1 and state <> 'deleted'`, [id])
  return rows[0]
}

export async function findEndpointByName(db: Connection, merchantId: string, name: string): Promise<Endpoint | undefined> {
  const { rows } = await db.query<Endpoint>(
    `select ${columns} from endpoints where merchant_id = $1 and name = $2 and state <> 'deleted'`,
    [merchantId, name],
  )
  return rows[0]
}

/** All endpoints that were not deleted; of some merchants, or of all for the operator. */
export async function listEndpoints(
  db: Connection,
  merchantIds: readonly string[] | null,
  kind?: Endpoint['kind'],
): Promise<Endpoint[]> {
  const { rows } = await db.query<Endpoint>(
    `select ${columns} from endpoints
      where ($1::uuid[] is null or merchant_id = any ($1)) and ($2::text is null or kind = $2) and state <> 'deleted'
      order by merchant_id, created_at, id`,
    [merchantIds, kind],
  )
  return rows
}

export async function lockEndpoint(db: Connection, merchantId: string, id: string): Promise<StoredEndpoint | undefined> {
  const { rows } = await db.query<StoredEndpoint>(
    `select ${versioned} from endpoints where merchant_id = $1 and id = $2 for update`,
    [merchantId, id],
  )
  return rows[0]
}

/**
 * Locks all endpoints of some merchants, whatever their state: fan-out and activation exclude each other. It waits for nobody: a merchant of whom somebody else
 * has one is in use. So is one whose endpoints change in this moment.
 */
export async function lockEndpoints(
  db: Connection,
  merchantIds: readonly string[],
): Promise<{ readonly locked: readonly Endpoint[]; readonly inUse: ReadonlySet<string> }> {
  const { rows } = await db.query<Endpoint & { owner: string }>({
    name: 'lock endpoints',
    text: `with locked as (
             select * from endpoints where merchant_id = any ($1) and state <> 'deleted' order by merchant_id, id for update skip locked)
           select every.merchant_id as owner, own.* from endpoints every left join (select ${columns} from locked) own
               on own."merchantId" = every.merchant_id and own.id = every.id
            where every.merchant_id = any ($1) and every.state <> 'deleted' order by every.merchant_id, every.id`,
    values: [merchantIds],
  })
  return {
    locked: rows.filter(({ id }) => id !== null).map(({ owner: _owner, ...endpoint }) => endpoint),
    inUse: new Set(rows.filter(({ id }) => id === null).map(({ owner }) => owner)),
  }
}

export async function setState(
  db: Connection,
  merchantId: string,
  id: string,
  state: Endpoint['state'],
  activatedAt?: number,
): Promise<void> {
  await db.query(
    'update endpoints set state = $3, activated_at = coalesce($4, activated_at) where merchant_id = $1 and id = $2',
    [merchantId, id, state, activatedAt === undefined ? null : timeParameter(activatedAt)],
  )
}

export async function setSecrets(db: Connection, merchantId: string, id: string, sealed: Buffer): Promise<void> {
  await db.query('update endpoints set sealed_secrets = $3 where merchant_id = $1 and id = $2', [merchantId, id, sealed])
}

/** How many deliveries each endpoint has now been given. */
export async function setEmitted(
  db: Connection,
  counts: readonly Pick<Endpoint, 'merchantId' | 'id' | 'emitted'>[],
): Promise<void> {
  await db.query({
    name: 'set emitted',
    text: `update endpoints e set emitted = given.emitted
             from unnest($1::uuid[], $2::uuid[], $3::bigint[]) as given (merchant_id, id, emitted)
            where e.merchant_id = given.merchant_id and e.id = given.id`,
    values: [counts.map(one => one.merchantId), counts.map(one => one.id), counts.map(one => one.emitted)],
  })
}

/** A delivery that waits, in the order of chains. */
export type WaitingPlace = { readonly rootId: string; readonly position: number }
export const beforeAllWaiting: WaitingPlace = { rootId: '0'.repeat(32), position: 0 }

const closedStates = `('disabled', 'deleted')`

/**
 * Gives up the next `limit` deliveries that a closed endpoint is owed behind a place. Those that somebody else has locked are passed by: it waits for nobody. `cameTo` is
 * absent when there are none behind the place.
 */
export async function giveUpNext(
  db: Connection,
  merchantId: string,
  id: string,
  after: WaitingPlace,
  businessNow: number,
  limit: number,
): Promise<{ readonly givenUp: number; readonly cameTo: WaitingPlace | undefined }> {
  // Planned each time, for this limit and these ids: by what it knows of all endpoints, the database would read all of a long backlog.
  const { rows } = await db.query<WaitingPlace & { givenUp: number }>({
    text: `
      with waiting as (
        select merchant_id, endpoint_id, root_id, position from deliveries
         where merchant_id = $1 and endpoint_id = $2 and state = 'scheduled' and (root_id, position) > ($3, $4) and ${servedHere('$1::uuid')}
           and exists (select from endpoints e where e.merchant_id = $1 and e.id = $2 and e.state in ${closedStates})
         order by root_id, position limit $5 for update skip locked),
      ended as (
        update deliveries d set state = 'given up', settled_at = $6, leased_until = null from waiting w
         where d.merchant_id = w.merchant_id and d.endpoint_id = w.endpoint_id and d.position = w.position returning 1)
      select root_id as "rootId", position, (select count(*) from ended) as "givenUp" from waiting order by root_id desc, position desc limit 1`,
    values: [merchantId, id, after.rootId, after.position, limit, timeParameter(businessNow)],
  })
  const [last] = rows
  return { givenUp: last?.givenUp ?? 0, cameTo: last && { rootId: last.rootId, position: last.position } }
}

export async function isOwedAny(db: Connection, merchantId: string, id: string): Promise<boolean> {
  const { rows } = await db.query<{ owed: boolean }>(
    `select exists (select from deliveries where merchant_id = $1 and endpoint_id = $2 and state = 'scheduled') as owed`,
    [merchantId, id],
  )
  return rows[0]!.owed
}

/** Closed endpoints for which something waits still: of whoever was stopped while giving it up. Found by skipping through the index of what waits. */
export async function listClosedOwed(db: Connection, limit: number): Promise<Pick<Endpoint, 'merchantId' | 'id'>[]> {
  const { rows } = await db.query<Pick<Endpoint, 'merchantId' | 'id'>>({
    name: 'list closed endpoints that are owed',
    text: `
      with recursive ${owing("state = 'scheduled'")}
      select e.merchant_id as "merchantId", e.id
        from owing join endpoints e on e.merchant_id = owing.merchant_id and e.id = owing.endpoint_id and e.state in ${closedStates}
       where ${servedHere('e.merchant_id')} limit $1`,
    values: [limit],
  })
  return rows
}

/** Webhooks to which nothing is sent any more, of all merchants. */
export async function countDisabled(db: Connection): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*) from endpoints where kind = 'webhook' and state = 'disabled'`,
  )
  return rows[0]!.count
}
