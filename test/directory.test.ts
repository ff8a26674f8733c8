// The directory of who may act for whom is read again for every change that anybody makes: many changes at once cost few readings.

import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { type Directory, openDirectory } from '../src/merchants/directory.ts'
import { systemClock } from '../src/platform/clock.ts'
import type { Database } from '../src/platform/database/connect.ts'
import { testKeys } from './support/gateway.ts'

describe('reading the directory again', () => {
  let directory: Directory
  let heard: () => void
  /** Readings that have begun; each waits until it is given its end. */
  let readings: { ends(name: string): void; fails(error: Error): void }[]
  let errors: Error[]
  /** What waits for its time. */
  let later: (() => void)[]
  const entity = (name: string) => ({
    id: 'psp',
    kind: 'psp',
    parentId: null,
    merchantId: null,
    name,
    settings: {},
    clockOffset: 0,
  })
  const turnOfAll = () => new Promise(resolve => setImmediate(resolve))
  const nameNow = () => directory.entity('psp')?.name

  beforeEach(async () => {
    readings = []
    errors = []
    let isOpen = false
    const query = async (text: string) => {
      if (!text.includes('from entities')) return { rows: [] }
      if (!isOpen) return { rows: [entity('first')] }
      return new Promise((resolve, reject) =>
        readings.push({ ends: name => resolve({ rows: [entity(name)] }), fails: error => reject(error) }),
      )
    }
    const listen = async (_: string, notice: () => void) => {
      heard = notice
      return { stop: async () => {} }
    }
    later = []
    const never = { cancel: () => {} }
    const wait = (_: number, work: () => void) => {
      later.push(work)
      return never
    }
    const clock = { ...systemClock, every: () => never, after: wait }
    const database = { directory: { query }, listen } as unknown as Database
    directory = await openDirectory(database, testKeys, clock as unknown as typeof systemClock, error => errors.push(error))
    isOpen = true
  })

  it('a hundred notices while it is read are one more reading', async () => {
    heard()
    await turnOfAll()
    for (let notice = 0; notice < 100; notice++) heard()
    await turnOfAll()
    assert.equal(readings.length, 1, 'one at a time')
    readings[0]!.ends('second')
    await turnOfAll()
    assert.equal(readings.length, 2)
    readings[1]!.ends('third')
    await turnOfAll()
    assert.equal(nameNow(), 'third')
    assert.equal(readings.length, 2)
  })

  it('whoever asks while it is read gets a reading that began after that', async () => {
    heard()
    await turnOfAll()
    let seen: string | undefined
    const asked = directory.reload().then(() => (seen = nameNow()))
    readings[0]!.ends('read before')
    await turnOfAll()
    assert.equal(seen, undefined, 'the reading under way is not enough')
    readings[1]!.ends('read after')
    await asked
    assert.equal(seen, 'read after')
  })

  it('a reading that fails is told once, and the next one goes on', async () => {
    heard()
    await turnOfAll()
    const asked = assert.rejects(directory.reload(), /second is gone/)
    for (let notice = 0; notice < 10; notice++) heard()
    readings[0]!.fails(new Error('first is gone'))
    await turnOfAll()
    readings[1]!.fails(new Error('second is gone'))
    await asked
    await turnOfAll()
    assert.deepEqual(
      errors.map(({ message }) => message),
      ['first is gone', 'second is gone'],
    )
    // What was heard is not said again.
    assert.equal(later.length, 1)
    later[0]!()
    await turnOfAll()
    readings[2]!.ends('back')
    await turnOfAll()
    assert.deepEqual([nameNow(), later.length], ['back', 1])
  })

  it('one that was closed reads nothing more', async () => {
    heard()
    await turnOfAll()
    await directory.close()
    readings[0]!.fails(new Error('it is gone'))
    await turnOfAll()
    assert.equal(later.length, 0)
  })
})
