// A gateway and its acquirer's host with a business day that ends when a test wants it to.

import { dialectOf } from '../../src/connectors/cards/iso8583/dialects.ts'
import { profileSchema } from '../../src/connectors/cards/iso8583/profile.ts'
import { findCases } from '../../src/payments/cases/store.ts'
import { type Clock, clockWith } from '../../src/platform/clock.ts'
import { read } from '../../src/platform/schema.ts'
import type { HostOptions } from '../../src/sandbox/acquirerHost/host.ts'
import { eventually, type Fields, type TestGateway, testGateway, visa } from './gateway.ts'
import { type AcquirersFile, acquirersFile, type TestHost, testHost } from './host.ts'

const hour = 3_600_000
const minute = 60_000

export type Day = {
  readonly clock: Clock
  readonly gateway: TestGateway
  readonly host: TestHost
  readonly file: AcquirersFile
  readonly rules: { readonly cutOver: string; readonly timeZone: string }
  /** The day that is open, and the time moved to some minutes after its end. */
  readonly day: string
  end(minutes?: number): void
  pay(type: string, amount: string, more?: Fields): Promise<string>
  refer(id: string, paymentType: string, amount?: string): Promise<string>
  cases(): Promise<{ id: string; kind: string; subject: string; details: Record<string, unknown> }[]>
  stop(): Promise<void>
}

/** A day that ends two hours from now. */
export async function beginDay(profile: object, more: Partial<HostOptions> = {}): Promise<Day> {
  let moved = 0
  const clock = clockWith(() => Date.now() + moved)
  const ends = new Date(Math.ceil((Date.now() + 2 * hour) / minute) * minute)
  const cutOver = ends.toISOString().slice(11, 16).replace('00:00', '24:00')
  const reconciliation = {
    by: 'message',
    cutOver,
    timeZone: 'UTC',
    afterMinutes: 10,
    ...(profile as { reconciliation?: object }).reconciliation,
  }
  const given = { ...profile, reconciliation }
  const dialect = dialectOf(read(profileSchema, given, 'test'))
  const host = await testHost({ dialect, lateMilliseconds: 4500, ...more, port: 0 })
  const file = acquirersFile(
    { north: [more.port ?? host.port] },
    { profile: given, answerWithinSeconds: 3, recoverAfterSeconds: 0.1 },
  )
  const gateway = await testGateway({
    clock,
    environment: { ACQUIRERS_FILE: file.path },
  })
  const ofBody = ({ body }: { body: { id: string } }) => body.id
  return {
    clock,
    rules: dialect.reconciliation,
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
export async function fullDay({ pay, refer, host }: Day): Promise<void> {
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
  await eventually(
    async () => [...host.ledger.entries()].some(({ line, cleared }) => line.amount === '000000777001' && cleared === 0n),
    'it is taken back',
  )
}

/** Two debits, and the day ends. */
export async function shortDay(day: Day): Promise<void> {
  await day.pay('DB', '92.00')
  await day.pay('DB', '8.00')
  day.end()
}
