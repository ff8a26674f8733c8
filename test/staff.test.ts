// Who gets into the back office, and how: links, both factors, sessions, and the door of a sandbox.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { clockWith, systemRandom } from '../src/platform/clock.ts'
import { enterSandbox, findInvitation, makeStaffLink } from '../src/staff/links.ts'
import type { StaffParts } from '../src/staff/parts.ts'
import { hashPassword, passwordRefusal } from '../src/staff/password.ts'
import { findSignedIn } from '../src/staff/sessions.ts'
import { dropLinksOf, endSessionsOf, setFactors } from '../src/staff/store.ts'
import { stepAt, stepSeconds, totpCode } from '../src/staff/totp.ts'
import { type Keys, makeKeys } from '../src/vault/keys.ts'
import { sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { addStaff, type Clerk, sandboxDeveloper, signedIn, textOf, visitor, whileLocked } from './support/office.ts'

const password = 'my dog eats 7 shoes'
const minutes = 60_000
let now = Date.now()
const clock = clockWith(() => now)
/** Codes count once: each test that signs in begins in a new half minute. */
const later = (milliseconds = stepSeconds * 1000) => {
  now += milliseconds
}

let gateway: TestGateway
before(async () => {
  gateway = await testGateway({ clock })
})
after(() => gateway.stop())

/** What an authenticator app shows for the key of a page. */
function codeOf(key: string): string {
  let bits = ''
  for (const letter of key) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')
  const bytes = Buffer.from(bits.match(/.{8}/g)!.map(byte => Number.parseInt(byte, 2)))
  return totpCode(bytes, stepAt(now))
}

type Enrolled = { clerk: Clerk; name: string; key: string; recovery: string[] }

/** Somebody who went the whole way: the link, a password, the app. */
async function enrolled(role: 'viewer' | 'admin' = 'viewer', entities = [sandbox.merchantId]): Promise<Enrolled> {
  const { id, name, link } = await addStaff(gateway.pool, role, entities, clock)
  const clerk = visitor(gateway, id, name)
  const key = textOf(await clerk.ask(link), 'key')
  const done = await clerk.post(link, { password, code: codeOf(key) })
  assert.equal(done.status, 200, done.text)
  return { clerk, name, key, recovery: textOf(done, 'recovery').split('\n') }
}

const signIn = (clerk: Clerk, name: string, code: string, given = password) =>
  clerk.post('/office/sign-in', { name, password: given, code })

describe('codes', () => {
  // RFC 6238, appendix B, for SHA-1.
  for (const [seconds, code] of [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ] as const)
    test(`at ${seconds} s`, () => assert.equal(totpCode(Buffer.from('12345678901234567890'), Math.floor(seconds / 30), 8), code))
})

describe('passwords', () => {
  for (const [given, refusal] of [
    ['my dog eats 7 shoes', undefined],
    ['abcdefghijk12', 'short'],
    [`${'x7'.repeat(65)}`, 'long'],
    ['my dog eats no shoes', 'oneKind'],
    ['2718281828459045', 'oneKind'],
    ['password123456789', 'guessable'],
    ['jane.jones.jones.jones1', 'guessable'],
  ] as const)
    test(given, () => assert.equal(passwordRefusal(given, 'jane.jones@shop.example'), refusal))

  test('no two hashes are alike, and each says what it cost', async () => {
    const [one, other] = [await hashPassword(systemRandom, password), await hashPassword(systemRandom, password)]
    assert.notEqual(one, other)
    assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  })
})

describe('a link', () => {
  test('sets both factors and signs in; after that it is gone, and nobody knows the password', async () => {
    const { id, name, link } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId], clock)
    const clerk = visitor(gateway)
    const page = await clerk.ask(link)
    const key = textOf(page, 'key')
    assert.equal(textOf(await clerk.ask(link), 'key'), key, 'a page that is opened again shows the same key')
    assert.equal((await clerk.post(link, { password: 'short1', code: codeOf(key) })).status, 400)
    assert.equal((await clerk.post(link, { password, code: '000000' })).status, 400)
    assert.equal(clerk.cookies.size, 0)
    const done = await clerk.post(link, { password, code: codeOf(key) })
    assert.equal(textOf(done, 'recovery').split('\n').length, 10)
    assert.match((await clerk.ask('/office/account')).text, new RegExp(name))
    assert.equal((await clerk.ask(link)).status, 410)
    assert.equal((await clerk.post(link, { password, code: codeOf(key) })).status, 410)
    const { rows } = await gateway.pool.query('select * from staff where id = $1', [id])
    assert.match(rows[0].password, /^\$argon2id\$/)
    assert.ok(!JSON.stringify(rows[0]).includes(key))
  })

  test('ends after a day', async () => {
    const { link } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId], clock)
    later(24 * 60 * minutes - 1)
    assert.equal((await visitor(gateway).ask(link)).status, 200)
    later(1)
    assert.equal((await visitor(gateway).ask(link)).status, 410)
  })
})

