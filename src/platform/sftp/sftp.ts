// Files on the servers of others, by SFTP: with a key of ours, to a server whose key is known, and with a bound on everything that it could do:
// how long it is silent, how long it takes, how much it lists, how much it sends and how often it wants new keys.

import { connect } from 'node:net'
import type { Client, FileEntryWithStats, SFTPWrapper } from 'ssh2'
import { writtenBeginning } from '../../contract/cardNumbers.ts'
import type { Clock } from '../clock.ts'
import { partName } from '../files.ts'
import { boundSocket } from './bounded.ts'
import type { SftpServer } from './server.ts'

export type RemoteFile = {
  readonly name: string
  readonly bytes: number
  /** Seconds since 1970, as the server says. */
  readonly modifiedAt: number
}

/** What a server is given: as a whole, or piece by piece, as slowly as it takes them; from the first each time that it is asked for. */
export type SentFile = Buffer | { readonly length: number; pieces(): AsyncIterable<Buffer> }

/** Paths are the server's, with slashes. */
export type Sftp = {
  /** Plain files of a folder by name; no more than a server should have there, of which `isCut` tells. */
  list(folder: string): Promise<{ readonly files: readonly RemoteFile[]; readonly isCut: boolean }>
  /** Rejects when there is more than `bytesMost`, or another number of bytes than the server says. */
  read(path: string, bytesMost: number): Promise<Buffer>
  /** Whether these bytes and no others are under a name; undefined where nothing is. */
  holds(path: string, file: SentFile): Promise<boolean | undefined>
  /**
   * Whole or not there: under its name only when all of it is there. What is there already with the same bytes is left; with others it is not ours. False when it
   * was not this attempt's to put any more.
   */
  put(path: string, file: SentFile, attempt: PutAttempt): Promise<boolean>
  /** Never onto what is there. */
  move(from: string, to: string): Promise<void>
}

/** Whoever has lost a file to another attempt may go on for a while: each writes a part of its own. */
export type PutAttempt = {
  /** In the name of its part, and of nobody else's. */
  readonly id: string
  /** Of the attempt before, which may have left its part. */
  readonly before?: string
  /** Asked when all of it is there, before it gets its name. */
  isOurs(): Promise<boolean>
}

/**
 * The message is for operators; it holds no secret. `identity`: the server is not the one that is known, or does not know us. `lost`: nothing more will be heard in
 * this session. `file`: another file may do better.
 */
export class SftpError extends Error {
  readonly about: 'identity' | 'lost' | 'file'
  constructor(message: string, about: SftpError['about'] = 'file') {
    super(message)
    this.about = about
  }
}

export type SftpLimits = {
  /** Of each answer that is waited for. */
  readonly answerSeconds: number
  /** From the first byte to the last, and a second more for each so many bytes of files. */
  readonly sessionSeconds: number
  readonly sessionBytes: number
  /** A file that is longer under way goes on at so many bytes a second, or the session ends. */
  readonly paceSeconds: number
  readonly paceBytes: number
  readonly filesMost: number
  /** Of each answer, with all that comes unasked until the next question; until it is ready, of greeting, keys and banner together. */
  readonly answerBytes: number
  /** Of a list, for each file that may stand in it. */
  readonly listedBytes: number
  /** Each makes us compute for milliseconds; servers change keys by the hour, and some with each megabyte. */
  readonly keyExchangesMost: number
  /** One more for each so many bytes in both directions, of which an exchange is a hundredth. */
  readonly keyExchangeBytes: number
}

export const sftpLimits: SftpLimits = {
  answerSeconds: 30,
  sessionSeconds: 600,
  sessionBytes: 64 * 1024,
  paceSeconds: 60,
  paceBytes: 8192,
  filesMost: 10_000,
  answerBytes: 64 * 1024,
  listedBytes: 1024,
  keyExchangesMost: 10,
  keyExchangeBytes: 512 * 1024,
}

// What servers of this decade speak; SHA-1, CBC and the short groups are left out. So are groups that the server chooses: to look whether one of 8192 bits is a
// good one holds everybody else up for half a minute.
const kex = [
  'curve25519-sha256',
  'curve25519-sha256@libssh.org',
  'ecdh-sha2-nistp256',
  'ecdh-sha2-nistp384',
  'ecdh-sha2-nistp521',
  'diffie-hellman-group14-sha256',
  'diffie-hellman-group16-sha512',
] as const
const cipher = ['aes256-gcm@openssh.com', 'aes128-gcm@openssh.com', 'aes256-ctr', 'aes128-ctr'] as const
const hmac = ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'] as const

