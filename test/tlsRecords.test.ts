// Records of TLS that carry nothing: new keys cost whoever sends them 27 bytes and OpenSSL much more, and nobody is told of them. Of one connection so many
// are taken and no more, from callers and from servers that are called, and each waits for a turn of its own.

import assert from 'node:assert/strict'
import { constants, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Duplex } from 'node:stream'
import { after, afterEach, before, describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { connect as connectTls, TLSSocket } from 'node:tls'
import { httpTransport, NotSent } from '../src/connectors/transport.ts'
import { piecesMost } from '../src/http/connections.ts'
import { networkBytesMost, smallPiecesMost, tlsPieceCost } from '../src/http/rates.ts'
import { type Clock, systemClock, type Timer } from '../src/platform/clock.ts'
import { spokenTls } from '../src/platform/tls.ts'
import {
  byRecords,
  emptyBytesMost,
  emptyBytesOfCalls,
  emptyRecordsMost,
  piecesOfRecordMost,
  rawOf,
} from '../src/platform/tlsRecords.ts'
import { hasOpenssl, makeCertificate } from './support/certificate.ts'
import { ended } from './support/ended.ts'
import { eventually, testGateway } from './support/gateway.ts'
import { olderSealer, type RecordSealer, recordSealer } from './support/sealedRecords.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-records-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const get = 'GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n'
/** Of a caller's handshake: its hello, a change of ciphers for old machines between, and its end. */
const ofHandshake = 3
const bytesOfRenewal = 27

type Caller = { readonly raw: Socket; readonly tls: TLSSocket; readonly seal: RecordSealer; answers(): number }

let open: Socket[] = []
afterEach(() => {
  for (const socket of open) socket.destroy()
  open = []
})

/** A caller whose TLS stands, and who then writes records himself. */
async function call(port: number, localAddress = '127.0.0.1'): Promise<Caller> {
  const raw = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
  open.push(raw)
  const tls = connectTls({ socket: raw, rejectUnauthorized: false, minVersion: 'TLSv1.3' }).on('error', () => {})
  const keys = recordSealer(tls, 'CLIENT')
  let text = ''
  tls.on('data', data => {
    text += data
  })
  await once(tls, 'secureConnect')
  await turn() // the end of the handshake is on its way
  return { raw, tls, seal: keys.sealer(0), answers: () => text.split('HTTP/1.1 200 OK').length - 1 }
}

/** As they go over the line. */
const bytesOf = (pem: Buffer): number => new X509Certificate(pem).raw.length

const renewals = (seal: RecordSealer, count: number, asks = false, padding = 0): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => seal.renewsKeys(asks, padding)))

