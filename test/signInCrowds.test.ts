// Crowds of strangers at the door of the back office: what they may send, what waits of it, who comes first, and that somebody else still signs in.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, test } from 'node:test'
import { clockWith, systemClock } from '../src/platform/clock.ts'
import { networksAround } from '../src/platform/network.ts'
import { type Attempter, attemptLine, attemptsWaitingMost, looksAtOnce } from '../src/staff/attempts.ts'
import { stepAt, stepSeconds, totpCode } from '../src/staff/totp.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { addStaff, textOf, visitor } from './support/office.ts'

describe('the line of attempts', () => {
  /** Looks that go on until they are told to end, in the order in which they began. */
  function lineOf(clock = systemClock) {
    const line = attemptLine(clock)
    const begun: string[] = []
    const ends: (() => void)[] = []
    const begunLooks: Promise<unknown>[] = []
    // All but one are taken up by looks that go on.
    for (let at = 1; at < looksAtOnce; at++) begunLooks.push(line.inTurn({ whose: `goes on ${at}` }, () => new Promise(() => {})))
    const enter = (name: string, attempter: Partial<Attempter> = {}) =>
      line.inTurn({ whose: name, ...attempter }, async () => {
        begun.push(name)
        await new Promise<void>(end => ends.push(end))
        return name
      })
    const start = (name: string, attempter?: Partial<Attempter>) => void begunLooks.push(enter(name, attempter))
    const end = async () => {
      ends.shift()!()
      await new Promise(setImmediate)
    }
    return { line, begun, enter, start, end }
  }

  test('one at a time, and the first of one before the second of another', async () => {
    const { begun, start, end } = lineOf()
    for (const name of ['a', 'a', 'a', 'b', 'b', 'c']) start(name)
    await new Promise(setImmediate)
    assert.deepEqual(begun, ['a'])
    for (let at = 0; at < 5; at++) await end()
    assert.deepEqual(begun, ['a', 'b', 'c', 'b', 'a', 'a'])
    await end()
  })

  test('of who had no look yet, those come first who came less often', async () => {
    const { begun, enter, start, end } = lineOf()
    start('first')
    await new Promise(setImmediate)
    let isGone = true
    const left = [enter('crowd', { isGone: () => isGone }), enter('crowd', { isGone: () => isGone })]
    for (let at = 2; at < attemptsWaitingMost; at++) start(`other ${at}`, { isGone: () => isGone })
    start('crowd')
    assert.deepEqual(await Promise.all(left), ['busy', 'busy'])
    isGone = false
    start('good')
    await new Promise(setImmediate)
    await end()
    await end()
    assert.deepEqual(begun, ['first', 'good', 'crowd'])
    await end()
  })

  test('who had looks already comes behind who had none, but for looks that showed the right one; for half an hour', async () => {
    let now = Date.now()
    const { line, begun, start, end } = lineOf(clockWith(() => now))
    const enterAll = async (...names: string[]) => {
      for (const name of names) start(name)
      await new Promise(setImmediate)
    }
    for (const name of ['crowd', 'good']) {
      await enterAll(name)
      await end()
    }
    line.forgive('good')
    await enterAll('first', 'crowd', 'good')
    for (let at = 0; at < 3; at++) await end()
    assert.deepEqual(begun.slice(2), ['first', 'good', 'crowd'])
    now += 31 * 60_000
    await enterAll('first', 'crowd', 'good')
    for (let at = 0; at < 3; at++) await end()
    assert.deepEqual(begun.slice(5), ['first', 'crowd', 'good'])
  })

  test('is short: who has most in it leaves it for who has less, and else who comes is told at once', async () => {
    const { begun, enter, start, end } = lineOf()
    start('crowd')
    const told: string[] = []
    const answers: Promise<unknown>[] = []
    for (let at = 0; at < attemptsWaitingMost; at++) answers.push(enter('crowd').then(answer => told.push(`crowd ${answer}`)))
    await new Promise(setImmediate)
    assert.deepEqual(told, [])
    assert.equal(await enter('crowd'), 'busy')
    const other = enter('other')
    await new Promise(setImmediate)
    assert.deepEqual(told, ['crowd busy'])
    await end()
    assert.deepEqual(begun, ['crowd', 'other'])
    await end()
    assert.equal(await other, 'other')
  })

  test('who has left makes room, and is not looked at', async () => {
    const { begun, enter, start, end } = lineOf()
    start('first')
    let isGone = false
    const left = Array.from({ length: attemptsWaitingMost }, (_, at) => enter(`gone ${at}`, { isGone: () => isGone }))
    isGone = true
    const here = enter('here')
    assert.deepEqual(new Set(await Promise.all(left)), new Set(['busy']))
    const later = enter('later', { isGone: () => true })
    await end()
    await end()
    assert.equal(await here, 'here')
    assert.equal(await later, 'busy')
    assert.deepEqual(begun, ['first', 'here'])
  })

  test('nobody waits for longer than five seconds', async () => {
    const timers: (() => void)[] = []
    const after: typeof systemClock.after = (milliseconds, act) => {
      assert.equal(milliseconds, 5000)
      timers.push(act)
      return { cancel() {}, unref: () => assert.fail() }
    }
    const { enter, end } = lineOf({ ...systemClock, after })
    const first = enter('first')
    const second = enter('second')
    timers[0]!()
    assert.equal(await second, 'busy')
    await new Promise(setImmediate)
    await end()
    assert.equal(await first, 'first')
  })
})

