// What banks and store chains tell in their files, as it is read: amounts, codes, numbers, and what is refused. The bank writes with its own hand.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cnab240 } from '../src/clearing/cnab/cnab240.ts'
import { cnab400 } from '../src/clearing/cnab/cnab400.ts'
import { type RecordLayout, readRecord, writeRecord } from '../src/clearing/cnab/layout.ts'
import type { Movement, ReturnsAccount } from '../src/clearing/returns/movement.ts'
import { readReturn } from '../src/clearing/returns/readReturn.ts'
import { banks } from '../src/connectors/slips/banks/banks.ts'
import { type BankPlace, returnText, type ToldTitle } from '../src/sandbox/slipBank/returnText.ts'
import { returnFaults } from '../src/sandbox/slipBank/slipBank.ts'
import { chainText } from '../src/sandbox/storeChain.ts'

const places = {
  itau400: { bank: '341', layout: 'cnab400', agency: '0057', account: '12345', accountDigit: '7', wallet: '110', agreement: '' },
  itau240: { bank: '341', layout: 'cnab240', agency: '0057', account: '12345', accountDigit: '7', wallet: '110', agreement: '' },
  bradesco400: {
    bank: '237',
    layout: 'cnab400',
    agency: '0031',
    account: '0095279',
    accountDigit: '1',
    wallet: '19',
    agreement: '4242',
  },
  brasil400: {
    bank: '001',
    layout: 'cnab400',
    agency: '4042',
    account: '00061900',
    accountDigit: '6',
    wallet: '17',
    agreement: '3128557',
  },
  brasil240: {
    bank: '001',
    layout: 'cnab240',
    agency: '4042',
    account: '00061900',
    accountDigit: '6',
    wallet: '17',
    agreement: '3128557',
  },
  caixa240: { bank: '104', layout: 'cnab240', agency: '0012', account: '', accountDigit: '', wallet: '', agreement: '005507' },
} as const satisfies Record<string, BankPlace>
type Place = keyof typeof places

/** A number of ours, and how the bank writes it in that layout. */
const numbers: Readonly<Record<Place, readonly [ours: string, theirs: string]>> = {
  itau400: ['12345678', '12345678'],
  itau240: ['12345678', '110123456788'],
  bradesco400: ['00000000002', '000000000028'],
  brasil400: ['0000000001', '31285570000000001'],
  brasil240: ['0000000001', '31285570000000001'],
  caixa240: ['000000000000019', '14000000000000019'],
}

const accountOf = (place: Place): ReturnsAccount => {
  const { bank, ...rest } = places[place]
  return { kind: 'bank', name: 'test', currency: 'BRL', ...rest, bank: banks.get(bank)! }
}
const told = (place: Place, more: Partial<ToldTitle>): ToldTitle => ({
  number: numbers[place][1],
  occurrence: '06',
  occurredOn: '2026-12-01',
  creditedOn: '2026-12-02',
  face: 123_45,
  paid: 123_45,
  receiver: '23700123',
  ...more,
})
const bytes = (text: string) => Buffer.from(text, 'latin1')
function readAtOnce(...given: Parameters<typeof readReturn>) {
  const steps = readReturn(...given)
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value
  }
}
const fileOf = (place: Place, ...titles: Partial<ToldTitle>[]) =>
  returnText(
    places[place],
    7,
    '2026-12-02',
    titles.map(one => told(place, one)),
  )
const linesOf = (place: Place, text: string) => {
  const file = readAtOnce(bytes(text), accountOf(place))
  if ('broken' in file) throw new Error(file.broken)
  return [...file.lines]
}
const one = (place: Place, more: Partial<ToldTitle> = {}, change = (text: string) => text): Movement => {
  const [line] = linesOf(place, change(fileOf(place, more)))
  assert.ok(line && 'line' in line, JSON.stringify(line))
  return line.line
}
const why = (place: Place, text: string): string => (readAtOnce(bytes(text), accountOf(place)) as { broken: string }).broken
/** Something else at a column of a row, both from 1. */
const put = (row: number, column: number, words: string) => (text: string) => {
  const rows = text.split('\r\n')
  rows[row - 1] = rows[row - 1]!.slice(0, column - 1) + words + rows[row - 1]!.slice(column - 1 + words.length)
  return rows.join('\r\n')
}

