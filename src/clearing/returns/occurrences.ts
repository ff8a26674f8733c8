// What the codes of returns mean. Each bank has a table of its own, because the same code means another thing: 17 is money with one and a refusal with another.
// A code that is in no table is a question for an operator.

/**
 * `paid`: money · `paidLate`: money on a slip that the bank had ended or did not know · `undone`: a payment that was told before is none · `refused`: the bank
 * does not do what it was told · `entered`, `writtenOff`, `note`: nothing of money, and nothing to do.
 */
export type OccurrenceMeaning = 'paid' | 'paidLate' | 'undone' | 'refused' | 'entered' | 'writtenOff' | 'note'

export const isMoney = (meaning: OccurrenceMeaning): boolean => meaning === 'paid' || meaning === 'paidLate'

type CodeRows = Readonly<Partial<Record<OccurrenceMeaning, string>>>

const table = (rows: CodeRows): ReadonlyMap<string, OccurrenceMeaning> =>
  new Map(Object.entries(rows).flatMap(([meaning, codes]) => codes.split(' ').map(code => [code, meaning as OccurrenceMeaning])))

/** FEBRABAN's, for every bank. */
const febraban = table({
  paid: '06',
  paidLate: '17',
  undone: '44',
  refused: '03 26 30',
  entered: '02',
  writtenOff: '09',
  note: '04 12 13 14 19 20 23 24 25 27 28 50', // 50: a cheque that is not cleared yet
})

const itau = table({
  paid: '06 07 08 10', // 10: by Pix, or by another way
  undone: '69',
  refused: '03 15 16 17 18',
  entered: '02 71',
  writtenOff: '05 09 47',
  note: '04 14 19 20 23 25 33 65 95', // 25: the payer complains · 65: a cheque · 95: it is being paid
})

const bradesco = table({
  paid: '06 15',
  paidLate: '17',
  undone: '22 40',
  refused: '03 24 27 30 32',
  entered: '02',
  writtenOff: '09 10',
  note: '11 12 13 14 16 19 20 23 28 33 34', // 16: a cheque
})

const brasil = table({
  paid: '06 07 08 15',
  paidLate: '05',
  undone: '44',
  refused: '03',
  entered: '02',
  writtenOff: '09 10',
  note: '11 12 13 14 16 19 20 23 28 46 72', // 46: a cheque
})

const cnab400Codes: ReadonlyMap<string, ReadonlyMap<string, OccurrenceMeaning>> = new Map([
  ['341', itau],
  ['237', bradesco],
  ['001', brasil],
])

export function meaningOf(layout: 'cnab240' | 'cnab400', bank: string, code: string): OccurrenceMeaning | undefined {
  return (layout === 'cnab240' ? febraban : cnab400Codes.get(bank))?.get(code)
}
