// Crowds of strangers at the door of the back office: what they may send, what waits of it, who comes first, and that somebody else still signs in.

import assert from 'node:assert/strict'
import http from 'node:http'
import { after, before, describe, test } from 'node:test'
import { clockWith, systemClock } from '../src/platform/clock.ts'
import { networksAround } from '../src/platform/network.ts'
import { type Attempter, attemptLine, attemptsWaitingMost, looksAtOnce, looksOfKnownMost } from '../src/staff/attempts.ts'
import { stepAt, stepSeconds, totpCode } from '../src/staff/totp.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { addStaff, type Clerk, textOf, visitor } from './support/office.ts'

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

  test('who is known comes before all strangers, and takes the place of one; until he had as many looks as only a flood has', async () => {
    const { line, begun, enter, start, end } = lineOf()
    start('first')
    const told: string[] = []
    for (let at = 0; at < attemptsWaitingMost; at++)
      enter(`stranger ${at}`).then(
        answer => told.push(`${at} ${answer}`),
        () => assert.fail(),
      )
    for (let at = 0; at < 5; at++) assert.equal(await enter('stranger again'), 'busy')
    start('known', { isKnown: true })
    await new Promise(setImmediate)
    assert.deepEqual(told, [`${attemptsWaitingMost - 1} busy`])
    await end()
    assert.deepEqual(begun, ['first', 'known'])
    for (let look = 1; look < looksOfKnownMost; look++) {
      start('known', { isKnown: true })
      await end()
    }
    assert.deepEqual(new Set(begun), new Set(['first', 'known']))
    const late = enter('known', { isKnown: true })
    await end()
    assert.equal(begun.at(-1), 'stranger 0')
    line.forgive('known')
    start('known', { isKnown: true })
    await end()
    assert.equal(begun.at(-1), 'known')
    for (let at = 1; at < attemptsWaitingMost; at++) await end()
    await end()
    assert.equal(await late, 'known')
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
  const from = (address: string) => ({
    'Sec-Fetch-Site': 'same-origin',
    Origin: 'https://office.example',
    'X-Forwarded-For': address,
  })
  const tries = (address: string, name: string) => visitor(gateway).post('/office/sign-in', wrong(name), from(address))
  const counted = async (like: string) =>
    (
      await gateway.pool.query<{ attempts: number }>('select attempts from sign_in_attempts where subject like $1', [like])
    ).rows.map(({ attempts }) => attempts)

  const password = 'my dog eats 7 shoes'
  /** Somebody with both factors, the browser in which they were set, and the next code whenever it is asked for. */
  async function enrolled(): Promise<{ id: string; name: string; browser: string; nextCode(): string }> {
    const { id, name, link } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId], clock)
    let bits = ''
    for (const letter of textOf(await visitor(gateway).ask(link), 'key'))
      bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')
    const secret = Buffer.from(bits.match(/.{8}/g)!.map(byte => Number.parseInt(byte, 2)))
    const clerk = visitor(gateway)
    assert.equal((await clerk.post(link, { password, code: totpCode(secret, stepAt(now)) })).status, 200)
    return {
      id,
      name,
      browser: clerk.cookies.get('tollgate_browser')!,
      nextCode() {
        now += stepSeconds * 1000
        return totpCode(secret, stepAt(now))
      },
    }
  }
  /** In a browser that holds this. */
  const holding = (browser: string) => {
    const clerk = visitor(gateway)
    clerk.cookies.set('tollgate_browser', browser)
    return clerk
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
    const { name, nextCode } = await enrolled()
    const code = nextCode()
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

  test('a flood from networks that each come once keeps nobody out whose browser is known', { timeout: 60_000 }, async () => {
    const { name, browser, nextCode } = await enrolled()
    const told = new Map<number, number>()
    let sent = 0
    let isOver = false
    const flood = Array.from({ length: 80 }, async () => {
      while (!isOver) {
        const at = sent++
        const { status } = await tries(`2001:db9:${at.toString(16)}::1`, `once${at}@office.example`)
        told.set(status, (told.get(status) ?? 0) + 1)
        await new Promise(resolve => setTimeout(resolve, 200))
      }
    })
    try {
      await eventually(async () => (told.get(503) ?? 0) > 100, 'the line is full')
      for (let round = 0; round < 3; round++) {
        const sentBefore = told.get(503)!
        const good = await holding(browser).post('/office/sign-in', { name, password, code: nextCode() }, from('203.0.113.8'))
        assert.equal(good.status, 303)
        await eventually(async () => told.get(503)! > sentBefore, 'the flood goes on')
      }
    } finally {
      isOver = true
      await Promise.all(flood)
    }
  })

  const here = from('203.0.113.50')
  const usedUp = () =>
    gateway.pool.query(
      `insert into sign_in_attempts (subject, since, attempts) values ('network 203.0.113.50', $1, 50)
       on conflict (subject) do update set since = excluded.since, attempts = 50`,
      [new Date(now).toISOString()],
    )

  test('what its network used up refuses no browser that is known for 90 days', async () => {
    const { name, browser, nextCode } = await enrolled()
    const signIn = (clerk: Clerk) => clerk.post('/office/sign-in', { name, password, code: nextCode() }, here)
    await usedUp()
    const altered = `${browser.slice(0, -1)}${browser.endsWith('A') ? 'B' : 'A'}`
    for (const other of ['', 'x', altered, browser.slice(1), `${browser}A`])
      assert.equal((await signIn(holding(other))).status, 429, other)
    const clerk = holding(browser)
    assert.equal((await signIn(clerk)).status, 303)
    const later = clerk.cookies.get('tollgate_browser')!
    assert.notEqual(later, browser, 'each sign-in lets it be known for longer')
    // The limit of a name is that of a name, wherever it is tried: PCI DSS 8.3.4.
    for (let attempt = 1; attempt <= 10; attempt++) await tries(`203.0.115.${attempt}`, name)
    assert.equal((await signIn(holding(later))).status, 429)
    now += 90 * 86_400_000 - 3 * 60_000
    await usedUp()
    assert.equal((await signIn(holding(later))).status, 303)
    now += 5 * 60_000
    await usedUp()
    assert.equal((await signIn(holding(later))).status, 429, 'its time is over')
  })

  test('all browsers of a person have the attempts of one network together, and none when he is gone', async () => {
    const { id, name, browser, nextCode } = await enrolled()
    const other = holding(browser)
    assert.equal((await other.post('/office/sign-in', { name, password, code: nextCode() }, here)).status, 303)
    await usedUp()
    const browsers = [browser, other.cookies.get('tollgate_browser')!]
    const spray = async (attempt: number) =>
      (await holding(browsers[attempt % 2]!).post('/office/sign-in', wrong(`spray${attempt}@office.example`), here)).status
    for (let attempt = 1; attempt <= 51; attempt++) assert.equal(await spray(attempt), attempt <= 50 ? 403 : 429, String(attempt))
    assert.deepEqual(await counted(`browser ${id}`), [51])
    now += 31 * 60_000
    assert.equal(await spray(52), 403)
    await gateway.pool.query('update staff set removed_at = now() where id = $1', [id])
    await usedUp()
    assert.equal(await spray(53), 429)
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

  test('whoever has a /56 or a /48 guesses twice and four times as often as a /64, and no more; none uses up all of what is around it', async () => {
    let tried = 0
    /** What is answered, and how often, to so many guesses of a /64. */
    const guess = async (third: number, fourth: number, times: number) => {
      const answers = { 403: 0, 429: 0 } as Record<number, number>
      for (let at = 0; at < times; at++) {
        const address = `2001:db8:${third.toString(16)}:${fourth.toString(16)}::1`
        const { status } = await tries(address, `n${tried++}@office.example`)
        answers[status] = (answers[status] ?? 0) + 1
      }
      await gateway.pool.query('delete from log_in_failures')
      return answers
    }
    assert.deepEqual(await guess(9, 0x100, 60), { 403: 50, 429: 10 })
    assert.deepEqual(await counted('network 2001:db8:9:100::/56'), [50])
    assert.deepEqual(await guess(9, 0x101, 60), { 403: 50, 429: 10 })
    assert.deepEqual(await guess(9, 0x102, 2), { 403: 0, 429: 2 })
    assert.deepEqual(await counted('network 2001:db8:9::/48'), [100])
    // Each of many: a /56 has 256 of them, a /48 has 65,536.
    for (let one = 0; one < 20; one++) assert.deepEqual(await guess(9, 0x110 + one, 1), { 403: 0, 429: 1 })
    assert.deepEqual(await counted('network 2001:db8:9::/48'), [100])
    assert.deepEqual(await guess(9, 0x200, 1), { 403: 1, 429: 0 }, 'a neighbour in another /56')
    await gateway.pool.query(`update sign_in_attempts set attempts = 199 where subject = 'network 2001:db8:9::/48'`)
    assert.deepEqual(await guess(9, 0x300, 1), { 403: 1, 429: 0 })
    for (let one = 0; one < 5; one++) assert.deepEqual(await guess(9, 0x400 + one * 0x100, 1), { 403: 0, 429: 1 })
  })
})