describe('a layout', () => {
  const layouts: [string, RecordLayout][] = [
    ...Object.entries(cnab240),
    ...[...cnab400].flatMap(([bank, all]) =>
      Object.entries(all).map(([name, one]): [string, RecordLayout] => [`${bank} ${name}`, one]),
    ),
  ]
  for (const [name, layout] of layouts)
    it(`has its fields in order, none over another: ${name}`, () => {
      let last = 0
      const given: Record<string, string> = {}
      for (const [field, from, to, kind, fixed] of layout.fields) {
        assert.ok(from > last && to >= from && to <= layout.width, field)
        assert.ok(!kind.startsWith('d') || to - from === (kind === 'd8' ? 7 : 5), field)
        assert.ok(fixed === undefined || fixed.length <= to - from + 1, field)
        last = to
        given[field] = fixed ?? { n: '7'.repeat(to - from + 1), x: 'A', v: '42', d8: '2026-12-01', d6: '2026-12-01' }[kind]
      }
      const row = writeRecord(layout, given)
      assert.equal(row.length, layout.width)
      assert.deepEqual({ ...(readRecord(layout, row) as object) }, given)
    })

  it('refuses what does not fit a field', () => {
    assert.throws(() => writeRecord(cnab240.order, { face: 'A' }), /face/)
    assert.throws(() => writeRecord(cnab240.order, { face: '1'.repeat(16) }), /face/)
    assert.equal(writeRecord(cnab240.payer, { payerName: 'N'.repeat(50) }).slice(33, 74), `${'N'.repeat(40)} `)
  })
})

