// The returns of the simulated bank, as texts.

import { blanks, columns, longDay, shortDay, zeros } from './columns.ts'

export type BankPlace = {
  /** Its code in clearing. */
  readonly bank: string
  readonly layout: 'cnab240' | 'cnab400'
  readonly agency: string
  readonly account: string
  readonly accountDigit: string
  readonly wallet: string
  readonly agreement: string
}

/** What the bank tells of a title. Money in centavos, days as `yyyy-MM-dd`. */
export type ToldTitle = {
  /** As the bank writes it in this layout: with CNAB 400 of Itaú the eight digits, of Bradesco the eleven and their digit. */
  readonly number: string
  readonly occurrence: string
  readonly occurredOn: string
  readonly creditedOn?: string
  readonly face: number
  readonly paid?: number
  readonly interest?: number
  readonly discount?: number
  readonly rebate?: number
  readonly fee?: number
  readonly document?: string
  readonly own?: string
  readonly dueOn?: string
  /** Bank and agency: `2370123`. */
  readonly receiver?: string
  /** Itaú: I or C. */
  readonly stage?: string
  readonly reasons?: string
}

/** With CR LF. */
export function returnText(place: BankPlace, fileNumber: number, day: string, titles: readonly ToldTitle[]): string {
  const rows = place.layout === 'cnab240' ? rows240(place, fileNumber, day, titles) : rows400(place, fileNumber, day, titles)
  return rows.map(row => `${row}\r\n`).join('')
}

function rows240(place: BankPlace, fileNumber: number, day: string, titles: readonly ToldTitle[]): string[] {
  const { bank, agency, account, accountDigit } = place
  const holder = (at: number) =>
    [
      [at, blanks(place.agreement, 20)],
      [at + 20, zeros(agency, 5)],
      [at + 26, zeros(account, 12)],
      [at + 38, accountDigit],
      [at + 40, 'LOJA EXEMPLO'],
    ] as const
  const details = titles.flatMap((one, at) => {
    const head = (offset: number, letter: string) =>
      [
        [1, `${bank}00013${zeros(2 * at + offset, 5)}${letter}`],
        [16, one.occurrence],
      ] as const
    const paid = one.paid ?? 0
    return [
      columns(
        240,
        ...head(1, 'T'),
        [18, zeros(agency, 5)],
        [24, zeros(account, 12)],
        [36, accountDigit],
        [38, blanks(one.number, 20)],
        [58, '1'],
        [59, blanks(one.document ?? '', 15)],
        [74, longDay(one.dueOn ?? '')],
        [82, zeros(one.face, 15)],
        [97, blanks((one.receiver ?? '').slice(0, 3), 3)],
        [100, zeros((one.receiver ?? '').slice(3), 5)],
        [106, blanks(one.own ?? '', 25)],
        [131, '09'],
        [133, '1'],
        [134, zeros('11144477735', 15)],
        [149, 'FULANO DE TAL'],
        [199, zeros(one.fee ?? 0, 15)],
        [214, blanks(one.reasons ?? '', 10)],
      ),
      columns(
        240,
        ...head(2, 'U'),
        [18, zeros(one.interest ?? 0, 15)],
        [33, zeros(one.discount ?? 0, 15)],
        [48, zeros(one.rebate ?? 0, 15)],
        [63, zeros(0, 15)],
        [78, zeros(paid, 15)],
        [93, zeros(Math.max(0, paid - (one.fee ?? 0)), 15)],
        [108, zeros(0, 30)],
        [138, longDay(one.occurredOn)],
        [146, longDay(one.creditedOn ?? '')],
      ),
    ]
  })
  const sum = titles.reduce((total, { face }) => total + face, 0)
  return [
    columns(
      240,
      [1, `${bank}00000`],
      ...holder(33),
      [103, 'BANCO'],
      [143, `2${longDay(day)}`],
      [152, '060000'],
      [158, zeros(fileNumber, 6)],
      [164, '103'],
    ),
    columns(240, [1, `${bank}00011T01`], [14, '060'], ...holder(34), [184, zeros(fileNumber, 8)], [192, longDay(day)]),
    ...details,
    columns(
      240,
      [1, `${bank}00015`],
      [18, zeros(details.length + 2, 6)],
      [24, zeros(titles.length, 6)],
      [30, zeros(sum, 17)],
      [47, zeros(0, 69)],
    ),
    columns(240, [1, `${bank}99999`], [18, zeros(1, 6)], [24, zeros(details.length + 4, 6)]),
  ]
}

