// While merchants of a cell are held, nothing is done with rows that name no merchant: it would take theirs for gone.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Bookkeeping, chargebackReports } from '../src/clearing/chargebacks/chargebacks.ts'
import { type FileFormat, type ImportParts, importFile, type LineResult } from '../src/clearing/import.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { systemClock } from '../src/platform/clock.ts'
import { areHeld, ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import type { DueItem } from '../src/platform/due/store.ts'
import { returnText } from '../src/sandbox/slipBank/returnText.ts'
import { dueHandlers } from '../src/start/assemble.ts'
import { holdMerchants, releaseMerchants } from '../src/start/moves/putBack.ts'
import { eventually, sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { holdWhen, sideOf } from './support/movingCells.ts'
import { openDesk, places } from './support/slipDesk.ts'

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

test('what was begun before ends: an answer is stored, and told', async () => {
  const { work } = side.database
  const under = 'select from unanswered where merchant_id = $1'
  const slow = gateway.pay({ 'customParameters[simulateDelay]': '2000' })
  await eventually(async () => (await gateway.pool.query(under, [sandbox.merchantId])).rowCount === 1, 'it is under way')
  await holdMerchants(work, Date.now(), [sandbox.merchantId])
  assert.equal((await slow).body.result.code, '000.100.110')
  await releaseMerchants(work, [sandbox.merchantId])
})

test('a return whose merchants come to be held while it is read says nothing of them, and goes on when they are served again', async () => {
  const desk = await openDesk()
  try {
    const place = places['brasil-1']
    const slips = await Promise.all(Array.from({ length: 20 }, () => desk.issue('brasil-1')))
    const day = { occurredOn: '2026-11-20', creditedOn: '2026-11-23', face: 12345, paid: 12345 }
    const titles = slips.map(({ number }) => ({ number: place.agreement + number, occurrence: '06', ...day }))
    const text = returnText(place, 1, '2026-11-23', titles)
    const files = async () =>
      (await desk.gateway.pool.query('select finished_at is not null as finished from clearing_files')).rows
    const release = await holdWhen(desk.gateway.pool, 'clearing_lines', 'new.line between 8 and 9')
    await assert.rejects(desk.read('brasil-1', text), ServedElsewhere)
    const before = await desk.countReceipts()
    assert.ok(before > 0 && before < slips.length, `${before}`)
    assert.deepEqual([await desk.cases('returnLine'), await files()], [[], [{ finished: false }]])
    await release()
    await desk.read('brasil-1', text)
    const receipts = await Promise.all(slips.map(async slip => (await desk.receipts(slip)).length))
    assert.deepEqual(new Set(receipts), new Set([1]))
    assert.deepEqual([await desk.cases('returnLine'), await files()], [[], [{ finished: true }]])
  } finally {
    await desk.stop()
  }
})

test('so does a file of chargebacks, also one that was read before', async () => {
  const directory = await openDirectory(side.database, side.keys, systemClock, () => {})
  const parts = { ...side, directory, build: 'test' } as unknown as Bookkeeping & ImportParts
  const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
  const paid = [await gateway.pay(), await gateway.pay(), await gateway.pay()]
  const text = [heading, ...paid.map(({ body }, at) => `held,${at + 1},CB,,${body.id},1.00,EUR,,2026-01-02`)].join('\n')
  const told: string[] = []
  const tell = (at: number, { kind }: LineResult) => void told.push(`${at} ${kind}`)
  const read = () => importFile(parts, chargebackReports, 'report', text, tell)
  const count = async (sql: string): Promise<number> => Number((await gateway.pool.query(`select count(*) ${sql}`)).rows[0].count)
  const counts = async () => [await count(`from payments where payment_type = 'CB'`), await count('from operator_cases')]
  const release = await holdWhen(gateway.pool, 'clearing_lines', 'new.line = 3')
  await assert.rejects(read(), ServedElsewhere)
  assert.deepEqual(
    [told.splice(0), await counts()],
    [
      ['2 recorded', '3 recorded'],
      [2, 0],
    ],
  )
  await release()
  await read()
  assert.deepEqual(
    [told.splice(0), await counts()],
    [
      ['2 known', '3 known', '4 recorded'],
      [3, 0],
    ],
  )
  // Of lines that were settled before nothing is told either.
  await gateway.pool.query('delete from clearing_lines where line = 2')
  const again = await holdWhen(gateway.pool, 'clearing_lines', 'new.line = 2')
  await assert.rejects(read(), ServedElsewhere)
  assert.deepEqual([told.splice(0), await counts()], [['2 known'], [3, 0]])
  await again()
  await directory.close()
})
