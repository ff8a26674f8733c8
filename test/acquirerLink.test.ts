// The lines to a host: signing on, echoes, coming back, many requests at once, limits, the breaker, a second line, late and doubled answers, TLS.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { encode, type Message } from '../src/connectors/cards/iso8583/codec.ts'
import { exampleDialect } from '../src/connectors/cards/iso8583/dialects.ts'
import { frame, frameMax } from '../src/connectors/cards/iso8583/framing.ts'
import { type Line, type LineOptions, makeLine } from '../src/connectors/cards/iso8583/line.ts'
import { makeLink } from '../src/connectors/cards/iso8583/link.ts'
import { systemClock } from '../src/platform/clock.ts'
import { eventually } from './support/gateway.ts'
import { answerAll, bytesOf, type Peer, startPeer } from './support/peer.ts'

const dialect = exampleDialect('1987')
const cleanUps: (() => unknown)[] = []
after(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp()
})

describe('a line', () => {
  it('signs on before the first request and signs off at the end', async () => {
    const peer = await makePeer(answerAll)
    const line = lineTo(peer)
    assert.equal(await line.ready(2000), true)
    assert.equal((await line.send(request(1), soon(), none)).kind, 'answer')
    await line.stop(1000)
    assert.deepEqual(peer.network, ['001', '002'])
  })

  it('carries many requests at once and matches answers in any order, however they are cut', async () => {
    const held: [Socket, Message][] = []
    const peer = await makePeer((socket, message) => {
      held.push([socket, message])
      if (held.length === 50) for (const [to, one] of held.reverse()) answerInPieces(to, one)
    })
    const line = lineTo(peer)
    await line.ready(2000)
    const sent = await Promise.all(Array.from({ length: 50 }, (_, at) => line.send(request(at + 1), soon(3000), none)))
    assert.deepEqual(
      sent.map(one => one.kind === 'answer' && Number(one.message.fields.get(11))),
      Array.from({ length: 50 }, (_, at) => at + 1),
    )
    assert.equal(line.inFlight(), 0)
  })

  it('tells terminals apart that use one trace number at one moment', { timeout: 120_000 }, async () => {
    const held: [Socket, Message][] = []
    const peer = await makePeer((socket, message) => {
      held.push([socket, message])
      if (held.length === 2) for (const [to, one] of held.reverse()) answerAll(to, one)
    })
    const line = lineTo(peer)
    await line.ready(2000)
    const terminals = ['TERM0001', 'TERM0002']
    const sent = await Promise.all(
      terminals.map(terminal => {
        const { type, fields } = request(1)
        return line.send({ type, fields: new Map([...fields, [41, terminal]]) }, soon(), none)
      }),
    )
    assert.deepEqual(
      sent.map(one => (one.kind === 'answer' ? one.message.fields.get(41) : one.kind)),
      terminals,
    )
  })

  it('takes no more than its limit, and says that nothing was sent', async () => {
    const peer = await makePeer(() => {})
    const line = lineTo(peer, { inFlightMax: 2 })
    await line.ready(2000)
    const two = [line.send(request(1), soon(200), none), line.send(request(2), soon(200), none)]
    assert.deepEqual(await line.send(request(3), soon(), none), { kind: 'notSent', why: 'too many requests are under way' })
    assert.deepEqual(
      (await Promise.all(two)).map(({ kind }) => kind),
      ['unknown', 'unknown'],
    )
  })

  it('leaves room for others: one merchant has four fifths of it, and never all that is free; what is nobody’s may have it', async () => {
    const held: [Socket, Message][] = []
    const peer = await makePeer((...one) => void held.push(one))
    const line = lineTo(peer, { inFlightMax: 100 })
    await line.ready(2000)
    let number = 0
    const sent: Promise<unknown>[] = []
    /** So many go out. */
    const send = (merchantId: string | undefined, times: number) => {
      const before = line.inFlight()
      for (let at = 0; at < times; at++) sent.push(line.send(request(++number), soon(5000), none, merchantId))
      return line.inFlight() - before
    }
    assert.deepEqual([send('one', 200), send('other', 200), send(undefined, 200)], [80, 16, 4])
    await eventually(async () => held.length === 100, 'all have come')
    for (const one of held) answerAll(...one)
    await eventually(async () => line.inFlight() === 0, 'all are answered')
    assert.equal(send('one', 200), 80, 'what was answered counts no more')
    await eventually(async () => held.length === 180, 'these have come')
    for (const one of held) answerAll(...one)
    await Promise.all(sent)
  })

  it('asks for a sign of life when it is idle, drops a dead line and comes back', async () => {
    let silent = false
    const peer = await makePeer(answerAll, message => !silent || message.fields.get(70) === '001')
    const line = lineTo(peer, { echoSeconds: 0.1, echoAnswerSeconds: 0.1 })
    await line.ready(2000)
    await eventually(async () => peer.network.includes('301'), 'an echo')
    silent = true
    await eventually(async () => line.counters.connected >= 2, 'a new connection')
    silent = false
    await eventually(
      async () => line.state() === 'up' && (await line.send(request(7), soon(), none)).kind === 'answer',
      'the line is up again',
    )
  })

  it('says unknown when the connection is lost under way, and comes back by itself', async () => {
    const peer = await makePeer((socket, message) =>
      message.fields.get(11) === '000001' ? socket.destroy() : answerAll(socket, message),
    )
    const line = lineTo(peer)
    await line.ready(2000)
    assert.equal((await line.send(request(1), soon(), none)).kind, 'unknown')
    assert.equal(await line.ready(3000), true)
    assert.equal((await line.send(request(2), soon(), none)).kind, 'answer')
    assert.equal(line.counters.lost, 1)
  })

  it('hands over answers that come late or twice, and counts what belongs to nothing', async () => {
    const peer = await makePeer((socket, message) => {
      const number = Number(message.fields.get(11))
      if (number === 1) setTimeout(() => answerAll(socket, message), 300)
      else {
        answerAll(socket, message)
        answerAll(socket, message)
        answerAll(socket, { ...message, fields: new Map([...message.fields, [11, '999999']]) })
      }
    })
    const line = lineTo(peer)
    await line.ready(2000)
    const again: string[] = []
    const take = (message: Message) => void again.push(message.fields.get(11)!)
    assert.equal((await line.send(request(1), soon(100), take)).kind, 'unknown')
    assert.equal((await line.send(request(2), soon(), take)).kind, 'answer')
    await eventually(async () => again.length === 2, 'both come again')
    const { late, duplicate, unmatched } = line.counters
    assert.deepEqual([again.sort(), late, duplicate, unmatched], [['000001', '000002'], 1, 1, 1])
  })

  it('survives answers that cannot be read, and closes on a frame without end', async () => {
    const peer = await makePeer((socket, message) => {
      if (message.fields.get(11) === '000001') socket.write(Buffer.from([0, 3, 1, 2, 3]))
      else socket.write(Buffer.from([0xff, 0xff, 0]))
    })
    const line = lineTo(peer)
    await line.ready(2000)
    assert.equal((await line.send(request(1), soon(200), none)).kind, 'unknown')
    assert.deepEqual([line.counters.malformed, line.state()], [1, 'up'])
    assert.deepEqual(await line.send(request(2), soon(2000), none), {
      kind: 'unknown',
      why: 'the line was lost before the answer came',
    })
  })

  it('opens its breaker after several time-outs in a row; an answered echo closes it', async () => {
    let silent = true
    const peer = await makePeer(
      (socket, message) => void (!silent && answerAll(socket, message)),
      () => !silent,
    )
    const line = lineTo(peer, { breakerTimeouts: 3, breakerSeconds: 0.2, echoAnswerSeconds: 0.1, signOn: false })
    await line.ready(2000)
    for (let at = 1; at <= 2; at++) await line.send(request(at), soon(50), none)
    assert.equal(line.state(), 'up')
    await line.send(request(3), soon(50), none)
    assert.equal(line.state(), 'broken')
    assert.equal((await line.send(request(4), soon(), none)).kind, 'notSent')
    silent = false
    await eventually(async () => line.state() === 'up', 'the breaker closes')
    assert.equal((await line.send(request(5), soon(), none)).kind, 'answer')
  })

  it('gives its connection up with the breaker: a new one works where the old one is dead', async () => {
    const dead = new Set<Socket>()
    const peer = await makePeer((socket, message) => {
      if (dead.size === 0) dead.add(socket)
      if (!dead.has(socket)) answerAll(socket, message)
    })
    const line = lineTo(peer, { breakerTimeouts: 2, breakerSeconds: 0.1 })
    await line.ready(2000)
    for (let at = 1; at <= 2; at++) assert.equal((await line.send(request(at), soon(50), none)).kind, 'unknown')
    await eventually(async () => line.state() === 'up', 'a new connection')
    assert.equal((await line.send(request(3), soon(), none)).kind, 'answer')
  })

  it('keeps its breaker closed while the host answers others: it lets the messages of one card wait', async () => {
    const peer = await makePeer((socket, message) => void (message.fields.get(41) === 'TERM0001' && answerAll(socket, message)))
    const line = lineTo(peer, { breakerTimeouts: 3, echoAnswerSeconds: 10 })
    await line.ready(2000)
    const asked = (number: number): Message => ({
      ...request(number),
      fields: new Map([...request(number).fields, [41, 'TERM0002']]),
    })
    const unanswered = Array.from({ length: 6 }, (_, at) => line.send(asked(at + 1), soon(300), none))
    await systemClock.sleep(100)
    assert.equal((await line.send(request(10), soon(), none)).kind, 'answer')
    assert.deepEqual(new Set((await Promise.all(unanswered)).map(({ kind }) => kind)), new Set(['unknown']))
    assert.deepEqual([line.state(), line.counters.breakerOpened, line.counters.timedOut], ['up', 0, 6])
    // Who answered before they were sent says nothing of them.
    await Promise.all(Array.from({ length: 3 }, (_, at) => line.send(asked(at + 20), soon(100), none)))
    assert.deepEqual([line.state(), line.counters.breakerOpened], ['broken', 1])
  })

  it('asks for a sign of life when something waits and nothing is heard, and keeps its breaker closed when one comes', async () => {
    const peer = await makePeer(() => {})
    const line = lineTo(peer, { breakerTimeouts: 3, breakerSeconds: 0.1, echoAnswerSeconds: 0.4 })
    await line.ready(2000)
    for (const first of [1, 10]) {
      await Promise.all(Array.from({ length: 4 }, (_, at) => line.send(request(first + at), soon(1000), none)))
      assert.deepEqual([line.state(), line.counters.breakerOpened], ['up', 0])
    }
    assert.deepEqual(peer.network, ['001', '301', '301'], 'one for those that wait together')
  })

  it('takes nothing that it writes itself for a sign of life', async () => {
    let dead: Socket | undefined
    const peer = await makePeer(
      (socket, message) => {
        dead ??= socket
        if (socket !== dead) answerAll(socket, message)
      },
      message => message.fields.get(70) === '001',
    )
    const line = lineTo(peer, { echoSeconds: 0.3, echoAnswerSeconds: 0.1 })
    await line.ready(2000)
    let number = 0
    await eventually(async () => {
      number++
      return (await line.send(request(number), soon(40), none)).kind === 'answer'
    }, 'another connection carries it, though messages went out all the time')
  })

  it('answers what the host asks, whatever it is', async () => {
    const said: string[] = []
    const peer = await makePeer((socket, message) => {
      if (message.type !== '0100') return void said.push(`${message.type} ${message.fields.get(39)} ${message.fields.get(11)}`)
      for (const [type, number] of [
        ['0800', '1'],
        ['0801', '2'],
        ['0820', '3'],
        ['0500', '4'],
      ] as const)
        sendTo(socket, {
          type,
          fields: new Map([
            [7, '1120020000'],
            [11, `00000${number}`],
            [41, 'TERM0001'],
            ...(type[1] === '8' ? [[70, '301'] as const] : []),
          ]),
        })
      answerAll(socket, message)
    })
    const line = lineTo(peer)
    await line.ready(2000)
    await line.send(request(1), soon(), none)
    await eventually(async () => said.length === 4, 'four answers')
    assert.deepEqual(said, ['0810 00 000001', '0810 00 000002', '0830 00 000003', '0510 00 000004'])
  })

  it('is down when the host signs off, and says why', async () => {
    const said: string[] = []
    const peer = await makePeer((socket, message) => {
      answerAll(socket, message)
      if (message.fields.get(11) === '000001')
        sendTo(socket, {
          type: '0800',
          fields: new Map([
            [7, '1120020000'],
            [11, '000001'],
            [70, '002'],
          ]),
        })
    })
    const line = lineTo(peer, { breakerSeconds: 0.2, say: text => said.push(text) })
    await line.ready(2000)
    await line.send(request(1), soon(), none)
    await eventually(async () => line.state() === 'broken', 'the line is down')
    assert.equal((await line.send(request(2), soon(), none)).kind, 'notSent')
    await eventually(async () => line.state() === 'up', 'it is back')
    assert.deepEqual(said, ['test is down: the host signed off'])
    assert.equal((await line.send(request(3), soon(), none)).kind, 'answer')
  })

  it('shows its messages masked, where somebody wants to see them', async () => {
    const shown: string[] = []
    const line = lineTo(await makePeer(answerAll), { show: text => shown.push(text) })
    await line.ready(2000)
    await line.send(request(1), soon(), none)
    assert.match(shown[2]!, /^test > 0100 DE2=424242\*{6}4242 /)
    assert.match(shown[3]!, /^test < 0110 DE2=424242\*{6}4242 .*DE39=00/)
    assert.ok(shown.every(text => !text.includes('4242424242424242')))
  })

  it('waits at its end for what is under way', async () => {
    const peer = await makePeer((socket, message) => void setTimeout(() => answerAll(socket, message), 200))
    const line = lineTo(peer)
    await line.ready(2000)
    const last = line.send(request(1), soon(), none)
    await line.stop(2000)
    assert.equal((await last).kind, 'answer')
    assert.equal((await line.send(request(2), soon(), none)).kind, 'notSent')
  })

  it('speaks TLS, and refuses a host that it cannot trust', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-tls-'))
    cleanUps.push(() => rmSync(folder, { recursive: true, force: true }))
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
    const made = spawnSync('openssl', [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-days',
      '1',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost',
      '-keyout',
      key,
      '-out',
      cert,
    ])
    if (made.status !== 0) return t.skip('openssl is not here')
    const peer = await makePeer(answerAll, () => true, { key: readFileSync(key), cert: readFileSync(cert) })
    const trusting = lineTo(peer, { tls: { ca: readFileSync(cert), servername: 'localhost' } })
    assert.equal(await trusting.ready(3000), true)
    assert.equal((await trusting.send(request(1), soon(), none)).kind, 'answer')
    assert.equal(await lineTo(peer, { tls: { servername: 'localhost' } }).ready(700), false)
  })
})

