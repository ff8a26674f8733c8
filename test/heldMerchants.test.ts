// While merchants of a cell are held, nothing is done with rows that name no merchant: it would take theirs for gone. And who began during a fail-over is put right
// by who lived through it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type pg from 'pg'
import { type FileFormat, type ImportParts, importFile } from '../src/clearing/import.ts'
import { systemClock } from '../src/platform/clock.ts'
import { areHeld, ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import type { DueItem } from '../src/platform/due/store.ts'
import { dueHandlers } from '../src/start/assemble.ts'
import { holdMerchants, releaseMerchants, watchPutBack } from '../src/start/moves/putBack.ts'
import { sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { sideOf } from './support/movingCells.ts'

let gateway: TestGateway
let side: ReturnType<typeof sideOf>
before(async () => {
  gateway = await testGateway()
  side = sideOf('one', gateway.connection)
})
after(async () => {
  await side.close()
  await gateway.stop()
})

test('no file is read, and what belongs to no merchant waits', async () => {
  const { work } = side.database
  const parts = { ...side, database: side.database } as unknown as ImportParts
  const settled: number[] = []
  const format: FileFormat<ImportParts, number> = {
    kind: 'test',
    read: () => [{ at: 1, line: 1 }],
    async settle() {
      settled.push(1)
    },
  } as never
  const nobodys = ['cutOver', 'compareDay', 'captureFile', 'transferFile', 'returnServer', 'orderFile', 'returnFolder']
  await holdMerchants(work, Date.now(), [sandbox.merchantId])
  assert.equal(await areHeld(work), true)
  await assert.rejects(
    importFile(parts, format, 'day.ret', 'x', () => {}),
    ServedElsewhere,
  )
  for (const kind of nobodys) {
    const ended = await dueHandlers.get(kind)!(parts as never, {} as DueItem)
    assert.ok(ended !== 'done' && ended.again > Date.now() && ended.well, kind)
  }
  assert.deepEqual(settled, [])
  await releaseMerchants(work, [sandbox.merchantId])
  assert.equal(await areHeld(work), false)
})

test('whom a process has held that began during a fail-over is served again by one that lived through it', async () => {
  const { work } = side.database
  let line = '00000001'
  /** Two processes on a server whose time line is the test's to say. */
  const pool = {
    connect: () => work.connect(),
    query: async (text: string, values?: unknown[]) =>
      text.includes('pg_control_system') ? { rows: [{ stands: `cluster database ${line}` }] } : work.query(text, values),
  } as unknown as pg.Pool
  const ticks: (() => void)[] = []
  const clock = {
    ...systemClock,
    every: (_: number, act: () => void) => ({ cancel: () => {}, unref: () => undefined as never, act: ticks.push(act) }),
  }
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const held = async () => (await work.query('select from merchant_moves where put_back_at is not null')).rowCount!
  await keepMode(gateway.pool, 'sandbox', Date.now())
  await work.query(`update installation set in_cells = true, stands_on = 'cluster database 00000001'`)
  await watchPutBack({ work: pool }, clock, log)
  line = '00000002'
  await watchPutBack({ work: pool }, clock, log)
  assert.ok((await held()) > 0, 'a new one cannot know')
  ticks[0]!()
  for (let tries = 0; (await held()) > 0 && tries < 200; tries++) await new Promise(resolve => setTimeout(resolve, 20))
  assert.equal(await held(), 0)
  // Of another cluster it is no fail-over.
  line = '00000003'
  await work.query(`update installation set stands_on = 'other database 00000003'`)
  await holdMerchants(work, Date.now(), [sandbox.merchantId])
  ticks[1]!()
  await new Promise(resolve => setTimeout(resolve, 300))
  assert.ok((await held()) > 0)
})
