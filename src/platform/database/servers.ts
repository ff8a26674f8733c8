// One database on several servers: one takes writes, the others follow it, and after a failure another takes them. Each new connection looks for it;
// the package `pg` knows one server only.

import { existsSync } from 'node:fs'
import pg from 'pg'
import { isFile } from '../files.ts'
import { decoded } from '../network.ts'

/** `postgresql://user@a:5432,b:5433/db?target_session_attrs=read-write&…` → a URL for each server, without that parameter: it is what we ask for anyway. */
export function serversOf(url: string): string[] {
  const [, scheme, servers, rest] = /^(postgres(?:ql)?:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/.exec(url) ?? []
  if (servers === undefined) return [url]
  const others = rest!.replace(/([?&])target_session_attrs=[^&]*(&|$)/, (_, first, next) => (next === '&' ? first : ''))
  return servers.split(',').map(server => scheme + server + others)
}

/** What `target_session_attrs` says of a URL; absent = as it must be. */
export const sessionWish = (url: string): string | undefined => /[?&]target_session_attrs=([^&]*)/.exec(url)?.[1]

const queryOf = (url: string): string => /\?(.*)$/.exec(url)?.[1] ?? ''
/** As the driver reads them: a second ? is a part of the first name. */
export const parametersOf = (url: string): URLSearchParams => new URLSearchParams(`?${queryOf(url)}`)

const unencoded = 'is no address: in a password #, /, ? and @ are written %23, %2F, %3F and %40, and a port is from 1 to 65535'

/** What is wrong with the address of a database, behind the name of its setting: the driver says it late and without that name, and of some ports nothing at all. */
export function addressRefusal(url: string): string | undefined {
  if (!/^postgres(ql)?:\/\/\S+$/.test(url)) return 'must begin with postgres:// or postgresql://'
  // The driver takes no parameter behind a #, and of several @ the last: what is before it would be asked for as a host.
  if (url.includes('#') || /^[^?]*@[^?]*@/.test(url) || /^[^?]*\/\/[^?@]*\/[^?]*@/.test(url)) return unencoded
  // A % that encodes nothing stands for itself there, and so does each other one beside it.
  if (/%(?![0-9a-f]{2})/i.test(url) && /%[0-9a-f]{2}/i.test(url))
    return 'has a % that encodes nothing beside others that encode something: it is written %25'
  if (decoded(url.replace(/%(?![0-9a-f]{2})/gi, '%25')) === undefined) return 'has percent-encoded bytes that are no UTF-8'
  const refusal = parametersRefusal(url)
  if (refusal !== undefined) return refusal
  try {
    const ports = clientsFor(url).map(({ port }) => port)
    if (ports.every(port => port >= 1 && port <= 65_535)) return undefined
    return 'has a port that is none: it must be from 1 to 65535 (where an address has none, that of PGPORT is taken)'
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'ERR_INVALID_URL' ? unencoded : `cannot be used: ${message}`
  }
}

/** As the driver reads the address; nothing is opened. Throws what the driver says of one that it cannot read. */
const clientsFor = (url: string): pg.Client[] => serversOf(url).map(connectionString => new pg.Client({ connectionString }))

/** Of an address that is refused: none. */
const reached = (url: string): pg.Client[] => (addressRefusal(url) === undefined ? clientsFor(url) : [])

/** The server of the address on another machine, if there is one, that is spoken to without TLS, or whose certificate nobody looks at, and nothing in the address says that it is meant. */
export function serverWithoutTls(url: string): string | undefined {
  const parameters = parametersOf(url)
  if (parameters.has('sslmode') || parameters.has('ssl')) return undefined
  return reached(url).find(client => !asksWhoAnswers(client) && !/^(\/|localhost$|127(\.\d+){3}$|\[?::1\]?$)/.test(client.host))
    ?.host
}

/** Of an address that says nothing the driver does as PGSSLMODE says. */
function asksWhoAnswers({ ssl }: pg.Client): boolean {
  const how = ssl as unknown as boolean | { readonly rejectUnauthorized?: boolean }
  return typeof how === 'object' ? how.rejectUnauthorized !== false : how
}

/** The folders of the address in which servers listen on a unix socket: whoever may put another there is told the password. */
export const socketFoldersOf = (url: string): string[] => reached(url).flatMap(({ host }) => (host.startsWith('/') ? [host] : []))

export const fileParameters = ['sslrootcert', 'sslcert', 'sslkey']
const [text, whole, word] = [/^/, /^\d+$/, /^[\w-]+$/]
/** What may stand behind each: what is meant for another one, behind a ; for example, would be a part of the one before. */
const knownParameters: Readonly<Record<string, RegExp>> = {
  ...named(text, 'host', 'user', 'password', 'application_name', 'fallback_application_name', 'options', ...fileParameters),
  ...named(whole, 'port', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'query_timeout'),
  ...named(word, 'client_encoding', 'target_session_attrs', 'sslnegotiation'),
  // The driver passes over these, and they change nothing of whom it speaks to, and how.
  ...named(whole, 'connect_timeout', 'keepalives', 'keepalives_idle', 'keepalives_interval', 'keepalives_count'),
  ...named(word, 'tcp_user_timeout', 'gssencmode', 'load_balance_hosts'),
  // The driver would take the word false for yes, and end the process where the server speaks TLS.
  ssl: /^(true|1|0)$/,
  uselibpqcompat: /^(true|false|1|0)$/,
  sslmode: /^(disable|prefer|require|verify-ca|verify-full|no-verify)$/,
}
function named(value: RegExp, ...names: readonly string[]): Record<string, RegExp> {
  return Object.fromEntries(names.map(name => [name, value]))
}

/** The driver passes over a name that it does not know: `sslMode=verify-full` would connect without TLS. And it waits for a pipe. */
function parametersRefusal(url: string): string | undefined {
  const parameters = parametersOf(url)
  for (const [name, value] of parameters) {
    const known = Object.hasOwn(knownParameters, name) ? knownParameters[name] : undefined
    if (!known)
      // Behind an @ stands the host: what is before it would be a piece of the password.
      return /^\w{1,40}$/.test(name) && !queryOf(url).includes('@')
        ? `has a parameter that is not known: ${name}`
        : 'has a ? with no name of a parameter behind it: in a password ? is written %3F'
    if (
      !queryOf(url)
        .split('&')
        .some(pair => pair.split('=')[0] === name)
    )
      return `has the name of a parameter encoded: ${name}`
    if (parameters.getAll(name).length > 1) return `has the parameter ${name} twice`
    if (value !== '' && !known.test(value)) return `has a value of ${name} that it cannot have`
    if (name.startsWith('ssl') && value === '') return `has a parameter without a value: ${name}`
    if (fileParameters.includes(name) && existsSync(value) && !isFile(value)) return `names ${value} as ${name}, which is no file`
  }
}

/** The whole look, so that a connection is still made within the time that it has. */
const lookMilliseconds = 3000

/** The kind of client that reaches a database: where it has several servers, one that connects to the one that takes writes. */
export function clientFor({ connectionString = '' }: pg.PoolConfig): typeof pg.Client {
  const servers = serversOf(connectionString)
  if (servers.length === 1) return pg.Client
  return class extends pg.Client {
    readonly #options: pg.ClientConfig

    constructor(options: pg.ClientConfig = {}) {
      super({ ...options, connectionString: servers[0]! })
      this.#options = options
    }

    // biome-ignore lint/suspicious/noExplicitAny: with a callback it returns nothing, without one a promise
    override connect(done?: any): any {
      const connected = lookFor(servers, this.#options).then(({ host, port }) => {
        Object.assign(this, { host, port })
        // By these the driver finds a password in the file of passwords.
        Object.assign((this as unknown as { readonly connectionParameters: object }).connectionParameters, { host, port })
        return super.connect()
      })
      if (done === undefined) return connected
      connected.then(() => done(), done)
    }
  }
}