describe('a return', () => {
  for (const place of Object.keys(places) as Place[])
    it(`tells what was paid, on which slip: ${place}`, () => {
      const line = one(place, { fee: 3_33, document: 'ORDER 1' })
      assert.deepEqual(
        { number: line.number, meaning: line.meaning, paid: line.paid, on: line.occurredOn, credited: line.creditedOn },
        { number: numbers[place][0], meaning: 'paid', paid: 123_45, on: '2026-12-01', credited: '2026-12-02' },
      )
      assert.match(line.receiver, /^237 0+123$/)
      assert.equal(line.shown.document, 'ORDER 1')
      const file = readAtOnce(bytes(fileOf(place, {}, {})), accountOf(place))
      assert.deepEqual('broken' in file ? file : [file.fileNumber, file.madeOn, file.lines.length], [7, '2026-12-02', 2])
    })

  it('of Itaú tells what it credits, less the fee or without it; both ways of counting must agree', () => {
    const paid = (face: number, fee: number, moved: number, more: Partial<ToldTitle>, interest = more.interest ?? 0) => {
      const text = fileOf('itau400', { face, fee, ...more })
      const digits = (value: number) => String(value).padStart(13, '0')
      const [line] = linesOf('itau400', put(2, 267, digits(interest))(put(2, 254, digits(moved))(text)))
      return line && 'line' in line ? line.line.paid : line?.malformed
    }
    assert.equal(paid(39541, 333, 39209, { interest: 1 }), 39542)
    assert.equal(paid(54560, 333, 34067, { discount: 20160 }), 34400)
    assert.equal(paid(4000, 210, 3790, {}), 4000)
    assert.equal(paid(4000, 210, 4000, {}), 4000)
    assert.match(paid(38975, 333, 20997, { discount: 17645 }, 12312312) as string, /credited and the fee are 21330/)
    assert.match(paid(4000, 210, 3791, {}) as string, /are 4001/)
  })

  it('of the others tells what was paid, whatever the fee and the credit', () => {
    assert.equal(one('brasil240', { face: 4000, paid: 4000, fee: 500 }).paid, 4000)
    assert.equal(one('brasil400', { face: 9064, paid: 9064, fee: 500 }).paid, 9064)
    assert.equal(one('caixa240', { face: 8000, paid: 8000, fee: 125 }).paid, 8000)
    const discounted = one('caixa240', { face: 8000, paid: 7000, discount: 1000 })
    assert.deepEqual([discounted.paid, discounted.agreed], [7000, -1000])
    assert.equal(one('bradesco400', { face: 500, paid: 500 }).paid, 500)
  })

  it('is money by its code and never by its amount', () => {
    assert.deepEqual(
      [one('bradesco400', { occurrence: '02', paid: 145_000 })].map(({ meaning, paid }) => [meaning, paid]),
      [['entered', 0]],
    )
    assert.equal(one('itau400', { occurrence: '25' }).meaning, 'note')
    assert.equal(one('itau400', { occurrence: '95' }).meaning, 'note')
  })

  // biome-ignore format: a table
  const codes: readonly (readonly [Place, string])[] = [
    ['brasil240',   '06 paid · 17 paidLate · 09 writtenOff · 02 entered · 03 refused · 26 refused · 30 refused · 50 note · 44 undone · 28 note'],
    ['itau400',     '06 paid · 07 paid · 08 paid · 10 paid · 17 refused · 09 writtenOff · 05 writtenOff · 47 writtenOff · 02 entered · 71 entered · 03 refused · 65 note · 69 undone · 95 note'],
    ['bradesco400', '06 paid · 15 paid · 17 paidLate · 09 writtenOff · 10 writtenOff · 02 entered · 03 refused · 16 note · 22 undone · 40 undone'],
    ['brasil400',   '06 paid · 07 paid · 08 paid · 15 paid · 05 paidLate · 09 writtenOff · 10 writtenOff · 02 entered · 03 refused · 46 note · 44 undone'],
  ]
  for (const [place, all] of codes)
    it(`has codes that mean what its bank says: ${place}`, () => {
      for (const [code, meaning] of all.split(' · ').map(pair => pair.split(' ')))
        assert.equal(one(place, { occurrence: code! }).meaning, meaning, code)
      const [line] = linesOf(place, fileOf(place, { occurrence: '99' }))
      assert.match((line as { malformed: string }).malformed, /the code 99 means/)
    })
  it('of Banco do Brasil knows no 17', () => {
    assert.ok('malformed' in linesOf('brasil400', fileOf('brasil400', { occurrence: '17' }))[0]!)
  })

  it('names a slip only by a number with the right digit, of the right wallet or agreement', () => {
    assert.equal(one('itau400', {}, put(2, 94, '1')).number, undefined)
    assert.equal(one('itau400', {}, put(2, 83, '109')).number, undefined)
    assert.equal(one('itau240', { number: '110123456789' }).number, undefined)
    assert.equal(one('bradesco400', { number: '000000000027' }).number, undefined)
    assert.equal(one('bradesco400', { number: '00000000001P' }).number, '00000000001')
    assert.equal(one('brasil400', { number: '31285580000000001' }).number, undefined)
    assert.equal(one('caixa240', { number: '24000000000000019' }).number, undefined)
    assert.equal(one('caixa240', { number: 'NOT A NUMBER' }).theirs, 'NOT A NUMBER')
  })

  it('is told apart by what happened, and not by when it is told', () => {
    const subject = (more: Partial<ToldTitle>) => {
      const [line] = linesOf('itau400', fileOf('itau400', more))
      return (line as { subject: string }).subject
    }
    assert.equal(subject({ stage: 'I' }), subject({ stage: 'C', creditedOn: '2026-12-03' }))
    const others = [
      {},
      { occurrence: '02' },
      { occurredOn: '2026-12-02' },
      { paid: 1, face: 1 },
      { receiver: '23700124' },
      { receiver: '34100123' },
      { number: '12345679' },
    ]
    assert.equal(new Set(others.map(subject)).size, others.length)
  })

  it('of which a line cannot be read is read but for that line', () => {
    const malformed = (place: Place, change: (text: string) => string) =>
      (linesOf(place, change(fileOf(place, {}, {}))) as { malformed?: string }[]).map(line => line.malformed)
    assert.match(malformed('itau400', put(2, 111, '311126'))[0]!, /columns 111 to 116 \(occurredOn\) hold no day/)
    assert.match(malformed('brasil240', put(4, 138, '31120000'))[0]!, /\(occurredOn\) hold no day/)
    assert.match(malformed('itau400', put(2, 153, '12345 '))[0]!, /face/)
    assert.match(malformed('itau400', put(2, 160, '      '))[0]!, /face/) // not 12 centavos
    assert.equal(malformed('itau400', put(2, 153, '12345 '))[1], undefined)
    assert.match(malformed('brasil240', put(4, 138, '00000000'))[0]!, /without an amount or a day/)
    assert.match(malformed('brasil240', put(4, 78, '0'.repeat(15)))[0]!, /without an amount or a day/)
    assert.match(malformed('brasil240', put(4, 14, 'Y'))[0]!, /without an amount or a day/)
    assert.match(
      malformed('brasil240', put(4, 16, '17'))[0] ?? why('brasil240', put(4, 16, '17')(fileOf('brasil240', {}))),
      /without/,
    )
  })

  // biome-ignore format: a table
  const broken: readonly (readonly [string, Place, (text: string) => string, RegExp])[] = [
    ['cut', 'itau400', returnFaults.cut, /its end is missing|out of order/],
    ['cut', 'brasil240', returnFaults.cut, /its end is missing|hold no|no place/],
    ['without its end', 'itau400', returnFaults.withoutEnd, /its end is missing/],
    ['without its end', 'brasil240', returnFaults.withoutEnd, /its end is missing/],
    ['marked', 'itau400', text => Buffer.from(returnFaults.byteOrderMark(text)).toString('latin1'), /byte-order mark/],
    ['too wide', 'itau400', returnFaults.wideLines, /line 1 is 472 columns wide, not 400/],
    ['too wide', 'brasil240', returnFaults.wideLines, /line 1 is 312 columns wide, not 240/],
    ['with a line twice', 'itau400', returnFaults.lineTwice, /line 4 is out of order/],
    ['with a line twice', 'brasil240', returnFaults.lineTwice, /line 4: it is out of order/],
    ['with a line gone', 'itau400', returnFaults.lineGone, /line 3 is out of order/],
    ['with a line gone', 'brasil240', returnFaults.lineGone, /line 3: it is out of order/],
    ['of another bank', 'itau400', put(1, 77, '237'), /of bank 237, not of 341/],
    ['of another bank', 'brasil240', put(1, 1, '341'), /of bank 341/],
    ['with a line of another bank', 'brasil240', put(3, 1, '341'), /line 3: it is of bank 341/],
    ['of another account', 'itau400', put(1, 33, '54321'), /another account/],
    ['of another agency', 'itau400', put(1, 27, '0058'), /another account/],
    ['of another account', 'brasil240', put(1, 59, '000000054321'), /another account/],
    ['of another agreement', 'bradesco400', put(1, 43, '4243'), /another account/],
    ['of another agreement', 'brasil400', put(1, 150, '3128558'), /another account/],
    ['of another agreement', 'caixa240', put(1, 33, '005508'), /another account/],
    ['an order', 'itau400', put(1, 2, '1REMESSA'), /line 1/],
    ['an order', 'brasil240', put(1, 143, '1'), /no return/],
    ['counted otherwise', 'itau400', put(4, 213, '00000003'), /it has 2 titles, its end says 3/],
    ['counted otherwise', 'brasil240', put(7, 18, '000007'), /lines: 6, its end says 7/],
    ['counted otherwise', 'brasil240', put(7, 24, '000003'), /titles: 2, its end says 3/],
    ['summed otherwise', 'brasil240', put(7, 30, '00000000000024691'), /24690, its end says 24691/],
    ['counted otherwise', 'brasil240', put(8, 24, '000009'), /8 lines, its end says 9/],
    ['counted otherwise', 'brasil240', put(8, 18, '000002'), /1 lots, its end says 2/],
    ['longer than its end', 'itau400', text => `${text}${' '.repeat(394)}000005\r\n`, /behind the end/],
    ['longer than its end', 'brasil240', text => `${text}001\r\n`, /behind the end/],
    ['empty', 'itau400', () => '\r\n', /empty/],
    ['empty', 'brasil240', () => '', /empty/],
    ['no such file', 'itau400', () => 'hello', /line 1/],
    ['no such file', 'brasil240', () => 'hello', /line 1/],
  ]
  for (const [name, place, change, expected] of broken)
    it(`is refused whole when it is ${name}: ${place} ${expected}`, () => {
      assert.match(why(place, change(fileOf(place, {}, {}))), expected)
    })

  it('may have lost the blanks at its ends, and end as old systems end files', () => {
    for (const place of Object.keys(places) as Place[]) {
      const text = fileOf(place, {}, { occurrence: '02' })
      const all = linesOf(place, text)
      for (const change of [
        returnFaults.blanksCut,
        (text: string) => text.replaceAll('\r\n', '\n'),
        (text: string) => text.replaceAll('\r\n', '\r\r\n'),
        (text: string) => text.slice(0, -2),
        (text: string) => `${text}\r\n\x1a`,
        (text: string) => `${text}\x1a\r\n`,
        (text: string) => `${text.slice(0, -2)}\x1a`,
        (text: string) => `${text}${'\r\n'.repeat(1000)}`,
        (text: string) => `${text}${' '.repeat(240)}\r\n \r\n`,
        (text: string) => text + '\0'.repeat(600),
        (text: string) => text.replace(/ +\r\n/g, blanks => `${'\0'.repeat(blanks.length)}\r\n`),
      ])
        assert.deepEqual(linesOf(place, change(text)), all)
      for (const more of ['\x1a\x1a', '\x1a\r\n\x1a', '\r\n\x1ax', '\0x', '\n'.repeat(70_000)])
        assert.match(
          why(place, text + more),
          /behind the end|is out of order|is empty|no place here|hold no|of bank|no text/,
          JSON.stringify(more.slice(0, 9)),
        )
    }
  })

  it('that is cut anywhere is refused whole, or tells nothing else', () => {
    for (const place of ['itau400', 'brasil240', 'bradesco400'] as const) {
      const text = fileOf(place, {}, { number: numbers[place][1], receiver: '00100001' })
      const all = JSON.stringify(linesOf(place, text))
      for (let at = 0; at < text.length; at++) {
        const file = readAtOnce(bytes(text.slice(0, at)), accountOf(place))
        if (!('broken' in file)) assert.equal(JSON.stringify([...file.lines]), all, `${place} cut at ${at}`)
      }
    }
  })

  it('whose rows are cut behind any column tells the same, or nothing', () => {
    for (const place of ['itau400', 'brasil240', 'bradesco400', 'brasil400'] as const) {
      const text = fileOf(place, { fee: 1, interest: 0 })
      const money = (movement: Movement) => [movement.number, movement.meaning, movement.paid, movement.occurredOn]
      const whole = money(one(place))
      const rows = text.split('\r\n')
      for (const row of [2, 3])
        for (let column = 0; column < rows[row]!.length; column++) {
          const file = readAtOnce(
            bytes(rows.map((all, at) => (at === row ? all.slice(0, column) : all)).join('\r\n')),
            accountOf(place),
          )
          if ('broken' in file) continue
          for (const line of file.lines)
            if ('line' in line && line.line.paid > 0) assert.deepEqual(money(line.line), whole, `${place} ${row} ${column}`)
        }
    }
  })
})

