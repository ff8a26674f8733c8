// What an answer of another server may cost: it comes in as many heads and pieces as that server likes, and everybody else waits while they are read.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { IncomingMessage } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { after, mock, test } from 'node:test'
import { httpTransport } from '../src/connectors/transport.ts'
import { systemClock } from '../src/platform/clock.ts'
import { caller } from '../src/platform/egress/call.ts'
import { watchAnswer } from '../src/platform/parsing.ts'
import { readConfig } from '../src/start/config.ts'
import { costsTimes } from './support/costs.ts'

const servers: { close(): unknown }[] = []
after(() => {
  for (const server of servers) server.close()
})

/** Answers the first that is said with these bytes, and leaves the connection open. */
async function answering(answer: (socket: Socket) => void): Promise<string> {
  const server = createServer(socket => {
    socket.on('error', () => {}).once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  servers.push(server)
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}
const saying = (text: string) => answering(socket => socket.write(text, 'latin1'))

const place = caller(systemClock, readConfig({}, '/nonexistent').egress, async () => [])
const call = (url: string) => place({ owner: 'a', method: 'POST', url, headers: {}, body: 'x' })
const transport = (url: string, more: object = {}) =>
  httpTransport({ method: 'POST', url, body: 'x', ...more }, AbortSignal.timeout(20_000))

const interim = 'HTTP/1.1 102 P\r\n\r\n'
const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const pieces = (count: number, bytes: number) =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${`${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count)}0\r\n\r\n`

/** How often Node's parser calls this while `work` is done. */
async function toldOf(name: string, work: () => Promise<unknown>): Promise<number> {
  const told = mock.method(IncomingMessage.prototype, name as 'push')
  await work()
  told.mock.restore()
  return told.mock.callCount()
}
const heads = '_addHeaderLines'

test('of what says without end that an answer will come nine are read, however many have come together', async () => {
  const url = await saying(interim.repeat(14_000))
  const told = await toldOf(heads, async () => {
    const { status, failure } = await call(url)
    assert.deepEqual([status, failure], [undefined, 'it said too often that an answer will come'])
  })
  assert.equal(told, 9)
  assert.equal(await toldOf(heads, () => assert.rejects(transport(url), /^Error: no answer/)), 9)
})

test('after eight of them the answer is heard', async () => {
  const url = await saying(interim.repeat(8) + whole)
  const { status, answer } = await call(url)
  assert.deepEqual([status, answer], [200, 'ok'])
  assert.deepEqual(await transport(url), { status: 200, body: 'ok' })
})

test('what comes behind a whole answer is not read', async () => {
  for (const answer of [whole, 'HTTP/1.1 304 N\r\n\r\n', pieces(3, 1)]) {
    const url = await saying(answer + whole.repeat(8000))
    assert.equal(await toldOf(heads, () => call(url)), 1)
    assert.equal(await toldOf(heads, () => transport(url).catch(() => {})), 1)
  }
})

test('an answer comes in a thousand small pieces, and not in more', async () => {
  const most = Math.floor(1024 / (1 - 1 / 256))
  assert.equal((await transport(await saying(pieces(most, 1)))).body, 'x'.repeat(most))
  for (const count of [most + 1, 40_000]) {
    const url = await saying(pieces(count, 1))
    const told = await toldOf('push', () => assert.rejects(transport(url), /^Error: no answer/))
    assert.ok(told <= most + 2, `${told}`)
    assert.equal((await call(url)).failure, 'the answer came in too many pieces')
  }
})

test('pieces that are no longer small are as many as its bytes allow', async () => {
  assert.equal((await transport(await saying(pieces(3900, 256)), { answerMost: 1_000_000 })).body.length, 3900 * 256)
})

test('an answer is 64 KiB long, where no more is asked for', async () => {
  const most = 64 * 1024
  const ofLength = (length: number) => saying(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`)
  assert.equal((await transport(await ofLength(most))).body.length, most)
  await assert.rejects(transport(await ofLength(most + 1)), /^Error: no answer/)
  assert.equal((await transport(await ofLength(most + 1), { answerMost: most + 1 })).body.length, most + 1)
})

/** Writes what comes one byte at a time, each as a reading of its own, for as long as somebody reads. */
const dripping = (first: string, bytes: string) =>
  answering(socket => {
    socket.setNoDelay().write(first)
    let at = 0
    const more = () => {
      if (!socket.destroyed && at < bytes.length) socket.write(bytes[at++]!, () => setImmediate(more))
    }
    more()
  })

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

test('what comes byte by byte is not waited for: a head, what is said about a chunk, what follows the last', async () => {
  for (const first of ['HTTP/1.1 200 OK\r\nX: ', `${chunked}2;x=`, `${chunked}2\r\nok\r\n0\r\nX: `])
    assert.equal((await call(await dripping(first, 'x'.repeat(4000)))).failure, 'the answer came in too many pieces')
})

test('a body that comes byte by byte is heard when it is short, and each byte counts once', async () => {
  const url = await dripping('HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n', 'x'.repeat(900))
  assert.equal((await transport(url)).body, 'x'.repeat(900))
})

test('a crowd of hostile servers keeps no other call waiting', async () => {
  const [honest, hostile] = [await saying(whole), await saying(interim.repeat(14_000))]
  /** So many calls and one beside them. */
  const calls = (url: string) => async () => {
    const crowd = Array.from({ length: 50 }, () => call(url))
    assert.equal((await call(honest)).status, 200)
    await Promise.all(crowd)
  }
  // Read to its end each such answer takes as long as seventy others.
  await costsTimes(25, calls(honest), calls(hostile), 'a crowd of hostile servers')
})

test('the parser of a connection that was left hears the next one', async () => {
  const urls = [interim.repeat(14_000), pieces(40_000, 1), whole.repeat(8000), whole.slice(0, -1), 'none', interim, '']
  for (const text of urls) {
    const url = await answering(socket => socket.end(text, 'latin1'))
    await Promise.all(Array.from({ length: 5 }, () => call(url)))
    const server = http
      .createServer((request, response) => void request.on('end', () => response.end('heard')).resume())
      .listen(0, '127.0.0.1')
    await once(server, 'listening')
    const answers = Array.from({ length: 10 }, () => call(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
    for (const { answer } of await Promise.all(answers)) assert.equal(answer, 'heard')
    server.close()
  }
})

test('whoever stops it when it is with another connection already stops nothing', async () => {
  const url = await saying(whole)
  const ask = async () => {
    const request = http.request(url, { agent: false })
    const stop = new Promise<() => void>(resolve =>
      request.once('socket', socket =>
        resolve(
          watchAnswer(
            socket,
            () => {},
            () => true,
          ),
        ),
      ),
    )
    request.end()
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    return stop
  }
  const stop = await ask()
  stop()
  assert.equal((await call(url)).answer, 'ok')
})
