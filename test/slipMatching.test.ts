// What banks and store chains tell is matched with slips by their numbers alone: a receipt for each payment, a question for what fits none, and the same books
// however often a file comes and wherever its import dies. What counts is what the merchant reads.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { importReturn, returnsOf } from '../src/clearing/returns/importReturn.ts'
import { banks } from '../src/connectors/slips/banks/banks.ts'
import { plusDays } from '../src/connectors/slips/workingDays.ts'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { returnText, type ToldTitle } from '../src/sandbox/slipBank/returnText.ts'
import { returnFaults } from '../src/sandbox/slipBank/slipBank.ts'
import { chainText } from '../src/sandbox/storeChain.ts'
import { dyingAfter } from './support/dying.ts'
import { sandbox } from './support/gateway.ts'
import { type Clerk, type OfficeReply, signedIn } from './support/office.ts'
import { type AccountName, type IssuedSlip, openDesk, places, type SlipDesk } from './support/slipDesk.ts'

let desk: SlipDesk
before(async () => {
  desk = await openDesk()
})
after(() => desk.stop())

/** As the bank writes a number of ours. */
const theirs: Readonly<Record<AccountName, (number: string) => string>> = {
  'itau-1': number => number,
  'brasil-1': number => `3128557${number}`,
  'bradesco-1': number => number + banks.get('237')!.numberDigit({ ...places['bradesco-1'] }, number),
}
const files = new Map<string, number>()
const nextFile = (account: string): number => {
  files.set(account, (files.get(account) ?? 0) + 1)
  return files.get(account)!
}
const day = '2026-12-02'
const paid = (slip: Pick<IssuedSlip, 'number'>, more: Partial<ToldTitle> = {}): ToldTitle => ({
  number: slip.number,
  occurrence: '06',
  occurredOn: '2020-01-02', // long before any slip here is due
  creditedOn: '2020-01-03',
  face: 123_45,
  paid: 123_45,
  receiver: '23700123',
  ...more,
})
const text = (account: AccountName, titles: readonly ToldTitle[], number = nextFile(account)) =>
  returnText(
    places[account],
    number,
    day,
    titles.map(one => ({ ...one, number: theirs[account](one.number) })),
  )
const read = (account: AccountName, ...titles: ToldTitle[]) => desk.read(account, text(account, titles))
const booksAgree = async () => assert.deepEqual((await examine(desk.gateway.pool)).findings, [])