type PlacedText = readonly [number, string]

/** What the three banks have at places of their own. */
const banks400: Readonly<
  Record<
    string,
    { header(place: BankPlace, fileNumber: number): PlacedText[]; title(place: BankPlace, one: ToldTitle): PlacedText[] }
  >
> = {
  '341': {
    header: ({ agency, account, accountDigit }, fileNumber) => [
      [27, `${agency}00${account}${accountDigit}`],
      [80, 'BANCO ITAU SA'],
      [109, zeros(fileNumber, 5)],
    ],
    title: ({ agency, account, accountDigit, wallet }, one) => {
      const paid = one.paid ?? 0
      const fee = one.fee ?? 0
      return [
        [1, '102'],
        [18, `${agency}00${account}${accountDigit}`],
        [38, blanks(one.own ?? '', 25)],
        [63, one.number],
        [83, wallet + one.number + itauDigit(agency + account + wallet + one.number)],
        [107, one.stage ?? ' '],
        [108, 'I'],
        [169, zeros((one.receiver ?? '').slice(3), 5)],
        [176, zeros(fee, 13)],
        [254, zeros(paid === 0 ? 0 : paid - fee, 13)],
        [280, zeros(0, 13)],
        [296, shortDay(one.creditedOn ?? '')],
      ]
    },
  },
  '237': {
    header: ({ agreement }, fileNumber) => [
      [27, zeros(agreement, 20)],
      [80, 'BRADESCO'],
      [109, zeros(fileNumber, 5)],
    ],
    title: ({ wallet }, one) => [
      [1, '102'],
      [38, blanks(one.own ?? '', 25)],
      [71, one.number],
      [108, wallet.slice(-1)],
      [169, zeros((one.receiver ?? '').slice(3), 5)],
      [176, zeros(one.fee ?? 0, 13)],
      [254, zeros(one.paid ?? 0, 13)],
      [296, shortDay(one.creditedOn ?? '')],
      [319, blanks(one.reasons ?? '', 10)],
    ],
  },
  '001': {
    header: ({ agency, account, accountDigit, agreement }, fileNumber) => [
      [27, `${agency}0${account}${accountDigit}000000`],
      [80, 'BANCODOBRASIL'],
      [101, zeros(fileNumber, 7)],
      [150, agreement],
    ],
    title: (_, one) => [
      [1, '7'],
      [39, blanks(one.own ?? '', 25)],
      [64, one.number],
      [169, zeros((one.receiver ?? '').slice(-4), 4)],
      [176, shortDay(one.creditedOn ?? '')],
      [182, zeros(one.fee ?? 0, 7)],
      [254, zeros(one.paid ?? 0, 13)],
      [306, zeros(Math.max(0, (one.paid ?? 0) - (one.fee ?? 0)), 13)],
    ],
  },
}

function rows400(place: BankPlace, fileNumber: number, day: string, titles: readonly ToldTitle[]): string[] {
  const bank = banks400[place.bank]!
  const header = columns(
    400,
    [1, '02RETORNO01COBRANCA'],
    [47, 'LOJA EXEMPLO'],
    [77, place.bank],
    [95, shortDay(day)],
    ...bank.header(place, fileNumber),
    [395, '000001'],
  )
  const details = titles.map((one, at) =>
    columns(
      400,
      ...bank.title(place, one),
      [109, one.occurrence],
      [111, shortDay(one.occurredOn)],
      [117, blanks(one.document ?? '', 10)],
      [147, shortDay(one.dueOn ?? '')],
      [153, zeros(one.face, 13)],
      [166, blanks((one.receiver ?? '').slice(0, 3), 3)],
      [228, zeros(one.rebate ?? 0, 13)],
      [241, zeros(one.discount ?? 0, 13)],
      [267, zeros(one.interest ?? 0, 13)],
      [395, zeros(at + 2, 6)],
    ),
  )
  const counted: PlacedText[] = place.bank === '341' ? [[213, zeros(titles.length, 8)]] : []
  return [header, ...details, columns(400, [1, `9201${place.bank}`], ...counted, [395, zeros(titles.length + 2, 6)])]
}

/** Modulo 10, by adding the digits of each product. */
function itauDigit(digits: string): string {
  const products = [...digits].reverse().map((digit, at) => String(Number(digit) * (at % 2 === 0 ? 2 : 1)))
  const sum = [...products.join('')].reduce((total, digit) => total + Number(digit), 0)
  return String((10 - (sum % 10)) % 10)
}
