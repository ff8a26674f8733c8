// Order files to banks, read by a bank that has its own eyes; and the whole way of slips through it: told, paid, late, ended, and told of in returns.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { orderText, type SlipOrderLine } from '../src/clearing/remittance/orderFile.ts'
import { type OrderFileParts, orderFile } from '../src/clearing/remittance/write.ts'
import { type BankSlipAccount, readSlipsFile } from '../src/connectors/slips/accounts.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import type { Log } from '../src/platform/log.ts'
import { readOrders } from '../src/sandbox/slipBank/orders.ts'
import { makeSlipBank, type SlipBank } from '../src/sandbox/slipBank/slipBank.ts'
import { dyingAfter } from './support/dying.ts'
import { type AccountName, type IssuedSlip, openDesk, places, type SlipDesk } from './support/slipDesk.ts'

const beneficiary = {
  name: 'Loja Exemplo & Cia.',
  taxId: '11222333000181',
  street: 'Rua Um 1',
  city: 'São Paulo',
  state: 'SP',
  postcode: '01310100',
}

describe('an order file', () => {
  // biome-ignore format: a table
  const accounts: readonly (readonly [bank: string, layout: string, given: object, number: string, theirs: string, wallet: string])[] = [
    ['341', 'cnab400', { agency: '0057', account: '12345', accountDigit: '7', wallet: '110' }, '12345678', '12345678', '110'],
    ['341', 'cnab240', { agency: '0057', account: '12345', accountDigit: '7', wallet: '110' }, '12345678', '110123456788', '1'],
    ['237', 'cnab400', { agency: '0031', account: '0095279', accountDigit: '1', wallet: '19', agreement: '4242' }, '00000000001', '00000000001P', '019'],
    ['237', 'cnab240', { agency: '0031', account: '0095279', accountDigit: '1', wallet: '19', agreement: '4242' }, '00000000001', '01900000000000000' + '01P', '1'],
    ['001', 'cnab400', { agency: '4042', account: '00061900', accountDigit: '6', wallet: '17', agreement: '3128557' }, '0000000001', '31285570000000001', '17'],
    ['001', 'cnab240', { agency: '4042', account: '00061900', accountDigit: '6', wallet: '17', agreement: '3128557' }, '0000000001', '31285570000000001', '1'],
    ['001', 'cnab240', { agency: '1606', account: '06809350', accountDigit: '6', wallet: '31', agreement: '050094' }, '01448', '050094014481', '1'],
    ['033', 'cnab240', { agency: '0012', wallet: '101', agreement: '0282033' }, '566612457800', '5666124578002', '1'],
    ['104', 'cnab240', { agency: '0012', agreement: '005507' }, '000000000000019', '14000000000000019', '1'],
  ]
  const payer = {
    name: 'João Conceição',
    taxId: { kind: 'cpf', id: '11144477735' },
    street: 'Rua São José, 12',
    city: 'São Paulo',
    state: 'SP',
    postcode: '01310100',
  } as const
  const orders = (number: string): SlipOrderLine[] => [
    { kind: 'entry', number, document: 'ORDER0042', dueOn: '2026-12-01', amount: 123_45, payer },
    {
      kind: 'writeOff',
      number,
      document: 'ORDER0043',
      dueOn: '2026-12-02',
      amount: 1,
      payer: { ...payer, name: 'x'.repeat(60), taxId: { kind: 'cnpj', id: '12ABC34501DE35' } },
    },
  ]
  for (const [bank, layout, given, number, theirs, wallet] of accounts)
    it(`says to bank ${bank} in ${layout} what it shall do (${number})`, () => {
      const one = { name: 'one', bank, modes: ['live'], ...given, beneficiary, remittance: { layout, folder: '/nowhere' } }
      const account = readSlipsFile(JSON.stringify({ banks: [one] }), 'test').get('one') as BankSlipAccount
      const text = orderText(account, 7, '2026-11-22', orders(number))
      const file = readOrders(text, bank, layout as 'cnab240')
      assert.equal(file.fileNumber, bank === '341' && layout === 'cnab400' ? 0 : 7)
      const [entry, writeOff] = file.titles
      const { payer: shown, ...title } = entry!
      assert.deepEqual(title, {
        code: '01',
        number: theirs,
        wallet,
        document: 'ORDER0042',
        own: 'ORDER0042',
        dueOn: '2026-12-01',
        face: 123_45,
      })
      assert.deepEqual(shown, {
        id: layout === 'cnab240' ? '1000011144477735' : '0100011144477735',
        name: 'JOAO CONCEICAO',
        street: 'RUA SAO JOSE 12',
        postcode: '01310100',
      })
      assert.deepEqual([writeOff!.code, writeOff!.document, writeOff!.face], ['02', 'ORDER0043', 1])
      assert.equal(writeOff!.payer.id, layout === 'cnab240' ? '2012ABC34501DE35' : '0212ABC34501DE35')
      assert.match(writeOff!.payer.name, /^X+$/)
      assert.match(text, layout === 'cnab240' ? /SAO PAULO {6}SP/ : bank === '237' ? /01310100/ : /01310100SAO PAULO {6}SP/)
    })
})

