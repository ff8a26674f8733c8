// Mail to the alert address, by real SMTP servers on this machine: what is told, when, by whom of many, and what happens when the server does not take it.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { digestOf, newsOf, remembered } from '../src/alerts/digest.ts'
import { systemClock } from '../src/platform/clock.ts'
import { type Mail, mailer, readMailServer } from '../src/platform/mail.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'

type MailBox = { readonly port: number; readonly taken: string[]; close(): Promise<void> }

/** What it has taken, as it came. */
async function mailBox(options: SMTPServerOptions, host = '127.0.0.1'): Promise<MailBox> {
  const taken: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    logger: false,
    onData(stream, _, done) {
      const chunks: Buffer[] = []
      stream.on('data', chunk => chunks.push(chunk))
      stream.on('end', () => {
        taken.push(Buffer.concat(chunks).toString())
        done()
      })
    },
    ...options,
  })
  server.on('error', () => {})
  await new Promise<void>(ready => server.listen(0, host, ready))
  const { port } = server.server.address() as AddressInfo
  return { port, taken, close: () => new Promise(done => server.close(done)) }
}

const plain: SMTPServerOptions = { disabledCommands: ['STARTTLS', 'AUTH'] }
const refusal = (message: string, responseCode: number) => Object.assign(new Error(message), { responseCode })
const mail: Mail = { from: 'tollgate@shop.example', to: ['ops@shop.example'], subject: 's', text: 't', id: '<1@shop.example>' }
const soon = () => systemClock.deadline(20_000)
const at = (url: string) => readMailServer(url)!

describe('the address of a mail server', () => {
  for (const [url, port, secure, user] of [
    ['smtp://mail.example', 587, false, undefined],
    ['smtps://mail.example', 465, true, undefined],
    ['smtps://o%40ps:pass%2Fword@mail.example:2465', 2465, true, 'o@ps'],
    ['smtp://[::1]:25', 25, false, undefined],
  ] as const)
    it(url, () => {
      const server = at(url)
      assert.deepEqual([server.port, server.secure, server.auth?.user], [port, secure, user])
    })
  for (const url of [
    'http://mail.example',
    'smtp://',
    'mail.example',
    'smtp://user@mail.example',
    'smtp://mail.example/x',
    'smtp://m.example?tls=0',
    'smtp://user:pass%ZZ@m.example',
  ])
    it(`not ${url}`, () => assert.equal(readMailServer(url), undefined))
})

describe('a mail', () => {
  it('is taken by a server with TLS and a password, and only by one that proves who it is', {
    skip: !hasOpenssl && 'no openssl',
  }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-mail-'))
    const made = makeCertificate(folder, 'mail')
    const [cert, key] = [readFileSync(made.cert), readFileSync(made.key)]
    const box = await mailBox({
      secure: true,
      cert,
      key,
      authOptional: false,
      onAuth: ({ username, password }, _, done) =>
        username === 'ops' && password === 'pass word' ? done(null, { user: 'ops' }) : done(refusal('no such user', 535)),
    })
    const url = `smtps://ops:pass%20word@localhost:${box.port}`
    await mailer(at(url), cert)(mail, soon())
    assert.equal(box.taken.length, 1)
    await assert.rejects(mailer(at(url))(mail, soon()), /self-signed/)
    await assert.rejects(
      mailer(at(url.replace('%20', '-')), cert)(mail, soon()),
      (error: Error) => !/pass-word/.test(error.message),
    )
    assert.equal(box.taken.length, 1)
    await box.close()
    rmSync(folder, { recursive: true })
  })

  const outside = Object.values(networkInterfaces())
    .flat()
    .find(one => one && one.family === 'IPv4' && !one.internal)?.address
  it('goes to no other machine without TLS', { skip: outside === undefined && 'no address but loopback' }, async () => {
    const box = await mailBox(plain, '0.0.0.0')
    await assert.rejects(mailer(at(`smtp://${outside}:${box.port}`))(mail, soon()))
    await mailer(at(`smtp://127.0.0.1:${box.port}`))(mail, soon())
    assert.equal(box.taken.length, 1)
    await box.close()
  })

  it('that is refused for one of its addresses has failed', async () => {
    const box = await mailBox({
      ...plain,
      onRcptTo: ({ address }, _, done) => (address.startsWith('ops') ? done() : done(refusal('who is that', 550))),
    })
    await assert.rejects(
      mailer(at(`smtp://127.0.0.1:${box.port}`))({ ...mail, to: [...mail.to, 'else@shop.example'] }, soon()),
      /refused 1 of 2/,
    )
    await box.close()
  })

  it('to a server that closes, or says nothing, fails in time', async () => {
    for (const act of [(socket: net.Socket) => socket.destroy(), () => {}]) {
      const sockets = new Set<net.Socket>()
      const server = net.createServer(socket => {
        sockets.add(socket.on('error', () => {}))
        act(socket)
      })
      await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
      const { port } = server.address() as AddressInfo
      await assert.rejects(mailer(at(`smtp://127.0.0.1:${port}`))(mail, systemClock.deadline(500)))
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  })
})