describe('a file in which any byte is another', () => {
  const chain: ReturnsAccount = { kind: 'chain', name: 'oxxo-1', currency: 'MXN', prefix: '20', agreement: 'TOLL' }
  const paidAtStore = { reference: '000000123455', amount: 123_45, store: 'S1', till: '2', folio: '77', day: '2026-12-01' }
  const files: readonly (readonly [name: string, ReturnsAccount, string])[] = [
    ...(Object.keys(places) as Place[]).map(
      place =>
        [place, accountOf(place), fileOf(place, { own: 'order-1' }, { occurrence: '02', document: 'd', reasons: 'A1' })] as const,
    ),
    ['chain', chain, chainText('TOLL', 3, '2026-12-02', [paidAtStore])],
  ]
  const readWhole = (content: Buffer, account: ReturnsAccount) => {
    const file = readAtOnce(content, account)
    return 'broken' in file ? file : { ...file, lines: [...file.lines] }
  }
  for (const [name, account, text] of files)
    it(`is refused, or a question, or says something else that can be stored: ${name}`, () => {
      const whole = bytes(text)
      const width = text.indexOf('\r')
      for (let at = 0; at < whole.length; at++) {
        if (at % (width + 2) >= width) continue
        const [row, column] = [Math.floor(at / (width + 2)) + 1, (at % (width + 2)) + 1]
        const readWith = (byte: number) => {
          const content = Buffer.from(whole)
          content[at] = byte
          return readWhole(content, account)
        }
        for (const letter of ['X', 'e', '-', '+', '.', 'ÿ', '9', '0'])
          assert.doesNotMatch(JSON.stringify(readWith(letter.charCodeAt(0))), /\\u0000/)
        assert.deepEqual(readWith(0), readWith(32), `NUL is a blank in line ${row}, column ${column}`)
        for (const byte of [1, 9, 27, 127]) {
          const told = readWith(byte)
          assert.match('broken' in told ? told.broken : 'read', new RegExp(`^line ${row} has byte ${byte} in column ${column},`))
        }
      }
    })

  it('counts its lines in digits alone', () => {
    assert.match(why('brasil240', put(3, 9, '0x001')(fileOf('brasil240', {}))), /out of order/)
    assert.match(why('itau400', put(2, 395, '2e0   ')(fileOf('itau400', {}))), /out of order/)
  })

  it('has a face that is no amount: the sum of its lot says so', () => {
    const changed = put(3, 91, 'X')(fileOf('brasil240', {}))
    assert.match(why('brasil240', changed), /the lot has a sum of titles of 0, its end says 12345/)
    const uncounted = changed.replace(/^(.{7}5.{21}).*$/m, '$1') // banks may leave the sum out
    assert.match((linesOf('brasil240', uncounted) as { malformed?: string }[])[0]!.malformed!, /\(face\) hold no amount/)
  })
})