it('files of CNAB 400 are refused at the start where the bank has none for the account', () => {
  const files = { layout: 'cnab400', folder: '/nowhere' }
  const why = (bank: string, given: object) => {
    const one = { name: 'one', bank, modes: ['live'], ...given, beneficiary, remittance: files, returns: files }
    try {
      readSlipsFile(JSON.stringify({ banks: [one] }), 'test')
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const both = (bank: string) =>
    new RegExp(`remittance\\.layout must be cnab240 for this agreement at bank ${bank}\\.?\n.*returns\\.layout must be cnab240`)
  assert.match(why('033', { agency: '0012', wallet: '101', agreement: '0282033' }), both('033'))
  assert.match(why('104', { agency: '0012', agreement: '005507' }), both('104'))
  const brasil = { agency: '4042', account: '00061900', accountDigit: '6', wallet: '17' }
  assert.match(why('001', { ...brasil, agreement: '050094' }), both('001'))
  assert.equal(why('001', { ...brasil, agreement: '3128557' }), '')
  const bradesco = { agency: '0031', account: '0095279', accountDigit: '1', wallet: '19' }
  assert.match(why('237', bradesco), both('237'))
  assert.equal(why('237', { ...bradesco, agreement: '4242' }), '')
})

describe('slips and their bank', () => {
  let desk: SlipDesk
  before(async () => {
    desk = await openDesk()
  })
  after(() => desk.stop())

  const log = { info() {}, warn() {}, error() {} } as unknown as Log
  const write = (account: string, parts: Partial<OrderFileParts> = {}) =>
    orderFile({ ...desk.parts, slipAccounts: desk.accounts, log, ...parts }, { details: { account } } as unknown as Parameters<
      typeof orderFile
    >[1])
  const filesOf = (account: string) =>
    readdirSync(desk.folder)
      .filter(name => name.startsWith(`${account}-0`))
      .sort()
  const textOf = (name: string) => readFileSync(join(desk.folder, name), 'latin1')

  for (const account of Object.keys(places) as AccountName[])
    it(`are told, paid and told of: ${account}`, async () => {
      const bank: SlipBank = makeSlipBank(places[account])
      const slips: IssuedSlip[] = []
      for (let count = 0; count < 4; count++) slips.push(await desk.issue(account))
      const [exact, twice, withdrawn, open] = slips as [IssuedSlip, IssuedSlip, IssuedSlip, IssuedSlip]
      await write(account)
      assert.equal(filesOf(account).length, 1)
      bank.order(textOf(filesOf(account)[0]!))
      const theirs = [...bank.titles.keys()]
      assert.equal(theirs.length, 4)
      const numberOf = (slip: IssuedSlip) => theirs.find(number => number.includes(slip.number))!
      const day = '2020-01-02'
      const kinds = async (text: string) => ((await desk.read(account, text)) as string[]).map(line => line.replace(/^\d+ /, ''))
      assert.deepEqual(await kinds(bank.close(day)), ['noted', 'noted', 'noted', 'noted'])

      assert.equal((await desk.gateway.refer(withdrawn.id, { paymentType: 'RV' })).status, 200)
      await write(account)
      bank.order(textOf(filesOf(account)[1]!))
      assert.equal(bank.titles.get(numberOf(withdrawn))!.status, 'ended')
      bank.pay(numberOf(exact), day)
      bank.pay(numberOf(twice), day)
      bank.pay(numberOf(twice), day, { receiver: '00100042' })
      bank.pay(numberOf(withdrawn), day)
      assert.deepEqual(await kinds(bank.close(day)), ['noted', 'recorded', 'recorded', 'recorded', 'recorded'])
      const shown = async (slip: IssuedSlip) =>
        (await desk.receipts(slip)).map(({ amount, resultDetails }) => [
          amount,
          resultDetails.DUPLICATE ?? '',
          resultDetails.LATE ?? '',
        ])
      assert.deepEqual(await shown(exact), [['123.45', '', '']])
      const late = account === 'itau-1' ? '' : 'true' // Itaú has no code for it
      assert.deepEqual(await shown(twice), [
        ['123.45', '', ''],
        ['123.45', 'true', late],
      ])
      assert.deepEqual(await shown(withdrawn), [['123.45', '', late]])
      assert.deepEqual(await shown(open), [])
      assert.deepEqual((await examine(desk.gateway.pool)).findings, [])
    })

  it('are in one file, once, wherever its writer dies', async () => {
    const account = 'brasil-1'
    let deaths = 0
    for (let statements = 0; deaths === statements; statements++) {
      const before = filesOf(account)
      const slip = await desk.issue(account)
      const died = await write(account, { database: dyingAfter(desk.parts.database, statements) }).catch(
        (error: Error) => error.message,
      )
      if (died === 'died') deaths++
      await write(account)
      await write(account)
      const made = filesOf(account).filter(one => !before.includes(one))
      assert.deepEqual(made, [`brasil-1-${String(before.length + 1).padStart(6, '0')}.rem`])
      const { titles } = readOrders(textOf(made[0]!), '001', 'cnab240')
      assert.deepEqual(
        titles.map(({ number }) => number.slice(7)),
        [slip.number],
      )
    }
    assert.ok(deaths > 8, String(deaths))
    const { rows } = await desk.gateway.pool.query('select count(*) from order_files where sealed is not null')
    assert.equal(Number(rows[0].count), 0)
  })

  it('are in one file, once, when two write at a time', async () => {
    const account = 'bradesco-1'
    const before = filesOf(account)
    await desk.issue(account)
    await Promise.all([write(account), write(account)])
    const made = filesOf(account).filter(one => !before.includes(one))
    assert.equal(made.length, 1)
    assert.equal(readOrders(textOf(made[0]!), '237', 'cnab400').titles.length, 1)
  })

  it('of the simulator are in no file to a bank, and none is withdrawn there', async () => {
    const slip = await desk.issue('itau-1', { testMode: 'INTERNAL' })
    assert.equal((await desk.gateway.refer(slip.id, { paymentType: 'RV' })).status, 200)
    const { rows } = await desk.gateway.pool.query('select count(*) from slip_orders where slip_id = $1', [slip.id])
    assert.equal(Number(rows[0].count), 0)
  })

  it('in a shop are in no file to a bank', async () => {
    await desk.issue('oxxo-1')
    const { rows } = await desk.gateway.pool.query(`select count(*) from slip_orders where account = 'oxxo-1'`)
    assert.equal(Number(rows[0].count), 0)
  })
})