describe('signing in', () => {
  test('needs both factors; a code counts once, and each time the session is a new one', async () => {
    const { name, key } = await enrolled()
    const clerk = visitor(gateway)
    assert.equal((await signIn(clerk, name, codeOf(key))).status, 403, 'the code that set the factors is used')
    later()
    assert.equal((await signIn(clerk, name, codeOf(key), 'my cat eats 7 shoes')).status, 403)
    assert.equal((await signIn(clerk, name, '123 456')).status, 403)
    assert.equal((await signIn(clerk, 'nobody@office.example', codeOf(key))).status, 403)
    assert.equal(clerk.cookies.size, 0)
    const code = codeOf(key)
    assert.equal((await signIn(clerk, name.toUpperCase(), `${code.slice(0, 3)} ${code.slice(3)}`)).location, '/office')
    const first = clerk.cookies.get('tollgate_office')
    assert.equal((await signIn(visitor(gateway), name, code)).status, 403, 'a code that was taken is no code')
    later()
    const wide = name.replace(/[a-z]/g, letter => String.fromCodePoint(letter.codePointAt(0)! + 0xfee0))
    assert.equal((await signIn(clerk, wide, codeOf(key))).location, '/office', 'of a keyboard that composes letters otherwise')
    assert.notEqual(clerk.cookies.get('tollgate_office'), first)
  })

  test('of two with one code at a time one gets in', async () => {
    const { name, key } = await enrolled()
    later()
    const code = codeOf(key)
    const answers = await Promise.all([1, 2, 3].map(() => signIn(visitor(gateway), name, code)))
    assert.deepEqual(answers.map(({ status }) => status).sort(), [303, 403, 403])
  })

  test('a recovery code counts once, however it is typed', async () => {
    const { name, recovery } = await enrolled()
    const [code] = recovery
    assert.equal((await signIn(visitor(gateway), name, code!.toLowerCase().replaceAll('-', ' '))).status, 303)
    assert.equal((await signIn(visitor(gateway), name, code!)).status, 403)
    assert.equal((await signIn(visitor(gateway), name, recovery[1]!)).status, 303)
  })

  test('ten attempts for a name, whether there is such a person or not; then nothing is looked at for half an hour', async () => {
    const { name, key } = await enrolled()
    for (const one of [name, 'stranger@office.example']) {
      later(31 * minutes)
      for (let attempt = 1; attempt <= 10; attempt++)
        assert.equal((await signIn(visitor(gateway), one, '000000', 'wrong')).status, 403, `${one} ${attempt}`)
      assert.equal((await signIn(visitor(gateway), one, codeOf(key))).status, 429)
    }
    later(29 * minutes)
    assert.equal((await signIn(visitor(gateway), 'stranger@office.example', codeOf(key))).status, 429)
    later(2 * minutes)
    assert.equal((await signIn(visitor(gateway), name, codeOf(key))).status, 303)
    const { rows } = await gateway.pool.query(`select subject, count(*) from audit where action = 'staffLocked' group by subject`)
    assert.equal(rows.length, 1)
  })

  test('a network is stopped that tries many names', async () => {
    later(31 * minutes)
    for (let attempt = 1; attempt <= 50; attempt++) {
      const { status } = await signIn(visitor(gateway), `n${attempt}@office.example`, '000000', 'wrong')
      assert.equal(status, 403, String(attempt))
    }
    const counted = async () => (await gateway.pool.query('select from sign_in_attempts')).rowCount
    const before = await counted()
    for (const one of ['n51', 'n52', 'n53'])
      assert.equal((await signIn(visitor(gateway), `${one}@office.example`, '000000', 'wrong')).status, 429)
    assert.equal(await counted(), before, 'names of a network that waits are not even counted')
    later(31 * minutes)
  })

  test('with factors that are taken away while they are looked at lets nobody in', async () => {
    const { clerk, name, key } = await enrolled()
    later()
    const browser = visitor(gateway)
    const { entering } = await whileLocked(gateway.pool, clerk.id!, async db => {
      const entering = signIn(browser, name, codeOf(key))
      await untilWaiting(gateway.pool)
      await setFactors(db, clerk.id!)
      await endSessionsOf(db, clerk.id!)
      return { entering }
    })
    assert.equal((await entering).status, 403)
    assert.equal((await gateway.pool.query('select from staff_sessions where staff_id = $1', [clerk.id])).rowCount, 0)
  })

  test('leads to the page that was wanted, and to no other host', async () => {
    const asked = await visitor(gateway).ask('/office/account?x=1')
    assert.equal(asked.location, `/office/sign-in?${new URLSearchParams({ to: '/office/account?x=1' })}`)
    const { name, key } = await enrolled()
    for (const [to, goes] of [
      ['/office/account?x=1', '/office/account?x=1'],
      ['//evil.example', '/office'],
      ['/\\evil.example', '/office'],
      ['https://evil.example', '/office'],
      ['/office\r\nSet-Cookie: a=b', '/office'],
    ]) {
      later()
      const answer = await visitor(gateway).post('/office/sign-in', { name, password, code: codeOf(key), to: to! })
      assert.equal(answer.location, goes, to)
    }
  })
})

