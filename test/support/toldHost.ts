// An acquirer's host that answers as a test tells it and keeps books of its own: what counts is what it was sent and what it then holds.

import type { Socket } from 'node:net'
import { encode, type Message } from '../../src/connectors/cards/iso8583/codec.ts'
import { exampleDialect } from '../../src/connectors/cards/iso8583/dialects.ts'
import { frame } from '../../src/connectors/cards/iso8583/framing.ts'
import { answerType } from '../../src/connectors/cards/iso8583/versions.ts'
import { startPeer } from './peer.ts'

/** What the host does with a message: what it answers in DE39 (`none`: the answer has none; `silence`: it does not answer), with which other
 * fields, and whether it is booked; by itself only what is approved is. */
export type Told = {
  readonly code: string
  readonly books?: boolean
  readonly more?: readonly (readonly [number, string])[]
}

export type ToldHost = {
  readonly port: number
  /** What it was sent, oldest first; with the trace of the message, or of the one that a reversal names. */
  readonly received: { readonly type: string; readonly trace: string; readonly message: Message }[]
  /** `seen`: how many of this type came before. */
  tell: (message: Message, seen: number) => Told | string
  /** What stands: held and cleared less refunds, minor units. */
  totals(): { held: number; cleared: number }
  /** Answers a message now, on the line that stands. */
  answer(message: Message, told: Told): void
  types(): string[]
  clear(): void
  cut(): void
  stop(): void
}

/** `silent`: told of each message that it does not answer. */
export async function toldHost({ silent = () => {} }: { silent?: () => void } = {}): Promise<ToldHost> {
  const books = new Map<string, { kind: 'held' | 'cleared'; amount: number; original?: string }>()
  let line: Socket
  const trace = ({ fields }: Message) => `${fields.get(11)} ${fields.get(7)}`
  const named = (message: Message) => {
    const original = message.fields.get(90)
    return original === undefined ? trace(message) : `${original.slice(4, 10)} ${original.slice(10, 20)}`
  }

  function book(message: Message): void {
    const { type, fields } = message
    const amount = Number(fields.get(4))
    const before = books.get(named(message))
    if (type[1] === '5') return
    if (type[1] === '4') {
      if (!before) return
      const stays = Number(fields.get(95)?.slice(0, 12) ?? 0)
      before.amount = before.kind === 'held' || before.amount > 0 ? stays : 0
    } else if (books.has(trace(message))) return
    else if (type.startsWith('01')) books.set(trace(message), { kind: 'held', amount })
    else if (type.startsWith('022')) {
      if (before) before.amount -= amount
      books.set(trace(message), { kind: 'cleared', amount })
    } else books.set(trace(message), { kind: 'cleared', amount: fields.get(3) === '200000' ? -amount : amount })
  }

  function answer(message: Message, { code, books: isBooked = code === '00', more = [] }: Told): void {
    if (isBooked) book(message)
    if (code === 'silence') {
      silent()
      return
    }
    const { fields } = message
    const echoed = [3, 4, 7, 11, 12, 13, 15, 32, 37, 41, 42, 49, 50].flatMap((field): [number, string][] =>
      fields.has(field) ? [[field, fields.get(field)!]] : [],
    )
    const said = new Map([...echoed, ...(code === 'none' ? [] : [[39, code] as const]), ...more])
    const bytes = encode({ type: answerType(message.type), fields: said }, exampleDialect('1987'))
    if (!Buffer.isBuffer(bytes)) throw new Error(`${bytes.path} ${bytes.why}`)
    line.write(frame(bytes))
  }

  const host: ToldHost = {
    port: 0,
    received: [],
    tell: () => '00',
    totals() {
      const sum = (kind: string) => [...books.values()].reduce((all, one) => all + (one.kind === kind ? one.amount : 0), 0)
      return { held: sum('held'), cleared: sum('cleared') }
    },
    answer,
    types: () => host.received.map(({ type }) => type),
    clear() {
      host.received.length = 0
      books.clear()
      host.tell = () => '00'
    },
    cut: () => peer.cut(),
    stop: () => peer.stop(),
  }
  const peer = await startPeer((socket, message) => {
    line = socket
    const seen = host.received.filter(({ type }) => type === message.type).length
    host.received.push({ type: message.type, trace: named(message), message })
    const told = host.tell(message, seen)
    answer(message, typeof told === 'string' ? { code: told } : told)
  })
  return Object.assign(host, { port: peer.port })
}
