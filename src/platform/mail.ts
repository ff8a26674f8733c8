// Mail by SMTP. A password, and what is told, never leaves this machine in clear.

import net from 'node:net'
import { Duplex } from 'node:stream'
import { decoded, isThisMachine } from './network.ts'
import { spokenTls } from './tls.ts'

export type MailServer = {
  readonly host: string
  readonly port: number
  /** TLS from the first byte; otherwise STARTTLS is demanded, but for a server on this machine. */
  readonly secure: boolean
  readonly auth?: { readonly user: string; readonly pass: string }
}

export type Mail = {
  readonly from: string
  readonly to: readonly string[]
  readonly subject: string
  readonly text: string
  /** Of one mail that is sent twice a server that remembers it keeps one. */
  readonly id: string
}

/** Rejects when the server did not take it for all, or not in time. */
export type SendMail = (mail: Mail, signal: AbortSignal) => Promise<void>

/** `smtp://` or `smtps://` with a host, and perhaps user, password and port; undefined when it is none. */
export function readMailServer(text: string): MailServer | undefined {
  const url = URL.parse(text)
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === '' || /./.test(url.search + url.hash + url.pathname.slice(1)))
    return undefined
  if ((url.username === '') !== (url.password === '')) return undefined
  const [user, pass] = [decoded(url.username), decoded(url.password)]
  if (user === undefined || pass === undefined) return undefined
  const secure = url.protocol === 'smtps:'
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (secure ? 465 : 587)),
    secure,
    ...(user !== '' && { auth: { user, pass } }),
  }
}

const stepMilliseconds = 10_000
/** A server says some hundred bytes, and a certificate. */
const answerMost = 64 * 1024

/** A connection of which no more is read: each line that a server says costs time, asked for or not. */
class ShortConnection extends Duplex {
  readonly #socket: net.Socket
  constructor(socket: net.Socket) {
    super()
    this.#socket = socket
    let left = answerMost
    socket.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) this.destroy(new Error('the mail server says more than a mail needs'))
      else if (!this.push(chunk)) socket.pause()
    })
    socket.on('end', () => this.push(null))
    socket.on('error', error => this.destroy(error))
    socket.on('close', () => this.destroy())
    socket.on('timeout', () => this.emit('timeout'))
  }
  /** What a socket has beside it, and is asked of one. */
  readonly setTimeout = (milliseconds: number): void => void this.#socket.setTimeout(milliseconds)
  override _read(): void {
    this.#socket.resume()
  }
  override _write(chunk: Buffer, _: string, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }
  override _final(done: () => void): void {
    this.#socket.end(done)
  }
  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    // TLS above it tells first why it ended.
    if (this.#socket.closed) done(error)
    else this.#socket.once('close', () => done(error)).destroy()
  }
}

/** Connects, in time. */
function openConnection({ host, port }: MailServer, signal: AbortSignal): Promise<ShortConnection> {
  return new Promise((resolve, reject) => {
    const socket = net.connect({ host, port })
    const giveUp = () => socket.destroy(new Error('the mail server does not answer'))
    socket.setTimeout(stepMilliseconds, giveUp)
    signal.addEventListener('abort', giveUp, { once: true })
    socket.once('error', reject)
    socket.once('connect', () => {
      socket.removeListener('timeout', giveUp).removeListener('error', reject)
      resolve(new ShortConnection(socket))
    })
  })
}

/** `ca`: whom to believe beside those whom Node believes. */
export function mailer(server: MailServer, ca?: Buffer): SendMail {
  const isHere = server.host === 'localhost' || isThisMachine(server.host)
  return async ({ from, to, subject, text, id }, signal) => {
    const { createTransport } = await import('nodemailer') // most processes never need it
    signal.throwIfAborted()
    const connection = await openConnection(server, signal)
    const transport = createTransport({
      ...server,
      getSocket: (_: unknown, take: (error: null, socket: { connection: net.Socket }) => void) =>
        take(null, { connection: connection as Duplex as net.Socket }),
      requireTLS: !server.secure && !isHere,
      ignoreTLS: false,
      greetingTimeout: stepMilliseconds,
      socketTimeout: stepMilliseconds,
      tls: { ...spokenTls, ...(ca && { ca }) },
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    try {
      const { rejected } = await transport.sendMail({ from, to: [...to], subject, text, messageId: id, signal })
      if (rejected.length > 0) throw new Error(`the mail server refused ${rejected.length} of ${to.length} addresses`)
    } catch (error) {
      // What it says there may be what it was told.
      const { code, responseCode } = error as { code?: string; responseCode?: number }
      throw code === 'EAUTH' ? new Error(`the mail server refuses user and password (${responseCode ?? 'no answer'})`) : error
    } finally {
      transport.close()
      connection.destroy()
    }
  }
}
