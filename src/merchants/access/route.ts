// What a proxy before several cells knows a token by. It can make no keyed hash, because it must not have the key.

import { hash } from 'node:crypto'
import { legacyParts } from './legacy.ts'
import { bitsOfChance, tokenBits } from './secretStrength.ts'

/** SHA-256 in hex; null for a secret that could be found by trying, which needs an entityId to be routed by. */
export const routeHash = (sent: string): string | null =>
  legacyParts(sent) || bitsOfChance(sent) < tokenBits ? null : hash('sha256', sent)