describe('what is paid', () => {
  it('is a receipt of the slip, with the amount that was paid', async () => {
    for (const account of ['itau-1', 'brasil-1'] as const) {
      const [exact, over, under] = [await desk.issue(account), await desk.issue(account), await desk.issue(account)]
      const first = account === 'itau-1' ? 2 : 3
      const step = account === 'itau-1' ? 1 : 2
      assert.deepEqual(
        await read(
          account,
          paid(exact),
          paid(over, { paid: 130_00, interest: 6_55 }),
          paid(under, { paid: 100_00, rebate: 23_45 }),
        ),
        [first, first + step, first + 2 * step].map(at => `${at} recorded`),
      )
      for (const [slip, amount, more] of [
        [exact, '123.45', {}],
        [over, '130.00', { OVERPAID: '6.55' }],
        [under, '100.00', { UNDERPAID: '23.45' }],
      ] as const) {
        const [receipt, ...others] = await desk.receipts(slip)
        assert.equal(others.length, 0)
        assert.deepEqual(
          [receipt.paymentType, receipt.amount, receipt.currency, receipt.referencedId],
          ['RC', amount, 'BRL', slip.id],
        )
        const { paidOn, creditedOn, acquirerReturnCode, receivedBy, OVERPAID, UNDERPAID, DUPLICATE, LATE } = receipt.resultDetails
        assert.deepEqual([paidOn, creditedOn, acquirerReturnCode], ['2020-01-02', '2020-01-03', '06'])
        assert.match(receivedBy, /^237 0+123$/)
        assert.deepEqual(
          { OVERPAID, UNDERPAID, DUPLICATE, LATE },
          { OVERPAID: undefined, UNDERPAID: undefined, DUPLICATE: undefined, LATE: undefined, ...more },
        )
      }
    }
    await booksAgree()
  })

  it('late, or twice, is told as such, each payment with a receipt of its own', async () => {
    const slip = await desk.issue('brasil-1')
    assert.deepEqual(await read('brasil-1', paid(slip)), ['3 recorded'])
    assert.deepEqual(await read('brasil-1', paid(slip, { occurrence: '17', occurredOn: '2020-01-05' })), ['3 recorded'])
    const [first, second] = await desk.receipts(slip)
    assert.deepEqual([first.resultDetails.DUPLICATE, second.resultDetails.DUPLICATE], [undefined, 'true'])
    assert.deepEqual([first.resultDetails.LATE, second.resultDetails.LATE], [undefined, 'true'])
    const late = await desk.issue('bradesco-1')
    assert.deepEqual(await read('bradesco-1', paid(late, { occurredOn: '2099-01-02' })), ['2 recorded'])
    assert.equal((await desk.receipts(late))[0].resultDetails.LATE, 'true')
    await booksAgree()
  })

  it('on a number that is no slip of the account is nobody’s, until a slip has it', async () => {
    const before = await desk.countReceipts()
    const strange = paid({ number: '99999999' })
    assert.deepEqual(await read('itau-1', strange), ['2 refused: no slip of the account has this number'])
    const other = await desk.issue('brasil-1')
    const [line] = (await read('itau-1', paid({ number: other.number.slice(-8) }))) as string[]
    assert.match(line!, /2 refused: no slip|recorded/) // the other account's number may be one of this account's own
    const [open] = (await desk.cases('returnLine')).filter(({ subject }) => subject.includes('99999999'))
    assert.match(open!.subject, /^itau-1 11099999999\d paid 2020-01-02 12345/)
    assert.deepEqual((open!.details.theirs as { paid: number }).paid, 12345)
    assert.deepEqual(await desk.receipts(other), [])
    assert.ok((await desk.countReceipts()) <= before + 1)
    await booksAgree()
  })

  it('in a shop is a receipt by its reference, once for each folio', async () => {
    const slip = await desk.issue('oxxo-1')
    const payment = { reference: slip.number, amount: 123_45, store: 'S1', till: '2', folio: '77', day: '2020-01-02' }
    const file = chainText('TOLL', 1, day, [
      { ...payment, barcode: slip.barcode },
      { ...payment, folio: '78' },
      { ...payment, reference: '000000123466', folio: '79' },
    ])
    assert.deepEqual(await desk.read('oxxo-1', file), [
      '2 recorded',
      '3 recorded',
      '4 refused: no slip of the account has this number',
    ])
    const receipts = await desk.receipts(slip)
    assert.deepEqual(
      receipts.map(({ amount, currency, resultDetails }) => [
        amount,
        currency,
        resultDetails.receivedBy,
        resultDetails.DUPLICATE,
      ]),
      [
        ['123.45', 'MXN', 'S1 2 77', undefined],
        ['123.45', 'MXN', 'S1 2 78', 'true'],
      ],
    )
    await booksAgree()
  })
})

describe('what is no money', () => {
  it('is noted, and what somebody must look at is a question', async () => {
    const before = await desk.countReceipts()
    const slip = await desk.issue('itau-1')
    const told = (await read(
      'itau-1',
      ...['02', '09', '25', '95', '65', '03', '17', '69', '99'].map(occurrence => paid(slip, { occurrence })),
    )) as string[]
    assert.deepEqual(
      told.slice(0, 5),
      [2, 3, 4, 5, 6].map(at => `${at} noted`),
    )
    assert.match(
      told.slice(5).join('\n'),
      /7 refused: the bank does not do .*\n8 refused: the bank does not do .*\n9 refused: a payment that was told before is none.*\n10 refused: nobody has said what the code 99 means/,
    )
    assert.equal(await desk.countReceipts(), before)
  })

  it('or is told when it is processed and again when it is credited, is money once', async () => {
    const slip = await desk.issue('itau-1')
    assert.deepEqual(await read('itau-1', paid(slip, { stage: 'I', creditedOn: '' })), ['2 recorded'])
    assert.deepEqual(await read('itau-1', paid(slip, { stage: 'C', creditedOn: '2020-01-06' })), ['2 known'])
    assert.equal((await desk.receipts(slip)).length, 1)
  })
})