/** Connects, works, closes. `address`: where the name of the host leads, when that was checked before. */
export async function withSftp<Value>(
  clock: Clock,
  server: SftpServer,
  work: (sftp: Sftp) => Promise<Value>,
  { address, limits = sftpLimits }: { readonly address?: string; readonly limits?: SftpLimits } = {},
): Promise<Value> {
  const { default: ssh2 } = await import('ssh2') // most processes never need it
  const client = new ssh2.Client()
  const { promise: lost, reject } = Promise.withResolvers<never>()
  lost.catch(() => {}) // it may be lost while nobody waits
  const socket = connect({ host: address ?? server.host, port: server.port, noDelay: true }) // every answer is waited for
  // By us: the package closes its own half of the connection, and goes on hearing the other.
  const lose = (why: SftpError) => {
    socket.destroy()
    reject(why)
  }
  let doing = 'connecting'
  const allow = boundSocket(socket, bytesMost =>
    lose(new SftpError(`${doing}: the server sends more than ${bytesMost} bytes`, 'lost')),
  )
  let knownHost = true
  let keyExchanges = 0
  client.on('handshake', () => {
    const most = limits.keyExchangesMost + Math.floor((socket.bytesRead + socket.bytesWritten) / limits.keyExchangeBytes)
    if (++keyExchanges > most) lose(new SftpError(`${doing}: the server wants new keys more than ${most} times`, 'lost'))
  })
  client.on('error', (error: Error & { level?: string }) => lose(asSftpError(error, knownHost)))
  client.on('close', () => lose(new SftpError('the server closed the connection', 'lost')))
  const began = clock.elapsed()
  let bytesOfFiles = 0
  const endSession = () => {
    const seconds = limits.sessionSeconds + bytesOfFiles / limits.sessionBytes
    const left = seconds * 1000 - (clock.elapsed() - began)
    if (left > 0) session = clock.after(left, endSession)
    else lose(new SftpError(`the session took longer than ${Math.round(seconds)} s`, 'lost'))
  }
  let session = clock.after(limits.sessionSeconds * 1000, endSession)
  /** One answer of the server; one that is none to this question ends the session. */
  async function answer<Answer>(
    what: string,
    isAnswer: IsAnswer<Answer>,
    ask: AskServer,
    bytesMost: BytesMost = limits.answerBytes,
  ): Promise<Answer> {
    doing = what
    if (bytesMost !== 'left') allow(bytesMost)
    const timer = clock.after(limits.answerSeconds * 1000, () =>
      lose(new SftpError(`${what}: no answer within ${limits.answerSeconds} s`, 'lost')),
    )
    try {
      return await Promise.race([
        lost,
        new Promise<Answer>((resolve, reject) =>
          ask((error, answer) => {
            if (error) reject(new RemoteRefusal(what, error))
            else if (isAnswer(answer)) resolve(answer)
            else lose(new SftpError(`${what}: the server answers another question`, 'lost'))
          }),
        ),
      ])
    } finally {
      timer.cancel()
    }
  }
  const pace: Pace = what => {
    const began = clock.elapsed()
    let bytes = 0
    return length => {
      bytes += length
      bytesOfFiles += length
      const seconds = (clock.elapsed() - began) / 1000
      if (seconds < limits.paceSeconds || bytes >= seconds * limits.paceBytes) return
      const slow = new SftpError(`${what}: the server goes on at fewer than ${limits.paceBytes} bytes a second`, 'lost')
      lose(slow)
      throw slow
    }
  }
  try {
    const { type, blob } = server.hostKey
    await answer('connecting', isNothing, done => {
      client.once('ready', () => done(null))
      client.connect({
        sock: socket,
        username: server.user,
        privateKey: server.key,
        authHandler: ['publickey'], // nothing else is offered
        readyTimeout: 0, // the clock is ours
        algorithms: {
          serverHostKey: signaturesOf(type),
          kex: [...kex],
          cipher: [...cipher],
          hmac: [...hmac],
          compress: ['none'],
        },
        hostVerifier: (shown: Buffer) => {
          knownHost = shown.equals(blob)
          return knownHost
        },
      })
    })
    const channel = await answer('beginning SFTP', isChannel, beginning(client))
    return await work(filesOf(channel, answer, pace, limits))
  } finally {
    session.cancel()
    socket.destroy()
  }
}

/** The package throws where the server has hung up meanwhile. */
const beginning =
  (client: Client): AskServer =>
  done => {
    try {
      client.sftp(done)
    } catch (error) {
      done(error as Error)
    }
  }

/** A server signs with its RSA key in two ways; with SHA-1 it shall not. */
const signaturesOf = (type: string) => (type === 'ssh-rsa' ? ['rsa-sha2-512', 'rsa-sha2-256'] : [type]) as ['rsa-sha2-512']

/** `left`: what is left of the answer before. */
type BytesMost = number | 'left'