describe('a session', () => {
  const isIn = async (clerk: Clerk) => (await clerk.ask('/office/account')).status === 200

  test('ends when nobody did anything for 15 minutes, and after 12 hours in any case', async () => {
    const { clerk } = await enrolled()
    later(15 * minutes - 1)
    assert.ok(await isIn(clerk))
    later(15 * minutes)
    assert.ok(!(await isIn(clerk)))
    const other = (await enrolled()).clerk
    for (let passed = 0; passed < 12 * 60 - 10; passed += 10) {
      later(10 * minutes)
      assert.ok(await isIn(other), `after ${passed + 10} minutes`)
    }
    later(10 * minutes)
    assert.ok(!(await isIn(other)))
  })

  test('is ended by signing out, and by hand from another; nobody ends those of others', async () => {
    const { clerk, name, key } = await enrolled()
    later()
    const second = visitor(gateway)
    await signIn(second, name, codeOf(key))
    const stranger = await enrolled()
    const path = /\/office\/account\/sessions\/[0-9a-f]{32}\/end/.exec((await second.ask('/office/account')).text)![0]
    assert.equal((await stranger.clerk.post(path)).status, 404)
    assert.ok(await isIn(clerk))
    assert.equal((await second.post(path)).location, '/office/account')
    assert.ok(!(await isIn(clerk)))
    const cookies = new Map(second.cookies)
    await second.post('/office/sign-out')
    assert.deepEqual([...second.cookies.keys()], ['tollgate_browser'])
    for (const [name, value] of cookies) second.cookies.set(name, value)
    assert.ok(!(await isIn(second)), 'the cookie of a session that ended is worth nothing')
  })

  test('stands in the database by its hash alone, and its cookie is for the browser alone', async () => {
    const { name, key } = await enrolled()
    later()
    const clerk = visitor(gateway)
    const [session, browser] = (await signIn(clerk, name, codeOf(key))).headers.getSetCookie()
    assert.match(session!, /^tollgate_office=[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax$/)
    assert.match(browser!, /^tollgate_browser=[A-Za-z0-9_-]{51}; Path=\/; Max-Age=7776000; HttpOnly; SameSite=Lax$/)
    const { rows } = await gateway.pool.query('select s::text as text from staff_sessions s')
    const token = clerk.cookies.get('tollgate_office')!
    for (const { text } of rows) assert.ok(!text.includes(token) && !text.includes(Buffer.from(token).toString('hex')))
  })

  test('strangers who lock a name keep nobody waiting who is signed in; guessing there has its own bound', async () => {
    later(31 * minutes)
    const { clerk, name, key } = await enrolled()
    later(6 * minutes)
    for (let attempt = 1; attempt <= 11; attempt++) await signIn(visitor(gateway), name, '000000', 'wrong')
    assert.equal((await signIn(visitor(gateway), name, codeOf(key))).status, 429)
    assert.equal((await clerk.post('/office/prove', { password, code: codeOf(key), to: '/office/account' })).status, 303)
    for (let attempt = 1; attempt <= 10; attempt++)
      assert.equal((await clerk.post('/office/prove', { password: 'wrong', code: '000000' })).status, 403)
    later()
    assert.equal((await clerk.post('/office/prove', { password, code: codeOf(key) })).status, 429)
    later(31 * minutes)
  })

  test('is ended while a colleague takes its factors away, and neither is in the way of the other', async () => {
    const { clerk } = await enrolled()
    const { leaving } = await whileLocked(gateway.pool, clerk.id!, async db => {
      await dropLinksOf(db, clerk.id!)
      const leaving = clerk.post('/office/sign-out')
      await untilWaiting(gateway.pool)
      await endSessionsOf(db, clerk.id!)
      return { leaving }
    })
    assert.equal((await leaving).location, '/office/sign-in')
  })

  test('whose factors are taken away meanwhile gets no link for others', async () => {
    const { clerk } = await enrolled()
    const { asking } = await whileLocked(gateway.pool, clerk.id!, async db => {
      const asking = clerk.post('/office/account/factors')
      await untilWaiting(gateway.pool)
      await dropLinksOf(db, clerk.id!)
      await setFactors(db, clerk.id!)
      await endSessionsOf(db, clerk.id!)
      return { asking }
    })
    assert.equal((await asking).location, '/office/account')
    assert.equal((await gateway.pool.query('select from staff_links where staff_id = $1', [clerk.id])).rowCount, 0)
  })

  test('a link for other factors ends with the next one', async () => {
    const { clerk } = await enrolled()
    const [first, second] = [await clerk.post('/office/account/factors'), await clerk.post('/office/account/factors')]
    assert.equal((await visitor(gateway).ask(first.location!)).status, 410)
    assert.equal((await visitor(gateway).ask(second.location!)).status, 200)
  })

  test('a link for other factors ends with the session in which it was asked for', async () => {
    const { clerk } = await enrolled()
    const link = (await clerk.post('/office/account/factors')).location!
    assert.equal((await visitor(gateway).ask(link)).status, 200)
    await clerk.post('/office/sign-out')
    assert.equal((await visitor(gateway).ask(link)).status, 410)
  })

  test('and with the time of that session', async () => {
    const { clerk } = await enrolled()
    const link = (await clerk.post('/office/account/factors')).location!
    later(15 * minutes - 1)
    assert.equal((await visitor(gateway).ask(link)).status, 200)
    later(1)
    assert.equal((await visitor(gateway).ask(link)).status, 410)
  })

  test('ends when another begins in the same browser, and in no other', async () => {
    const { clerk, name, key } = await enrolled()
    const first = new Map(clerk.cookies)
    const elsewhere = visitor(gateway)
    later()
    await signIn(elsewhere, name, codeOf(key))
    later()
    assert.equal((await signIn(clerk, name, codeOf(key))).status, 303)
    assert.ok(await isIn(clerk))
    assert.ok(await isIn(elsewhere))
    const thief = visitor(gateway)
    for (const [name, value] of first) thief.cookies.set(name, value)
    assert.ok(!(await isIn(thief)))
    const { rows } = await gateway.pool.query(`select from audit where action = 'staffSignedOut' and subject = $1`, [clerk.id])
    assert.equal(rows.length, 1)
  })

  test('what asks for both factors again is given them', async () => {
    const { clerk, key } = await enrolled()
    later(6 * minutes)
    const asked = await clerk.post('/office/account/factors')
    assert.match(asked.location!, /^\/office\/prove\?/)
    assert.equal((await clerk.post('/office/prove', { password, code: '000000', to: '/office/account' })).status, 403)
    assert.match((await clerk.post('/office/account/factors')).location!, /^\/office\/prove\?/)
    const proven = await clerk.post('/office/prove', { password, code: codeOf(key), to: '/office/account' })
    assert.equal(proven.location, '/office/account')
    const link = (await clerk.post('/office/account/factors')).location!
    assert.match(link, /^\/office\/invitation\//)
    const fresh = textOf(await clerk.ask(link), 'key')
    assert.notEqual(fresh, key)
    const thiefs = `insert into passkeys (id, staff_id, name, algorithm, public_key, counter, made_at) values ('x', $1, 'x', -7, '', 0, now())`
    await gateway.pool.query(thiefs, [clerk.id])
    await clerk.post(link, { password: 'other dogs eat 9 shoes', code: codeOf(fresh) })
    const left = await gateway.pool.query('select from passkeys where staff_id = $1', [clerk.id])
    assert.equal(left.rowCount, 0, 'keys that somebody else may have made go with the old factors')
    later()
    const { name } = clerk
    assert.equal((await signIn(visitor(gateway), name, codeOf(key))).status, 403)
    assert.equal((await signIn(visitor(gateway), name, codeOf(fresh), 'other dogs eat 9 shoes')).status, 303)
  })
})

test('an invitation has the key for its authenticator that it was opened with, also where another lookup key is written with by now', async () => {
  const { id } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId])
  const token = await makeStaffLink(gateway.pool, { keys: testKeys, clock, random: systemRandom }, id)
  const newer = makeKeys([], Buffer.alloc(32, 3)).lookup
  const secretOf = async (lookup: Keys['lookup']) => {
    const parts = { clock, random: systemRandom, keys: { ...testKeys, lookup }, database: { work: gateway.pool } }
    return (await findInvitation(parts as unknown as StaffParts, token))!.secret.toString('hex')
  }
  const opened = await secretOf(testKeys.lookup)
  assert.equal(await secretOf([...newer, ...testKeys.lookup]), opened)
  assert.equal(await secretOf([...testKeys.lookup, ...newer]), opened)
})

