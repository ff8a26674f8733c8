// The order files that a gateway sends to the simulated bank, as the bank reads them. What it does not understand it refuses as a whole.

export type OrderedTitle = {
  /** 01 entry, 02 write-off. */
  readonly code: string
  /** As the file has it. */
  readonly number: string
  readonly wallet: string
  readonly document: string
  readonly own: string
  /** `yyyy-MM-dd`. */
  readonly dueOn: string
  /** Centavos. */
  readonly face: number
  readonly payer: { readonly id: string; readonly name: string; readonly street: string; readonly postcode: string }
}

export type OrderFile = { readonly fileNumber: number; readonly titles: readonly OrderedTitle[] }

export function readOrders(text: string, bank: string, layout: 'cnab240' | 'cnab400'): OrderFile {
  if (!text.endsWith('\r\n')) throw new Error('the file does not end with the end of a line')
  if (/[^\x20-\x7e\r\n]/.test(text)) throw new Error('the file holds what no bank reads')
  const rows = text.slice(0, -2).split('\r\n')
  const width = layout === 'cnab240' ? 240 : 400
  const wrong = rows.findIndex(row => row.length !== width)
  if (wrong >= 0) throw new Error(`line ${wrong + 1} is ${rows[wrong]!.length} columns wide`)
  return layout === 'cnab240' ? orders240(rows, bank) : orders400(rows, bank)
}

const expect = (row: string, from: number, text: string): void => {
  const found = row.slice(from - 1, from - 1 + text.length)
  if (found !== text) throw new Error(`column ${from} holds ${found}, not ${text}`)
}
const number = (row: string, from: number, to: number): number => {
  const digits = row.slice(from - 1, to)
  if (!/^\d+$/.test(digits)) throw new Error(`columns ${from} to ${to} are no number: ${digits}`)
  return Number(digits)
}
const words = (row: string, from: number, to: number): string => row.slice(from - 1, to).trim()
const longDate = (row: string, from: number): string => {
  const text = row.slice(from - 1, from + 7)
  return /^0*$/.test(text) ? '' : text.replace(/(..)(..)(....)/, '$3-$2-$1')
}
const shortDate = (row: string, from: number): string => {
  const text = row.slice(from - 1, from + 5)
  return /^0*$/.test(text) ? '' : text.replace(/(..)(..)(..)/, '20$3-$2-$1')
}

function orders240(rows: readonly string[], bank: string): OrderFile {
  for (const row of rows) expect(row, 1, bank)
  const [head, lotHead, ...rest] = rows as [string, string, ...string[]]
  const [lotEnd, end] = rest.splice(-2) as [string, string]
  expect(head, 4, '00000')
  expect(head, 143, '1')
  expect(lotHead, 4, '00011R01')
  expect(lotEnd, 4, '00015')
  expect(end, 4, '99999')
  if (number(lotEnd, 18, 23) !== rows.length - 2) throw new Error('the lot counts other lines')
  if (number(end, 18, 23) !== 1 || number(end, 24, 29) !== rows.length) throw new Error('the file counts other lines')
  if (rest.length % 2 !== 0) throw new Error('a title has half its segments')
  const titles = rest.flatMap((row, at): OrderedTitle[] => {
    expect(row, 4, '00013')
    if (number(row, 9, 13) !== at + 1) throw new Error(`segment ${at + 1} is out of order`)
    expect(row, 14, at % 2 === 0 ? 'P' : 'Q')
    if (at % 2 === 1) return []
    const payer = rest[at + 1]!
    expect(payer, 16, row.slice(15, 17))
    expect(row, 228, '09')
    return [
      {
        code: row.slice(15, 17),
        number: words(row, 38, 57),
        wallet: words(row, 58, 58),
        document: words(row, 63, 77),
        own: words(row, 196, 220),
        dueOn: longDate(row, 78),
        face: number(row, 86, 100),
        payer: {
          id: payer.slice(17, 33).trim(),
          name: words(payer, 34, 73),
          street: words(payer, 74, 113),
          postcode: payer.slice(128, 136),
        },
      },
    ]
  })
  return { fileNumber: number(head, 158, 163), titles }
}

// Where the banks have each thing: header's number of the file, number of the title, wallet.
const places400: Readonly<
  Record<
    string,
    { type: string; file?: [number, number]; number: [number, number]; wallet: [number, number]; own: number; name: number }
  >
> = {
  '341': { type: '1', number: [63, 70], wallet: [84, 86], own: 38, name: 264 },
  '237': { type: '1', file: [111, 117], number: [71, 82], wallet: [22, 24], own: 38, name: 274 },
  '001': { type: '7', file: [101, 107], number: [64, 80], wallet: [107, 108], own: 39, name: 271 },
}

function orders400(rows: readonly string[], bank: string): OrderFile {
  const place = places400[bank]!
  for (const [at, row] of rows.entries()) if (number(row, 395, 400) !== at + 1) throw new Error(`line ${at + 1} is out of order`)
  const [head, ...rest] = rows as [string, ...string[]]
  expect(head, 1, '01REMESSA01COBRANCA')
  expect(head, 77, bank)
  expect(rest.pop()!, 1, '9')
  const titles = rest.map((row): OrderedTitle => {
    expect(row, 1, place.type)
    return {
      code: row.slice(108, 110),
      number: words(row, ...place.number),
      wallet: words(row, ...place.wallet),
      document: words(row, 111, 120),
      own: words(row, place.own, place.own + 24),
      dueOn: shortDate(row, 121),
      face: number(row, 127, 139),
      payer: {
        id: row.slice(218, 234).trim(),
        name: words(row, 235, place.name),
        street: words(row, 275, 314),
        postcode: row.slice(326, 334),
      },
    }
  })
  return { fileNumber: place.file ? number(head, ...place.file) : 0, titles }
}
