// SFTP towards the servers of others: the client against a server of a library, against OpenSSH's where that is installed, and against a hostile one; and OpenSSH's
// client against the server of the tests, so that both sides are known by somebody else.

import assert from 'node:assert/strict'
import { execFile, execFileSync, spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import type { Attributes, SFTPWrapper } from 'ssh2'
import { systemClock, type Timer } from '../src/platform/clock.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { read } from '../src/platform/schema.ts'
import { looksLikeKey, serverOf, sftpServer } from '../src/platform/sftp/server.ts'
import {
  type PutAttempt,
  type SentFile,
  type Sftp,
  SftpError,
  type SftpLimits,
  sftpLimits,
  withSftp,
} from '../src/platform/sftp/sftp.ts'
import { startFlood } from './support/flood.ts'
import { freePort } from './support/freePort.ts'
import { eventually } from './support/gateway.ts'
import { keyPair, type Question, type SftpTestServer, startSftpServer } from './support/sftpServer.ts'

const ours = keyPair()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-sftp-'))
const inFolder = (name: string) => join(folder, name)
let server: SftpTestServer

before(async () => {
  server = await startSftpServer(folder, ours.public)
})
beforeEach(() => {
  for (const name of readdirSync(folder)) rmSync(inFolder(name), { recursive: true })
  server.faults.clear()
  server.lies.clear()
  server.odd.clear()
  server.asked.length = 0
})
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const quick: SftpLimits = { ...sftpLimits, answerSeconds: 1 }
function use<Value>(work: (sftp: Sftp) => Promise<Value>, more: object = {}, limits = sftpLimits): Promise<Value> {
  const given = { host: '127.0.0.1', port: server.port, user: 'tollgate', hostKey: server.hostKey, ...more }
  return withSftp(systemClock, serverOf(read(sftpServer, given, 'test'), ours.private), work, { limits })
}
/** Each attempt has an id of its own, as in due work. */
const attempt = (more: Partial<PutAttempt> = {}): PutAttempt => ({
  id: randomUUID().replaceAll('-', ''),
  isOurs: async () => true,
  ...more,
})
const putFile = (sftp: Sftp, path: string, file: SentFile, more: Partial<PutAttempt> = {}) => sftp.put(path, file, attempt(more))
const refused = (work: Promise<unknown>, message: RegExp, about: SftpError['about'] = 'lost') =>
  assert.rejects(work, (error: Error) => {
    assert.ok(error instanceof SftpError, error.stack)
    assert.match(error.message, message)
    assert.equal(error.about, about)
    return true
  })

describe('files', () => {
  it('are listed by name: no folders, links, hidden files, and nothing that somebody still writes', async () => {
    for (const name of ['b.ret', 'a.ret', '.hidden', 'c.tmp', 'd.FILEPART']) writeFileSync(inFolder(name), 'x')
    mkdirSync(inFolder('done'))
    const { files: found } = await use(sftp => sftp.list('.'))
    assert.deepEqual(
      found.map(({ name, bytes }) => [name, bytes]),
      [
        ['a.ret', 1],
        ['b.ret', 1],
      ],
    )
    assert.ok(Math.abs(found[0]!.modifiedAt - Date.now() / 1000) < 3600)
  })

  it('are read and put whole, of every length around a chunk', async () => {
    for (const length of [0, 1, 32_767, 32_768, 32_769, 100_000]) {
      const bytes = Buffer.alloc(length, `${length} bytes,`)
      await use(sftp => putFile(sftp, `${length}.csv`, bytes))
      assert.deepEqual(readFileSync(inFolder(`${length}.csv`)), bytes)
      assert.deepEqual(await use(sftp => sftp.read(`${length}.csv`, length)), bytes)
    }
    assert.ok(!readdirSync(folder).some(name => name.endsWith('.tmp')))
  })

  it('get their name when all of them is there; what an attempt left is taken away by the next', async () => {
    const first = attempt()
    server.faults.set('rename', 'cut')
    await refused(
      use(sftp => sftp.put('day.csv', Buffer.from('all of it'), first)),
      /closed the connection|No response/,
    )
    assert.deepEqual(readdirSync(folder), [`day.csv.${first.id}.tmp`])
    const others = ['day.csv.tmp', `day.csv.${attempt().id}.tmp`, `other.csv.${first.id}.tmp`]
    for (const name of others) writeFileSync(inFolder(name), 'of somebody else')
    assert.equal(await use(sftp => putFile(sftp, 'day.csv', Buffer.from('all of it'), { before: first.id })), true)
    assert.equal(readFileSync(inFolder('day.csv'), 'utf8'), 'all of it')
    assert.deepEqual(readdirSync(folder).sort(), ['day.csv', ...others].sort())
  })

  it('are put where the server lets nobody take away what an attempt left', async () => {
    server.odd.set('REMOVE', (channel, id) => channel.status(id, 3))
    assert.equal(await use(sftp => putFile(sftp, 'day.csv', Buffer.from('all of it'), { before: attempt().id })), true)
    assert.deepEqual(readdirSync(folder), ['day.csv'])
  })

  it('are written into nothing that is there, whoever put it there', async () => {
    const one = attempt()
    writeFileSync(inFolder(`day.csv.${one.id}.tmp`), 'of somebody else')
    await refused(
      use(sftp => sftp.put('day.csv', Buffer.from('all of it'), one)),
      /^opening day\.csv\./,
      'file',
    )
    assert.equal(readFileSync(inFolder(`day.csv.${one.id}.tmp`), 'utf8'), 'of somebody else')
  })

  it('are whole when two put them at once, and whoever is told that another has begun gives up', async () => {
    const bytes = randomBytes(4 * 32_768)
    const [first, second] = [attempt({ isOurs: async () => false }), attempt()]
    // The last chunk of the first is held back until the second has all but its own last there.
    let goOn = () => {}
    const { promise: isHeld, resolve: held } = Promise.withResolvers<void>()
    let writes = 0
    server.odd.set('WRITE', (channel, id, ...asked) => {
      const [write] = channel.listeners('WRITE')
      const answer = () => (write as (...of: unknown[]) => void)(id, ...asked)
      if (++writes !== 4) return answer()
      goOn = answer
      held()
    })
    const put = (one: PutAttempt) => use(sftp => sftp.put('day.csv', bytes, one))
    const slow = put(first)
    await isHeld
    const { promise: secondGoesOn, resolve: secondGo } = Promise.withResolvers<void>()
    const fast = put({
      ...second,
      async isOurs() {
        goOn()
        await secondGoesOn
        return true
      },
    })
    assert.equal(await slow, false)
    assert.deepEqual(readdirSync(folder), [`day.csv.${second.id}.tmp`], 'it has taken its part away')
    secondGo()
    assert.equal(await fast, true)
    assert.deepEqual(readdirSync(folder), ['day.csv'])
    assert.ok(readFileSync(inFolder('day.csv')).equals(bytes))
  })

  it('that are there already are left when they are the same, and never replaced', async () => {
    writeFileSync(inFolder('day.csv'), 'ours')
    await use(sftp => putFile(sftp, 'day.csv', Buffer.from('ours')))
    assert.deepEqual(
      server.asked.filter(one => one.startsWith('write')),
      [],
    )
    for (const others of ['OURS', 'ours and more', 'our'])
      await refused(
        use(sftp => putFile(sftp, 'day.csv', Buffer.from(others))),
        /^day\.csv is there already, and is not ours$/,
        'file',
      )
    assert.equal(readFileSync(inFolder('day.csv'), 'utf8'), 'ours')
  })

  it('are put and compared piece by piece, however they are cut', async () => {
    const bytes = randomBytes(100_000)
    const cut = (...lengths: number[]) => {
      let asked = 0
      const file = {
        length: bytes.length,
        async *pieces() {
          for (const [at, length] of lengths.entries()) {
            asked++
            const from = lengths.slice(0, at).reduce((sum, one) => sum + one, 0)
            yield bytes.subarray(from, from + length)
          }
        },
      }
      return { file, asked: () => asked }
    }
    const one = cut(1, 70_000, 0, 29_999)
    await use(sftp => putFile(sftp, 'day.csv', one.file))
    assert.deepEqual(readFileSync(inFolder('day.csv')), bytes)
    for (const lengths of [[100_000], [32_768, 67_232], [99_999, 1], [50_000, 0, 50_000]])
      assert.equal(await use(sftp => sftp.holds('day.csv', cut(...lengths).file)), true)
    const last = Buffer.from(bytes)
    last[99_999] = bytes[99_999]! ^ 1
    for (const others of [last, bytes.subarray(1), bytes.subarray(0, 99_999), Buffer.concat([bytes, bytes])]) {
      writeFileSync(inFolder('day.csv'), others)
      assert.equal(await use(sftp => sftp.holds('day.csv', cut(70_000, 30_000).file)), false)
    }
    // Half of what there should be is no file.
    writeFileSync(inFolder('day.csv'), bytes)
    assert.equal(await use(sftp => sftp.holds('day.csv', cut(50_000).file)), false)
  })

  it('are asked for as slowly as a server takes them', async () => {
    let asked = 0
    const file = {
      length: 4 * 32_768,
      async *pieces() {
        for (let piece = 0; piece < 4; piece++) {
          asked++
          yield Buffer.alloc(32_768)
        }
      },
    }
    server.faults.set('write', 'stall')
    await refused(
      use(sftp => putFile(sftp, 'a', file), {}, quick),
      /no answer within 1 s/,
    )
    assert.equal(asked, 1)
  })

  it('are moved, never onto another', async () => {
    mkdirSync(inFolder('done'))
    writeFileSync(inFolder('a.ret'), 'a')
    await use(sftp => sftp.move('a.ret', 'done/a.ret'))
    assert.equal(readFileSync(inFolder('done/a.ret'), 'utf8'), 'a')
    writeFileSync(inFolder('a.ret'), 'another')
    await refused(
      use(sftp => sftp.move('a.ret', 'done/a.ret')),
      /^moving a\.ret to done\/a\.ret: /,
      'file',
    )
    assert.equal(readFileSync(inFolder('done/a.ret'), 'utf8'), 'a')
  })
})

/** A packet as it goes before there are keys. */
function packet(payload: Buffer): Buffer {
  const padding = 8 - ((5 + payload.length) % 8) + (8 - ((5 + payload.length) % 8) < 4 ? 8 : 0)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(1 + payload.length + padding)
  head[4] = padding
  return Buffer.concat([head, payload, Buffer.alloc(padding)])
}
/** SSH_MSG_IGNORE and SSH_MSG_KEXINIT (RFC 4253, 11.2 and 7.1). */
const ignored = packet(Buffer.from([2, 0, 0, 0, 0]))
const names = (list = '') => {
  const text = Buffer.from(list)
  return Buffer.concat([Buffer.from([0, 0, 0, text.length]), text])
}
const offerOf = (kex: string) =>
  packet(
    Buffer.concat([
      Buffer.from([20]),
      Buffer.alloc(16, 7),
      ...[names(kex), names('ssh-ed25519')],
      ...Array.from({ length: 2 }, () => names('aes128-ctr')),
      ...Array.from({ length: 2 }, () => names('hmac-sha2-256')),
      ...Array.from({ length: 2 }, () => names('none')),
      ...Array.from({ length: 2 }, () => names()),
      Buffer.alloc(5),
    ]),
  )

describe('a hostile server', () => {
  it('with another key is told nothing', async () => {
    await refused(
      use(sftp => sftp.list('.'), { hostKey: keyPair().public.trim().split(' ').slice(0, 2).join(' ') }),
      /another host key/,
      'identity',
    )
    assert.equal(server.asked.length, 0)
  })

  it('that does not know us says so', async () => {
    const other = await startSftpServer(folder, keyPair().public)
    await refused(
      use(sftp => sftp.list('.'), { port: other.port, hostKey: other.hostKey }),
      /refuses our key/,
      'identity',
    ).finally(other.stop)
  })

  for (const [operation, work] of [
    ['connect', sftp => sftp.list('.')],
    ['list', sftp => sftp.list('.')],
    ['open', sftp => sftp.read('a', 10)],
    ['read', sftp => sftp.read('a', 10)],
    ['write', sftp => putFile(sftp, 'b', Buffer.from('b'))],
    ['close', sftp => putFile(sftp, 'b', Buffer.from('b'))],
    ['rename', sftp => putFile(sftp, 'b', Buffer.from('b'))],
  ] as [Parameters<SftpTestServer['faults']['set']>[0], (sftp: Sftp) => Promise<unknown>][])
    it(`that is silent at ${operation} is waited for no longer than is said`, async () => {
      writeFileSync(inFolder('a'), 'a')
      server.faults.set(operation, 'stall')
      await refused(use(work, {}, quick), /no answer within 1 s/)
      assert.ok(!existsSync(inFolder('b')))
    })

  it('that accepts and says nothing at all is no different', async t => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    t.after(() => silent.close())
    await new Promise(ready => silent.once('listening', ready))
    await refused(
      use(sftp => sftp.list('.'), { port: (silent.address() as { port: number }).port }, quick),
      /no answer within 1 s/,
    )
  })

  it('that drips is ended after a session', () =>
    refused(
      use(
        async sftp => {
          for (;;) await sftp.list('.')
        },
        {},
        { ...sftpLimits, sessionSeconds: 1 },
      ),
      /longer than 1 s/,
    ))

  it('that takes a long file steadily has as much longer for it', async () => {
    let elapsed = 0
    const after: { milliseconds: number; act: () => void }[] = []
    const timer: Timer = { cancel() {}, unref: () => timer }
    const clock = {
      ...systemClock,
      elapsed: () => elapsed,
      after: (milliseconds: number, act: () => void) => {
        // The timers of answers are the machine's, that of the session is wound by hand.
        if (milliseconds === 30_000) return systemClock.after(milliseconds, act)
        after.push({ milliseconds, act })
        return timer
      },
    }
    const given = { host: '127.0.0.1', port: server.port, user: 'tollgate', hostKey: server.hostKey }
    const work = withSftp(clock, serverOf(read(sftpServer, given, 'test'), ours.private), async sftp => {
      await putFile(sftp, 'long.csv', Buffer.alloc(10 * 64 * 1024))
      elapsed = 600_000
      after[0]!.act()
      await sftp.list('.')
      assert.deepEqual(
        after.map(({ milliseconds }) => milliseconds),
        [600_000, 10_000],
      )
      elapsed = 609_999
      after[1]!.act()
      await sftp.list('.')
      elapsed = 610_000
      after[2]!.act()
      await sftp.list('.')
    })
    await refused(work, /^the session took longer than 610 s$/)
  })

  it('that goes on with a file too slowly is left after a while, and told of', async () => {
    let elapsed = 0
    const clock = { ...systemClock, elapsed: () => elapsed }
    // A file of four chunks, each of which takes so long.
    const seconds = (each: number, work: (sftp: Sftp) => Promise<unknown>) => {
      elapsed = 0
      const given = { host: '127.0.0.1', port: server.port, user: 'tollgate', hostKey: server.hostKey }
      const passes = (channel: SFTPWrapper, id: number, handle: unknown, offset: unknown, asked: unknown) => {
        elapsed += ((asked as Buffer).length ?? asked) * (each / 32.768)
        const [answer] = channel.listeners(Buffer.isBuffer(asked) ? 'WRITE' : 'READ')
        ;(answer as (...of: unknown[]) => void)(id, handle, offset, asked)
      }
      for (const question of ['READ', 'WRITE'] as const) server.odd.set(question, passes)
      return withSftp(clock, serverOf(read(sftpServer, given, 'test'), ours.private), work)
    }
    const bytes = randomBytes(4 * 32_768)
    const put = (name: string) => (sftp: Sftp) => putFile(sftp, name, bytes)
    // 8192 bytes a second are four seconds for a chunk; within a minute nobody is asked for more.
    await seconds(14, put('within'))
    await refused(
      seconds(21, put('slow')),
      /^writing slow\.[0-9a-f]{32}\.tmp: the server goes on at fewer than 8192 bytes a second$/,
    )
    writeFileSync(inFolder('a'), bytes)
    const readIt = (sftp: Sftp) => sftp.read('a', bytes.length)
    await seconds(14, readIt)
    await refused(seconds(21, readIt), /^reading a: the server goes on at fewer than 8192 bytes a second$/)
    writeFileSync(inFolder('long'), Buffer.alloc(40 * 32_768))
    await seconds(4, sftp => sftp.read('long', 40 * 32_768))
    await refused(
      seconds(4.1, sftp => sftp.read('long', 40 * 32_768)),
      /goes on at fewer/,
    )
  })

  it('that cuts the line in the middle of a file has given none', async () => {
    writeFileSync(inFolder('a'), Buffer.alloc(100_000))
    server.faults.set('read', 'cut')
    await refused(
      use(sftp => sftp.read('a', 200_000)),
      /closed the connection|No response/,
    )
  })

  it('with more or fewer bytes than it says, or more than is wanted, has given none', async () => {
    writeFileSync(inFolder('a'), 'twelve bytes')
    for (const lie of ['longer', 'shorter'] as const) {
      server.lies.add(lie)
      await refused(
        use(sftp => sftp.read('a', 100)),
        /still written to or cut off/,
        'file',
      )
      server.lies.clear()
    }
    assert.equal((await use(sftp => sftp.read('a', 12))).length, 12)
    await refused(
      use(sftp => sftp.read('a', 11)),
      /^a has 12 bytes, more than 11$/,
      'file',
    )
  })

  const hello = Buffer.from('SSH-2.0-hostile\r\n')
  const tooMuch = /^connecting: the server sends more than 65536 bytes$/
  for (const [what, first, more, why] of [
    ['greets', Buffer.alloc(0), `${'Welcome! '.repeat(10)}\r\n`, tooMuch],
    ['says nothing that matters before keys', hello, ignored, tooMuch],
    ['says nothing that matters amid keys', Buffer.concat([hello, offerOf('curve25519-sha256')]), ignored, tooMuch],
    ['speaks another protocol', Buffer.from('SSH-none\r\n'), 'more', /^Invalid identification string$/],
  ] as const)
    it(`that ${what} without an end is left`, async t => {
      const flood = await startFlood(first, Buffer.alloc(60_000, more))
      t.after(flood.stop)
      await refused(
        use(sftp => sftp.list('.'), { port: flood.port }, { ...sftpLimits, answerSeconds: 5 }),
        why,
      )
      await eventually(async () => flood.open() === 0, 'nothing is heard of it any more')
      assert.ok(flood.bytesRead() < 200_000, `${flood.bytesRead()} bytes were read`)
    })

  for (const [operation, now] of [
    ['connect', 'connecting'],
    ['list', 'opening \\.'],
    ['read', 'reading a'],
  ] as const)
    it(`that asks without an end at ${operation} is left, and so is one that wants new keys`, async () => {
      const patient = { ...sftpLimits, answerSeconds: 5 }
      const work = (sftp: Sftp): Promise<unknown> => (operation === 'read' ? sftp.read('a', 10) : sftp.list('.'))
      writeFileSync(inFolder('a'), 'a')
      for (const [fault, why] of [
        ['flood', 'sends more than 65536 bytes'],
        ['keys', 'wants new keys more than 10 times'],
      ] as const) {
        server.faults.set(operation, fault)
        await refused(use(work, {}, patient), new RegExp(`^${now}: the server ${why}$`))
        server.faults.clear()
        await eventually(async () => server.connections() === 0, 'nothing is heard of it any more')
      }
    })

  const handle = (channel: SFTPWrapper, id: number) => channel.handle(id, Buffer.from('0'))
  const page = (channel: SFTPWrapper, id: number) => channel.name(id, [])
  const attributes = (channel: SFTPWrapper, id: number) => channel.attrs(id, {} as Attributes)
  const status = (code: number) => (channel: SFTPWrapper, id: number) => channel.status(id, code)
  /** An answer whose rest is missing. */
  const garbage = (type: number) => (channel: SFTPWrapper, id: number) => {
    const { _protocol, outgoing } = channel as unknown as {
      _protocol: { channelData(id: number, bytes: Buffer): void }
      outgoing: { id: number }
    }
    _protocol.channelData(outgoing.id, Buffer.from([0, 0, 0, 7, type, 0, 0, 0, id, 0xff, 0xff]))
  }
  const list = (sftp: Sftp) => sftp.list('.')
  const readIt = (sftp: Sftp) => sftp.read('a', 10)
  const putIt = (sftp: Sftp) => putFile(sftp, 'b', Buffer.from('b'))
  const other = /: the server answers another question$/
  for (const [question, work, answers] of [
    ['OPENDIR', list, { page, attributes, status: status(0) }],
    ['READDIR', list, { handle, attributes, status: status(0) }],
    ['OPEN', readIt, { page, attributes, status: status(0) }],
    ['FSTAT', readIt, { handle, page, status: status(0) }],
    ['STAT', putIt, { handle, page, status: status(0) }],
    ['CLOSE', readIt, { handle, page, attributes }],
    ['RENAME', putIt, { handle, page, attributes }],
  ] as [Question, (sftp: Sftp) => Promise<unknown>, Record<string, (channel: SFTPWrapper, id: number) => void>][])
    it(`that answers ${question} with what is no answer to it is left`, async () => {
      writeFileSync(inFolder('a'), 'a')
      for (const answer of Object.values(answers)) {
        server.odd.set(question, answer)
        await refused(use(work, {}, quick), other)
      }
      for (const type of [102, 104, 105]) {
        server.odd.set(question, garbage(type))
        await refused(use(work, {}, quick), /Malformed/)
      }
      for (const code of [1, 3, 8]) {
        server.odd.set(question, status(code))
        const isEnd = question === 'READDIR' && code === 1
        await (isEnd ? use(work) : refused(use(work, {}, quick), /./, 'file'))
      }
      await eventually(async () => server.connections() === 0, 'nothing is heard of it any more')
    })

  it('that writes card data into what it says of an error is told of without it', async () => {
    writeFileSync(inFolder('a'), 'a')
    server.odd.set('OPEN', (channel, id) => channel.status(id, 4, `quota of 4539578763621486 cvv 942 ${'x'.repeat(400)}`))
    await refused(use(readIt), /^opening a: quota of xxxxxxxxxxxx1486 cvv xxx x{200,300}$/, 'file')
  })

  it('that does not say how long a file is gives none, and takes none', async () => {
    writeFileSync(inFolder('a'), 'a')
    server.odd.set('FSTAT', attributes)
    await refused(use(readIt), /still written to or cut off/, 'file')
    server.odd.set('STAT', attributes)
    await refused(
      use(sftp => putFile(sftp, 'a', Buffer.from('a'))),
      /^a is there already, and is not ours$/,
      'file',
    )
    assert.equal(readFileSync(inFolder('a'), 'utf8'), 'a')
  })

  it('that falls silent while it is looked whether a file is ours is not told of as another file', async () => {
    writeFileSync(inFolder('b'), 'b')
    server.faults.set('read', 'stall')
    await refused(use(putIt, {}, quick), /no answer within 1 s/)
  })

  it('that speaks while nobody asks is left at once, and who comes back to it is told', async () => {
    const work = async (sftp: Sftp) => {
      await sftp.list('.')
      server.faults.set('close', 'flood')
      await sftp.read('a', 10).catch(() => {})
      await eventually(async () => server.connections() === 0, 'nothing is heard of it any more')
      await sftp.list('.')
    }
    writeFileSync(inFolder('a'), 'a')
    await refused(use(work), /^closing a: the server sends more than 65536 bytes$/)
  })

  it('chooses no group whose check would hold everybody up', async t => {
    const chooser = createServer(socket => {
      socket.on('error', () => {}).write(Buffer.concat([hello, offerOf('diffie-hellman-group-exchange-sha256')]))
    }).listen(0, '127.0.0.1')
    t.after(() => chooser.close())
    await new Promise(ready => chooser.once('listening', ready))
    await refused(
      use(sftp => sftp.list('.'), { port: (chooser.address() as { port: number }).port }),
      /no matching key exchange algorithm/,
    )
  })

  it('that gives a file byte by byte gives none', async () => {
    writeFileSync(inFolder('a'), Buffer.alloc(100_000))
    server.lies.add('bytewise')
    await refused(
      use(sftp => sftp.read('a', 200_000)),
      /^a comes in too many pieces$/,
    )
    assert.ok(server.asked.length < 30, `${server.asked.length} questions`)
    writeFileSync(inFolder('a'), 'short')
    assert.equal((await use(sftp => sftp.read('a', 10))).toString(), 'short')
  })

  it('whose list has no end is read to a bound', async () => {
    server.lies.add('endlessList')
    const listed = async () => {
      const { files, isCut } = await use(sftp => sftp.list('.'), {}, { ...sftpLimits, filesMost: 250 })
      return [files.length, isCut]
    }
    assert.deepEqual(await listed(), [250, true])
    server.lies.clear()
    server.lies.add('emptyPages')
    assert.deepEqual(await listed(), [0, true])
    server.lies.clear()
    server.lies.add('endlessList')
    await refused(
      use(sftp => sftp.list('.'), {}, { ...sftpLimits, listedBytes: 1 }),
      /^listing \.: the server sends more than 75536 bytes$/,
    )
  })

  it('is left open by nobody', async () => {
    await use(sftp => sftp.list('.'))
    await eventually(async () => server.connections() === 0, 'no connection is left')
  })
})

