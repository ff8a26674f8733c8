// The rules of slips that banks and store chains wrote: barcodes, digitable lines, due-date factors, check digits, tax ids, Pix and store numbers.
// The numbers are those of the manuals, and of slips that others issued.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type BankAccount, banks } from '../src/connectors/slips/banks/banks.ts'
import {
  digitableLine,
  generalDigit,
  hasGeneralDigit,
  readBarcode,
  readLine,
  slipBarcode,
} from '../src/connectors/slips/banks/barcode.ts'
import { dueDayOf, dueFactor } from '../src/connectors/slips/banks/dueFactor.ts'
import { pixCode, pixSeal } from '../src/connectors/slips/pix.ts'
import { isStoreReference, readStoreNumber, storeNumber, storeReference } from '../src/connectors/slips/storeNumber.ts'
import { weightedSum, weightsTo } from '../src/contract/checkDigits.ts'
import { isClabe } from '../src/contract/clabe.ts'
import { readTaxId } from '../src/contract/taxId.ts'

type Case = {
  readonly of: string
  readonly bank: string
  readonly account: Partial<BankAccount>
  readonly number: string
  readonly dueOn: string
  readonly amount: number
  readonly barcode: string
  readonly line: string
  readonly digit?: string
  readonly document?: string
  /** Where it is not what the bank's rule makes of it. */
  readonly freeField?: string
}

const itau = { agency: '0057', account: '12345', wallet: '110' }
const caixa = { agreement: '005507' }
const santander = { agreement: '0282033', wallet: '101' }

