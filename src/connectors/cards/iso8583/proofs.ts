// What an answer proves, by the kind of its message and the attempt: a host that says no to a repeat says nothing about the first message.

import { responseCodes } from './responseCodes.ts'

/** `takeBack`: a reversal of ours. It carries the trace of what it takes back: 94 may mean that message as well as this one. */
export type MessageKind = 'request' | 'advice' | 'reversal' | 'takeBack'

/**
 * done     it was carried out
 * refused  it was not, and will not be: the result stands in responseCodes.ts
 * doubted  refused, but may have been carried out: what can be taken back is, what cannot is sent again
 * again    nothing is known: it is sent again
 * person   sending it again would bring the same answer: somebody has to ask the acquirer
 * nothing  there is nothing to take back
 */
export type AnswerProof = 'done' | 'refused' | 'doubted' | 'again' | 'person' | 'nothing'

type ProofRow = readonly [codes: string, request: string, advice: string, reversal: string, takeBack: string]

// Where two stand, the first is that of a first message, the second that of a repeat.
// biome-ignore format: one line a code
const rows: readonly ProofRow[] = [
  ['00',              'done',           'done',           'done',           'done'],
  ['08 11',           'done',           'done',           'doubted person', 'again'],
  ['10',              'refused person', 'doubted person', 'doubted person', 'again'],
  ['94',              'person done',    'person done',    'person done',    'again'],
  ['09',              'again',          'again',          'again',          'again'],
  ['68',              'doubted again',  'doubted again',  'doubted again',  'again'],
  ['19 91 92 96',     'refused again',  'refused again',  'refused again',  'again'],
  ['25',              'refused person', 'refused person', 'refused person', 'nothing'],
  ['12 30',           'refused person', 'refused person', 'refused person', 'again'],
  ['a listed code',   'refused',        'refused',        'refused',        'again'],
  ['any other',       'doubted person', 'doubted person', 'doubted person', 'again'],
  ['without a code',  'again',          'again',          'again',          'again'],
]

const proofs: ReadonlyMap<string, Readonly<Record<MessageKind, string>>> = new Map(
  rows.flatMap(([codes, request, advice, reversal, takeBack]) =>
    (codes.includes('a') ? [codes] : codes.split(' ')).map(code => [code, { request, advice, reversal, takeBack }] as const),
  ),
)

/** `code`: of 1987; empty when the answer has none. */
export function proofOf(kind: MessageKind, attempt: number, code: string): AnswerProof {
  const other = code === '' ? 'without a code' : responseCodes.has(code) ? 'a listed code' : 'any other'
  const [first, repeat = first] = (proofs.get(code) ?? proofs.get(other)!)[kind].split(' ')
  return (attempt > 1 ? repeat : first) as AnswerProof
}

/** By the type indicator; its first digit is the version's. */
export const kindOfMessage = (type: string): MessageKind =>
  type.slice(1, 3) === '42' ? 'takeBack' : type[1] === '4' ? 'reversal' : type[2] === '2' ? 'advice' : 'request'