describe('the door of a sandbox', () => {
  test('is not used up by whoever only asks whether it is there', async () => {
    const link = `/office/enter/${await makeStaffLink(gateway.pool, { keys: testKeys, random: systemRandom, clock }, null)}`
    assert.equal((await fetch(`${gateway.baseUrl}${link}`, { method: 'HEAD', redirect: 'manual' })).status, 405)
    assert.equal((await visitor(gateway).ask(link)).status, 303)
  })

  test('lets the developer in once, without an account', async () => {
    const link = `/office/enter/${await makeStaffLink(gateway.pool, { keys: testKeys, clock, random: systemRandom }, null)}`
    const clerk = visitor(gateway)
    assert.equal((await clerk.ask(link)).location, '/office')
    assert.equal((await clerk.ask('/office/account')).status, 200)
    later(11 * 60 * minutes)
    assert.equal((await clerk.ask('/office/account')).status, 200, 'who tries something out has lunch in between')
    assert.equal((await visitor(gateway).ask(link)).status, 410)
  })

  test('a link for a password is none for the door, and stays what it was', async () => {
    const { id } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId])
    const token = await makeStaffLink(gateway.pool, { keys: testKeys, clock, random: systemRandom }, id)
    assert.equal((await visitor(gateway).ask(`/office/enter/${token}`)).status, 410)
    assert.equal((await visitor(gateway).ask(`/office/invitation/${token}`)).status, 200)
  })

  test('is none in live mode: neither its link nor a session of it counts there', async () => {
    const live = { clock, random: systemRandom, keys: testKeys, database: { work: gateway.pool }, sandbox: false } as StaffParts
    const token = await makeStaffLink(gateway.pool, live, null)
    const here = { address: '127.0.0.1', agent: 'test' }
    assert.equal(await enterSandbox(live, token, here), undefined)
    const clerk = await sandboxDeveloper(gateway, clock)
    assert.equal(await findSignedIn(live, clerk.cookies.get('tollgate_office')!, here.address, true), undefined)
    assert.equal((await clerk.ask('/office/account')).status, 200)
  })

  test('is open from this machine alone', async () => {
    const proxied = await testGateway({ clock, environment: { TRUSTED_PROXY: '127.0.0.1' } })
    try {
      const link = `/office/enter/${await makeStaffLink(proxied.pool, { keys: testKeys, clock, random: systemRandom }, null)}`
      const clerk = visitor(proxied)
      assert.equal((await clerk.ask(link, { 'X-Forwarded-For': '192.0.2.7' })).status, 410)
      assert.equal((await clerk.ask(link)).status, 303)
    } finally {
      await proxied.stop()
    }
  })
})