/** Calls back once, with whatever the package took for the answer: it looks at the number of the question, and not at what was asked. */
type AskServer = (done: (error?: Error | null, answer?: unknown) => void) => void
type IsAnswer<Answer> = (answer: unknown) => answer is Answer
type RemoteAnswer = <Answer>(what: string, isAnswer: IsAnswer<Answer>, ask: AskServer, bytesMost?: BytesMost) => Promise<Answer>

/** Told of each part of a file that has gone. */
type Pace = (what: string) => (bytes: number) => void

const isChannel = (answer: unknown): answer is SFTPWrapper => answer !== undefined
const isNothing = (answer: unknown): answer is undefined => answer === undefined
const isBytes = (answer: unknown): answer is Buffer => Buffer.isBuffer(answer)
const isPage = (answer: unknown): answer is FileEntryWithStats[] => Array.isArray(answer)
/** A server may leave out what it does not know. */
const isAttributes = (answer: unknown): answer is { readonly size?: number } =>
  typeof answer === 'object' && answer !== null && !isBytes(answer) && !isPage(answer)

const chunkBytes = 32_768
/** Servers give of a file what they are asked for, up to its end; one that gives it byte by byte costs us a question for each. */
const pieceBytesLeast = 1024
const regular = 0o100_000
const kindOfFile = 0o170_000
/** What the end of a list or a file is said with, and what is not there (draft-ietf-secsh-filexfer-02, 7). */
const statusEnd = 1
const statusNoFile = 2

/** Without it the package takes `.` and `..` out of a page before it has looked whether it is one. */
type AsksWhole = { readdir(handle: Buffer, how: { readonly full: true }, done: Parameters<AskServer>[0]): void }

