// What we have said to a browser and know again when it comes back: sixteen bytes, an end and a keyed hash of both. It is stored nowhere, so that nobody fills a
// table by asking.

import { timingSafeEqual } from 'node:crypto'
import { keyedHashes } from '../vault/keys.ts'
import type { StaffParts } from './parts.ts'

const [saidBytes, timeBytes, hashBytes] = [16, 6, 16]

/** Base64url. `purpose`: for what it is known again, and for nothing else. `said`: 32 hex characters. */
export function makeProof(
  parts: Pick<StaffParts, 'keys' | 'clock'>,
  purpose: string,
  said: string,
  milliseconds: number,
): string {
  const ends = Buffer.alloc(timeBytes)
  ends.writeUIntBE(parts.clock.real() + milliseconds, 0, timeBytes)
  const proven = Buffer.concat([Buffer.from(said, 'hex'), ends])
  return Buffer.concat([proven, hashesOf(parts, purpose, proven)[0]!]).toString('base64url')
}

/** If it is ours, for this, and has not ended. */
export function readProof(
  parts: Pick<StaffParts, 'keys' | 'clock'>,
  purpose: string,
  text: string,
): { readonly said: string; readonly ends: number } | undefined {
  const bytes = Buffer.from(text, 'base64url')
  // In one spelling alone: what was answered is known by it.
  if (bytes.length !== saidBytes + timeBytes + hashBytes || bytes.toString('base64url') !== text) return undefined
  const [proven, hash] = [bytes.subarray(0, saidBytes + timeBytes), bytes.subarray(saidBytes + timeBytes)]
  if (!hashesOf(parts, purpose, proven).some(one => timingSafeEqual(one, hash))) return undefined
  const ends = proven.readUIntBE(saidBytes, timeBytes)
  return parts.clock.real() < ends ? { said: proven.toString('hex', 0, saidBytes), ends } : undefined
}

const hashesOf = ({ keys }: Pick<StaffParts, 'keys'>, purpose: string, proven: Buffer): readonly Buffer[] =>
  keyedHashes(keys, 'staff proof', `${purpose} ${proven.toString('hex')}`).map(hash => hash.subarray(0, hashBytes))
