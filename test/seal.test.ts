// Sealed card data: what stands in it, and that it opens nowhere but at its own payment, with its own key, and unchanged; and the file of that key.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { systemRandom } from '../src/platform/clock.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { sealedCards } from '../src/vault/cards.ts'
import { makeKeys, readKeyFile } from '../src/vault/keys.ts'
import { recordsOfKey, SealError, seal, unseal } from '../src/vault/seal.ts'
import { type Body, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'

/** Of version 1, under a key of 32 ones. */
const sealedBefore =
  '01916501cba967c4f59eff8048e59a4a3cc7d4d22c589e1cfc44ff3cd54ddb59fcb8e1cd8f75fa2ee574e8d25f65213b067966dc255d2573d19e27' +
  '3a3ec9eeea4483f5ed53709e2821ba3df73fef1ce4416c22b66128ae33f95ab967d6da4bb8428f19f29fb43b0641c6e5'

describe('a sealed record', () => {
  const sealed = seal(testKeys, systemRandom, 'here', 'what is secret')
  it('opens at its place, with any key that the installation still has', () => {
    assert.equal(unseal(testKeys, 'here', sealed), 'what is secret')
    const rotated = makeKeys([Buffer.alloc(32, 7), Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
    assert.equal(unseal(rotated, 'here', sealed), 'what is secret')
  })
  it('does not open at another place, with another key, or when any byte was changed', () => {
    assert.throws(() => unseal(testKeys, 'there', sealed), SealError)
    assert.throws(() => unseal(makeKeys([Buffer.alloc(32, 7)], Buffer.alloc(32, 2)), 'here', sealed), SealError)
    for (let at = 0; at < sealed.length; at++) {
      const changed = Buffer.from(sealed)
      changed[at]! ^= 1
      assert.throws(() => unseal(testKeys, 'here', changed), SealError, `byte ${at}`)
    }
  })
})

describe('the key of some records', () => {
  const wrappedIn = (record: Buffer): string => record.toString('hex', 5, 65)
  const keys = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))

  it('seals a thousand, each with bytes of its own, and opens in another process', () => {
    const records = Array.from({ length: recordsOfKey }, () => seal(keys, systemRandom, 'here', 'the same'))
    assert.equal(new Set(records.map(wrappedIn)).size, 1)
    assert.equal(new Set(records.map(one => one.toString('hex', 65))).size, recordsOfKey)
    const next = seal(keys, systemRandom, 'here', 'the same')
    assert.notEqual(wrappedIn(next), wrappedIn(records[0]!))
    const elsewhere = makeKeys([Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
    for (const record of [records[0]!, records.at(-1)!, next]) assert.equal(unseal(elsewhere, 'here', record), 'the same')
  })

  it('is another one when the seal key was changed', () => {
    const rotated = makeKeys([Buffer.alloc(32, 7), Buffer.alloc(32, 1)], Buffer.alloc(32, 2))
    assert.notEqual(wrappedIn(seal(rotated, systemRandom, 'here', 'x')), wrappedIn(seal(keys, systemRandom, 'here', 'x')))
    assert.throws(() => unseal(keys, 'here', seal(rotated, systemRandom, 'here', 'x')), SealError)
  })

  it('was bound to the place of its record before: such records open as ever, there alone', () => {
    const record = Buffer.from(sealedBefore, 'hex')
    assert.equal(unseal(keys, 'here', record), 'what is secret')
    assert.throws(() => unseal(keys, 'there', record), SealError)
    record[0] = 2
    assert.throws(() => unseal(keys, 'here', record), SealError)
  })
})

it('a key file that others may read is refused', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-keys-'))
  const path = join(folder, 'seal.key')
  writeFileSync(path, 'ab'.repeat(32))
  for (const mode of [0o640, 0o620, 0o610, 0o604, 0o602, 0o601]) {
    chmodSync(path, mode)
    assert.throws(() => readKeyFile(path, 'SEAL_KEY_FILE'), OperatorError, mode.toString(8))
  }
  chmodSync(path, 0o600)
  assert.equal(readKeyFile(path, 'SEAL_KEY_FILE'), 'ab'.repeat(32))
  rmSync(folder, { recursive: true })
})

describe('the card beside a payment', () => {
  let gateway: TestGateway
  let host: Awaited<ReturnType<typeof testHost>>
  let file: ReturnType<typeof acquirersFile>
  before(async () => {
    host = await testHost()
    file = acquirersFile({ north: [host.port] })
    gateway = await testGateway({ environment: { ACQUIRERS_FILE: file.path } })
  })
  after(async () => {
    await gateway.stop()
    await host.stop()
    file.remove()
  })
  const pay = async (number: string): Promise<Body> =>
    (await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', 'card.number': number })).body
  const sealedOf = async (id: string): Promise<Buffer> =>
    (await gateway.pool.query('select sealed from sealed_cards where payment_id = $1', [id])).rows[0].sealed

  it('is sealed without its CVV', async () => {
    const { id } = await pay('4200000000000000')
    const card = JSON.parse(unseal(testKeys, sealedCards.bound(sandbox.merchantId, id), await sealedOf(id)))
    assert.deepEqual(Object.keys(card).sort(), ['expiryMonth', 'expiryYear', 'holder', 'number'])
  })

  it('put beside another payment opens no more: nothing goes out under that number', async () => {
    const [mine, other] = [await pay('4200000000000000'), await pay('4242424242424242')]
    await gateway.pool.query('update sealed_cards set sealed = $2 where payment_id = $1', [mine.id, await sealedOf(other.id)])
    const before = host.counters.received
    const { status } = await gateway.refer(mine.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR' })
    assert.equal(status, 500)
    assert.equal(host.counters.received, before)
  })
})
