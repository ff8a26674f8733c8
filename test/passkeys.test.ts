// Passkeys: a device of software makes keys and signs, right and wrong in one thing each; what is not exactly right lets nobody in, and nothing counts twice.

import assert from 'node:assert/strict'
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { after, before, describe, it, test } from 'node:test'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { clockWith } from '../src/platform/clock.ts'
import { passkeysMost, relyingParty } from '../src/staff/passkeys/passkeys.ts'
import { endSessionsOf, setFactors } from '../src/staff/store.ts'
import { decode } from './support/entities.ts'
import { sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { type Clerk, type OfficeReply, signedIn, visitor, whileLocked } from './support/office.ts'

let gateway: TestGateway
let now = Date.now()
const clock = clockWith(() => now)
before(async () => {
  gateway = await testGateway({ clock, environment: { PUBLIC_URL: 'http://localhost:1' } })
})
after(() => gateway.stop())

const sha = (data: string | Buffer) => createHash('sha256').update(data).digest()
const base64url = (data: Buffer | string) => Buffer.from(data).toString('base64url')
const origin = () => gateway.baseUrl.replace('127.0.0.1', 'localhost')
const there = 0x01
const known = 0x04
const attested = 0x40

/** What a device may get wrong. */
type Wrong = {
  readonly type?: string
  readonly challenge?: string
  readonly origin?: string
  readonly crossOrigin?: boolean
  readonly rpId?: string
  readonly flags?: number
  readonly id?: string
  readonly algorithm?: number
}

function device(kind: 'ec' | 'rsa' | 'ed25519' = 'ec') {
  const { publicKey, privateKey } =
    kind === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : kind === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ed25519')
  const id = randomBytes(32)
  let counter = 0
  const said = (type: string, challenge: string, wrong: Wrong) =>
    JSON.stringify({
      type: wrong.type ?? type,
      challenge: wrong.challenge ?? challenge,
      origin: wrong.origin ?? origin(),
      crossOrigin: wrong.crossOrigin ?? false,
    })
  const data = (flags: number, wrong: Wrong, more = Buffer.alloc(0)) => {
    const count = Buffer.alloc(4)
    count.writeUInt32BE(counter)
    return Buffer.concat([sha(wrong.rpId ?? 'localhost'), Buffer.from([wrong.flags ?? flags]), count, more])
  }
  return {
    id: base64url(id),
    count(value: number) {
      counter = value
    },
    make(challenge: string, wrong: Wrong = {}) {
      const key = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, Buffer.from('a0', 'hex')])
      return JSON.stringify({
        id: wrong.id ?? base64url(id),
        type: 'public-key',
        response: {
          clientDataJSON: base64url(said('webauthn.create', challenge, wrong)),
          authenticatorData: base64url(data(there | known | attested, wrong, key)),
          publicKey: base64url(publicKey.export({ format: 'der', type: 'spki' })),
          publicKeyAlgorithm: wrong.algorithm ?? { ec: -7, ed25519: -8, rsa: -257 }[kind],
        },
      })
    },
    sign(challenge: string, wrong: Wrong = {}) {
      const client = said('webauthn.get', challenge, wrong)
      const bytes = data(there | known, wrong)
      const signature = sign(kind === 'ed25519' ? null : 'sha256', Buffer.concat([bytes, sha(client)]), privateKey)
      return {
        id: wrong.id ?? base64url(id),
        response: { clientDataJSON: base64url(client), authenticatorData: base64url(bytes), signature: base64url(signature) },
      }
    },
  }
}

const challengeIn = ({ text }: OfficeReply): string => JSON.parse(decode(/data-options="([^"]*)"/.exec(text)![1]!)).challenge
const page = '/office/account/passkeys'
const add = async (clerk: Clerk, credential: string, name = 'My phone') => clerk.post(page, { name, credential })
async function clerkWith(own = device()): Promise<{ clerk: Clerk; own: ReturnType<typeof device> }> {
  const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
  assert.equal((await add(clerk, own.make(challengeIn(await clerk.ask(page))))).location, page)
  return { clerk, own }
}
const enter = async (credential: object, by = visitor(gateway)) => ({
  by,
  reply: await by.post('/office/sign-in/passkey', { credential: JSON.stringify(credential), to: '/office/account' }),
})
const newChallenge = async () => challengeIn(await visitor(gateway).ask('/office/sign-in'))
const forgive = () => gateway.pool.query('delete from sign_in_attempts; delete from log_in_failures')