// biome-ignore format: one slip a block
const cases: readonly Case[] = [
  { of: 'manual of Banco do Brasil', bank: '001', account: { agreement: '050094', agency: '1606', account: '06809350', wallet: '31' }, number: '01448',
    dueOn: '2007-12-31', amount: 100, digit: '1',
    barcode: '00193373700000001000500940144816060680935031', line: '00190.50095 40144.816069 06809.350314 3 37370000000100' },
  { of: 'manual of Itaú', bank: '341', account: itau, number: '12345678', dueOn: '2002-05-01', amount: 123_45, digit: '8',
    barcode: '34196166700000123451101234567880057123457000', line: '34191.10121 34567.880058 71234.570001 6 16670000012345' },
  { of: 'manual of Caixa', bank: '104', account: caixa, number: '222333777777777', dueOn: '2006-08-23', amount: 321_12,
    barcode: '10494324200000321120055077222133347777777771', line: '10490.05505 77222.133348 77777.777713 4 32420000032112' },
  { of: 'manual of Santander', bank: '033', account: santander, number: '566612457800', dueOn: '2003-05-15', amount: 273_71, digit: '2',
    barcode: '03398204600000273719028203356661245780020101', line: '03399.02827 03356.661243 57800.201014 8 20460000027371' },
  { of: 'manual of Bradesco', bank: '237', account: { agency: '0031', wallet: '04', account: '0095279' }, number: '00317720028',
    dueOn: '2000-07-04', amount: 0,
    barcode: '23797100100000000000031040031772002800952790', line: '23790.03102 40031.772003 28009.527905 7 10010000000000' },
  { of: 'Itaú, after the factor began again', bank: '341', account: { agency: '1248', account: '02124', wallet: '109' }, number: '00010152',
    dueOn: '2029-05-20', amount: 6757_87,
    barcode: '34194254800006757871090001015271248021246000', line: '34191.09008 01015.271248 80212.460002 4 25480000675787' },
  { of: 'Banco do Brasil, agreement of 7', bank: '001', account: { agreement: '1474166', wallet: '17' }, number: '0000000328',
    dueOn: '2016-07-05', amount: 2246_74, digit: '4',
    barcode: '00191684600002246740000001474166000000032817', line: '00190.00009 01474.166004 00000.328179 1 68460000224674' },
  { of: 'Banco do Brasil, agreement of 6', bank: '001', account: { agreement: '123879', agency: '4042', account: '00061900', wallet: '18' }, number: '01234',
    dueOn: '2008-02-01', amount: 135_00,
    barcode: '00192376900000135001238790123440420006190018', line: '00191.23876 90123.440423 00061.900189 2 37690000013500' },
  { of: 'Banco do Brasil, agreement of 4', bank: '001', account: { agreement: '1238', agency: '4042', account: '00061900', wallet: '18' }, number: '0123456',
    dueOn: '2008-02-01', amount: 135_00,
    barcode: '00191376900000135001238012345640420006190018', line: '00191.23801 12345.640424 00061.900189 1 37690000013500' },
  { of: 'Itaú, wallet 175', bank: '341', account: { agency: '0810', account: '53678', wallet: '175' }, number: '00258281',
    dueOn: '2008-02-02', amount: 135_00,
    barcode: '34191377000000135001750025828170810536789000', line: '34191.75009 25828.170818 05367.890000 1 37700000013500' },
  // Its own digit is 2, that of the other wallets: whoever issued it did not know the rule of wallet 168, which makes it 0.
  { of: 'Itaú, wallet 168', bank: '341', account: { agency: '0810', account: '53678', wallet: '168' }, number: '00258281', freeField: '1680025828120810536789000',
    dueOn: '2004-09-05', amount: 135_00, digit: '0',
    barcode: '34194252500000135001680025828120810536789000', line: '34191.68004 25828.120813 05367.890000 4 25250000013500' },
  { of: 'Itaú, wallet 196', bank: '341', account: { agency: '0810', account: '53678', wallet: '196', agreement: '12345' }, number: '00258281', document: '1234567',
    dueOn: '2004-09-05', amount: 135_00,
    barcode: '34191252500000135001960025828112345671234550', line: '34191.96005 25828.112349 56712.345505 1 25250000013500' },
  { of: 'Santander, unregistered', bank: '033', account: { agreement: '1899775', wallet: '102' }, number: '000009000026',
    dueOn: '2011-10-09', amount: 25_00,
    barcode: '03399511500000025009189977500000900002690102', line: '03399.18997 77500.000904 00026.901025 9 51150000002500' },
  { of: 'Bradesco, wallet 06', bank: '237', account: { agency: '1172', wallet: '06', account: '0403005' }, number: '00075896452',
    dueOn: '2009-04-30', amount: 2952_95,
    barcode: '23795422300002952951172060007589645204030050', line: '23791.17209 60007.589645 52040.300502 5 42230000295295' },
  { of: 'Itaú in 2026', bank: '341', account: itau, number: '12345678', dueOn: '2026-12-01', amount: 123_45,
    barcode: '34197164700000123451101234567880057123457000', line: '34191.10121 34567.880058 71234.570001 7 16470000012345' },
  { of: 'Banco do Brasil in 2026', bank: '001', account: { agreement: '3128557', wallet: '17' }, number: '0000000001', dueOn: '2026-12-01', amount: 123_45,
    barcode: '00199164700000123450000003128557000000000117', line: '00190.00009 03128.557000 00000.001172 9 16470000012345' },
  { of: 'Caixa in 2026', bank: '104', account: caixa, number: '222333777777777', dueOn: '2026-12-01', amount: 123_45,
    barcode: '10495164700000123450055077222133347777777771', line: '10490.05505 77222.133348 77777.777713 5 16470000012345' },
  { of: 'Santander in 2026', bank: '033', account: santander, number: '566612457800', dueOn: '2026-12-01', amount: 123_45,
    barcode: '03396164700000123459028203356661245780020101', line: '03399.02827 03356.661243 57800.201014 6 16470000012345' },
]

const accountOf = (some: Partial<BankAccount>): BankAccount => ({
  agency: '',
  account: '',
  accountDigit: '0',
  wallet: '',
  agreement: '',
  ...some,
})

/** Each of the digits changed to each other. */
const changes = (digits: string): string[] =>
  [...digits].flatMap((digit, at) =>
    [...'0123456789'].filter(other => other !== digit).map(other => digits.slice(0, at) + other + digits.slice(at + 1)),
  )

