// How the host speaks a profile: what comes in any dialect is turned into the plain words of 1987 that its tables and books know, and its answers back
// into that dialect. One for each connection, which has working keys of its own.

import { randomBytes } from 'node:crypto'
import { decode, encode, isMalformed, type Message, type MessageFault } from '../../connectors/cards/iso8583/codec.ts'
import { type Dialect, exampleDialect, fromTheHost } from '../../connectors/cards/iso8583/dialects.ts'
import { frame, type Splitter, splitter } from '../../connectors/cards/iso8583/framing.ts'
import { macKeyBytes, makeMac, wrapKey } from '../../connectors/cards/iso8583/mac.ts'
import { readPrivateData, writePrivateData } from '../../connectors/cards/iso8583/privateData.ts'
import { stamp, transmitted, versionOf } from '../../connectors/cards/iso8583/versions.ts'

export type Tongue = {
  readonly split: Splitter
  hear(bytes: Buffer): Message | MessageFault
  /** With its frame. */
  speak(answer: Message, asked: Message): Buffer | MessageFault
  /** The host goes, without being asked. */
  signOff(at: number): Buffer | MessageFault
}

export function makeTongue(gateways: Dialect, macKey?: Buffer): Tongue {
  const dialect = fromTheHost(gateways)
  const { network } = versionOf(dialect)
  const mac = dialect.mac && macKey && makeMac(dialect.mac.algorithm, macKey)
  /** Plain words → as they came. */
  const heard = new WeakMap<Message, Message>()
  const [[keyField, keyChange]] = network.keyChange as [readonly [number, string]]
  const framed = (bytes: Buffer | MessageFault) => (Buffer.isBuffer(bytes) ? frame(bytes, dialect.framing) : bytes)
  return {
    split: splitter(dialect.framing),
    hear(bytes) {
      const message = decode(bytes, dialect, mac)
      if (isMalformed(message)) return message
      const words = toPlain(message, dialect)
      heard.set(words, message)
      return words
    },
    speak(answer, asked) {
      const came = heard.get(asked)!
      const said = fromPlain(answer, asked, came, dialect)
      let bytes: Buffer | MessageFault
      if (mac && came.type === network.type && came.fields.get(keyField) === keyChange) {
        const wrapped = wrapKey(dialect.mac!.algorithm, macKey!, randomBytes(macKeyBytes))
        said.fields.set(network.keyField, wrapped.toString('hex').toUpperCase())
        bytes = encode(said, dialect, mac)
        mac.take(wrapped)
      } else bytes = encode(said, dialect, mac)
      return framed(bytes)
    },
    signOff(at) {
      const fields = new Map([...network.times(at, dialect.timeZone), [11, '000001'] as const, ...network.signOff])
      return framed(encode({ type: network.type, fields }, dialect, mac))
    },
  }
}

function toPlain({ type, fields: came }: Message, dialect: Dialect): Message {
  const fields = new Map(came)
  const values = readPrivateData(came, dialect.privateData)
  for (const { field } of dialect.privateData) fields.delete(field)
  for (const [field, text] of writePrivateData(values, plainPrivateData())) fields.set(field, text)
  if (dialect.version === '1993') {
    const [original, amounts] = [came.get(56), came.get(30)]
    if (original !== undefined) fields.set(90, plainOriginal(original, dialect.timeZone))
    // A partial reversal: DE4 is what shall stand, DE30 what was authorized.
    if (amounts !== undefined) fields.set(4, amounts.slice(0, 12)).set(95, came.get(4)!.padEnd(42, '0'))
    const day = came.get(28)
    if (day !== undefined) fields.set(15, day.slice(2))
    for (const field of [24, 25, 28, 30, 56]) fields.delete(field)
  }
  return { type: `0${type.slice(1)}`, fields }
}

/** Type, trace number, local time and acquirer → as DE90 names a message, by the time of transmission. */
function plainOriginal(original: string, timeZone: string): string {
  const [, type, stan, time, acquirer] = /^\d(\d{3})(\d{6})(\d{12})\d\d(\d*)$/.exec(original) ?? []
  const digits = (time ?? '').match(/\d\d/g)?.map(Number) ?? []
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = digits
  const local = Date.UTC(2000 + year, month - 1, day, hour, minute, second)
  const shown = stamp(local, timeZone)
    .match(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)$/)!
    .slice(1)
    .map(Number) as [number, number, number, number, number, number]
  const ahead = Date.UTC(shown[0], shown[1] - 1, shown[2], shown[3], shown[4], shown[5]) - local
  return `0${type}${stan}${transmitted(local - ahead)}${(acquirer ?? '').padStart(11, '0')}${'0'.repeat(11)}`
}

function fromPlain(
  { type, fields }: Message,
  asked: Message,
  came: Message,
  dialect: Dialect,
): { type: string; fields: Map<number, string> } {
  const said = new Map(fields)
  const values = readPrivateData(fields, plainPrivateData())
  for (const { field } of plainPrivateData()) said.delete(field)
  for (const [field, text] of writePrivateData(values, dialect.privateData)) said.set(field, text)
  // What the answer repeats it repeats as it came.
  if (fields.get(4) === asked.fields.get(4) && came.fields.has(4)) said.set(4, came.fields.get(4)!)
  for (const field of [24, 28]) if (came.fields.has(field)) said.set(field, came.fields.get(field)!)
  if (dialect.version === '1993' && type[1] === '5') for (const field of [15, 66]) said.delete(field)
  if (dialect.retrievalReference === 'host' && !said.has(37) && type[1] !== '8') said.set(37, ownReference(said))
  if (fields.has(39)) said.set(39, codeOf(fields.get(39)!, type, dialect))
  return { type: `${versionOf(dialect).digit}${type.slice(1)}`, fields: said }
}

/** The same for a repeat, and never of the form that a gateway would make. */
const ownReference = (fields: ReadonlyMap<number, string>) => `H${fields.get(11)}${(fields.get(7) ?? '').slice(-5)}`

function codeOf(code: string, type: string, { version, codes }: Dialect): string {
  if (version === '1987') return [...codes.first].find(([, plainCode]) => plainCode === code)?.[0] ?? code
  if (type[1] === '5') return code === '00' ? '500' : '501'
  if (code === '00' || code === '85') return { '8': '800', '4': '400' }[type[1]!] ?? (type[2] === '3' ? '900' : '000')
  return [...codes.first].find(([, plainCode]) => plainCode === code)?.[0] ?? '100'
}

/** Whatever a line speaks, the host's tables know the plain dialect of 1987. */
export const plainPrivateData = () => exampleDialect('1987').privateData