describe('a passkey', () => {
  for (const kind of ['ec', 'rsa', 'ed25519'] as const)
    it(`${kind}: signs in without a password, as both factors do, and the audit tells of it`, async () => {
      const { clerk, own } = await clerkWith(device(kind))
      const { by, reply } = await enter(own.sign(await newChallenge()))
      assert.equal(reply.location, '/office/account')
      assert.ok((await by.ask('/office/account')).text.includes(clerk.name))
      const { rows } = await gateway.pool.query(
        `select action, replace(entity_id::text, '-', '') as entity from audit where subject = $1 or actor = $1 order by sequence desc limit 2`,
        [clerk.id],
      )
      assert.deepEqual(rows, [
        { action: 'staffSignedIn', entity: sandbox.merchantId },
        { action: 'passkeyMade', entity: sandbox.merchantId },
      ])
      const listed = await by.ask(page)
      assert.match(listed.text, /My phone/)
      assert.doesNotMatch(listed.text, />never</)
    })

  it('that is removed lets nobody in; those of others cannot be removed', async () => {
    const { clerk, own } = await clerkWith()
    const other = await signedIn(gateway, 'admin', [readSeed(sandboxSeed).psp.id], clock)
    for (const id of [own.id, '%00', 'x'.repeat(2000)]) assert.equal((await other.post(`${page}/${id}/remove`)).status, 404)
    assert.equal((await enter(own.sign(await newChallenge()))).reply.status, 303)
    assert.equal((await clerk.post(`${page}/${own.id}/remove`)).location, page)
    assert.equal((await enter(own.sign(await newChallenge()))).reply.status, 403)
  })

  it('goes with a reset of its person, and with whoever is removed', async () => {
    const admin = await signedIn(gateway, 'admin', [readSeed(sandboxSeed).psp.id], clock)
    for (const action of ['reset', 'remove']) {
      const { clerk, own } = await clerkWith()
      assert.ok((await admin.post(`/office/staff/${clerk.id}/${action}`)).status < 400)
      assert.equal((await enter(own.sign(await newChallenge()))).reply.status, 403, action)
      assert.equal((await gateway.pool.query('select from passkeys where staff_id = $1', [clerk.id])).rowCount, 0)
    }
    await forgive()
  })

  it('proves both factors again: the own one, and none of others', async () => {
    const [{ clerk, own }, other] = [await clerkWith(), await clerkWith()]
    now += 6 * 60_000
    assert.match((await clerk.ask(page)).location!, /\/office\/prove/)
    const prove = async (credential: object) =>
      clerk.post('/office/prove/passkey', { credential: JSON.stringify(credential), to: page })
    const challenge = async () => challengeIn(await clerk.ask('/office/prove'))
    assert.equal((await prove(other.own.sign(await challenge()))).status, 403)
    assert.match((await clerk.ask(page)).location!, /\/office\/prove/)
    assert.equal((await prove(own.sign(await challenge()))).location, page)
    assert.equal((await clerk.ask(page)).status, 200)
    await forgive()
  })
})