describe('a mail server that', () => {
  /** A server of our own words. */
  const serverThat = async (answer: (line: string, socket: net.Socket) => void) => {
    const sockets = new Set<net.Socket>()
    const server = net.createServer(socket => {
      sockets.add(socket.on('error', () => {}))
      socket.write('220 hi\r\n')
      socket.on('data', chunk => answer(String(chunk), socket))
    })
    await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
    const { port } = server.address() as AddressInfo
    const close = () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
    return { url: `smtp://ops:pass-word9@127.0.0.1:${port}`, close }
  }

  for (const [what, block] of [
    ['empty lines', '\n'],
    ['answers that nobody asked for', '250 x\r\n'],
    ['a line without an end', '2'],
  ] as const)
    it(`says ${what}, on and on, is hung up on after 64 kB`, async () => {
      let said = 0
      const server = await serverThat((_, socket) => {
        const blocks = Buffer.from(block.repeat(65_536 / block.length))
        const more = () => {
          for (let full = false; !full && !socket.destroyed; said += blocks.length) full = !socket.write(blocks)
        }
        socket.on('drain', more)
        more()
      })
      const processor = process.cpuUsage()
      await assert.rejects(
        mailer(at(server.url))(mail, systemClock.deadline(20_000)),
        /says more than a mail needs|Unexpected Response/,
      )
      const { user, system } = process.cpuUsage(processor)
      assert.ok(user + system < 3_000_000, `${user + system} µs of the processor`)
      assert.ok(said < 20_000_000, `${said} bytes were taken`)
      server.close()
    })

  it('repeats what it was told has no password in the error', async () => {
    const server = await serverThat((line, socket) =>
      socket.write(line.startsWith('EHLO') ? '250-h\r\n250 AUTH PLAIN LOGIN\r\n' : `535 no: ${line.trim()}\r\n`),
    )
    const secret = Buffer.from('\0ops\0pass-word9').toString('base64')
    await assert.rejects(
      mailer(at(server.url))(mail, soon()),
      (error: Error) => /refuses user and password \(535\)/.test(error.message) && !error.message.includes(secret),
    )
    server.close()
  })

  it('wants STARTTLS is spoken to in TLS, and only if it proves who it is', { skip: !hasOpenssl && 'no openssl' }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-mail-'))
    const made = makeCertificate(folder, 'mail')
    const [cert, key] = [readFileSync(made.cert), readFileSync(made.key)]
    const secure: boolean[] = []
    const box = await mailBox({
      ...{ cert, key, authOptional: false },
      onAuth: ({ username, password }, session, done) => {
        secure.push(session.secure)
        return username === 'ops' && password === 'pass word' ? done(null, { user: 'ops' }) : done(refusal('no such user', 535))
      },
    })
    const url = `smtp://ops:pass%20word@localhost:${box.port}`
    await assert.rejects(mailer(at(url))(mail, soon()), /self-signed/)
    await mailer(at(url), cert)({ ...mail, text: 'long '.repeat(40_000) }, soon())
    assert.deepEqual([secure, box.taken.length], [[true], 1])
    assert.ok(box.taken[0]!.length > 200_000)
    await box.close()
    rmSync(folder, { recursive: true })
  })
})

