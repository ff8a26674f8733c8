// The end of a day: what an acquirer is told of it, what it says, and what an operator reads where the two differ. What counts is what the host
// received and what its own books say.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { dialectOf } from '../src/connectors/cards/iso8583/dialects.ts'
import { profileSchema } from '../src/connectors/cards/iso8583/profile.ts'
import { findCases } from '../src/payments/cases/store.ts'
import { clockWith } from '../src/platform/clock.ts'
import { read } from '../src/platform/schema.ts'
import type { SettlementFault } from '../src/sandbox/acquirerHost/settlement.ts'
import { eventually, type Fields, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile, type TestHost, testHost } from './support/host.ts'

const hour = 3_600_000
const minute = 60_000

type Day = {
  readonly gateway: TestGateway
  readonly host: TestHost
  readonly file: AcquirersFile
  /** The day that is open, and the time moved to some minutes after its end. */
  readonly day: string
  end(minutes?: number): void
  pay(type: string, amount: string, more?: Fields): Promise<string>
  refer(id: string, paymentType: string, amount?: string): Promise<string>
  cases(): Promise<{ id: string; kind: string; subject: string; details: Record<string, unknown> }[]>
  stop(): Promise<void>
}

/** A day that ends two hours from now. */
async function beginDay(profile: object, more: { alone?: boolean; settlementFault?: SettlementFault } = {}): Promise<Day> {
  let moved = 0
  const ends = new Date(Math.ceil((Date.now() + 2 * hour) / minute) * minute)
  const cutOver = ends.toISOString().slice(11, 16).replace('00:00', '24:00')
  const reconciliation = { by: 'message', cutOver, timeZone: 'UTC', afterMinutes: 10, ...(profile as { reconciliation?: object }).reconciliation }
  const given = { ...profile, reconciliation }
  const dialect = dialectOf(read(profileSchema, given, 'test'))
  const host = await testHost({ dialect, ...(more.settlementFault && { settlementFault: more.settlementFault }) })
  const file = acquirersFile({ north: [host.port] }, { profile: given, answerWithinSeconds: 1, recoverAfterSeconds: 0.1 })
  const gateway = await testGateway({
    clock: clockWith(() => Date.now() + moved),
    environment: { ACQUIRERS_FILE: file.path },
    alone: more.alone ?? true,
  })
  const ofBody = ({ body }: { body: { id: string } }) => body.id
  return {
    gateway,
    host,
    file,
    day: new Date(ends.getTime() - (cutOver === '24:00' ? 1 : 0)).toISOString().slice(0, 10),
    end(minutes = 11) {
      moved = ends.getTime() - Date.now() + minutes * minute
    },
    pay: async (paymentType, amount, fields = {}) =>
      ofBody(await gateway.pay({ paymentType, amount, testMode: 'EXTERNAL', ...visa, ...fields })),
    refer: async (id, paymentType, amount) =>
      ofBody(await gateway.refer(id, { paymentType, ...(amount !== undefined && { amount, currency: 'EUR' }) })),
    async cases() {
      return (await findCases(gateway.pool, false, 100)).map(one => ({ ...one, details: JSON.parse(one.details) }))
    },
    async stop() {
      await gateway.stop()
      await host.stop()
      file.remove()
    },
  }
}

/** Every way to move money, and one whose answer is lost: the host has booked it, and takes it back. */
async function fullDay({ pay, refer, host }: Day): Promise<void> {
  const debit = await pay('DB', '92.00')
  await refer(debit, 'RF', '12.00')
  await refer(await pay('DB', '20.00'), 'RV')
  await refer(await pay('DB', '30.00'), 'RV', '5.00')
  const hold = await pay('PA', '50.00')
  await refer(hold, 'CP', '40.00')
  await refer(await pay('PA', '60.00'), 'RV')
  await pay('CD', '7.00')
  await pay('DB', '6660.51')
  await pay('DB', '7770.01')
  await eventually(async () => [...host.ledger.entries()].some(({ line, cleared }) => line.amount === '000000777001' && cleared === 0n), 'it is taken back')
}

const totals: Record<number, string> = {
  74: '0000000002',
  75: '0000000000',
  76: '0000000005',
  77: '0000000003',
  86: '0000000000001900',
  87: '0000000000000000',
  88: '0000000000795201',
  89: '0000000000779501',
  97: 'D0000000000013800',
}
const saidOf = (message: { fields: ReadonlyMap<number, string> }) =>
  Object.fromEntries(Object.keys(totals).map(field => [field, message.fields.get(Number(field))]))

describe('totals by message', () => {
  for (const like of ['1987', '1993'] as const)
    it(`${like}: are told at the end of the day, agree with the books of the host, and leave nothing behind`, async t => {
      const day = await beginDay(like === '1993' ? { like, mac: { algorithm: 'none' } } : { like })
      t.after(day.stop)
      await fullDay(day)
      await eventually(async () => (await openWork(day.gateway)) === 1, 'nothing is open but the day')
      day.end(9)
      await new Promise(resolve => setTimeout(resolve, 600))
      assert.equal(day.host.counters.reconciled.length, 0, 'not before its time')
      day.end()
      await eventually(async () => day.host.counters.reconciled.length > 0, 'it is told')
      await eventually(async () => (await answered(day.gateway)).length === 1, 'its answer is kept')
      const [message] = day.host.counters.reconciled
      assert.equal(message!.type, '0500')
      assert.equal(message!.fields.get(15), day.day.slice(5).replace('-', ''))
      assert.equal(message!.fields.get(50), '978')
      assert.deepEqual(saidOf(message!), totals)
      assert.deepEqual(await answered(day.gateway), [{ day: day.day, balance: 'in', attempts: 1 }])
      assert.deepEqual(await day.cases(), [])
    })
})

const openWork = async ({ pool }: TestGateway) => Number((await pool.query('select count(*) from due_work')).rows[0].count)
const answered = async ({ pool }: TestGateway) =>
  (await pool.query('select day, balance, attempts from day_totals where answered_at is not null order by day, terminal')).rows