describe('nobody comes in', () => {
  const wrongs: readonly (readonly [what: string, wrong: Wrong])[] = [
    ['from another site', { origin: 'https://evil.example' }],
    ['from another port', { origin: 'http://localhost:9' }],
    ['from a frame of another site', { crossOrigin: true }],
    ['with a key of another party', { rpId: 'evil.example' }],
    ['with a device that nobody unlocked', { flags: there }],
    ['with a device where nobody was', { flags: known }],
    ['with what a new key says', { type: 'webauthn.create' }],
    ['with a challenge of others', { challenge: base64url(randomBytes(38)) }],
    ['with no challenge', { challenge: '' }],
    ['under an id that nobody has', { id: base64url(randomBytes(32)) }],
  ]
  for (const [what, wrong] of wrongs)
    it(what, async () => {
      const { own } = await clerkWith()
      assert.equal((await enter(own.sign(await newChallenge(), wrong))).reply.status, 403)
      assert.equal((await enter(own.sign(await newChallenge()))).reply.status, 303, 'and with the right one somebody does')
      await forgive()
    })

  it('with a signature of another key, or none', async () => {
    const [{ own }, other] = [await clerkWith(), device()]
    const challenge = await newChallenge()
    const { response } = other.sign(challenge)
    assert.equal((await enter({ id: own.id, response })).reply.status, 403)
    for (const signature of ['', 'AA', 'A'.repeat(9000), 7, null])
      assert.equal((await enter({ id: own.id, response: { ...response, signature } })).reply.status, 403)
    for (const sent of [
      [],
      7,
      'x',
      { id: own.id },
      { id: { toString: 1 }, response },
      { id: own.id, response: { clientDataJSON: base64url('null') } },
      ...[{ toString: 1, valueOf: 1 }, { toString: null }, [[]], 7].map(challenge => ({
        id: own.id,
        response: { ...response, clientDataJSON: base64url(JSON.stringify({ challenge })) },
      })),
    ])
      assert.equal((await enter(sent as object)).reply.status, 403)
    await forgive()
  })

  it('with an answer that came before, also of two at once', async () => {
    const { own } = await clerkWith()
    const credential = own.sign(await newChallenge())
    const all = await Promise.all([1, 2, 3].map(() => enter(credential)))
    assert.deepEqual(all.map(({ reply }) => reply.status).sort(), [303, 403, 403])
    await forgive()
  })

  it('with an answer that came before, in other letters for the same bytes', async () => {
    now += 60_000 // failures are counted by the minute
    const { own } = await clerkWith()
    const challenge = await newChallenge()
    const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const bytes = Buffer.from(challenge, 'base64url')
    const same = [...letters]
      .map(last => challenge.slice(0, -1) + last)
      .filter(one => Buffer.from(one, 'base64url').equals(bytes))
    const spellings = [...same, `${challenge}=`, ` ${challenge}`].filter(one => one !== challenge)
    for (const one of spellings) assert.equal((await enter(own.sign(one))).reply.status, 403, one)
    assert.equal((await enter(own.sign(challenge))).reply.status, 303)
    now += 60_000
    await forgive()
  })

  it('with a challenge that is too old, or was for making a key', async () => {
    const { clerk, own } = await clerkWith()
    const old = await newChallenge()
    const making = challengeIn(await clerk.ask(page))
    assert.equal((await enter(own.sign(making))).reply.status, 403)
    now += 10 * 60_000
    assert.equal((await enter(own.sign(old))).reply.status, 403)
    await forgive()
  })

  it('with a key that was made while all were taken away', async () => {
    const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
    const own = device()
    const challenge = challengeIn(await clerk.ask(page))
    const { adding } = await whileLocked(gateway.pool, clerk.id!, async db => {
      const adding = add(clerk, own.make(challenge))
      await untilWaiting(gateway.pool)
      await setFactors(db, clerk.id!)
      await endSessionsOf(db, clerk.id!)
      return { adding }
    })
    assert.notEqual((await adding).location, page)
    assert.equal((await gateway.pool.query('select from passkeys where staff_id = $1', [clerk.id])).rowCount, 0)
  })

  it('with a key that is taken away meanwhile, and it is in the way of nobody', async () => {
    const { clerk, own } = await clerkWith()
    const { entering } = await whileLocked(gateway.pool, clerk.id!, async db => {
      const entering = newChallenge().then(challenge => enter(own.sign(challenge)))
      await untilWaiting(gateway.pool)
      await setFactors(db, clerk.id!)
      return { entering }
    })
    assert.equal((await entering).reply.status, 403)
    await forgive()
  })

  it('with a copy of a key whose device counts', async () => {
    const { own } = await clerkWith()
    for (const [count, status] of [
      [5, 303],
      [5, 403],
      [4, 403],
      [0, 403],
      [6, 303],
    ] as const) {
      own.count(count)
      assert.equal((await enter(own.sign(await newChallenge()))).reply.status, status, String(count))
    }
    await forgive()
  })

  it('who is kept waiting by neighbours, but where somebody has signed in before: a challenge makes no browser that', async () => {
    const { own } = await clerkWith()
    const usedUp = () =>
      gateway.pool.query(
        `insert into sign_in_attempts (subject, since, attempts) values ('network 127.0.0.1', $1, 50)
         on conflict (subject) do update set since = excluded.since, attempts = 50`,
        [new Date(now).toISOString()],
      )
    const { by } = await enter(own.sign(await newChallenge()))
    const known = by.cookies.get('tollgate_browser')!
    for (const [browser, status] of [
      [await newChallenge(), 429],
      [known, 303],
    ] as const) {
      await usedUp()
      const there = visitor(gateway)
      there.cookies.set('tollgate_browser', browser)
      assert.equal((await enter(own.sign(await newChallenge()), there)).reply.status, status)
    }
    await forgive()
  })

  it('by trying: a network waits after so many attempts', async () => {
    const { own } = await clerkWith()
    const statuses = new Set<number>()
    for (let at = 0; at < 52; at++) statuses.add((await enter({ id: own.id, response: {} })).reply.status)
    assert.deepEqual([...statuses], [403, 429])
    assert.equal((await enter(own.sign(await newChallenge()))).reply.status, 429)
    await forgive()
  })
})