describe('a file', () => {
  it('counts once, whatever it is called, and goes on where its import died', async () => {
    const slips = await Promise.all(Array.from({ length: 9 }, () => desk.issue('itau-1'))) // some lines are settled side by side
    const file = text(
      'itau-1',
      slips.map(slip => paid(slip)),
    )
    await assert.rejects(desk.read('itau-1', file, { dieAt: 2 }), /died/)
    const outcomes = ((await desk.read('itau-1', file)) as string[]).map(line => line.replace(/^\d+ /, ''))
    assert.equal(outcomes.join(' '), [...outcomes].sort().join(' ')) // known ones first
    assert.deepEqual([outcomes.length, outcomes[0], outcomes[8]], [9, 'known', 'recorded'])
    const known = slips.map((_, at) => `${at + 2} known`)
    assert.deepEqual(await desk.read('itau-1', file, { name: 'another name' }), known)
    for (const slip of slips) assert.equal((await desk.receipts(slip)).length, 1)
    await booksAgree()
  })

  it('that two read at once counts once', async () => {
    const slips = [await desk.issue('brasil-1'), await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    const file = text(
      'brasil-1',
      slips.map(slip => paid(slip)),
    )
    const both = (await Promise.all([desk.read('brasil-1', file), desk.read('brasil-1', file)])) as string[][]
    assert.equal(both.flat().filter(line => line.endsWith('recorded')).length, 3)
    for (const slip of slips) assert.equal((await desk.receipts(slip)).length, 1)
  })

  it('is the same in the books wherever its import dies', async () => {
    const strange = paid({ number: '99999998' })
    let deaths = 0
    for (let statements = 0; deaths === statements; statements++) {
      const slip = await desk.issue('itau-1')
      const file = text('itau-1', [paid(slip), { ...strange, occurredOn: plusDays('2020-01-01', statements) }])
      const parts = { ...desk.parts, database: dyingAfter(desk.parts.database, statements) }
      const told = await desk.read('itau-1', file, { parts }).catch((error: Error) => error.message)
      if (told === 'died') deaths++
      const [first, second] = (await desk.read('itau-1', file)) as string[]
      assert.match(first!, /^2 (known|recorded)$/)
      assert.equal(second, '3 refused: no slip of the account has this number')
      assert.equal((await desk.receipts(slip)).length, 1)
    }
    assert.ok(deaths > 20, String(deaths))
    assert.equal((await desk.cases('returnLine')).filter(({ subject }) => subject.includes('99999998')).length, deaths + 1)
    await booksAgree()
  })

  it('is kept, and refused whole, when it is not whole: nothing of it is in the books', async () => {
    const slip = await desk.issue('itau-1')
    const number = nextFile('itau-1')
    const file = text('itau-1', [paid(slip), paid(await desk.issue('itau-1'))], number)
    const before = await desk.countReceipts()
    for (const fault of ['cut', 'byteOrderMark', 'withoutEnd', 'wideLines', 'lineTwice', 'lineGone'] as const) {
      const told = await desk.read('itau-1', returnFaults[fault](file), { name: fault })
      assert.equal(typeof told, 'string', fault)
      const [open] = (await desk.cases('returnFile')).filter(({ details }) => details.file === fault)
      assert.equal(open!.details.why, told)
    }
    assert.equal(await desk.countReceipts(), before)
    const { rows } = await desk.gateway.pool.query('select count(*) from return_files where refused is not null and number = 0')
    assert.equal(Number(rows[0].count), 6)
    // The whole file comes under the same number.
    assert.deepEqual(await desk.read('itau-1', file), ['2 recorded', '3 recorded'])
  })

  it('with the number of another is refused, until somebody has seen that the bank gave it twice', async () => {
    const [one, other] = [await desk.issue('itau-1'), await desk.issue('itau-1')]
    const number = nextFile('itau-1')
    assert.deepEqual(await desk.read('itau-1', text('itau-1', [paid(one)], number), { name: 'first.ret' }), ['2 recorded'])
    const second = text('itau-1', [paid(one), paid(other)], number)
    assert.equal(await desk.read('itau-1', second), `its number, ${number}, is that of first.ret, which has other bytes`)
    assert.deepEqual(await desk.receipts(other), [])
    assert.deepEqual(await desk.read('itau-1', second, { sameNumber: true }), ['2 known', '3 recorded'])
    assert.equal((await desk.receipts(one)).length, 1)
  })

  it('that is missing between two is told of, and taken back when it comes', async () => {
    const last = nextFile('brasil-1')
    const [between, after] = [nextFile('brasil-1'), nextFile('brasil-1')]
    const file = async (number: number) => text('brasil-1', [paid(await desk.issue('brasil-1'))], number)
    await desk.read('brasil-1', await file(last))
    const report = await importReturn(
      desk.parts,
      returnsOf(desk.accounts.get('brasil-1')!),
      'late',
      Buffer.from(await file(after)),
      () => {},
    )
    assert.deepEqual('broken' in report ? report : [report.missing, report.fileNumber, report.recorded], [[between], after, 1])
    const subjects = async () => (await desk.cases('returnMissing')).map(({ subject }) => subject)
    assert.deepEqual(await subjects(), [`brasil-1 ${between}`])
    assert.deepEqual(await desk.read('brasil-1', await file(between)), ['3 recorded'])
    assert.deepEqual(await subjects(), [])
  })

  it('with a line twice counts it once and asks', async () => {
    const slip = await desk.issue('itau-1')
    const told = (await read('itau-1', paid(slip), paid(slip))) as string[]
    assert.deepEqual(told, [
      '2 recorded',
      '3 refused: line 2 says the same and counts once: ask the bank whether it was paid twice',
    ])
    assert.equal((await desk.receipts(slip)).length, 1)
  })

  it('of another account is refused, and keeps its payers to itself', async () => {
    const file = text('itau-1', [paid(await desk.issue('itau-1'), { own: 'CANARY-OF-A-PAYER' })])
    assert.equal(await desk.read('bradesco-1', file), 'it is of bank 341, not of 237')
    const { rows } = await desk.gateway.pool.query(
      `select r::text || encode(coalesce(sealed, ''), 'escape') as text from return_files r`,
    )
    assert.ok(rows.length > 0 && rows.every(({ text }) => !text.includes('CANARY')))
  })
})

describe('a file that somebody of the staff hands in', () => {
  const page = '/office/files'
  const handIn = (clerk: Clerk, what: string, name: string, bytes: string) => clerk.upload(page, { what }, { name, bytes })
  const lines = ({ text }: OfficeReply) =>
    [...text.matchAll(/<td>(\d+)<\/td><td>([^<]*)<\/td><td>([^<]*)</g)].map(found => found.slice(1))
  let clerk: Clerk
  before(async () => {
    clerk = await signedIn(desk.gateway, 'finance', [readSeed(sandboxSeed).psp.id])
  })

  it('is read as the command reads it, told line by line, and changes nothing when it comes again', async () => {
    const [slip, strange] = [await desk.issue('itau-1'), paid({ number: '88888888' })]
    const bytes = text('itau-1', [paid(slip), strange])
    const first = await handIn(clerk, 'return:itau-1', 'C:\\<b>.ret', bytes)
    assert.equal(first.status, 200)
    assert.deepEqual(
      lines(first).map(([line, outcome]) => [line, outcome]),
      [
        ['3', 'refused'],
        ['2', 'recorded'],
      ],
    )
    assert.match(first.text, /&lt;b&gt;\.ret is read to its end: 1 recorded, 0 known already, 0 noted, 1 refused\./)
    assert.equal((await desk.receipts(slip)).length, 1)
    const { rows } = await desk.gateway.pool.query(
      `select actor from audit where action = 'fileImported' order by sequence desc limit 1`,
    )
    assert.deepEqual(rows, [{ actor: clerk.id }])
    const again = await handIn(clerk, 'return', 'other name', bytes)
    assert.match(again.text, /was read before, and is known: 0 recorded, 1 known already, 0 noted, 1 refused\./)
    assert.equal((await desk.receipts(slip)).length, 1)
    const [, address] = /href="(\/office\/files\/[0-9a-f]{64})">&lt;b&gt;\.ret/.exec(first.text)!
    assert.match((await clerk.ask(address!)).text, /<td>2<\/td><td>recorded<\/td>[\s\S]*<td>3<\/td><td>refused<\/td>/)
    await booksAgree()
  })

  it('that is not whole is refused by name, and stands among what came', async () => {
    const before = await desk.countReceipts()
    const bytes = text('brasil-1', [paid(await desk.issue('brasil-1'))])
    const cut = await handIn(clerk, 'return:brasil-1', 'cut.ret', bytes.slice(0, -300))
    assert.equal(cut.status, 400)
    assert.match(cut.text, /Nothing of cut\.ret was read: /)
    assert.match((await clerk.ask(page)).text, /cut\.ret[\s\S]{0,200}refused whole: /)
    assert.match((await handIn(clerk, 'return:itau-1', 'other.ret', bytes)).text, /Nothing of other\.ret was read: /)
    assert.match((await handIn(clerk, 'return', 'none.txt', 'hello')).text, /say whose it is/)
    assert.match((await handIn(clerk, 'chargebacks', 'none.csv', 'hello')).text, /does not begin with the heading/)
    assert.equal(await desk.countReceipts(), before)
    const { rows } = await desk.gateway.pool.query(
      `select details from audit where action = 'fileImported' and result = 'refused' order by sequence desc limit 1`,
    )
    assert.match(rows[0].details, /none\.csv/)
  })

  it('that is none, or nothing, or of no kind, is not read', async () => {
    const bytes = text('itau-1', [paid(await desk.issue('itau-1'))])
    for (const [what, sent] of [
      ['return:itau-1', ''],
      ['return:nobody', bytes],
      ['', bytes],
    ] as const)
      assert.match((await handIn(clerk, what, 'x', sent)).text, /Nothing was read/)
    const asForm = await clerk.post(page, { what: 'return:itau-1', file: bytes })
    assert.equal(asForm.status, 400)
    assert.match(asForm.text, /Nothing was read/)
    assert.equal((await handIn(clerk, 'return:itau-1', 'x', 'x'.repeat(5 * 1024 * 1024))).status, 413)
  })

  it('is for those who act for the PSP', async () => {
    const one = await signedIn(desk.gateway, 'finance', [sandbox.merchantId])
    assert.equal((await handIn(one, 'return:itau-1', 'x', 'x')).status, 403)
    assert.ok(!(await one.ask('/office/cases')).text.includes('href="/office/files"'))
  })
})
