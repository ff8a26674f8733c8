// Finds the addresses of a name for calls to merchants' servers. The system's own way holds one of the few threads of the process for as long as
// a name server is silent, and the same threads read files and derive keys. So name servers are asked directly, which holds none; the system is
// asked only for names that these do not know (search domains, names of the local network): for one at a time of those that it knew before, and for one of
// all others, of which strangers can make many.

import type { LookupAddress } from 'node:dns'
import { lookup, Resolver } from 'node:dns/promises'
import { readFileSync, statSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Resolve } from './address.ts'

export type Sources = {
  /** Name servers as `address:port`; those of the system when absent. */
  readonly servers?: () => readonly string[]
  /** The file that names them: they are read again when it is another. */
  readonly serversFile?: string
  readonly hostsFile?: string
  readonly system?: Resolve
}

const timeoutMilliseconds = 3000
const knownMost = 10_000
/** Names of a line that wait for the system, which may be silent for each of them. */
const waitingMost = 100
/** Answers that leave it open whether the system knows the name. */
const unknownThere: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED'])

export function resolver({
  servers,
  serversFile = '/etc/resolv.conf',
  hostsFile = '/etc/hosts',
  system = ask,
}: Sources = {}): Resolve {
  let last = ''
  let names: Resolver | undefined
  function readServers(): Resolver {
    const now = stateOf(serversFile)
    if (names && (now === last || now === '')) return names
    last = now
    names = new Resolver({ timeout: timeoutMilliseconds, tries: 2 })
    if (servers) names.setServers(servers())
    return names
  }
  const running = new Map<string, Promise<readonly LookupAddress[]>>()
  const knownToSystem = new Set<string>()
  const waiting = { known: 0, others: 0 }
  const lastOfSystem: Record<'known' | 'others', Promise<unknown>> = { known: Promise.resolve(), others: Promise.resolve() }

  async function find(name: string): Promise<readonly LookupAddress[]> {
    const listed = inHostsFile(hostsFile, name)
    if (listed.length > 0) return listed
    const names = readServers()
    const answers = await Promise.allSettled([names.resolve4(name), names.resolve6(name)])
    const found = answers.flatMap(answer => (answer.status === 'fulfilled' ? answer.value : [])).map(asAddress)
    if (found.length > 0) return found
    const failure = answers.map(answer => (answer as PromiseRejectedResult).reason).find(({ code }) => !unknownThere.has(code))
    if (failure) throw failure
    const line = knownToSystem.has(name) ? 'known' : 'others'
    if (waiting[line] >= waitingMost) throw Object.assign(new Error('too many names are asked for'), { code: 'EAI_AGAIN' })
    waiting[line]++
    const mine = lastOfSystem[line].then(() => system(name)).finally(() => waiting[line]--)
    lastOfSystem[line] = mine.catch(() => {})
    const addresses = await mine
    if (addresses.length > 0 && knownToSystem.size < knownMost) knownToSystem.add(name)
    return addresses
  }

  // Many deliveries to one name ask for it once.
  return name => {
    const asked = running.get(name)
    if (asked) return asked
    const asking = find(name).finally(() => running.delete(name))
    running.set(name, asking)
    return asking
  }
}

/** Another when the file is written, or another in its place; '' while there is none. */
function stateOf(path: string): string {
  try {
    const { dev, ino, mtimeMs, size } = statSync(path)
    return `${dev} ${ino} ${mtimeMs} ${size}`
  } catch {
    return ''
  }
}

const ask: Resolve = name => lookup(name, { all: true })

const asAddress = (address: string): LookupAddress => ({ address, family: isIP(address) })

/** `127.0.0.1 localhost receiver # ours`, a line each. */
function inHostsFile(path: string, name: string): LookupAddress[] {
  let text = ''
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    // Not every system has one.
  }
  return text
    .split('\n')
    .map(line => line.replace(/#.*/, '').trim().split(/\s+/))
    .filter(([address, ...aliases]) => isIP(address!) !== 0 && aliases.some(alias => alias.toLowerCase() === name.toLowerCase()))
    .map(([address]) => asAddress(address!))
}