describe('what operators write', () => {
  const place = { host: 'sftp.bank.example', user: 'tollgate', hostKey: `ssh-ed25519 ${'A'.repeat(68)}` }
  const wrong = (given: object, message: RegExp) =>
    assert.throws(
      () => read(sftpServer, { ...place, ...given }, 'file'),
      (error: Error) => error instanceof OperatorError && message.test(error.message),
    )
  it('is checked', () => {
    assert.deepEqual(read(sftpServer, place, 'file'), { ...place, port: 22, folder: '.' })
    wrong({ hostKey: 'SHA256:abc' }, /hostKey must be a host key as ssh-keyscan prints it/)
    wrong({ hostKey: `ssh-dss ${'A'.repeat(68)}` }, /hostKey must be/)
    wrong({ password: 'x' }, /password is not known/)
    wrong({ host: 'a b' }, /host must be/)
    wrong({ port: 0 }, /port must be/)
  })
  it('has a key without a passphrase', () => {
    assert.equal(looksLikeKey(ours.private), true)
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    const pem = (more: object) => rsa.export({ type: 'pkcs1', format: 'pem', ...more }).toString()
    assert.equal(looksLikeKey(pem({})), true)
    assert.equal(looksLikeKey(pem({ cipher: 'aes-256-cbc', passphrase: 'x' })), false)
    for (const none of [ours.public, '', 'no key']) assert.equal(looksLikeKey(none), false)
  })
})

