// A bank for slips: it reads the order files of a gateway, keeps the titles, lets shoppers pay them, and tells of everything in returns. It knows of the
// gateway nothing but its files.

import type { OrderedTitle } from './orders.ts'
import { readOrders } from './orders.ts'
import { type BankPlace, returnText, type ToldTitle } from './returnText.ts'

type BankTitle = OrderedTitle & { status: 'open' | 'paid' | 'ended' }

export type SlipBank = {
  readonly titles: ReadonlyMap<string, Readonly<BankTitle>>
  /** Throws what a bank would send back: nothing of the file counts. */
  order(text: string): void
  /** A shopper pays at a counter; a title that is paid or ended already is told as late or unknown. */
  pay(number: string, day: string, more?: Partial<ToldTitle>): void
  /** Whatever else the bank has to tell. */
  tell(title: ToldTitle): void
  /** All that happened since the last return. */
  close(day: string): string
}

/** Paid although the bank had ended it, or did not know it: the code of its layout. */
const lateCode = ({ bank, layout }: BankPlace): string =>
  layout === 'cnab240' || bank === '237' ? '17' : bank === '001' ? '05' : '06'

export function makeSlipBank(place: BankPlace, firstFile = 1): SlipBank {
  const titles = new Map<string, BankTitle>()
  let told: ToldTitle[] = []
  let [lastOrder, fileNumber] = [0, firstFile]
  const answer = (one: OrderedTitle, occurrence: string, reasons = '') =>
    told.push({ ...one, occurrence, occurredOn: '', reasons, face: one.face })
  return {
    titles,
    order(text) {
      const file = readOrders(text, place.bank, place.layout)
      if (file.fileNumber !== 0 && file.fileNumber <= lastOrder) throw new Error(`order file ${file.fileNumber} came before`)
      lastOrder = file.fileNumber
      for (const one of file.titles) {
        const known = titles.get(one.number)
        if (one.code === '02') {
          if (known) known.status = 'ended'
          answer(one, known ? '09' : '03', known ? '' : '08')
        } else if (known || one.face === 0) answer(one, '03', '63')
        else {
          titles.set(one.number, { ...one, status: 'open' })
          answer(one, '02')
        }
      }
    },
    pay(number, day, more = {}) {
      const known = titles.get(number)
      const occurrence = known?.status === 'open' ? '06' : lateCode(place)
      if (known) known.status = 'paid'
      const face = known?.face ?? 0
      const { document = '', own = '', dueOn = '' } = known ?? {}
      told.push({
        number,
        occurrence,
        occurredOn: day,
        creditedOn: day,
        face,
        paid: face,
        document,
        own,
        dueOn,
        receiver: '23700123',
        ...more,
      })
    },
    tell: title => void told.push(title),
    close(day) {
      const text = returnText(
        place,
        fileNumber++,
        day,
        told.map(one => ({ ...one, occurredOn: one.occurredOn || day })),
      )
      told = []
      return text
    },
  }
}

/** What happens to files on their way. */
export const returnFaults = {
  cut: (text: string) => text.slice(0, Math.floor(text.length * 0.7)),
  byteOrderMark: (text: string) => `\ufeff${text}`,
  withoutEnd: (text: string) => `${text.split('\r\n').slice(0, -2).join('\r\n')}\r\n`,
  wideLines: (text: string) => text.replaceAll('\r\n', `${'X'.repeat(72)}\r\n`),
  lineTwice: (text: string) => {
    const rows = text.split('\r\n')
    return [...rows.slice(0, 3), ...rows.slice(2)].join('\r\n')
  },
  lineGone: (text: string) => {
    const rows = text.split('\r\n')
    return [...rows.slice(0, 2), ...rows.slice(3)].join('\r\n')
  },
  blanksCut: (text: string) => text.replace(/ +\r\n/g, '\r\n'),
} as const
