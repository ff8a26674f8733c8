// What a long file costs is paid in steps, so that payments have their turn between them: nobody waits because a bank has sent much, or nonsense.

import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Random } from '../platform/clock.ts'
import type { Keys } from '../vault/keys.ts'
import { beginSeal } from '../vault/seal.ts'

/** Work that stops after each row. */
export type Steps<Value> = Generator<undefined, Value>

/** Everybody else who waits goes first. */
export const othersTurn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** Some milliseconds: a payment has ten turns and more before it is answered. */
const stepsOfTurn = 100

export async function inTurns<Value>(steps: Steps<Value>): Promise<Value> {
  for (let count = 1; ; count++) {
    const { done, value } = steps.next()
    if (done) return value
    if (count % stepsOfTurn === 0) await othersTurn()
  }
}

/** A multiple of three, so that base64 of pieces is that of the whole. */
const pieceBytes = 3 * 2 ** 18

function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes)
}

/** SHA-256. */
export async function fileHash(bytes: Buffer): Promise<Buffer> {
  const hash = createHash('sha256')
  for (const piece of piecesOf(bytes)) {
    hash.update(piece)
    if (bytes.length > pieceBytes) await othersTurn()
  }
  return hash.digest()
}

const packed = promisify(gzip)

/** Packed, as base64. */
export async function sealFile(keys: Keys, random: Random, place: string, bytes: Buffer): Promise<Buffer> {
  const sealing = beginSeal(keys, random, place)
  for (const piece of piecesOf(await packed(bytes))) {
    sealing.add(piece.toString('base64'))
    await othersTurn()
  }
  return sealing.end()
}
