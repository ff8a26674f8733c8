// Limits that a scenario cannot say, because they need many requests, several addresses or an exact clock: failed attempts to
// authenticate, and the 72 hours of a reversal to the millisecond.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { BlockList } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { addressOf } from '../src/http/address.ts'
import { cookieOf } from '../src/http/cookies.ts'
import { legacyParts, legacyToken } from '../src/merchants/access/legacy.ts'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { followersBytesMost, followersMost, refusalsMost } from '../src/payments/followUps/rules.ts'
import { clockWith } from '../src/platform/clock.ts'
import { growChain } from './support/chains.ts'
import { type Client, eventually, type Fields, type Reply, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

const credentialMax = 30
const addressMax = 300
const userMax = 60
const tokenOfChance = 'Zk3vQ9mB7xT2pL8wR4yN6cH1'
/** With a joiner of an emoji, a soft hyphen, a sign of control, half a sign, the sign for what could not be read, and a bar. */
const oddPasswords = [
  'our-\u{1F468}\u200d\u{1F469}-shop',
  'our-\xadshop',
  'our-\u0007-shop',
  'our-\ud83d-shop',
  'our-\ufffd-shop',
  'our-|shop',
]

let now = Date.UTC(2030, 0, 31, 12)
let gateway: TestGateway
before(async () => {
  gateway = await testGateway({
    clock: clockWith(() => now),
    environment: { TRUSTED_PROXY: '127.0.0.1' },
    seed: {
      psp: readSeed(sandboxSeed).psp,
      tokens: [
        { label: 'of chance', token: tokenOfChance, entities: [sandbox.merchantId] },
        ...oddPasswords.map((password, at) => ({ userId: `odd|${at}`, password, entities: [sandbox.merchantId] })),
        { label: 'a password after all', token: legacyToken('old client', 'our-shop-1'), entities: [sandbox.merchantId] },
      ],
    },
  })
})
after(() => gateway.stop())

const unknown = '0'.repeat(32)
/** A read of a payment that does not exist: 404 for a caller that is let in. */
const read = (address: string, authorization: string, process: Pick<Client, 'get'> = gateway) =>
  process.get(
    `/v1/payments/${unknown}`,
    { entityId: sandbox.entityId },
    { Authorization: authorization, 'X-Forwarded-For': address },
  )
/** As the oldest clients send user id and password: in the query of a GET. */
async function withoutHeader(address: string, userId: string, password: string): Promise<Reply> {
  const query: Fields = {
    'authentication.userId': userId,
    'authentication.password': password,
    'authentication.entityId': sandbox.entityId,
  }
  const response = await fetch(`${gateway.baseUrl}/v1/payments/${unknown}?${new URLSearchParams(query)}`, {
    headers: { 'X-Forwarded-For': address },
  })
  const text = await response.text()
  return { status: response.status, body: JSON.parse(text), text, headers: response.headers }
}
const good = `Bearer ${sandbox.accessToken}`
const bad = (number: number) => `Bearer wrong-${number}`

async function countedOf(address: string): Promise<number | undefined> {
  const statement = `select failures from log_in_failures where kind = 'address' and subject = $1`
  return (await gateway.pool.query<{ failures: number }>(statement, [address])).rows[0]?.failures
}

async function check(asked: Promise<Reply>, status: number, code: string): Promise<void> {
  const { body, status: answered } = await asked
  assert.equal(`${answered} ${body.result.code}`, `${status} ${code}`, JSON.stringify(body))
  for (const name of ['buildNumber', 'timestamp', 'ndc']) assert.equal(typeof body[name], 'string', name)
}

async function times(count: number, ask: (at: number) => Promise<Reply>): Promise<Set<number>> {
  const seen = new Set<number>()
  for (let at = 0; at < count; at += 20) {
    const some = Array.from({ length: Math.min(20, count - at) }, (_, more) => ask(at + more))
    for (const { status } of await Promise.all(some)) seen.add(status)
  }
  return seen
}

describe('failed attempts to authenticate', () => {
  it('one credential may fail 30 times a minute from one address', async () => {
    const address = '192.0.2.1'
    assert.deepEqual(await times(credentialMax, () => read(address, bad(1))), new Set([403]))
    await check(read(address, bad(1)), 429, '800.120.100')
    await check(read(address, bad(2)), 403, '800.900.300')
    await check(read(address, good), 404, '700.400.580')
    await check(read('192.0.2.2', bad(1)), 403, '800.900.300')
  })

  it('after a minute it may try again, and Retry-After says so', async () => {
    const address = '192.0.2.3'
    await times(credentialMax, () => read(address, bad(1)))
    assert.equal((await read(address, bad(1))).headers.get('retry-after'), '60')
    now += 59_999
    await check(read(address, bad(1)), 429, '800.120.100')
    now += 1
    await check(read(address, bad(1)), 403, '800.900.300')
  })

  it('a good token that asks for entities of others is counted too, and may still ask for its own afterwards', async () => {
    const address = '192.0.2.4'
    const foreign = () =>
      gateway.get(`/v1/payments/${unknown}`, { entityId: unknown }, { Authorization: good, 'X-Forwarded-For': address })
    assert.deepEqual(await times(credentialMax, foreign), new Set([403]))
    await check(foreign(), 429, '800.120.100')
    now += 60_000
    await check(read(address, good), 404, '700.400.580')
  })

  it('user id and password are one credential by the user id, whatever the password', async () => {
    const guess = (password: string) => withoutHeader('192.0.2.5', sandbox.userId, password)
    assert.deepEqual(await times(credentialMax, at => guess(`guess-${at}`)), new Set([403]))
    await check(guess('one more'), 429, '800.120.100')
  })

  it('a token of user id and password is one in whatever encoding it was written', () => {
    const userId = '5a11d0000000000000000000000000f1'
    const bytes = (hex: string) => Buffer.concat([Buffer.from(`${userId}|`), Buffer.from(hex, 'hex')])
    for (const written of [
      ...(['utf8', 'latin1', 'utf16le'] as const).flatMap(encoding =>
        ['Grün1234', 'Grün1234\n', '\tGrün 1234\r\n', 'äöüßäöüßäö'].map(password =>
          Buffer.from(`${userId}|${password}`, encoding),
        ),
      ),
      bytes('eff0e8e2e5f2eff0e8e2e5f2'), // Windows-1251
      bytes('c3dcc2ebc3dcc2ebc3dcc2eb'), // GBK
      bytes('835b83568367838a'), // Shift_JIS
      ...['', '\ufeff'].map(mark => Buffer.from(`${mark}${userId}|密码密码密码`, 'utf16le')),
      Buffer.from(`\ufeff${userId}|密码密码密码`, 'utf16le').swap16(),
    ])
      for (const encoding of ['base64', 'base64url'] as const)
        assert.equal(legacyParts(written.toString(encoding))?.userId, userId, written.toString('latin1'))
    // Short ones in Latin-1 with the newline of a shell, and letters whose last byte is a blank elsewhere.
    assert.deepEqual(legacyParts(Buffer.from('shop|Grün1234\n', 'latin1').toString('base64')), {
      userId: 'shop',
      password: 'Grün1234',
    })
    assert.deepEqual(legacyParts(legacyToken('ab', 'àà')), { userId: 'ab', password: 'àà' })
  })

  it('what was drawn is no user id and password, in whatever it is written', () => {
    const drawn = Array.from({ length: 20_000 }, (_, at) => createHash('sha256').update(`${at}`).digest())
    for (const encoding of ['hex', 'base64', 'base64url'] as const)
      for (const length of [16, 32]) {
        const found = drawn.filter(bytes => legacyParts(bytes.subarray(0, length).toString(encoding)))
        assert.ok(found.length <= (encoding === 'hex' ? 0 : 3), `${encoding} ${length}: ${found.length}`)
      }
    const ids = drawn.map(bytes => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, '$1-$2-$3-$4-$5'))
    assert.equal(ids.filter(id => legacyParts(id)).length, 0)
  })

  it('one address may fail 300 times a minute over all credentials', async () => {
    const address = '192.0.2.6'
    assert.deepEqual(await times(addressMax, at => read(address, bad(at))), new Set([403]))
    await check(read(address, bad(addressMax)), 429, '800.120.100')
    await check(read('192.0.2.7', bad(addressMax)), 403, '800.900.300')
    // What is used up costs the database nothing any more.
    await times(40, at => read(address, bad(1000 + at)))
    assert.equal(await countedOf(address), addressMax)
    const rows = `select 1 from log_in_failures where kind = 'credential' and subject like $1`
    assert.equal((await gateway.pool.query(rows, [`${address} %`])).rowCount, addressMax)
  })

  it('successes and requests without a header are never counted', async () => {
    const address = '192.0.2.8'
    assert.deepEqual(await times(addressMax + 10, () => read(address, good)), new Set([404]))
    assert.deepEqual(await times(credentialMax + 10, () => read(address, 'none')), new Set([401]))
    await check(read(address, bad(1)), 403, '800.900.300')
    assert.equal(await countedOf(address), 1)
  })

  it('the address is the nearest that is no trusted proxy: what a caller claims before it does not count', async () => {
    assert.deepEqual(await times(credentialMax, at => read(`198.51.100.${at}, 192.0.2.9, 127.0.0.1`, bad(1))), new Set([403]))
    await check(read('203.0.113.1, 192.0.2.9', bad(1)), 429, '800.120.100')
    await check(read('192.0.2.9, 203.0.113.2', bad(1)), 403, '800.900.300')
  })

  it('however much a caller writes in front of the proxies, the nearest hops alone are read', () => {
    const trusted = new BlockList()
    trusted.addSubnet('10.0.0.0', 8, 'ipv4')
    let looks = 0
    const counting = { check: (...given: Parameters<BlockList['check']>) => ++looks > 0 && trusted.check(...given) } as BlockList
    const seen = (...hops: readonly string[]) => {
      looks = 0
      return addressOf('10.0.0.1', hops.join(', '), counting)
    }
    const proxies = (count: number) => Array<string>(count).fill('10.0.0.2')
    assert.equal(seen(...Array<string>(7000).fill('1'), '192.0.2.7'), '192.0.2.7')
    assert.ok(looks <= 2)
    assert.equal(seen('192.0.2.7', ...proxies(31)), '192.0.2.7')
    assert.equal(seen('192.0.2.7', ...proxies(32)), '10.0.0.1')
    assert.equal(seen('192.0.2.7', ...proxies(1000)), '10.0.0.1')
    assert.ok(looks <= 33)
    assert.equal(seen('192.0.2.7', '', ' ', '192.0.2.8', ''), '192.0.2.8')
    for (const odd of ['', ',', ', ,', 'unknown', '192.0.2.7, unknown', '192.0.2.7, _hidden']) assert.equal(seen(odd), '10.0.0.1')
  })

  it('one user id may fail 60 times a minute from all addresses together, however the guess is sent', async () => {
    const userId = 'a merchant of our own'
    const guess = (at: number) => {
      const password = `guess-${at}`
      const address = `203.0.113.${at % 200}`
      return at % 2 === 0 ? read(address, `Bearer ${legacyToken(userId, password)}`) : withoutHeader(address, userId, password)
    }
    now += 60_000
    const answered = { 403: 0, 429: 0 } as Record<number, number>
    for (let at = 0; at < 400; at++) answered[(await guess(at)).status]!++
    assert.deepEqual(answered, { 403: userMax, 429: 400 - userMax })
  })

  it('several processes count together', async () => {
    now += 60_000
    const second = await gateway.another()
    const guess = (at: number) => read('192.0.2.30', bad(1), [gateway, second][at % 2])
    const answered: number[] = []
    for (let at = 0; at < credentialMax + 10; at++) answered.push((await guess(at)).status)
    assert.deepEqual(answered, [...Array(credentialMax).fill(403), ...Array(10).fill(429)])
    await second.stop()
  })

  it("others' failures shut no good token out, from the same address or for the same user id", async () => {
    now += 60_000
    const address = '192.0.2.40'
    const chance = `Bearer ${tokenOfChance}`
    await check(read(address, good), 404, '700.400.580')
    await times(addressMax + 20, at => read(address, bad(at)))
    await times(userMax + 20, at => read(`198.51.100.${at}`, `Bearer ${legacyToken(sandbox.userId, `guess-${at}`)}`))
    await check(read(address, bad(1)), 429, '800.120.100')
    await check(read(address, good), 404, '700.400.580') // it came from here before
    await check(read(address, chance), 404, '700.400.580') // nobody guesses this one
    await check(read('192.0.2.41', chance), 404, '700.400.580')
  })

  it('a right guess waits like a wrong one when its user id has failed too often', async () => {
    now += 60_000
    await times(userMax, at => read(`198.51.100.${at}`, `Bearer ${legacyToken(sandbox.userId, `guess-${at}`)}`))
    await check(read('192.0.2.50', good), 429, '800.120.100')
    now += 60_000
    await check(read('192.0.2.50', good), 404, '700.400.580')
  })

  it('a right guess that waits is counted like a wrong one: its address fails as often', async () => {
    now += 60_000
    const guess = (address: string, password: string) => read(address, `Bearer ${legacyToken(sandbox.userId, password)}`)
    await times(userMax, at => guess(`198.51.100.${at}`, `guess-${at}`))
    const answered: number[] = []
    for (const [address, last] of [
      ['192.0.2.60', 'guess-last'],
      ['192.0.2.61', sandbox.password],
    ] as const) {
      await times(addressMax - 1, at => guess(address, `guess-${at}`))
      await check(guess(address, last), 429, '800.120.100')
      assert.equal(await countedOf(address), addressMax)
      answered.push((await read(address, `Bearer ${legacyToken('nobody of ours', 'x')}`)).status)
    }
    assert.deepEqual(answered, [429, 429])
  })

  it('a token that is a user id and a password written in Base64 waits like these, however it came into the database', async () => {
    const sent = (password: string) => `Bearer ${legacyToken('old client', password)}`
    const places = async () => {
      const ofToken = `select 1 from known_places where token_id = (select id from access_tokens where label = 'a password after all')`
      return (await gateway.pool.query(ofToken)).rowCount!
    }
    const statements = ['select 1', `update access_tokens set legacy = false where label = 'a password after all'`]
    for (const [round, statement] of statements.entries()) {
      await gateway.pool.query(statement)
      await gateway.restart()
      now += 60_000
      await times(userMax, at => read(`198.51.100.${at}`, sent(`guess-${at}`)))
      const address = `192.0.2.${51 + 100 * round}`
      await check(read(address, sent('our-shop-1')), 429, '800.120.100')
      now += 60_000
      await check(read(address, sent('our-shop-1')), 404, '700.400.580')
      await eventually(async () => (await places()) === round + 1, 'from where it came is kept')
    }
    // From where it came before it need not wait, though this process has never seen it from there.
    await gateway.restart()
    now += 60_000
    await times(userMax, at => read(`198.51.100.${at}`, sent(`guess-${at}`)))
    await check(read('192.0.2.151', sent('our-shop-1')), 404, '700.400.580')
    await check(read('192.0.2.152', sent('our-shop-1')), 429, '800.120.100')
  })

  it('so does one of signs that nobody sees, also where the database has it as a token', async () => {
    for (const statement of ['select 1', `update access_tokens set legacy = false where legacy`]) {
      await gateway.pool.query(statement)
      await gateway.restart()
      for (const [at, password] of oddPasswords.entries()) {
        now += 60_000
        const right = `Bearer ${legacyToken(`odd|${at}`, password)}`
        // A bar in the user id: wherever a caller says that it ends, it is the same token and the same user.
        const guess = (try_: number) =>
          try_ % 2 === 0
            ? read(`198.51.100.${try_}`, `Bearer ${legacyToken(`odd|${at}`, `${try_}${password}`)}`)
            : withoutHeader(`198.51.100.${try_}`, 'odd', `${at}|${try_}${password}`)
        assert.deepEqual(await times(userMax - 1, guess), new Set([403]))
        await check(read(`192.0.2.${160 + at}`, right), 404, '700.400.580')
        assert.deepEqual(await times(1, () => guess(userMax)), new Set([403]))
        await check(read(`192.0.2.${170 + at}`, right), 429, '800.120.100')
        await gateway.pool.query('delete from known_places')
      }
    }
  })

  it('a proxy may write the port behind the address, and a whole /64 of IPv6 is one address', async () => {
    now += 60_000
    await times(credentialMax, at => read(`192.0.2.60:${4000 + at}`, bad(1)))
    await check(read('192.0.2.60:9', bad(1)), 429, '800.120.100')
    await check(read('192.0.2.60', bad(1)), 429, '800.120.100')
    // Nor do other ways to write it make it another.
    for (const written of [
      '::ffff:c000:23c',
      '[::FFFF:192.0.2.60]:7',
      '0:0:0:0:0:ffff:c000:023c',
      '0::ffff:192.0.2.60',
      '::ffff:192.0.2.60%eth0',
    ])
      await check(read(written, bad(1)), 429, '800.120.100')
    await times(credentialMax, at => read(`[2001:db8::${at}]:${4000 + at}`, bad(1)))
    await check(read('[2001:db8:0::ffff]:9', bad(1)), 429, '800.120.100')
    await check(read('2001:db8:0:0:1::', bad(1)), 429, '800.120.100')
    await check(read('2001:db8::7%eth0', bad(1)), 429, '800.120.100')
    await check(read('2001:db8:0:1::1', bad(1)), 403, '800.900.300')
  })

  it('whoever is turned away leaves a line with address and token id, and no credential', async () => {
    now += 60_000
    const address = '192.0.2.70'
    const from = gateway.logged.length
    await check(read(address, 'none'), 401, '800.900.300')
    await check(read(address, bad(7)), 403, '800.900.300')
    await gateway.get(`/v1/payments/${unknown}`, { entityId: unknown }, { Authorization: good, 'X-Forwarded-For': address })
    await times(credentialMax - 1, () => read(address, bad(7)))
    await check(read(address, bad(7)), 429, '800.120.100')
    const lines = gateway.logged
      .slice(from)
      .map(line => JSON.parse(line))
      .filter(({ message }) => message === 'a caller was turned away')
    assert.deepEqual([...new Set(lines.map(line => line.status))], [401, 403, 429])
    for (const line of lines) assert.equal(`${line.level} ${line.address}`, `warn ${address}`)
    const { rows } = await gateway.pool.query<{ id: string }>("select id from access_tokens where label = 'Sandbox'")
    assert.deepEqual(
      lines.filter(line => line.tokenId !== undefined).map(({ tokenId, result }) => [tokenId, result]),
      [[rows[0]!.id, 'entityNotTheTokens']],
    )
    assert.ok(!JSON.stringify(lines).includes('wrong-'))
  })

  it('an address that is none ends no gateway', async () => {
    for (const nonsense of ['unknown', '_hidden, 127.0.0.1', '192.0.2.10:4711', '[2001:db8::1]:80', '%', ',,'])
      await check(read(nonsense, good), 404, '700.400.580')
  })
})

