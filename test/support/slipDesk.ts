// Slips that are issued and paid in tests, by accounts of a file, and the files that banks and store chains would send of them.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { LineResult } from '../../src/clearing/import.ts'
import { importReturn, type ReturnParts, returnsOf } from '../../src/clearing/returns/importReturn.ts'
import { readSlipsFile, type SlipAccounts } from '../../src/connectors/slips/accounts.ts'
import { openDirectory } from '../../src/merchants/directory.ts'
import { findCases } from '../../src/payments/cases/store.ts'
import { clockWith, systemRandom } from '../../src/platform/clock.ts'
import { connect } from '../../src/platform/database/connect.ts'
import type { BankPlace } from '../../src/sandbox/slipBank/returnText.ts'
import { type Body, type Fields, sandbox, type TestGateway, testGateway, testKeys } from './gateway.ts'
import { boleto } from './slips.ts'

const beneficiary = {
  name: 'Loja Exemplo',
  taxId: '11222333000181',
  street: 'Rua Um 1',
  city: 'São Paulo',
  state: 'SP',
  postcode: '01310100',
}

/** As banks know the accounts. */
export const places = {
  'itau-1': { bank: '341', layout: 'cnab400', agency: '0057', account: '12345', accountDigit: '7', wallet: '110', agreement: '' },
  'brasil-1': {
    bank: '001',
    layout: 'cnab240',
    agency: '4042',
    account: '00061900',
    accountDigit: '6',
    wallet: '17',
    agreement: '3128557',
  },
  'bradesco-1': {
    bank: '237',
    layout: 'cnab400',
    agency: '0031',
    account: '0095279',
    accountDigit: '1',
    wallet: '19',
    agreement: '4242',
  },
} as const satisfies Record<string, BankPlace>
export type AccountName = keyof typeof places

export type IssuedSlip = { readonly id: string; readonly number: string; readonly barcode: string; readonly dueOn: string }

export type SlipDesk = {
  readonly gateway: TestGateway
  readonly accounts: SlipAccounts
  readonly parts: ReturnParts
  /** Where the files for banks are put. */
  readonly folder: string
  /** Each account has a brand of its own name, as ITAU_1. */
  issue(account: AccountName | 'oxxo-1', more?: Fields): Promise<IssuedSlip>
  /** What became of each line, or why nothing was read. */
  read(
    account: string,
    text: string,
    more?: { name?: string; dieAt?: number; sameNumber?: boolean; parts?: ReturnParts },
  ): Promise<string[] | string>
  /** The receipts of a slip, the first one first. */
  receipts(slip: IssuedSlip): Promise<Body[]>
  countReceipts(): Promise<number>
  cases(kind: string): Promise<{ subject: string; details: Record<string, unknown> }[]>
  stop(): Promise<void>
}

export async function openDesk(): Promise<SlipDesk> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-slips-'))
  const path = join(folder, 'slips.json')
  const modes = ['internal', 'external']
  const brand = (name: string) => name.toUpperCase().replace('-', '_')
  const banks = Object.entries(places).map(([name, { layout, ...place }]) => ({
    name,
    brand: brand(name),
    modes,
    ...place,
    beneficiary,
    remittance: { layout, folder },
    returns: { layout },
  }))
  const chains = [{ name: 'oxxo-1', brand: 'OXXO_1', modes, prefix: '20', agreement: 'TOLL' }]
  writeFileSync(path, JSON.stringify({ banks, chains }), { mode: 0o600 })
  const gateway = await testGateway({ environment: { SLIPS_FILE: path } })
  const clock = clockWith(() => Date.now())
  const database = connect(gateway.connection, clock, () => {})
  const directory = await openDirectory(database, testKeys, clock, () => {})
  const accounts = readSlipsFile(JSON.stringify({ banks, chains }), 'test')
  const parts: ReturnParts = { database, directory, clock, random: systemRandom, keys: testKeys, build: 'test' }
  return {
    gateway,
    accounts,
    parts,
    folder,
    async issue(account, more = {}) {
      const mexican = { currency: 'MXN', 'billing.country': 'MX' }
      const { status, body } = await gateway.post('/v1/payments', {
        ...boleto,
        testMode: 'EXTERNAL',
        paymentBrand: brand(account),
        ...(account === 'oxxo-1' && mexican),
        ...more,
      })
      if (status !== 200) throw new Error(JSON.stringify(body))
      const { acquirerTxId1: number, EXTERNAL_SYSTEM_BARCODE_NUMBER: barcode, DueDate: dueOn } = body.resultDetails
      return { id: body.id, number, barcode, dueOn }
    },
    async read(account, text, { name = 'return', dieAt, sameNumber = false, parts: own = parts } = {}) {
      const told: string[] = []
      const tell = (at: number, result: LineResult) => {
        told.push(`${at} ${result.kind}${result.kind === 'refused' ? `: ${result.why}` : ''}`)
        if (told.length === dieAt) throw new Error('died')
      }
      const report = await importReturn(own, returnsOf(accounts.get(account)!), name, Buffer.from(text), tell, { sameNumber })
      return 'broken' in report ? report.broken : told
    },
    async receipts({ id }) {
      const { rows } = await gateway.pool.query<{ id: string }>(
        `select id from payments where payment_type = 'RC' and reference_id = $1 order by id`,
        [id],
      )
      return Promise.all(
        rows.map(async row => (await gateway.get(`/v1/payments/${row.id}`, { entityId: sandbox.entityId })).body),
      )
    },
    countReceipts: async () =>
      Number((await gateway.pool.query(`select count(*) from payments where payment_type = 'RC'`)).rows[0].count),
    cases: async kind =>
      (await findCases(gateway.pool, false, 1000))
        .filter(one => one.kind === kind)
        .map(({ subject, details }) => ({ subject, details: JSON.parse(details) })),
    async stop() {
      await directory.close()
      await database.close()
      await gateway.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