describe('a bank slip', () => {
  for (const { of, bank: code, account: some, number, dueOn, amount, barcode, line, digit, document, ...given } of cases)
    it(`has the barcode and the line of: ${of}`, () => {
      const [bank, account] = [banks.get(code)!, accountOf(some)]
      const freeField = given.freeField ?? bank.freeField(account, number, document)
      assert.equal(number.length, bank.numberLength(account))
      assert.equal(slipBarcode({ bank: code, dueOn, amount, freeField }), barcode)
      assert.equal(digitableLine(barcode), line)
      assert.deepEqual(readLine(line), { barcode })
      assert.deepEqual(readLine(line.replace(/[ .]/g, '')), { barcode })
      assert.deepEqual(readBarcode(barcode, dueOn), { bank: code, dueOn, amount, freeField })
      if (digit !== undefined) assert.equal(bank.numberDigit(account, number), digit)
    })

  it('may be due when it is shown, and of an amount that leaves no place for a date', () => {
    const freeField = cases[1]!.barcode.slice(19)
    const open = slipBarcode({ bank: '341', amount: 1, freeField })
    assert.equal(open.slice(5, 19), '00000000000001')
    assert.deepEqual(readBarcode(open, '2026-11-22'), { bank: '341', amount: 1, freeField })
    const most = slipBarcode({ bank: '341', dueOn: '2026-12-01', amount: 9_999_999_999, freeField })
    assert.equal(most.slice(5, 19), '16479999999999')
    const above = slipBarcode({ bank: '341', dueOn: '2026-12-01', amount: 10_000_000_000, freeField })
    assert.equal(above.slice(5, 19), '00010000000000')
    assert.deepEqual(readBarcode(above, '2026-11-22'), { bank: '341', amount: 10_000_000_000, freeField })
  })

  it('is refused when it is no slip', () => {
    const good = cases[1]!.barcode
    const why = (barcode: string) => (readBarcode(barcode, '2026-11-22') as { broken: string }).broken
    assert.match(why(good.slice(1)), /44 digits/)
    assert.match(why(`${good.slice(0, 3)}8${good.slice(4)}`), /fourth/)
    assert.match(why(`${good.slice(0, 43)}1`), /check digit/)
    assert.match((readLine(cases[1]!.line.slice(1)) as { broken: string }).broken, /47 digits/)
    assert.throws(() => slipBarcode({ bank: '341', amount: 1, freeField: '1' }))
    assert.throws(
      () => slipBarcode({ bank: '341', dueOn: '2000-07-02', amount: 1, freeField: good.slice(19) }),
      /no due-date factor/,
    )
  })

  it('shows every changed digit of a group of its line', () => {
    for (const { line, barcode } of cases) {
      const digits = line.replace(/[ .]/g, '')
      for (const changed of changes(digits)) {
        if (changed.slice(0, 32) === digits.slice(0, 32)) continue
        assert.match((readLine(changed) as { broken: string }).broken, /group [123] is wrong/, `${changed} for ${barcode}`)
      }
    }
  })

  it('shows every changed digit of its barcode, but where its general digit is 1, which stands for three remainders', () => {
    const passing = (barcode: string) => changes(barcode).filter(hasGeneralDigit).length
    for (const { barcode } of cases) if (barcode[4] !== '1') assert.equal(passing(barcode), 0, barcode)
    assert.equal(passing('00191684600002246740000001474166000000032817'), 82)
    assert.equal(passing('34191377000000135001750025828170810536789000'), 83)
  })

  it('goes from barcode to line and back', () => {
    const digits = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 42, maxLength: 42 }).map(all => all.join(''))
    fc.assert(
      fc.property(digits, all => {
        const head = `${all.slice(0, 3)}9`
        const barcode = head + generalDigit(head + all.slice(3)) + all.slice(3)
        assert.deepEqual(readLine(digitableLine(barcode)), { barcode })
      }),
      { numRuns: 300 },
    )
  })

  it('has the inner sums that the manuals print', () => {
    const without = (barcode: string) => barcode.slice(0, 4) + barcode.slice(5)
    assert.equal(weightedSum('05009401448', [9, 8, 7, 6, 5, 4, 3, 2]), 221)
    assert.equal(weightedSum(without(cases[1]!.barcode), weightsTo(9)), 742)
    assert.equal(weightedSum(without(cases[2]!.barcode), weightsTo(9)), 788)
    assert.equal(weightedSum(cases[2]!.barcode.slice(19, 43), weightsTo(9)), 538)
    assert.equal(weightedSum(without(cases[3]!.barcode), weightsTo(9)), 696)
  })

  it('is numbered as the bank shows it', () => {
    const show = (code: string, account: Partial<BankAccount>, number: string) =>
      banks.get(code)!.showNumber(accountOf(account), number)
    assert.equal(show('341', itau, '12345678'), '110/12345678-8')
    assert.equal(show('341', { ...itau, wallet: '168' }, '00258281'), '168/00258281-0')
    assert.equal(show('237', { wallet: '19' }, '00000000002'), '19/00000000002-8')
    assert.equal(show('237', { wallet: '19' }, '00000000001'), '19/00000000001-P')
    assert.equal(show('001', { agreement: '3128557' }, '0000000001'), '31285570000000001')
    assert.equal(show('001', { agreement: '050094' }, '01448'), '05009401448-1')
    assert.equal(show('104', caixa, '000000000000019'), '14000000000000019-7')
    assert.equal(show('033', santander, '566612457800'), '566612457800-2')
  })

  it('has every digit that a bank can give a number', () => {
    const given = (code: string, account: Partial<BankAccount>) => {
      const [bank, one] = [banks.get(code)!, accountOf(account)]
      const numbers = Array.from({ length: 200 }, (_, at) => String(at).padStart(bank.numberLength(one), '0'))
      return [...new Set(numbers.map(number => bank.numberDigit(one, number)))].sort().join('')
    }
    assert.equal(given('001', { agreement: '050094' }), '0123456789X')
    assert.equal(given('237', { wallet: '19' }), '0123456789P')
    assert.equal(given('104', caixa), '0123456789')
    assert.equal(given('033', santander), '0123456789')
  })

  it('may be numbered freely by an agreement of six digits, in wallet 21', () => {
    const [bank, account] = [banks.get('001')!, accountOf({ agreement: '123456', wallet: '21' })]
    assert.equal(bank.numberLength(account), 17)
    assert.equal(bank.freeField(account, '00000000000000007'), '1234560000000000000000721')
  })

  it('shows its account', () => {
    assert.equal(banks.get('341')!.showAccount(accountOf({ ...itau, accountDigit: '7' })), '0057/12345-7')
    assert.equal(banks.get('104')!.showAccount(accountOf({ ...caixa, agency: '0012' })), '0012/005507-7')
    assert.equal(
      banks
        .get('104')!
        .freeField(accountOf({ agreement: '1100007' }), '222333777777777')
        .slice(0, 7),
      '1100007',
    )
    assert.equal(banks.get('033')!.showAccount(accountOf({ ...santander, agency: '0012' })), '0012/0282033')
  })
})