it('a cookie is found wherever it stands among others', () => {
  const found = (cookie?: string) => cookieOf({ headers: { cookie } as never }, 'ours')
  for (const cookie of [
    'ours=1',
    'a=b; ours=1',
    'a=b;ours=1;c',
    'ours=1; ours=2',
    ';; ours=1',
    ' ours=1',
    `${'a;'.repeat(7000)}ours=1`,
  ])
    assert.equal(found(cookie), '1', cookie.slice(0, 40))
  for (const cookie of [undefined, '', ';', 'a=b', 'yours=1', 'a=ours=1', 'ours', `ours=${'1'.repeat(65)}`])
    assert.equal(found(cookie), undefined, cookie?.slice(0, 40))
})

describe('the 72 hours of a reversal', () => {
  const window = 72 * 3_600_000
  const reverse = (id: string, fields: Fields = {}) => gateway.refer(id, { paymentType: 'RV', ...fields })
  const declined = { 'customParameters[forceResultCode]': '800.100.152' }
  const paid = async (paymentType: string): Promise<string> => (await gateway.pay({ paymentType })).body.id

  it('a debit is reversed up to 72:00:00.000', async () => {
    const [first, second] = [await paid('DB'), await paid('DB')]
    now += window
    await check(reverse(first), 200, '000.100.110')
    now += 1
    await check(reverse(second), 400, '700.300.700')
  })

  it('a hold is released by a message up to 72:00:00.000, and closed without one later', async () => {
    const [first, second, third] = [await paid('PA'), await paid('PA'), await paid('PA')]
    now += window
    await check(reverse(first, declined), 400, '800.100.152')
    now += 1
    await check(reverse(second, declined), 200, '000.100.110')
    await check(reverse(third, { amount: '2.00', currency: 'EUR', ...declined }), 200, '000.100.110')
    await check(gateway.refer(third, { paymentType: 'CP', amount: '90.01', currency: 'EUR' }), 400, '700.400.100')
    await check(gateway.refer(third, { paymentType: 'CP', amount: '90.00', currency: 'EUR' }), 200, '000.100.110')
  })
})