describe('news', () => {
  const one = (count: number, newest: number | null = null) => ({ kind: 'givenUp', count, newest }) as const
  const hour = 3_600_000
  it('is what nobody was told, of one kind once an hour', () => {
    assert.deepEqual(newsOf([one(0)], {}, 0), [])
    assert.deepEqual(newsOf([one(2)], {}, 0), [one(2)])
    const told = { givenUp: { count: 2, newest: 5, at: 0 } }
    assert.deepEqual(newsOf([one(9, 9)], told, hour - 1), [])
    assert.deepEqual(newsOf([one(3)], told, hour), [one(3)])
    assert.deepEqual(newsOf([one(2, 5)], told, hour), [])
    assert.deepEqual(newsOf([one(2, 6)], told, hour), [one(2, 6)], 'one went and one came')
    const fewer = remembered([one(1)], told)
    assert.deepEqual(newsOf([one(2, 5)], fewer, hour), [one(2, 5)], 'more than were left')
    assert.equal(remembered([], told).givenUp!.count, 0)
  })

  it('stands above what is still there', () => {
    const news = one(2)
    const { subject, text } = digestOf([news], [news, { kind: 'failingWork', count: 1, newest: null }], 'https://pay.example')
    assert.equal(subject, '[Tollgate] 1 thing needs somebody')
    assert.match(text, /^New .* 2 {2}notifications .*Still there:\n\n {2}1 {2}pieces of work.*https:\/\/pay\.example\/office/s)
  })
})