describe('a page of another site', () => {
  test('cannot send our forms', async () => {
    const clerk = await sandboxDeveloper(gateway, clock)
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site', Origin: gateway.baseUrl },
      { 'Sec-Fetch-Site': 'none' },
      // As our pages for shoppers send a form: wherever a shop or another side says.
      { 'Sec-Fetch-Site': 'same-origin', Origin: 'null' },
      { 'Sec-Fetch-Site': 'same-origin' },
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      {},
    ])
      assert.equal((await clerk.post('/office/sign-out', {}, headers)).status, 403, JSON.stringify(headers))
    assert.equal((await clerk.ask('/office/account')).status, 200)
    // Behind a proxy the office has another name than the gateway knows.
    const named = { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://office.example' }
    assert.equal((await clerk.post('/office/language', {}, named)).status, 303)
    assert.equal((await clerk.post('/office/sign-out', {}, { Origin: gateway.baseUrl })).status, 303)
  })

  test('is one with our host and another scheme too, and who ends TLS before us says by which we were reached', async () => {
    const sent = async (to: TestGateway, headers: Record<string, string>) =>
      (await (await sandboxDeveloper(to, clock)).post('/office/sign-out', {}, headers)).status
    const other = (url: string) => url.replace('http:', 'https:')
    assert.equal(await sent(gateway, { Origin: other(gateway.baseUrl) }), 403)
    assert.equal(await sent(gateway, { Origin: other(gateway.baseUrl), 'X-Forwarded-Proto': 'https' }), 403, 'nobody is trusted')
    const publicUrl = 'https://pay.test.example'
    const proxied = await testGateway({
      clock,
      environment: { TRUSTED_PROXY: '127.0.0.1', PUBLIC_URL: publicUrl, SANDBOX_OPEN: 'yes' },
    })
    try {
      const tls = { 'X-Forwarded-Proto': 'https' }
      assert.equal(await sent(proxied, { ...tls, Origin: proxied.baseUrl }), 403)
      assert.equal(await sent(proxied, { ...tls, Origin: publicUrl.replace('https:', 'http:') }), 403)
      assert.equal(await sent(proxied, { ...tls, Origin: other(proxied.baseUrl) }), 303)
      assert.equal(await sent(proxied, { ...tls, Origin: publicUrl }), 303)
      assert.equal(await sent(proxied, { Origin: proxied.baseUrl }), 303)
      assert.equal(await sent(proxied, { Origin: other(proxied.baseUrl) }), 403)
    } finally {
      await proxied.stop()
    }
  })

  test('gets nothing into a frame, and no script but ours runs', async () => {
    const clerk = await signedIn(gateway, 'viewer', [sandbox.merchantId], clock)
    const { headers, text } = await clerk.ask('/office/account')
    const policy = headers.get('content-security-policy')!
    assert.match(policy, /default-src 'none'.*form-action 'self'.*frame-ancestors 'none'/)
    const nonce = /script-src 'nonce-([^']+)'/.exec(policy)![1]!
    assert.ok(text.includes(`<style nonce="${nonce}">`))
    assert.doesNotMatch(policy, /unsafe/)
    assert.equal(headers.get('cache-control'), 'private, no-store')
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
  })
})

test('what the audit tells of a person stands on the first entity of theirs, where its administrators find it', async () => {
  const { rows } = await gateway.pool.query(
    `select distinct action, replace(entity_id::text, '-', '') = replace(entities[1]::text, '-', '') as "isTheirs"
     from audit join staff on staff.id::text = audit.subject or replace(staff.id::text, '-', '') = audit.subject
     where action like 'staff%' and action not in ('staffAdded', 'staffChanged', 'staffReset', 'staffRemoved') order by action`,
  )
  assert.deepEqual(
    rows,
    ['staffFactorsSet', 'staffLinkMade', 'staffLocked', 'staffSignedIn', 'staffSignedOut'].map(action => ({
      action,
      isTheirs: true,
    })),
  )
})