describe('a due-date factor', () => {
  it('counts days, and begins again at 1000', () => {
    const known = {
      '2000-07-03': 1000,
      '2000-07-04': 1001,
      '2002-05-01': 1667,
      '2010-11-17': 4789,
      '2025-02-21': 9999,
      '2025-02-22': 1000,
      '2025-02-23': 1001,
      '2049-10-13': 9999,
      '2049-10-14': 1000,
      '2026-11-20': 1636,
      '2026-12-01': 1647,
      '2029-05-20': 2548,
    }
    for (const [day, factor] of Object.entries(known)) assert.equal(dueFactor(day), String(factor), day)
  })

  it('means the one day that is near', () => {
    assert.equal(dueDayOf('1647', '2026-11-20'), '2026-12-01')
    assert.equal(dueDayOf('9999', '2025-02-20'), '2025-02-21')
    assert.equal(dueDayOf('2501', '2014-03-13'), '2029-04-03')
    assert.equal(dueDayOf('3000', '2014-03-13'), undefined) // 2005-12-24 is 3001 days before
    assert.equal(dueDayOf('3001', '2014-03-13'), '2005-12-25')
    assert.equal(dueDayOf('9999', '2040-01-01'), '2049-10-13')
    assert.equal(dueDayOf('0000', '2026-11-20'), undefined)
    assert.equal(dueDayOf('0999', '2026-11-20'), undefined)
  })

  it('is read back from 3000 days before to 5500 days after, whatever the day', () => {
    const first = Date.parse('2009-01-01') / 86_400_000
    const dayOf = (at: number) => new Date(at * 86_400_000).toISOString().slice(0, 10)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: -3000, max: 5500 }), (at, distance) => {
        const day = dayOf(first + at + distance)
        assert.equal(dueDayOf(dueFactor(day), dayOf(first + at)), day)
      }),
      { numRuns: 500 },
    )
  })
})