test('a network of IPv6 is counted as what its owner was given', () => {
  assert.deepEqual(networksAround('192.0.2.7'), ['192.0.2.7'])
  assert.deepEqual(networksAround('2001:db8:0:12ab::1'), ['2001:db8:0:12ab::/64', '2001:db8:0:1200::/56', '2001:db8:0::/48'])
  assert.deepEqual(networksAround('2001:db8::1'), ['2001:db8:0:0::/64', '2001:db8:0:0::/56', '2001:db8:0::/48'])
})

describe('a gateway', () => {
  let now = Date.now()
  const clock = clockWith(() => now)
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway({ clock, environment: { TRUSTED_PROXY: '127.0.0.1' } })
  })
  after(() => gateway.stop())

  const wrong = (name: string) => ({ name, password: 'not the password', code: '000000' })
  const from = (address: string) => ({ 'Sec-Fetch-Site': 'same-origin', 'X-Forwarded-For': address })
  const tries = (address: string, name: string) => visitor(gateway).post('/office/sign-in', wrong(name), from(address))
  const counted = async (like: string) =>
    (
      await gateway.pool.query<{ attempts: number }>('select attempts from sign_in_attempts where subject like $1', [like])
    ).rows.map(({ attempts }) => attempts)

  const password = 'my dog eats 7 shoes'
  /** Somebody with both factors, and the code of the next half minute. */
  async function enrolled(): Promise<{ name: string; code: string }> {
    const { name, link } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId], clock)
    let bits = ''
    for (const letter of textOf(await visitor(gateway).ask(link), 'key'))
      bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')
    const secret = Buffer.from(bits.match(/.{8}/g)!.map(byte => Number.parseInt(byte, 2)))
    assert.equal((await visitor(gateway).post(link, { password, code: totpCode(secret, stepAt(now)) })).status, 200)
    now += stepSeconds * 1000
    return { name, code: totpCode(secret, stepAt(now)) }
  }

  test('reads some thousand bytes of what strangers send', async () => {
    for (const [path, most] of [
      ['/office/sign-in', 8],
      ['/office/sign-in/passkey', 32],
      ['/office/invitation/x', 8],
      ['/office/language', 8],
    ] as const) {
      const send = (length: number) => visitor(gateway).post(path, { x: 'x'.repeat(length - 2) }, from('192.0.2.99'))
      assert.equal((await send(most * 1024 + 1)).status, 413, path)
      assert.notEqual((await send(most * 1024)).status, 413, path)
    }
  })

  test('100 networks that flood keep somebody else waiting for a moment; who is not looked at is not counted', {
    timeout: 60_000,
  }, async () => {
    const { name, code } = await enrolled()
    const usersBefore = (await counted('user %')).length
    const told = new Map<number, number>()
    let isOver = false
    const flood = Array.from({ length: 100 }, async (_, at) => {
      for (let round = 0; !isOver; round++) {
        const { status, headers } = await tries(`198.51.${at}.1`, `flood${at}.${round}@office.example`)
        told.set(status, (told.get(status) ?? 0) + 1)
        if (status === 503) assert.equal(headers.get('retry-after'), '5')
        await new Promise(resolve => setTimeout(resolve, 1000)) // the crowd is in this process, and computes as well
      }
    })
    const signIn = () => visitor(gateway).post('/office/sign-in', { name, password, code }, from('203.0.113.7'))
    try {
      await eventually(async () => (told.get(503) ?? 0) > 100, 'the line is full')
    } finally {
      isOver = (told.get(503) ?? 0) <= 100
    }
    const [begun, looksBefore] = [performance.now(), told.get(403) ?? 0]
    let good = await signIn()
    while (good.status === 503 && performance.now() - begun < 60_000) {
      await new Promise(resolve => setTimeout(resolve, 1000)) // as a person comes again, and no flood does
      good = await signIn()
    }
    const others = (told.get(403) ?? 0) - looksBefore
    isOver = true
    await Promise.all(flood)
    assert.equal(good.status, 303)
    assert.ok(others < 2 * attemptsWaitingMost, `after ${others} of others`)
    const looked = (await counted('network 198.51.%')).reduce((sum, one) => sum + one, 0)
    assert.equal(looked, told.get(403), JSON.stringify([...told]))
    assert.equal((await counted('user %')).length - usersBefore, looked)
  })

  test('who leaves is not looked at', async () => {
    const before = (await counted('network 192.0.2.%')).length
    const body = new URLSearchParams(wrong('gone@office.example')).toString()
    await Promise.all(
      Array.from(
        { length: 60 },
        (_, at) =>
          new Promise<void>(left => {
            const headers = { ...from(`192.0.2.${at}`), 'Content-Type': 'application/x-www-form-urlencoded' }
            const asked = http.request(`${gateway.baseUrl}/office/sign-in`, { method: 'POST', headers, agent: false })
            asked.on('error', () => left())
            asked.end(body, () => setTimeout(() => asked.destroy(), 50))
            asked.on('close', () => left())
          }),
      ),
    )
    assert.equal((await tries('203.0.113.9', 'here@office.example')).status, 403)
    assert.ok((await counted('network 192.0.2.%')).length - before < 30)
  })

  test('whoever has a /56 or a /48 guesses twice and four times as often as a /64, and no more', async () => {
    const answers = new Map<number, number>()
    let tried = 0
    const guess = async (third: number, fourth: number) => {
      const address = `2001:db8:${third.toString(16)}:${fourth.toString(16)}::1`
      const { status } = await tries(address, `n${tried++}@office.example`)
      answers.set(status, (answers.get(status) ?? 0) + 1)
    }
    await gateway.pool.query(
      `insert into sign_in_attempts (subject, since, attempts) values
      ('network 2001:db8:7:100::/56', $1, 99), ('network 2001:db8:8::/48', $1, 199)`,
      [new Date(now).toISOString()],
    )
    await guess(7, 0x101)
    assert.deepEqual([...answers], [[403, 1]])
    await guess(7, 0x1ff)
    assert.equal(answers.get(429), undefined, 'the first of a neighbour')
    await guess(7, 0x1ff)
    assert.equal(answers.get(429), 1)
    await guess(7, 0x200)
    assert.equal(answers.get(403), 3)
    await guess(8, 0x100)
    assert.equal(answers.get(403), 4)
    await guess(8, 0x900)
    await guess(8, 0x900)
    assert.deepEqual([answers.get(403), answers.get(429)], [5, 2])
    // Of one that may no more nothing is counted for its neighbours.
    for (let at = 0; at < 60; at++) await guess(9, 0x100)
    assert.deepEqual(await counted('network 2001:db8:9::/48'), [50])
  })
})