describe('two lines', () => {
  it('the second carries what could not be sent on the first', async () => {
    const peer = await makePeer(answerAll)
    const dead = await makePeer(answerAll)
    await new Promise(resolve => dead.server.close(resolve))
    const link = makeLink([lineTo(dead), lineTo(peer)], 2000, 500)
    assert.equal((await link.send(request(1), soon(), none)).kind, 'answer')
    assert.equal(link.failovers(), 1)
  })

  it('what was sent on the first is never sent on the second', async () => {
    const first = await makePeer(socket => socket.destroy())
    const second = await makePeer(answerAll)
    const lines = [lineTo(first), lineTo(second)]
    await Promise.all(lines.map(line => line.ready(2000)))
    const link = makeLink(lines, 2000, 500)
    assert.equal((await link.send(request(1), soon(), none)).kind, 'unknown')
    assert.equal(second.messages, 0)
  })

  it('nothing was sent when no line comes up', async () => {
    const dead = await makePeer(answerAll)
    await new Promise(resolve => dead.server.close(resolve))
    assert.equal((await makeLink([lineTo(dead)], 200, 500).send(request(1), soon(), none)).kind, 'notSent')
  })
})

describe('a host that does harm', () => {
  /** The sign-on is answered, then it does what it does. */
  const harmful = async (act: (socket: Socket) => void, more: Partial<LineOptions> = {}) => {
    const said: string[] = []
    let socket: Socket | undefined
    const peer = await makePeer(none, (_, from) => {
      socket = from
      return true
    })
    const line = lineTo(peer, { say: text => said.push(text), breakerSeconds: 60, ...more })
    assert.ok(await line.ready(2000))
    act(socket!)
    return { line, said }
  }
  const asked = (more: Iterable<[number, string]> = []): Message => ({
    type: '0800',
    fields: new Map([[7, '1120020000'], [11, '000001'], ...more, [70, '301']]),
  })

  it('its longest message, whose answer fits no frame, is left without one, and the line goes on', async () => {
    let length = 0
    const { line, said } = await harmful(socket => {
      const filled = [46, 47, 48, 56, 57, 58, 59, 60].map(field => [field, 'x'.repeat(500)] as [number, string])
      const bytes = encode(asked(filled), dialect)
      assert.ok(Buffer.isBuffer(bytes), JSON.stringify(bytes))
      const most = encode(asked([...filled, [61, 'x'.repeat(frameMax - bytes.length - 3)]]), dialect)
      assert.ok(Buffer.isBuffer(most), JSON.stringify(most))
      length = most.length
      socket.write(frame(most))
    })
    await eventually(async () => said.length > 0, 'it is told')
    assert.equal(length, frameMax)
    assert.match(said[0]!, /^test: 0800 was not answered: its \d+ bytes fit no frame$/)
    assert.equal(line.state(), 'up')
  })

  it('asks faster than anybody does: it is left alone for a while', async () => {
    const { line, said } = await harmful(socket => {
      const one = frame(encode(asked(), dialect) as Buffer)
      socket.write(Buffer.concat(Array<Buffer>(2000).fill(one)))
    })
    await eventually(async () => said.length > 0, 'it is told')
    assert.equal(line.state(), 'broken')
    assert.ok(
      said.some(text => text.includes('in a second that nobody asked for')),
      said.join('\n'),
    )
    assert.ok(said.length < 5, 'and it does not fill the log')
  })

  it('answers what nobody asked, without end: likewise, and few are looked for in the database', async () => {
    let strange = 0
    const { line } = await harmful(socket => socket.write(Buffer.concat(Array<Buffer>(2000).fill(bytesOf(request(7))))), {
      stranger: () => strange++,
    })
    await eventually(async () => line.state() === 'broken', 'it is left alone')
    assert.ok(strange > 0 && strange <= 100, String(strange))
  })

  it('says the same again and again: it is looked at a few times, and the line rests', async () => {
    let again = 0
    const peer = await makePeer((socket, message) => {
      const bytes = bytesOf(message)
      socket.write(bytes)
      setImmediate(() => socket.write(Buffer.concat(Array<Buffer>(2000).fill(bytes))))
    })
    const line = lineTo(peer, { breakerSeconds: 60 })
    assert.ok(await line.ready(2000))
    assert.equal((await line.send(request(1), soon(), () => again++)).kind, 'answer')
    await eventually(async () => line.state() === 'broken', 'it is left alone')
    assert.ok(again > 0 && again <= 3, String(again))
  })

  it('takes nothing of what is sent to it: the line ends before much lies there', async () => {
    const { line, said } = await harmful(socket => socket.pause(), { inFlightMax: 1_000_000, echoAnswerSeconds: 60 })
    let sent = 0
    const sends: Promise<unknown>[] = []
    while (line.state() === 'up' && sent < 100_000) {
      for (let burst = 0; burst < 1000; burst++) sends.push(line.send(request(++sent), soon(60_000), none))
      await new Promise(resolve => setImmediate(resolve))
    }
    await Promise.all(sends)
    assert.match(said.join(), /the host takes nothing of what is sent/)
    assert.ok(sent < 100_000, String(sent))
  })
})

