// Somebody of the staff without a browser: signs in, asks for pages, sends forms as pages of the office send them.

import assert from 'node:assert/strict'
import type pg from 'pg'
import { randomHex, systemClock, systemRandom } from '../../src/platform/clock.ts'
import { type Connection, inTransaction } from '../../src/platform/database/connect.ts'
import { makeStaffLink } from '../../src/staff/links.ts'
import type { StaffParts } from '../../src/staff/parts.ts'
import type { Role } from '../../src/staff/permissions.ts'
import { beginSession } from '../../src/staff/sessions.ts'
import { insertPerson, lockPeople } from '../../src/staff/store.ts'
import { decode } from './entities.ts'
import { type TestGateway, testKeys } from './gateway.ts'

export type OfficeReply = {
  readonly status: number
  readonly text: string
  readonly headers: Headers
  /** Where the browser is sent, below the base address. */
  readonly location: string | undefined
}

export type Clerk = {
  readonly id: string | null
  readonly name: string
  readonly cookies: Map<string, string>
  ask(path: string, headers?: Record<string, string>): Promise<OfficeReply>
  /** As a form of our own page is sent; `headers` may say otherwise. */
  post(path: string, fields?: Record<string, string> | URLSearchParams, headers?: Record<string, string>): Promise<OfficeReply>
  /** As a form with a file is sent. */
  upload(path: string, fields: Record<string, string>, file: { name: string; bytes: string | Buffer }): Promise<OfficeReply>
}

/** A browser of somebody who is not signed in yet. */
export function visitor(gateway: Pick<TestGateway, 'baseUrl'>, id: string | null = null, name = ''): Clerk {
  const cookies = new Map<string, string>()
  const exchange = async (path: string, init: RequestInit): Promise<OfficeReply> => {
    const response = await fetch(`${gateway.baseUrl}${path}`, { redirect: 'manual', ...init })
    for (const cookie of response.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0]!.split('=') as [string, string]
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location') ?? undefined
    return { status: response.status, text: await response.text(), headers: response.headers, location }
  }
  const cookie = () => ({ Cookie: [...cookies].map(pair => pair.join('=')).join('; ') })
  const ourPage = { 'Sec-Fetch-Site': 'same-origin', Origin: gateway.baseUrl }
  return {
    id,
    name,
    cookies,
    upload(path, fields, { name, bytes }) {
      const body = new FormData()
      for (const [field, value] of Object.entries(fields)) body.append(field, value)
      body.append('file', new Blob([new Uint8Array(Buffer.from(bytes))]), name)
      return exchange(path, { method: 'POST', headers: { ...cookie(), ...ourPage }, body })
    },
    ask: (path, headers = {}) => exchange(path, { headers: { ...cookie(), ...headers } }),
    post: (path, fields = {}, headers = ourPage) =>
      exchange(path, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...cookie(), ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
  }
}

const chance = { keys: testKeys, random: systemRandom }

/** Somebody with a role, for entities and all below; signed in already, without the cost of a password. */
export async function signedIn(
  gateway: TestGateway,
  role: Role,
  entities: readonly string[],
  clock = systemClock,
): Promise<Clerk> {
  return signedInAgain(gateway, await addStaff(gateway.pool, role, entities, clock), clock)
}

/** One more session of somebody, in a browser of its own. */
export async function signedInAgain(
  gateway: TestGateway,
  { id, name }: { readonly id: string; readonly name: string },
  clock = systemClock,
): Promise<Clerk> {
  const { token } = await inTransaction(gateway.pool, db =>
    beginSession(db, { ...chance, clock } as unknown as StaffParts, id, { address: '127.0.0.1', agent: 'test' }, 'staffSignedIn'),
  )
  const clerk = visitor(gateway, id, name)
  clerk.cookies.set('tollgate_office', token)
  return clerk
}

/** Somebody who has no password yet, and the link to set one. */
export async function addStaff(
  pool: pg.Pool,
  role: Role,
  entities: readonly string[],
  clock = systemClock,
): Promise<{ id: string; name: string; link: string }> {
  const id = randomHex(systemRandom)
  const name = `${role}.${id.slice(0, 8)}@office.example`
  const madeAt = clock.real()
  assert.ok(await insertPerson(pool, { id, name, role, entities, password: null, sealedTotp: null, factorsBy: null, madeAt }))
  return { id, name, link: `/office/invitation/${await makeStaffLink(pool, { ...chance, clock }, id)}` }
}

/** What is done in a transaction that has locked somebody, as a colleague's who changes that person. */
export const whileLocked = <Value>(pool: pg.Pool, id: string, work: (db: Connection) => Promise<Value>): Promise<Value> =>
  inTransaction(pool, async db => {
    assert.equal((await lockPeople(db, [id])).length, 1)
    return work(db)
  })

/** The developer of a sandbox, through its door. */
export async function sandboxDeveloper(gateway: TestGateway, clock = systemClock): Promise<Clerk> {
  const clerk = visitor(gateway)
  const { status } = await clerk.ask(`/office/enter/${await makeStaffLink(gateway.pool, { ...chance, clock }, null)}`)
  assert.equal(status, 303)
  return clerk
}

/** What stands in an element with this id, as text. */
export const textOf = ({ text }: OfficeReply, id: string): string =>
  decode(new RegExp(`id="${id}"[^>]*>([^<]*)<`).exec(text)?.[1] ?? '')