describe('no key is made', () => {
  const wrongs: readonly (readonly [what: string, wrong: Wrong, kind?: 'rsa'])[] = [
    ['of another site', { origin: 'https://evil.example' }],
    ['of another party', { rpId: 'evil.example' }],
    ['that nobody unlocked', { flags: there | attested }],
    ['without the key in what the device says', { flags: there | known }],
    ['under the id of another', { id: base64url(randomBytes(32)) }],
    ['of an algorithm that it is not', { algorithm: -257 }],
    ['of an algorithm that we do not take', { algorithm: -65535 }],
    ['of what a sign-in says', { type: 'webauthn.get' }],
  ]
  for (const [what, wrong] of wrongs)
    it(what, async () => {
      const clerk = await signedIn(gateway, 'finance', [sandbox.merchantId], clock)
      const refused = await add(clerk, device().make(challengeIn(await clerk.ask(page)), wrong))
      assert.equal(refused.status, 400)
      assert.equal((await gateway.pool.query('select from passkeys where staff_id = $1', [clerk.id])).rowCount, 0)
    })

  it('by the challenge of another, twice, without a name, or more than there may be', async () => {
    const [{ clerk, own }, other] = [await clerkWith(), await signedIn(gateway, 'admin', [sandbox.merchantId], clock)]
    const challenge = async (one = clerk) => challengeIn(await one.ask(page))
    assert.equal((await add(clerk, device().make(await challenge(other)))).status, 400)
    assert.equal((await add(clerk, own.make(await challenge()))).status, 400, 'it is known already')
    assert.equal((await add(other, own.make(await challenge(other)))).status, 400, 'it is that of another')
    assert.equal((await add(clerk, device().make(await challenge()), ' ')).status, 400)
    for (let at = 1; at < passkeysMost; at++) assert.equal((await add(clerk, device().make(await challenge()))).status, 303)
    assert.equal((await add(clerk, device().make(await challenge()))).status, 400)
  })
})

test('browsers make none under a number, nor without TLS but on this machine', () => {
  const of = (url: string) => relyingParty({ publicUrl: () => url })
  for (const url of ['http://127.0.0.1:8080', 'https://192.0.2.1', 'https://[2001:db8::1]', 'http://pay.example'])
    assert.equal(of(url), undefined)
  assert.deepEqual(of('https://pay.example:8443'), { id: 'pay.example', origin: 'https://pay.example:8443' })
  assert.deepEqual(of('http://localhost:8080'), { id: 'localhost', origin: 'http://localhost:8080' })
})