it('a tax id has its two digits, and may hold letters where companies have them', () => {
  const good = {
    '11144477735': 'cpf',
    '529.982.247-25': 'cpf',
    '12345678909': 'cpf',
    '11.222.333/0001-81': 'cnpj',
    '11222333000181': 'cnpj',
    '12ABC34501DE35': 'cnpj',
    '12.ABC.345/01DE-35': 'cnpj',
  }
  for (const [text, kind] of Object.entries(good))
    assert.deepEqual(readTaxId(text), { kind, id: text.replace(/[./-]/g, '') }, text)
  for (const bad of [
    '11111111111',
    '00000000000000',
    '11144477736',
    '11144477745',
    '11222333000182',
    '12ABC34501DE36',
    '12abc34501de35',
    '12ABC34501DEAB',
    '1114447773',
    '111444777355',
    '111 444 777 35',
    '１1144477735',
    '',
    '-',
  ])
    assert.equal(readTaxId(bad), undefined, bad)
  for (const text of ['11144477735', '11222333000181', '12ABC34501DE35'])
    for (const changed of changes(text.slice(-2))) assert.equal(readTaxId(text.slice(0, -2) + changed), undefined, changed)
})

it('a Pix code is sealed', () => {
  assert.equal(pixSeal('123456789'), '29B1')
  assert.equal(
    pixCode({ key: '123e4567-e12b-12d1-a456-426655440000' }, 'Fulano de Tal', 'BRASILIA'),
    '00020126580014br.gov.bcb.pix0136123e4567-e12b-12d1-a456-4266554400005204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***63041D3D',
  )
  assert.equal(
    pixCode({ location: 'pix.example.com/8b3da2f39a4140d1a91abd93113bd441' }, 'Fulano de Tal', 'BRASILIA'),
    '00020101021226700014br.gov.bcb.pix2548pix.example.com/8b3da2f39a4140d1a91abd93113bd4415204000053039865802BR5913Fulano de Tal6008BRASILIA62070503***630464E4',
  )
  const withAmount = pixCode({ key: '15794666323', amount: '1.00' }, 'CLENILTON CRUZ DE ALENCAR', 'MANAUS')
  const given =
    '00020126330014BR.GOV.BCB.PIX01115794666323452040000530398654041.005802BR5925CLENILTON CRUZ DE ALENCAR6006MANAUS62070503***6304'
  assert.equal(pixSeal(given), 'FA88')
  assert.equal(withAmount.slice(62, -4), given.slice(62)) // theirs names the scheme in capitals and has another key
  assert.throws(() => pixCode({ key: 'k' }, 'x'.repeat(26), 'BRASILIA'), /field 59/)
  assert.throws(() => pixCode({ key: 'k' }, 'São', 'BRASILIA'), /field 59/)
  assert.throws(() => pixCode({ key: 'k' }, 'x', 'x'.repeat(16)), /field 60/)
  assert.throws(() => pixCode({ key: 'k' }, 'x', 'x', 'r'.repeat(26)), /field 05/)
})

describe('the number of a store slip', () => {
  const slip = { prefix: '20', reference: '000000123455', dueOn: '2026-12-01', amount: 123_45 }
  const number = '200000001234552612010000123456'

  it('holds reference, due date and amount', () => {
    assert.equal(storeReference('12345'), slip.reference)
    assert.equal(storeNumber(slip), number)
    assert.deepEqual(readStoreNumber(number), slip)
    assert.throws(() => storeNumber({ ...slip, reference: '000000123456' }))
    assert.throws(() => storeNumber({ ...slip, amount: 1_000_000_000 }))
  })

  it('shows each changed digit, and each two that changed places', () => {
    assert.equal(changes(number).length, 270)
    for (const changed of changes(number)) assert.equal(readStoreNumber(changed), undefined, changed)
    const swaps = [...number].flatMap((digit, at) =>
      at > 0 && digit !== number[at - 1] ? [number.slice(0, at - 1) + digit + number[at - 1] + number.slice(at + 1)] : [],
    )
    assert.equal(swaps.length, 19)
    for (const swapped of swaps) assert.equal(readStoreNumber(swapped), undefined, swapped)
  })

  it('has a reference that is as safe when it is typed', () => {
    assert.ok(isStoreReference(slip.reference))
    for (const changed of changes(slip.reference)) assert.ok(!isStoreReference(changed), changed)
    assert.ok(!isStoreReference(slip.reference.slice(1)))
  })
})

it('a CLABE has its digit', () => {
  for (const good of ['032180000118359719', '002010077777777771']) {
    assert.ok(isClabe(good), good)
    for (const changed of changes(good)) assert.ok(!isClabe(changed), changed)
  }
  assert.ok(!isClabe('03218000011835971'))
})