describe('the daily file of a store chain', () => {
  const account: ReturnsAccount = { kind: 'chain', name: 'oxxo-1', currency: 'MXN', prefix: '20', agreement: 'TOLL' }
  const barcode = '200000001234552612010000123456'
  const payment = { reference: '000000123455', amount: 123_45, store: 'S1', till: '2', folio: '77', day: '2026-12-01' }
  const read = (text: string) => readAtOnce(bytes(text), account)
  const linesIn = (text: string) => {
    const file = read(text)
    if ('broken' in file) throw new Error(file.broken)
    return [...file.lines]
  }

  it('tells what was paid by the barcode and by the reference', () => {
    const text = chainText('TOLL', 3, '2026-12-02', [
      { ...payment, barcode },
      { ...payment, folio: '78' },
    ])
    const file = read(text)
    assert.deepEqual('broken' in file ? file : [file.fileNumber, file.madeOn, file.lines.length], [3, '2026-12-02', 2])
    for (const line of linesIn(text)) {
      assert.ok('line' in line)
      assert.deepEqual(
        [line.line.number, line.line.paid, line.line.occurredOn, line.line.meaning],
        ['000000123455', 123_45, '2026-12-01', 'paid'],
      )
    }
    const [first, second] = linesIn(text) as { subject: string }[]
    assert.notEqual(first!.subject, second!.subject)
  })

  it('names no slip by a wrong reference, and is a question where the barcode is of another', () => {
    const lineFor = (more: object) => linesIn(chainText('TOLL', 3, '2026-12-02', [{ ...payment, ...more }]))[0]!
    assert.equal((lineFor({ reference: '000000123456' }) as { line: Movement }).line.number, undefined)
    assert.ok('malformed' in lineFor({ barcode, reference: '000000123463' }))
    assert.ok('malformed' in lineFor({ barcode: `21${barcode.slice(2)}` }))
    assert.ok('malformed' in lineFor({ barcode: `${barcode.slice(0, -1)}7` }))
    assert.ok('malformed' in lineFor({ folio: '' }))
    assert.ok('malformed' in lineFor({ amount: 0 }))
  })

  it('is refused whole when it is not whole, or of another', () => {
    const text = chainText('TOLL', 3, '2026-12-02', [payment, { ...payment, folio: '78' }])
    const broken = (changed: string) => (read(changed) as { broken: string }).broken
    assert.match(broken(chainText('OTHER', 3, '2026-12-02', [payment])), /another account/)
    assert.match(broken(chainText('TOLL', 3, '2026-12-02', [payment], 'COP')), /in COP, not in MXN/)
    assert.match(broken(returnFaults.withoutEnd(text)), /end is missing/)
    assert.match(broken(returnFaults.lineTwice(text)), /out of order/)
    assert.match(broken(returnFaults.lineGone(text)), /1 payments, its end says 2/)
    assert.match(broken(put(4, 2, '000003')(text)), /2 payments, its end says 3/)
    assert.match(broken(put(4, 8, '000000024691')(text)), /24690 together, its end says 24691/)
    assert.match(broken(put(2, 50, '000012346')(text)), /24691 together/)
    assert.match(broken(`${text}${text}`), /behind the end/)
  })
})
