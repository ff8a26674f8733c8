// What callers cost before they have said who they are: sockets that say nothing, under TLS too, are counted, ended, and no reason to wait for.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { networkConnectionsMost } from '../src/http/places.ts'
import { systemClock } from '../src/platform/clock.ts'
import { serveMetrics } from '../src/platform/scrape.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { costsTimes } from './support/costs.ts'
import { ended } from './support/ended.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-handshakes-'))
after(() => rmSync(folder, { recursive: true, force: true }))

let sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  sockets = []
})

/** A socket that sends these bytes, and then nothing. */
async function silent(port: number, bytes?: Buffer): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  sockets.push(socket)
  await once(socket, 'connect')
  if (bytes) socket.write(bytes)
  return socket.resume()
}

describe('under TLS', { skip: !hasOpenssl && 'openssl is not installed' }, () => {
  let gateway: TestGateway
  let port: number
  before(async () => {
    const { cert, key } = makeCertificate(folder, 'gateway')
    gateway = await testGateway({ environment: { TLS_CERT: cert, TLS_KEY: key } })
    port = Number(new URL(gateway.baseUrl).port)
  })
  after(() => gateway.stop())

  /** The first line of what is answered. */
  const ask = (path = '/health', header = 'Accept: */*'): Promise<string> =>
    new Promise(resolve => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () =>
        socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\nConnection: close\r\n\r\n`),
      )
      socket.once('data', data => resolve(data.toString('latin1').split('\r\n')[0]!))
      socket.once('error', error => resolve(error.message))
      socket.once('close', () => resolve('closed'))
    })

  it('whoever begins no handshake, or half of one, is closed', { timeout: 120_000 }, async () => {
    const beginning = Buffer.from('16030100', 'hex')
    const kinds = [await silent(port), await silent(port, beginning), await silent(port, beginning)]
    kinds[2]!.end() // and it goes: the gateway's side must not wait for more
    await Promise.all(kinds.map(socket => ended(socket)))
    assert.equal(await ask(), 'HTTP/1.1 200 OK')
  })

  it('silent sockets of one address take no more than its share, and newcomers come in', { timeout: 120_000 }, async () => {
    // A stranger begins fewer in a second.
    const read = `/v1/payments/${'0'.repeat(32)}?entityId=${sandbox.entityId}`
    assert.match(await ask(read, `Authorization: Bearer ${sandbox.accessToken}`), /^HTTP\/1\.1 4/)
    for (let at = 0; at < networkConnectionsMost; at += 128) {
      if (at === networkConnectionsMost / 2) await systemClock.sleep(1100) // in one second are no more
      await Promise.all(Array.from({ length: 128 }, () => silent(port)))
    }
    assert.equal(await ask(), 'HTTP/1.1 200 OK')
    await eventually(async () => sockets.filter(({ closed }) => closed).length > 0, 'the oldest silent one is closed')
  })

  it('a connection that stands is not ended with the handshakes', { timeout: 120_000 }, async () => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const later = await silent(port)
    for (const wait of [ended(later), undefined]) {
      socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')
      assert.match(String((await once(socket, 'data'))[0]), /^HTTP\/1\.1 200 /)
      await wait
    }
    socket.destroy()
  })

  it('a stop waits for none of them', { timeout: 120_000 }, async () => {
    for (const bytes of [undefined, Buffer.from('16030100', 'hex')]) await silent(port, bytes)
    const closed = Promise.all(sockets.map(socket => ended(socket)))
    const began = systemClock.elapsed()
    await gateway.restart()
    await closed
    assert.ok(systemClock.elapsed() - began < 8000, 'it waited for the end of their time')
    port = Number(new URL(gateway.baseUrl).port)
  })

  it('nobody makes the gateway begin a handshake anew', { timeout: 120_000 }, async () => {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2' })
    await once(socket, 'secureConnect')
    const refused = await new Promise<boolean>(resolve => {
      socket.once('error', () => resolve(true)).once('close', () => resolve(true))
      socket.renegotiate({}, error => resolve(error !== null))
    })
    assert.ok(refused)
    socket.destroy()
  })
})

it('figures are asked for once on a connection', { timeout: 120_000 }, async () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  let end = (_: string) => {}
  const reading = new Promise<string>(resolve => {
    end = resolve
  })
  const figures = await serveMetrics(() => reading, log, { port: 0, host: '127.0.0.1', token: undefined })
  let got = ''
  const socket = connect(figures.port, '127.0.0.1').on('error', () => {})
  socket.setEncoding('latin1').on('data', text => {
    got += text
  })
  const closed = ended(socket)
  const asked = 'GET /metrics HTTP/1.1\r\nHost: x\r\n'
  // Behind it another one, and one with a body that is parsed piece by piece where somebody listens.
  socket.write(`${asked}\r\n${asked}\r\n${asked}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(5000)}0\r\n\r\n`)
  socket.write(`${asked}\r\n`)
  end('figures')
  await closed
  assert.deepEqual([got.split('HTTP/1.1 ').length - 1, got.includes('figures')], [1, true])
  assert.equal((await fetch(`http://127.0.0.1:${figures.port}/metrics`)).status, 200)
  await figures.stop()
})

it('what is sent behind the head of a question for figures costs what its bytes do, in however many pieces', async () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const figures = await serveMetrics(async () => '', log, { port: 0, host: '127.0.0.1', token: undefined })
  const asked = 'GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n'
  const small = '1\r\na\r\n'.repeat(10_000)
  const large = `ea60\r\n${'a'.repeat(60_000)}\r\n`
  const send = (body: string) => async () => {
    const socket = connect(figures.port, '127.0.0.1').on('error', () => {})
    const closed = ended(socket)
    socket.resume().write(asked + body)
    await closed
  }
  await costsTimes(4, send(large), send(small), 'small pieces')
  await figures.stop()
})

it('silent sockets keep nobody from the figures', { timeout: 120_000 }, async () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const figures = await serveMetrics(async () => '', log, { port: 0, host: '127.0.0.1', token: undefined })
  for (let at = 0; at < 80; at++) await silent(figures.port)
  const { status } = await fetch(`http://127.0.0.1:${figures.port}/metrics`)
  assert.equal(status, 200)
  await figures.stop()
})