describe('the gateway', () => {
  let gateway: TestGateway
  let box: MailBox
  let ahead = 0
  let answers: (Error | null)[] = []
  const watchers: (() => void)[] = []
  /** How often the watch over the database got no answer; it waits a hundredth as long here. */
  let unanswered = 0
  const clock = {
    ...systemClock,
    real: () => systemClock.real() + ahead,
    after: (milliseconds: number, act: () => void) =>
      milliseconds === 5000
        ? systemClock.after(50, () => {
            unanswered++
            act()
          })
        : systemClock.after(milliseconds, act),
    every: (milliseconds: number, act: () => void) => {
      if (milliseconds === 15_000) watchers.push(act)
      return systemClock.every(milliseconds, act)
    },
  }
  before(async () => {
    box = await mailBox({ ...plain, onMailFrom: (_, __, done) => done(answers.shift() ?? null) })
    const environment = {
      SMTP_URL: `smtp://127.0.0.1:${box.port}`,
      ALERT_TO: 'ops@shop.example, night@shop.example',
      ALERT_FROM: 'tollgate@shop.example',
    }
    gateway = await testGateway({ clock, wired: true, environment })
  })
  after(async () => {
    await gateway.stop()
    await box.close()
  })
  const mails = (count: number) =>
    eventually(async () => box.taken.length === count && box.taken[count - 1]!, `${count} mails`, 30)
  const openCase = (kind: string) =>
    gateway.pool.query(
      `insert into operator_cases (merchant_id, id, kind, subject, details, opened_at)
       values ('5a11d0000000000000000000000000e1', gen_random_uuid(), $1, gen_random_uuid()::text, '{"card":"4200000000000000"}', $2)`,
      [kind, new Date(clock.real()).toISOString()],
    )
  /** Lets the work look once more, later. */
  const later = async (minutes: number) => {
    ahead += minutes * 60_000
    await eventually(
      async () => {
        const { rows } = await gateway.pool.query(`select due_at from due_work where kind = 'alertMail' and leased_until is null`)
        return rows[0]?.due_at > clock.real() && rows
      },
      'it has looked',
      30,
    )
  }

  it('says once, by one of its processes, what waits, and nothing that is secret', async () => {
    const another = await gateway.another()
    await later(0) // nobody is at the first look any more, whose lease the next minute would end
    await openCase('settlementLine')
    await later(1)
    const text = await mails(1)
    assert.match(text, /^To: ops@shop\.example, night@shop\.example/m)
    assert.match(text, /^Subject: \[Tollgate\] 1 thing needs somebody/m)
    assert.match(text.replace(/=\r\n/g, ''), / 1 {2}a line of a settlement file fits none of our bookings/)
    assert.doesNotMatch(text, /4200000000000000|5a11d/)
    for (const minutes of [1, 11, 60]) await later(minutes)
    assert.equal(box.taken.length, 1, 'nothing new, nothing sent')
    await another.stop()
  })

  it('tells of another kind ten minutes later, of one that it has told after an hour, and forgets nothing at a restart', async () => {
    await openCase('settlementLine')
    await later(1)
    await mails(2)
    await openCase('captureLine')
    await openCase('settlementLine')
    await later(8)
    assert.equal(box.taken.length, 2)
    await gateway.restart()
    await later(0) // as above: the look that a start begins with would be done twice
    await later(2)
    const third = (await mails(3)).replace(/=\r\n/g, '')
    assert.match(third, /New since.*acknowledgement of a capture file.*Still there:.* 3 {2}a line of a settlement file/s)
    await later(11)
    assert.equal(box.taken.length, 3, 'both kinds are told already')
    await later(50)
    assert.match((await mails(4)).replace(/=\r\n/g, ''), /New since.* 3 {2}a line of a settlement file.*Still there/s)
  })

  it('tries again where the server refuses for now', async () => {
    answers = [refusal('come again', 451), refusal('come again', 421)]
    await openCase('lineMissing')
    ahead += 60 * 60_000
    assert.match((await mails(5)).replace(/=\r\n/g, ''), /is not in the settlement files/)
    assert.equal(answers.length, 0)
    assert.ok(gateway.logged.some(line => line.includes('due work failed') && line.includes('alertMail')))
  })

  it('tells that the database was away, given-up notifications, disabled webhooks and work that fails', async () => {
    const look = () => {
      for (const act of watchers) act()
    }
    gateway.wire!.silence()
    look()
    await eventually(async () => (await gateway.get('/health')).status === 503, 'it is away')
    await eventually(async () => unanswered > 0, 'the watch has seen it')
    gateway.wire!.resume()
    await eventually(async () => (await gateway.get('/health')).status === 200, 'it is back')
    await gateway.pay()
    await gateway.pool.query(
      `with endpoint as (
         insert into endpoints (merchant_id, id, kind, url, sealed_secrets, state, created_at)
         values ('5a11d0000000000000000000000000e1', gen_random_uuid(), 'webhook', 'http://127.0.0.1:9/', '\\x00', 'disabled', now()) returning *)
       insert into deliveries (merchant_id, endpoint_id, position, notification_id, sequence, payment_id, event_sequence, root_id, state, due_at, emitted_at, settled_at)
       select e.merchant_id, e.id, at, gen_random_uuid(), at, p.id, at, p.id, 'given up', $1, $1, $1::timestamptz - at * interval '5 days'
         from endpoint e, payments p, generate_series(1, 2) at where p.payment_type = 'DB' limit 2`,
      [new Date(clock.real()).toISOString()],
    )
    await gateway.pool.query(
      `insert into due_work (kind, merchant_id, subject_id, due_at, attempts) select 'reverse', merchant_id, id, $1, 6 from payments`,
      // It waits for its next attempt when the work looks, eleven minutes from now.
      [new Date(clock.real() + 16 * 60_000).toISOString()],
    )
    look()
    await eventually(
      async () => {
        const { rows } = await gateway.pool.query(`select 1 from due_work where kind = 'alertMail' and details ? 'databaseAway'`)
        return rows.length === 1
      },
      'it is written down',
      30,
    )
    await later(11)
    const text = (await mails(6)).replace(/=\r\n/g, '')
    for (const told of [
      '1  the database did not answer for a while',
      '1  notifications of the last seven days',
      '1  webhooks are disabled',
      '1  pieces of work failed',
    ])
      assert.ok(text.includes(told), `${told} in ${text}`)
  })

  it('stops while a mail is under way', async () => {
    const heard: string[] = []
    const server = net.createServer(socket => {
      socket.on('error', () => {})
      socket.write('220 hi\r\n')
      // It says a letter from time to time, and never a whole line.
      const timer = systemClock.every(200, () => socket.write('2'))
      socket.on('close', () => timer.cancel())
      socket.on('data', chunk => heard.push(String(chunk)))
    })
    await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
    const { port } = server.address() as AddressInfo
    const slow = await testGateway({
      environment: {
        ...{ SMTP_URL: `smtp://127.0.0.1:${port}`, ALERT_TO: 'ops@shop.example', ALERT_FROM: 'tollgate@shop.example' },
      },
    })
    await slow.pool.query(
      `insert into operator_cases (merchant_id, id, kind, subject, details, opened_at)
       values ('5a11d0000000000000000000000000e1', gen_random_uuid(), 'lineMissing', 'one', '{}', now())`,
    )
    await slow.pool.query(`update due_work set due_at = now() where kind = 'alertMail'`)
    await eventually(async () => heard.length > 0, 'a mail is under way', 30)
    const stopped = slow.stop().then(() => 'stopped')
    assert.equal(await Promise.race([stopped, systemClock.sleep(25_000)]), 'stopped')
    await stopped
    await new Promise(done => server.close(done))
  })
})