type ServerPlace = { readonly host: string; readonly port: number }

// Many connections are opened at once after a failure: they look together.
const looks = new Map<string, Promise<ServerPlace>>()

function lookFor(servers: readonly string[], options: pg.ClientConfig): Promise<ServerPlace> {
  const name = servers.join()
  const looking = looks.get(name) ?? whoTakesWrites(servers, options).finally(() => looks.delete(name))
  looks.set(name, looking)
  return looking
}

/** The first that says so: none is waited for that is silent. */
async function whoTakesWrites(servers: readonly string[], options: pg.ClientConfig): Promise<ServerPlace> {
  const asked = servers.map(async connectionString => {
    const client = new pg.Client({ ...options, connectionString, connectionTimeoutMillis: lookMilliseconds })
    client.on('error', () => {}) // the statement fails with it
    const { host, port } = client
    try {
      await client.connect()
      const { rows } = await client.query({
        text: 'show transaction_read_only',
        query_timeout: lookMilliseconds,
      } as pg.QueryConfig)
      if (rows[0].transaction_read_only === 'off') return { host, port }
      throw new Error('it takes no writes')
    } catch (error) {
      throw new Error(`${host}:${port}: ${(error as Error).message}`)
    } finally {
      client.end().catch(() => {})
    }
  })
  return Promise.any(asked).catch((failed: AggregateError) => {
    throw new Error(`no server takes writes (${failed.errors.map((error: Error) => error.message).join('; ')})`)
  })
}
