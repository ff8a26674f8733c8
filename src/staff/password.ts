// Passwords: argon2id of Node with the least that OWASP advises (19 MiB, two passes), written as PHC strings, so that the costs can grow later.

import { argon2, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { bitsOfChance } from '../merchants/access/secretStrength.ts'
import type { Random } from '../platform/clock.ts'

const costs = { memory: 19_456, passes: 2, parallelism: 1 } as const
const hashBytes = 32
const saltBytes = 16

export const passwordLeast = 14
const passwordMost = 128
/** What many would guess holds less, whatever its length. */
const bitsLeast = 40

/** The rule that a password breaks. No change is ever forced: the second factor is always asked for. */
export function passwordRefusal(password: string, name: string): 'short' | 'long' | 'oneKind' | 'guessable' | undefined {
  const length = [...password].length
  if (length < passwordLeast) return 'short'
  if (length > passwordMost) return 'long'
  if (!/\p{L}/u.test(password) || !/\p{N}/u.test(password)) return 'oneKind'
  // Of whom it is says nothing that others do not know.
  const own = new Set(name.split(/[@.+_-]/).filter(part => part.length > 3))
  let rest = password.toLowerCase()
  for (const part of own) rest = rest.replaceAll(part, '')
  return bitsOfChance(rest) < bitsLeast ? 'guessable' : undefined
}

export async function hashPassword(random: Random, password: string): Promise<string> {
  const salt = random.bytes(saltBytes)
  const { memory, passes, parallelism } = costs
  const hash = await derived(password, salt, costs)
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(salt)}$${base64(hash)}`
}

/** Takes as long for nobody (`undefined`) as for somebody, and is never true of nobody. */
export async function isPassword(stored: string | null | undefined, password: string): Promise<boolean> {
  const found = phc.exec(stored ?? nobodys)!
  const [memory, passes, parallelism] = found.slice(1, 4).map(Number) as [number, number, number]
  const hash = await derived(password, Buffer.from(found[4]!, 'base64'), { memory, passes, parallelism })
  return timingSafeEqual(hash, Buffer.from(found[5]!, 'base64')) && typeof stored === 'string'
}

const phc = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/
const nobodys = `$argon2id$v=19$m=${costs.memory},t=${costs.passes},p=${costs.parallelism}$${'A'.repeat(22)}$${'A'.repeat(43)}`
const base64 = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

const hashing = promisify(argon2)
let last: Promise<unknown> = Promise.resolve()

/** One at a time: they would take Node's threads from files and names that everything else waits for. Few wait here: most do in the line of attempts.ts. */
function derived(password: string, salt: Buffer, { memory, passes, parallelism }: Record<keyof typeof costs, number>) {
  const message = password.normalize('NFKC')
  const next = last.then(() => hashing('argon2id', { message, nonce: salt, memory, passes, parallelism, tagLength: hashBytes }))
  last = next.catch(() => {})
  return next
}
