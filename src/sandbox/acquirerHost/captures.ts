// What the host does with a capture file: it reads it by itself, as another house would, books what it finds a hold for, and says what became of each line.

import type { Ledger } from './ledger.ts'

/** What can be wrong with an acknowledgement. */
export const captureFaults = ['rejects', 'leavesOut', 'foreign', 'truncated'] as const
export type CaptureFault = (typeof captureFaults)[number]

/** Books a capture file and writes its acknowledgement; throws what it cannot read. The fault concerns the last line. */
export function takeCaptures(ledger: Ledger, text: string, acquirerId: string, separator = ',', fault?: CaptureFault): string {
  const rows = text.split('\r\n').map(row => row.split(separator))
  const [mark, acquirer, sequence, day] = rows[0]!
  const [end, count, sum] = rows.at(-2) ?? []
  const captures = rows.slice(1, -2)
  const total = captures.reduce((all, row) => all + BigInt(row[7]!), 0n)
  if (
    mark !== 'CAPTURES' ||
    acquirer !== acquirerId ||
    end !== 'TOTAL' ||
    Number(count) !== captures.length ||
    BigInt(sum!) !== total
  )
    throw new Error('this is no whole capture file for this acquirer')
  const said = captures.map((row, at) => {
    const [, line, , , trace, , reference] = row as [string, string, string, string, string, string, string]
    const why = fault === 'rejects' && at === captures.length - 1 ? 'EXPIRED' : book(ledger, row, acquirerId, day!)
    return [why === undefined ? 'ACCEPTED' : 'REJECTED', line, trace, reference, ...(why === undefined ? [] : [why])]
  })
  if (fault === 'leavesOut') said.pop()
  if (fault === 'foreign') said.push(['ACCEPTED', String(captures.length + 1), '424242', 'NOBODYS00001'])
  const answer = [['ACKNOWLEDGEMENT', acquirerId, sequence], ...said, ['TOTAL', said.length]]
  const whole = answer.map(row => `${row.join(separator)}\r\n`).join('')
  return fault === 'truncated' ? whole.slice(0, -15) : whole
}

/** Books one capture of a hold that has room for it, once; or says why not. */
function book(ledger: Ledger, row: readonly string[], acquirerId: string, day: string): string | undefined {
  const [, , , terminal, trace, transmitted, reference, amount, currency, ...authorization] = row
  const [heldAt, heldTrace, heldTime, , code] = authorization
  const key = `22 ${trace} ${transmitted} ${terminal!.padEnd(8)}`
  if (ledger.byKey(key)) return undefined
  const hold = [...ledger.entries()].find(({ line }) => {
    const [, stan, time, where] = line.key.split(' ')
    return line.kind === 'hold' && stan === heldTrace && time === heldTime && where === heldAt
  })
  if (!hold || hold.line.currency !== currency) return 'NO HOLD'
  if (!hold.line.answer.some(([field, value]) => field === 38 && value === code)) return 'OTHER CODE'
  if (BigInt(amount!) > hold.held) return 'TOO MUCH'
  ledger.write({
    kind: 'capture',
    key,
    name: `220 ${trace} ${transmitted} ${acquirerId.replace(/^0+/, '')}`,
    card: hold.line.card,
    amount: amount!.padStart(12, '0'),
    currency: currency!,
    original: hold.line.name,
    rrn: reference!,
    day,
    answer: [],
  })
  return undefined
}