describe('dates of a query', () => {
  it('bare days are inclusive, from 00:00:00 to 23:59:59.999 UTC', async () => {
    const moments = [
      '2031-03-09T23:59:59.999Z',
      '2031-03-10T00:00:00.000Z',
      '2031-03-10T23:59:59.999Z',
      '2031-03-11T00:00:00.000Z',
    ]
    const ids: string[] = []
    for (const moment of moments) {
      now = Date.parse(moment)
      ids.push((await gateway.pay()).body.id)
    }
    const found = async (from: string, to: string) =>
      (await gateway.get('/v3/query', { entityId: sandbox.entityId, 'date.from': from, 'date.to': to })).body.records.map(
        ({ id }: { id: string }) => ids.indexOf(id),
      )
    assert.deepEqual(await found('2031-03-10', '2031-03-10'), [1, 2])
    assert.deepEqual(await found('2031-03-09', '2031-03-11'), [0, 1, 2, 3])
    assert.deepEqual(await found('2031-03-10 00:00:00', '2031-03-10 23:59:58'), [1])
    assert.deepEqual(await found('2031-03-09 23:59:59', '2031-03-09 23:59:59'), [0])
  })
})

describe('the time of an answer', () => {
  it('is that of the merchant, for errors and lists as for payments', async () => {
    now = Date.parse('2031-04-01T10:00:00Z')
    await gateway.advance('1d')
    const { entityId } = sandbox
    const answers = [
      await gateway.pay({ merchantTransactionId: 'tomorrow' }),
      await gateway.pay({ amount: 'x' }),
      await gateway.get(`/v1/payments/${unknown}`, { entityId }),
      await gateway.get('/v1/query', { entityId, merchantTransactionId: 'tomorrow' }),
    ]
    for (const { body } of answers) assert.equal(body.timestamp, '2031-04-02 10:00:00+0000', JSON.stringify(body))
    assert.equal((await gateway.get('/nowhere')).body.timestamp, '2031-04-01 10:00:00+0000')
  })
})