function filesOf(channel: SFTPWrapper, answer: RemoteAnswer, pace: Pace, limits: SftpLimits): Sftp {
  /** Undefined at the end. */
  const untilEnd = <Value>(...asked: Parameters<typeof answer<Value>>): Promise<Value | undefined> =>
    answer(...asked).catch((error: RemoteRefusal) => {
      if (error.status === statusEnd) return undefined
      throw error
    })
  const open = (path: string, flags: 'r' | 'wx') =>
    answer(`opening ${path}`, isBytes, done => channel.open(path, flags, { mode: 0o600 }, done))
  const close = (path: string, handle: Buffer) => answer(`closing ${path}`, isNothing, done => channel.close(handle, done))
  /** Below zero where the server does not say it: it is nobody's then. */
  const sizeOf = (path: string): Promise<number | undefined> =>
    answer(`looking at ${path}`, isAttributes, done => channel.stat(path, done)).then(
      ({ size = -1 }) => size,
      (error: RemoteRefusal) => {
        if (error.status === statusNoFile) return undefined
        throw error
      },
    )
  async function read(path: string, bytesMost: number): Promise<Buffer> {
    const chunks: Buffer[] = []
    await readEach(path, bytesMost, chunk => chunks.push(chunk))
    return Buffer.concat(chunks)
  }
  async function readEach(path: string, bytesMost: number, take: (chunk: Buffer) => unknown): Promise<void> {
    const handle = await open(path, 'r')
    // Without a size nothing is taken.
    const { size = -1 } = await answer(`looking at ${path}`, isAttributes, done => channel.fstat(handle, done))
    if (size > bytesMost) throw new SftpError(`${path} has ${size} bytes, more than ${bytesMost}`)
    const goesOn = pace(`reading ${path}`)
    let [length, count] = [0, 0]
    for (;;) {
      const at = length
      const chunk = await untilEnd(`reading ${path}`, isBytes, done => {
        const room = Buffer.alloc(chunkBytes)
        channel.read(handle, room, 0, chunkBytes, at, (error, count) => done(error, room.subarray(0, count)))
      })
      if (!chunk || chunk.length === 0) break
      await take(chunk)
      goesOn(chunk.length)
      length += chunk.length
      if (length > size) break
      if (++count > 16 + length / pieceBytesLeast) throw new SftpError(`${path} comes in too many pieces`, 'lost')
    }
    await close(path, handle)
    if (length !== size) throw new SftpError(`${path} should have ${size} bytes, and is still written to or cut off`)
  }
  async function holds(path: string, file: SentFile): Promise<boolean | undefined> {
    if ((await sizeOf(path)) === undefined) return undefined
    const same = comparison(file)
    try {
      await readEach(path, file.length, same.take)
    } catch (error) {
      // What is longer or still grows is another.
      if (error instanceof SftpError && error.about === 'file' && !(error instanceof RemoteRefusal)) return false
      throw error
    }
    return same.isWhole()
  }
  async function move(from: string, to: string): Promise<void> {
    await answer(`moving ${from} to ${to}`, isNothing, done => channel.rename(from, to, done))
  }
  /** Where the server has it no more, or lets nobody remove anything, nothing is lost. */
  async function removePart(path: string): Promise<void> {
    await answer(`removing ${path}`, isNothing, done => channel.unlink(path, done)).catch(error => {
      if (!(error instanceof RemoteRefusal)) throw error
    })
  }
  return {
    read,
    holds,
    move,
    async list(folder) {
      const allBytes = limits.answerBytes + limits.filesMost * limits.listedBytes
      const handle = await answer(`opening ${folder}`, isBytes, done => channel.opendir(folder, done))
      const found: FileEntryWithStats[] = []
      let isCut = true
      // A page without names would be no end either: the pages count as well as the names.
      for (let pages = 0; found.length < limits.filesMost && pages < limits.filesMost; pages++) {
        const ask: AskServer = done => (channel as unknown as AsksWhole).readdir(handle, { full: true }, done)
        const page = await untilEnd(`listing ${folder}`, isPage, ask, pages === 0 ? allBytes : 'left')
        if (!page) isCut = false
        if (!page) break
        found.push(...page)
      }
      await close(folder, handle)
      const files = found
        .filter(({ filename, longname, attrs }) => isPlainName(filename) && isPlainFile(attrs.mode, longname))
        .slice(0, limits.filesMost)
        .map(({ filename, attrs }) => ({ name: filename, bytes: attrs.size, modifiedAt: attrs.mtime }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
      return { files, isCut }
    },
    async put(path, file, { id, before, isOurs }) {
      if (before !== undefined) await removePart(partName(path, before))
      const there = await holds(path, file)
      if (there) return true
      if (there === false) throw new SftpError(`${path} is there already, and is not ours`)
      const part = partName(path, id)
      const handle = await open(part, 'wx')
      const goesOn = pace(`writing ${part}`)
      let length = 0
      for await (const chunk of chunksOf(file)) {
        await answer(`writing ${part}`, isNothing, done =>
          channel.write(handle, chunk, 0, chunk.length, length, error => done(error)),
        )
        goesOn(chunk.length)
        length += chunk.length
      }
      await close(part, handle)
      if (!(await isOurs())) {
        await removePart(part)
        return false
      }
      if ((await sizeOf(part)) !== file.length) throw new SftpError(`${part} was written, and has another length`)
      await move(part, path)
      return true
    },
  }
}

async function* chunksOf(file: SentFile): AsyncGenerator<Buffer> {
  for await (const piece of Buffer.isBuffer(file) ? [file] : file.pieces())
    for (let at = 0; at < piece.length; at += chunkBytes) yield piece.subarray(at, at + chunkBytes)
}

/** Whether what comes in whatever chunks is a file and nothing else. */
function comparison(file: SentFile): { take(there: Buffer): Promise<void>; isWhole(): boolean } {
  const chunks = chunksOf(file)
  let [ours, length, isSame] = [Buffer.alloc(0), 0, true]
  return {
    async take(there) {
      for (let at = 0; at < there.length && isSame; ) {
        if (ours.length === 0) ours = (await chunks.next()).value ?? ours
        const compared = Math.min(ours.length, there.length - at)
        isSame = compared > 0 && there.compare(ours, 0, compared, at, at + compared) === 0
        ours = ours.subarray(compared)
        at += compared
        length += compared
      }
    },
    isWhole: () => isSame && length === file.length,
  }
}

/** A name that leads nowhere else, moves no cursor, and is no part of a file that somebody writes. */
const isPlainName = (name: string): boolean => /^[^./\p{C}][^/\p{C}]{0,254}$/u.test(name) && !/\.(tmp|part|filepart)$/i.test(name)

/** Some servers give permissions alone, or none: then the line that they give for people says it as `ls` does, or nothing does, and it is asked for as a file. */
const isPlainFile = (mode: number | undefined, line: string): boolean => {
  const kind = (mode ?? 0) & kindOfFile
  return kind === 0 ? !/^[bcdlps][-rwxsStT]{9}/.test(line) : kind === regular
}

/** Of what a server says of an error, which cases and owed files keep. */
const wordsMost = 300

class RemoteRefusal extends SftpError {
  readonly status: number | undefined
  constructor(what: string, error: Error & { code?: number | string }) {
    super(`${what}: ${writtenBeginning(error.message, wordsMost)}`)
    this.status = typeof error.code === 'number' ? error.code : undefined
  }
}

function asSftpError(error: Error & { level?: string; code?: string }, knownHost: boolean): SftpError {
  if (!knownHost) return new SftpError('the server shows another host key than the one that is known', 'identity')
  if (error.level === 'client-authentication') return new SftpError('the server refuses our key', 'identity')
  return new SftpError(error.code ?? writtenBeginning(error.message, wordsMost), 'lost')
}