describe('records of TLS', { skip: !hasOpenssl && 'openssl is not installed', timeout: 120_000 }, () => {
  let pem: { cert: string; key: string }
  let secure: { cert: Buffer; key: Buffer }
  before(() => {
    pem = makeCertificate(folder, 'records')
    secure = { cert: readFileSync(pem.cert), key: readFileSync(pem.key) }
  })

  /** A server that reads record by record. */
  async function listening(
    listener: (request: IncomingMessage, response: ServerResponse) => void,
    inTurn?: (raw: Socket, give: () => void) => void,
    took = (_bytes: number, _goOn: () => void) => true,
  ): Promise<{ server: Server; port: number }> {
    const told = { took: (_: Socket, bytes: number, goOn: () => void) => took(bytes, goOn), threwAway() {} }
    const server = byRecords(createServer({ ...secure, ...spokenTls }, listener), told, inTurn).on('clientError', (_, socket) =>
      socket.destroy(),
    )
    after(() => server.close())
    await once(server.listen(0, '127.0.0.1'), 'listening')
    return { server, port: (server.address() as AddressInfo).port }
  }

  it('a caller renews keys so often, and not once more', async () => {
    const gateway = await testGateway({ environment: { TLS_CERT: pem.cert, TLS_KEY: pem.key } })
    after(() => gateway.stop())
    const port = Number(new URL(gateway.baseUrl).port)
    for (const [asks, padding] of [
      [false, 0],
      [true, 0],
      [false, 100],
    ] as const) {
      const { raw, seal, answers } = await call(port)
      raw.write(seal.says(get))
      raw.write(Buffer.concat([renewals(seal, emptyRecordsMost - ofHandshake, asks, padding), seal.says(get)]))
      await eventually(async () => answers() === 2, 'what stands behind the last of them is answered')
      const closed = ended(raw)
      raw.write(Buffer.concat([seal.renewsKeys(asks, padding), seal.says(get)]))
      await closed
      assert.equal(answers(), 2)
    }
  })

  it('what still comes behind the last answer is no more than large bodies may have', async () => {
    const gateway = await testGateway({ environment: { TLS_CERT: pem.cert, TLS_KEY: pem.key } })
    after(() => gateway.stop())
    const { raw, tls } = await call(Number(new URL(gateway.baseUrl).port))
    for (const socket of [raw, tls]) socket.allowHalfOpen = true
    const closed = ended(raw)
    const body = 'a'.repeat(65_536)
    const write = () => {
      while (!tls.destroyed && tls.write(body));
    }
    tls.on('drain', write)
    tls.write(get.replace('\r\n\r\n', '\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'))
    write()
    await closed
    assert.ok(raw.bytesWritten > networkBytesMost && raw.bytesWritten < 128 * 1024 * 1024, `${raw.bytesWritten} bytes`)
  })

  it('what carries nothing has so many bytes, with the handshake, and not one more', async () => {
    const { port } = await listening((_, response) => response.end())
    const long = get.replace('localhost', `localhost\r\nX: ${'x'.repeat(5000)}`)
    for (const more of [0, 1]) {
      const { raw, seal, answers } = await call(port)
      const padding = emptyBytesMost - raw.bytesWritten - bytesOfRenewal + more
      const closed = ended(raw)
      raw.write(seal.says(long))
      await eventually(async () => answers() === 1, 'it is answered')
      raw.write(Buffer.concat([seal.renewsKeys(false, padding), seal.says(get)]))
      if (more > 0) await closed
      else await eventually(async () => answers() === 2, 'what stands behind it is answered')
      assert.equal(answers(), 2 - more)
    }
  })

  it('a hello of more bytes is ended before it is whole', async () => {
    const { port } = await listening((_, response) => response.end())
    const ofHello = (length: number) => Buffer.concat([Buffer.of(22, 3, 1, length >> 8, length & 255), Buffer.alloc(length, 3)])
    const hello = Buffer.concat([ofHello(10_000), ofHello(emptyBytesMost - 10_010)])
    Buffer.of(1, 0, 80, 0).copy(hello, 5) // it says that it has 20 KiB
    const few = connect(port, '127.0.0.1')
    open.push(few)
    few.write(hello)
    const many = connect(port, '127.0.0.1')
    open.push(many)
    const closed = ended(many)
    many.write(Buffer.concat([hello, Buffer.of(22)]))
    await closed
    assert.equal(few.readyState, 'open')
  })

  it('greetings are answered in their turns, and nothing else waits for one', async () => {
    const turns: (() => void)[] = []
    const { port } = await listening(
      (_, response) => response.end(),
      (_, give) => void turns.push(give),
    )
    for (const [version, greetings] of [
      ['TLSv1.3', 1],
      ['TLSv1.2', 2],
    ] as const) {
      const secured: number[] = []
      const callers = Array.from({ length: 3 }, (_, at) =>
        connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: version, minVersion: version }, () =>
          secured.push(at),
        ).on('error', () => {}),
      )
      open.push(...callers)
      await eventually(async () => turns.length === 3, 'each has greeted')
      await new Promise(resolve => setTimeout(resolve, 50))
      assert.deepEqual([turns.length, secured], [3, []])
      for (let times = 1; times <= greetings; times++) {
        const [give] = turns.splice(0, 1)
        give!()
        if (times < greetings) await eventually(async () => turns.length === 3, 'it has said its key')
        if (times < greetings) turns.unshift(turns.pop()!)
      }
      await eventually(async () => secured.length === 1, 'one stands')
      assert.equal(turns.length, 2)
      const [first] = secured
      let answer = ''
      callers[first!]!.on('data', data => {
        answer += data
      })
      callers[first!]!.write(get)
      await eventually(async () => answer.includes('200 OK'), 'it is answered')
      for (const give of turns.splice(0)) give()
      if (greetings > 1) {
        await eventually(async () => turns.length === 2, 'the others have said their keys')
        for (const give of turns.splice(0)) give()
      }
      await eventually(async () => secured.length === 3, 'all stand')
      assert.equal(turns.length, 0)
    }
  })

  it('a greeting that waits for its turn is no longer than any may be', async () => {
    const { port } = await listening(
      (_, response) => response.end(),
      () => {},
    )
    const raw = connect(port, '127.0.0.1')
    open.push(raw)
    const closed = ended(raw)
    raw.write(Buffer.concat([Buffer.of(22, 3, 1, 0x40, 0), Buffer.alloc(emptyBytesMost - 5, 3)]))
    await new Promise(resolve => setTimeout(resolve, 100))
    assert.equal(raw.readyState, 'open')
    raw.write(Buffer.of(3))
    await closed
  })

  it('of what waits for its turn no more than two pieces are read, however many come', async () => {
    const raws: Socket[] = []
    const { port } = await listening(
      (_, response) => response.end(),
      raw => void raws.push(raw),
    )
    const socket = connect(port, '127.0.0.1').setNoDelay(true)
    open.push(socket)
    for (let at = 0; at < 200; at++) {
      socket.write(at === 0 ? Buffer.of(22, 3, 1, 16, 0) : Buffer.of(1))
      await new Promise(resolve => setTimeout(resolve, 1))
    }
    await eventually(async () => raws[0]!.bytesRead > 5, 'some are read')
    assert.ok(raws[0]!.bytesRead < 100, `${raws[0]!.bytesRead} bytes`)
  })

  it('each piece is counted as it comes and as it is given, a record that carries nothing as one of no bytes', async () => {
    const sizes: number[] = []
    const { port } = await listening(
      (_, response) => response.end(),
      undefined,
      bytes => sizes.push(bytes) > 0,
    )
    const { raw, seal, answers } = await call(port)
    raw.setNoDelay(true)
    await eventually(async () => sizes.filter(bytes => bytes === 0).length === ofHandshake, 'the handshake has ended')
    const [record, renewal] = [seal.says(get), seal.renewsKeys(false)]
    for (const [bytes, given] of [
      [record.subarray(0, 30), 30],
      [record.subarray(30), record.length - 30],
      [renewal, 0],
    ] as const) {
      sizes.splice(0)
      raw.write(bytes)
      await eventually(async () => sizes.length === 2, 'it is counted twice')
      assert.deepEqual(sizes, [bytes.length, given])
    }
    assert.equal(answers(), 1)
  })

  it('is read no further where too much has come until it may be, and what came meanwhile at once', async () => {
    const sizes: number[] = []
    let goesOn: (() => void) | undefined
    let isTooMuch = false
    const { port } = await listening(
      (_, response) => response.end(),
      undefined,
      (bytes, goOn) => {
        sizes.push(bytes)
        if (isTooMuch) goesOn = goOn
        return !isTooMuch
      },
    )
    const { raw, seal, answers } = await call(port)
    raw.setNoDelay(true)
    const record = seal.says(get)
    isTooMuch = true
    raw.write(record.subarray(0, 1))
    await eventually(async () => goesOn !== undefined, 'it is too much')
    sizes.splice(0)
    for (const byte of record.subarray(1)) {
      raw.write(Buffer.of(byte))
      await turn()
    }
    await new Promise(resolve => setTimeout(resolve, 100))
    const before = sizes.length
    assert.ok(before <= 2, `${sizes}`)
    isTooMuch = false
    goesOn!()
    await eventually(async () => answers() === 1, 'it is answered')
    assert.ok(sizes.length - before <= 5, `${sizes}`)
  })

  it('a record comes in so many small pieces, and in no more', async () => {
    const { port } = await listening((_, response) => response.end())
    const { raw, seal, answers } = await call(port)
    raw.setNoDelay(true)
    for (const [length, pieces, times] of [
      [300, piecesOfRecordMost - 8, 1],
      [300, piecesOfRecordMost - 8, 2],
      [16_000, 15_000, 3],
    ] as const) {
      const record = seal.says(`${get.trimEnd()}\r\nX: ${'x'.repeat(length)}\r\n\r\n`)
      for (let at = 0; at < pieces && !raw.closed; at++) {
        raw.write(record.subarray(at, at + 1))
        await new Promise(resolve => setTimeout(resolve, 1))
      }
      if (length > pieces) {
        raw.write(record.subarray(pieces))
        await eventually(async () => answers() === times || raw.closed, 'it is answered, or closed')
      }
      assert.deepEqual([raw.closed, answers()], length > 1000 ? [true, 2] : [false, times])
    }
  })

  it('a network renews keys so often in a second, on however many connections; one with a few pieces is heard', async () => {
    const never: Timer = { cancel() {}, unref: () => never }
    const every: Clock['every'] = (milliseconds, work) => (milliseconds === 1000 ? never : systemClock.every(milliseconds, work))
    const environment = { TLS_CERT: pem.cert, TLS_KEY: pem.key }
    const gateway = await testGateway({ clock: { ...systemClock, every }, environment })
    after(() => gateway.stop())
    const port = Number(new URL(gateway.baseUrl).port)
    await Promise.all(
      // One less: what they ask counts too.
      Array.from({ length: smallPiecesMost.network / tlsPieceCost / emptyRecordsMost - 1 }, async () => {
        const { raw, seal, answers } = await call(port)
        raw.write(Buffer.concat([renewals(seal, emptyRecordsMost - ofHandshake), seal.says(get)]))
        await eventually(async () => answers() === 1, 'it is answered')
      }),
    )
    for (const most of [emptyRecordsMost - ofHandshake, piecesMost.open]) {
      const many = await call(port)
      many.raw.write(Buffer.concat([renewals(many.seal, most), many.seal.says(get)]))
      await eventually(async () => many.raw.closed, 'another connection with many is closed')
      assert.equal(many.answers(), 0)
      const few = await call(port)
      few.raw.write(Buffer.concat([renewals(few.seal, 3), few.seal.says(get)]))
      await eventually(async () => few.answers() === 1, 'one with a few is heard')
    }
    const { raw, seal, answers } = await call(port, '127.0.0.2')
    raw.write(seal.says(get))
    await eventually(async () => answers() === 1, 'others are heard in that second')
  })

  it('each waits for a turn of its own', async () => {
    const { server, port } = await listening((_, response) => response.end())
    const { raw, seal, answers } = await call(port)
    const [counted] = (await Promise.all([once(server, 'request'), raw.write(seal.says(get))]))[0] as [IncomingMessage]
    let turns = 0
    let isOver = false
    server.once('request', () => {
      isOver = true
    })
    rawOf(counted.socket as TLSSocket)!.once('data', () => {
      const count = () => {
        if (isOver) return
        turns++
        setImmediate(count)
      }
      count()
    })
    raw.write(Buffer.concat([renewals(seal, 40), seal.says(get)]))
    await eventually(async () => answers() === 2, 'it is answered')
    assert.ok(turns >= 40, `${turns}`)
  })

  it('whoever speaks in records of one byte is no such caller', async () => {
    const { port } = await listening((_, response) => response.end())
    const { raw, seal, answers } = await call(port)
    for (let at = 1; at <= 5; at++) {
      raw.write(Buffer.concat([...get].map(character => seal.says(character))))
      await eventually(async () => answers() === at, 'it is answered')
    }
  })

  it('a handshake in crumbs is ended before it is whole', async () => {
    const { port } = await listening((_, response) => response.end())
    // The beginning of a hello of 512 bytes.
    const crumbs = [1, 0, 2, 0, ...new Array(200).fill(3)].map(byte => Buffer.of(22, 3, 1, 0, 1, byte))
    const few = connect(port, '127.0.0.1')
    open.push(few)
    few.write(Buffer.concat(crumbs.slice(0, emptyRecordsMost)))
    const many = connect(port, '127.0.0.1')
    open.push(many)
    const closed = ended(many)
    many.write(Buffer.concat(crumbs.slice(0, emptyRecordsMost + 1)))
    await closed
    assert.equal(few.readyState, 'open')
  })

  it('bytes that come one by one are put together', async () => {
    const { port } = await listening((request, response) =>
      request.on('data', () => {}).on('end', () => response.end('x'.repeat(300_000))),
    )
    const { raw, seal, answers } = await call(port)
    raw.setNoDelay(true)
    const bytes = Buffer.concat([seal.says(get), seal.renewsKeys(true), seal.says(get)])
    for (const byte of bytes) {
      raw.write(Buffer.of(byte))
      await turn()
    }
    await eventually(async () => answers() === 2, 'both are answered')
  })

  it('a new key that is asked for beside an empty write ends no process', async () => {
    const { port } = await listening(({ socket }) => {
      let writes = 0
      const write = () => {
        for (let at = 0; at < 3; at++) socket.write('')
        if (++writes < 200 && !socket.destroyed) setImmediate(write)
      }
      write()
    })
    for (let at = 0; at < 20; at++) {
      const { raw, seal } = await call(port)
      const closed = ended(raw)
      raw.write(Buffer.concat([seal.says(get), renewals(seal, emptyRecordsMost, true)]))
      await closed
    }
  })

  it('resets at all stages end no process, and leave nothing behind', async () => {
    const { server, port } = await listening((_, response) => response.end('x'.repeat(1_000_000)))
    const stages: ((caller: Caller) => void)[] = [
      () => {},
      ({ tls }) => tls.write(get),
      ({ tls }) => tls.write(get.repeat(8)),
      ({ tls }) => tls.pause().write(get),
      ({ tls }) => tls.end(get),
      ({ raw, seal }) => raw.write(Buffer.concat([seal.says(get), renewals(seal, 30, true)])),
      ({ raw }) => raw.write('nothing that TLS knows, and long enough to be looked at'),
    ]
    for (let round = 0; round < 5; round++)
      await Promise.all(
        stages.map(async stage => {
          const caller = await call(port)
          stage(caller)
          for (let turns = 0; turns < round * 4; turns++) await turn()
          caller.raw.resetAndDestroy()
        }),
      )
    for (let at = 0; at < 20; at++) {
      const raw = connect(port, '127.0.0.1').on('error', () => {})
      await once(raw, 'connect')
      connectTls({ socket: raw, rejectUnauthorized: false }).on('error', () => {})
      for (let turns = 0; turns < at; turns++) await turn()
      raw.resetAndDestroy()
    }
    const left = () => new Promise<number>(resolve => server.getConnections((_, count) => resolve(count)))
    await eventually(async () => (await left()) === 0, 'all are gone')
  })

  it('who calls and how is known as without it', async () => {
    const { port } = await listening(({ socket }, response) => {
      const { remoteAddress, remotePort, remoteFamily, localAddress, localPort } = socket
      response.end(JSON.stringify([remoteAddress, remotePort, remoteFamily, localAddress, localPort]))
    })
    const { raw, tls } = await call(port)
    tls.write(get)
    const [data] = await once(tls, 'data')
    assert.deepEqual(JSON.parse(String(data).split('\r\n\r\n')[1]!), ['127.0.0.1', raw.localPort, 'IPv4', '127.0.0.1', port])
  })

  it('of a server that is called as many are taken', async () => {
    const server = createServer({ ...secure, ...spokenTls })
    after(() => server.close())
    const keys = recordSealer(server, 'SERVER')
    let count = 0
    let padding = 0
    let isReset = false
    server.on('connection', (raw: Socket) =>
      server.once('secureConnection', tls => {
        tls
          .on('error', () => {})
          .once('data', () => {
            const answer = () => {
              const seal = keys.sealer(2)
              const records = [renewals(seal, count, false, padding), seal.says('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')]
              raw.write(Buffer.concat(records), () => isReset && raw.resetAndDestroy())
            }
            setImmediate(answer) // two tickets are on their way
          })
      }),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const ask = () =>
      httpTransport({ method: 'GET', url: `https://localhost:${port}/`, tls: { ca: secure.cert } }, AbortSignal.timeout(20_000))
    count = emptyRecordsMost / 2
    assert.deepEqual(await ask(), { status: 200, body: 'ok' })
    isReset = true // what came before it is heard
    assert.deepEqual(await ask(), { status: 200, body: 'ok' })
    isReset = false
    count = emptyRecordsMost
    await assert.rejects(ask(), /no answer/)
    count = 1
    padding = 16_000
    count = Math.floor(emptyBytesOfCalls / 2 / padding)
    assert.deepEqual(await ask(), { status: 200, body: 'ok' })
    count = Math.ceil(emptyBytesOfCalls / padding) // the handshake has some too
    await assert.rejects(ask(), /no answer/)
  })
  it('of a server of TLS 1.2 none asks for another handshake', async () => {
    // What stands before the answer, sealed as the server would.
    let before: (seal: (type: number, content: Buffer) => Buffer) => Buffer[] = () => []
    const older = {
      ...secure,
      maxVersion: 'TLSv1.2',
      ciphers: 'ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256',
    } as const
    const server = createTcpServer(raw => {
      let random: Buffer | undefined
      let isOurs = false
      const line = new Duplex({
        read() {},
        write(bytes: Buffer, _, done) {
          random ??= Buffer.from(bytes.subarray(11, 43)) // its first words are its hello
          if (!isOurs) raw.write(bytes)
          done()
        },
      })
      raw.on('error', () => {}).on('data', bytes => line.push(bytes))
      raw.on('close', () => line.destroy())
      const tls = new TLSSocket(line, { isServer: true, ...older, secureOptions: constants.SSL_OP_NO_TICKET })
      let keylog: Buffer | undefined
      tls
        .on('error', () => {})
        .on('keylog', text => {
          keylog = text
        })
      tls.once('data', () => {
        isOurs = true
        const seal = olderSealer(keylog!, random!, 1) // the end of its handshake was the first
        const answer = seal.bind(undefined, 23)
        raw.write(Buffer.concat([...before(seal), answer(Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))]))
      })
    }).listen(0, '127.0.0.1')
    after(() => server.close())
    await once(server, 'listening')
    const url = `https://localhost:${(server.address() as AddressInfo).port}/`
    const ask = () => httpTransport({ method: 'GET', url, tls: { ca: secure.cert } }, AbortSignal.timeout(20_000))
    assert.deepEqual(await ask(), { status: 200, body: 'ok' })
    before = seal => [seal(22, Buffer.alloc(4))]
    await assert.rejects(ask(), /no answer/)
  })
  it('chains of certificates are as long as honest ones, and longer where a certificate of ours is asked for', async () => {
    const answer = async (isAsking: boolean, chain: number) => {
      const cert = Buffer.concat(new Array(Math.floor(chain / bytesOf(secure.cert))).fill(secure.cert))
      const server = createServer({ ...secure, cert, requestCert: isAsking, rejectUnauthorized: false }, (_, response) =>
        response.end('ok'),
      ).on('tlsClientError', () => {})
      after(() => server.close())
      await once(server.listen(0, '127.0.0.1'), 'listening')
      const url = `https://localhost:${(server.address() as AddressInfo).port}/`
      const tls = { ca: secure.cert, ...(isAsking && secure) }
      return httpTransport({ method: 'GET', url, tls }, AbortSignal.timeout(20_000))
    }
    // Of a receiver that names the 144 authorities of a browser, whose certificate has a chain of 5 KiB.
    assert.deepEqual(await answer(false, 20_000), { status: 200, body: 'ok' })
    for (const [isAsking, most] of [
      [false, emptyBytesOfCalls],
      [true, 2 * emptyBytesOfCalls],
    ] as const) {
      assert.deepEqual(await answer(isAsking, most - 8000), { status: 200, body: 'ok' })
      await assert.rejects(answer(isAsking, most + 1000), NotSent)
    }
  })
})