const installed = (program: string) => existsSync(program)
const withoutClient = installed('/usr/bin/sftp') ? false : 'OpenSSH has no client here: apt-get install openssh-client'
const withoutServer = installed('/usr/sbin/sshd') ? false : 'OpenSSH has no server here: apt-get install openssh-server'

describe('OpenSSH', () => {
  it("'s client lists, gets, puts and renames on the server of these tests", { skip: withoutClient }, async t => {
    const own = mkdtempSync(join(tmpdir(), 'tollgate-ssh-'))
    t.after(() => rmSync(own, { recursive: true }))
    writeFileSync(join(own, 'key'), ours.private, { mode: 0o600 })
    writeFileSync(join(own, 'known'), `[127.0.0.1]:${server.port} ${server.hostKey}\n`)
    writeFileSync(join(own, 'commands'), `ls\nget a.ret ${own}/a.ret\nput ${own}/a.ret b.ret\nrename b.ret c.ret\n`)
    writeFileSync(inFolder('a.ret'), 'a')
    const options = ['StrictHostKeyChecking=yes', `UserKnownHostsFile=${own}/known`, 'IdentitiesOnly=yes', `Port=${server.port}`]
    await promisify(execFile)(
      '/usr/bin/sftp',
      [
        '-q',
        ...['-i', join(own, 'key'), '-b', join(own, 'commands')],
        ...options.flatMap(option => ['-o', option]),
        'tollgate@127.0.0.1',
      ],
      { timeout: 60_000 },
    )
    assert.equal(readFileSync(inFolder('c.ret'), 'utf8'), 'a')
  })

  /** `host_rsa` and the like are its keys, `client` is ours, `files` a folder. */
  async function startSshd(t: TestContext, ...more: readonly string[]): Promise<{ own: string; port: number }> {
    const own = mkdtempSync(join(tmpdir(), 'tollgate-sshd-'))
    t.after(() => rmSync(own, { recursive: true }))
    for (const type of ['ed25519', 'rsa', 'ecdsa'])
      execFileSync('/usr/bin/ssh-keygen', ['-q', '-t', type, '-N', '', '-f', join(own, `host_${type}`)])
    execFileSync('/usr/bin/ssh-keygen', ['-q', '-t', 'rsa', '-N', '', '-f', join(own, 'client')])
    mkdirSync('/run/sshd', { recursive: true })
    const port = await freePort()
    writeFileSync(
      join(own, 'config'),
      [
        `Port ${port}`,
        'ListenAddress 127.0.0.1',
        ...['ed25519', 'rsa', 'ecdsa'].map(type => `HostKey ${own}/host_${type}`),
        `AuthorizedKeysFile ${own}/client.pub`,
        'PasswordAuthentication no',
        'StrictModes no',
        'PermitRootLogin prohibit-password',
        'PidFile none',
        'Subsystem sftp internal-sftp',
        ...more,
        '',
      ].join('\n'),
    )
    const sshd = spawn('/usr/sbin/sshd', ['-D', '-e', '-f', join(own, 'config')], { stdio: 'ignore' })
    t.after(() => sshd.kill())
    mkdirSync(join(own, 'files', 'done'), { recursive: true })
    return { own, port }
  }
  const placeOf = ({ own, port }: { own: string; port: number }, type: string) => {
    const hostKey = readFileSync(join(own, `host_${type}.pub`), 'utf8')
      .split(' ')
      .slice(0, 2)
      .join(' ')
    const given = { host: '127.0.0.1', port, user: userInfo().username, hostKey, folder: join(own, 'files') }
    return serverOf(read(sftpServer, given, 'test'), readFileSync(join(own, 'client'), 'utf8'))
  }
  /** It may not listen yet. */
  const whenItListens = (again: () => Promise<true>, what: string) =>
    eventually(() => again().catch(error => (/ECONNREFUSED/.test(error.message) ? undefined : Promise.reject(error))), what)

  it("'s server lists, gives, takes and moves for our client", { skip: withoutServer }, async t => {
    const sshd = await startSshd(t)
    const files = join(sshd.own, 'files')
    symlinkSync('/etc/passwd', join(files, 'link'))
    for (const type of ['ed25519', 'rsa', 'ecdsa']) {
      const bytes = Buffer.alloc(300_000, type)
      const again = async (): Promise<true> => {
        await withSftp(systemClock, placeOf(sshd, type), async sftp => {
          await putFile(sftp, `${files}/${type}.csv`, bytes)
          assert.deepEqual(
            (await sftp.list(files)).files.map(({ name, bytes }) => [name, bytes]),
            [[`${type}.csv`, bytes.length]],
          )
          assert.deepEqual(await sftp.read(`${files}/${type}.csv`, bytes.length), bytes)
          await putFile(sftp, `${files}/${type}.csv`, bytes)
          await sftp.move(`${files}/${type}.csv`, `${files}/done/${type}.csv`)
          await assert.rejects(sftp.list(`${files}/none`), /No such file/)
        })
        return true
      }
      await whenItListens(again, type)
      assert.deepEqual(readFileSync(join(files, 'done', `${type}.csv`)), bytes)
    }
  })

  it("'s server that changes keys with each megabyte gives and takes a long file", { skip: withoutServer }, async t => {
    const sshd = await startSshd(t, 'RekeyLimit 1M')
    const path = join(sshd.own, 'files', 'long.ret')
    const bytes = randomBytes(60_000_000)
    const again = async (): Promise<true> => {
      await withSftp(systemClock, placeOf(sshd, 'ed25519'), async sftp => {
        await putFile(sftp, path, bytes)
        assert.ok((await sftp.read(path, bytes.length)).equals(bytes))
      })
      return true
    }
    await whenItListens(again, 'the file is there, and ours')
    assert.ok(readFileSync(path).equals(bytes))
  })
})