const makePeer: typeof startPeer = async (...given) => {
  const peer = await startPeer(...given)
  cleanUps.push(peer.stop)
  return peer
}

/** Length and message in segments of their own, and the message cut in two. */
function answerInPieces(socket: Socket, message: Message): void {
  const bytes = bytesOf(message)
  for (const piece of [bytes.subarray(0, 1), bytes.subarray(1, 9), bytes.subarray(9)]) socket.write(piece)
}

const sendTo = (socket: Socket, message: Message) => {
  const bytes = encode(message, dialect)
  assert.ok(Buffer.isBuffer(bytes), JSON.stringify(bytes))
  socket.write(frame(bytes))
}

function lineTo(peer: Pick<Peer, 'port'>, more: Partial<LineOptions> = {}): Line {
  const line = makeLine({
    name: 'test',
    dialect,
    address: async () => ({ host: '127.0.0.1', port: peer.port }),
    signOn: true,
    echoSeconds: 60,
    echoAnswerSeconds: 1,
    inFlightMax: 1000,
    breakerTimeouts: 100,
    breakerSeconds: 1,
    reconnectMilliseconds: { first: 20, max: 2000 },
    clock: systemClock,
    random: Math.random,
    say: () => {},
    ...more,
  })
  cleanUps.push(() => line.stop(0))
  return line
}

const request = (number: number): Message => ({
  type: '0100',
  fields: new Map([
    [2, '4242424242424242'],
    [3, '000000'],
    [4, '000000009200'],
    [7, '1120020000'],
    [11, String(number).padStart(6, '0')],
    [41, 'TERM0001'],
  ]),
})
const soon = (milliseconds = 2000) => AbortSignal.timeout(milliseconds)
const none = () => {}