describe('a chain', () => {
  const refund = (id: string, amount: string, headers = {}) =>
    gateway.refer(id, { paymentType: 'RF', amount, currency: 'EUR' }, headers)
  const followers = async (id: string) =>
    (await gateway.pool.query<{ count: number }>('select count(*) from payments where root_id = $1', [id])).rows[0]!.count
  const code = ({ status, body }: Reply) => [status, body.result.code]

  it('keeps no more refusals than so many, and leaves room for what is allowed', async () => {
    const { id } = (await gateway.pay({ amount: '92.00' })).body
    const key = { 'Idempotency-Key': 'the-last-that-was-kept' }
    const refused = await refund(id, '99.00')
    assert.deepEqual(code(refused), [400, '700.400.200'])
    await growChain(gateway.pool, refused.body.id, refusalsMost - 2)
    const last = await refund(id, '99.00', key)
    assert.equal(await followers(id), refusalsMost)
    for (let at = 0; at < 3; at++) assert.deepEqual(code(await refund(id, '99.00')), [400, '700.400.200'])
    assert.equal((await refund(id, '99.00', key)).body.id, last.body.id, 'what was kept is answered as it was')
    assert.equal(await followers(id), refusalsMost)
    assert.deepEqual(code(await refund(id, '92.00')), [200, '000.100.110'])
    assert.equal(await followers(id), refusalsMost + 1)
  })

  it('takes no more than so many, also of those that come at a time; what came before is answered as it was', async () => {
    const { id } = (await gateway.pay({ amount: '92.00' })).body
    const key = { 'Idempotency-Key': 'a-refund-that-was-made' }
    const made = await refund(id, '0.01', key)
    await growChain(gateway.pool, made.body.id, followersMost - 3)
    const replies = await Promise.all(Array.from({ length: 6 }, () => refund(id, '0.01')))
    assert.deepEqual(replies.map(one => code(one).join(' ')).sort(), [
      ...Array(2).fill('200 000.100.110'),
      ...Array(4).fill('400 700.500.001'),
    ])
    const again = await refund(id, '0.01', key)
    assert.deepEqual([again.status, again.body.id], [200, made.body.id])
    assert.equal(await followers(id), followersMost)
  })

  it('takes no more than so many bytes, of which refusals have half', async () => {
    const { id } = (await gateway.pay({ amount: '92.00' })).body
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`customParameters[key${at}]`, 'x'.repeat(2000)]))
    const heavy = await gateway.refer(id, { paymentType: 'RF', amount: '99.00', currency: 'EUR', ...many })
    assert.deepEqual(code(heavy), [400, '700.400.200'])
    const { rows } = await gateway.pool.query(
      `select octet_length(p.record) + octet_length(a.body) as bytes from payments p join answers a on a.payment_id = p.id where p.id = $1`,
      [heavy.body.id],
    )
    const half = Math.ceil(followersBytesMost / 2 / rows[0].bytes)
    await growChain(gateway.pool, heavy.body.id, half - 1)
    assert.deepEqual(code(await refund(id, '99.00')), [400, '700.400.200'])
    assert.equal(await followers(id), half, 'it is refused, and not kept')
    assert.deepEqual(code(await refund(id, '1.00')), [200, '000.100.110'])
    await growChain(gateway.pool, heavy.body.id, half)
    assert.deepEqual(code(await refund(id, '1.00')), [400, '700.500.001'])
  })
})
