// Mail by SMTP. A password, and what is told, never leaves this machine in clear.

import { isThisMachine } from './network.ts'
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
  const secure = url.protocol === 'smtps:'
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (secure ? 465 : 587)),
    secure,
    ...(url.username !== '' && { auth: { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) } }),
  }
}

const stepMilliseconds = 10_000

/** `ca`: whom to believe beside those whom Node believes. */
export function mailer(server: MailServer, ca?: Buffer): SendMail {
  const isHere = server.host === 'localhost' || isThisMachine(server.host)
  return async ({ from, to, subject, text, id }, signal) => {
    const { createTransport } = await import('nodemailer') // most processes never need it
    const transport = createTransport({
      ...server,
      requireTLS: !server.secure && !isHere,
      ignoreTLS: false,
      connectionTimeout: stepMilliseconds,
      greetingTimeout: stepMilliseconds,
      socketTimeout: stepMilliseconds,
      tls: { ...spokenTls, ...(ca && { ca }) },
      disableFileAccess: true,
      disableUrlAccess: true,
    })
    try {
      const { rejected } = await transport.sendMail({ from, to: [...to], subject, text, messageId: id, signal })
      if (rejected.length > 0) throw new Error(`the mail server refused ${rejected.length} of ${to.length} addresses`)
    } finally {
      transport.close()
    }
  }
}
