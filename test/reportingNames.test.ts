// Which database is that of reports, wherever the command that makes it one was ended.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { inTransaction } from '../src/platform/database/connect.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { published, takingText } from '../src/start/reporting/published.ts'
import { forgetSource, prepareTables, subscriberRefusals } from '../src/start/reporting/subscribe.ts'
import { refuseReporting } from '../src/start/reporting/whose.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { makeDatabase, withPool } from './support/database.ts'
import { testKeys } from './support/gateway.ts'

it('whose a database is is known at whatever step the command was ended', async () => {
  const { connection, drop } = await makeDatabase()
  await withPool(connection, async db => {
    const isGateways = async () => (await subscriberRefusals(db, 1)).some(one => one.startsWith('A gateway has used'))
    await refuseReporting(db) // it is nobody's yet
    assert.equal(await isGateways(), false)
    const [take, ...others] = takingText('public', published[0]!)
    await db.query(take!)
    await refuseReporting(db)
    const steps = {
      'the first trigger': () => db.query(others[0]!),
      'the tables': () => prepareTables(db),
      'the mode': () => keepMode(db, 'sandbox', Date.now()),
      'a cell': () => db.query(`insert into reporting_sources values ('one', now())`),
      'the end of the last cell': () => forgetSource(db, 'one'),
    }
    for (const [step, go] of Object.entries(steps)) {
      await go()
      const names = step === 'a cell' ? 'one' : 'none at present'
      await assert.rejects(refuseReporting(db), new RegExp(`follows others for reports \\(${names}\\)`), step)
      assert.equal(await isGateways(), false, step)
    }
  })
  await drop()
})

it('a database with the seal key of a gateway is his', async () => {
  const { connection, drop } = await makeDatabase()
  await withPool(connection, async pool => {
    await inTransaction(pool, db => keepKeys(db, testKeys, Date.now()))
    await refuseReporting(pool)
    assert.match((await subscriberRefusals(pool, 1)).join('\n'), /^A gateway has used this database/m)
  })
  await drop()
})
