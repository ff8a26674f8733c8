// Dialects: a profile made ready, so that codec, lines and messages only look things up.

import type { Characters } from './characters.ts'
import { type Field, type Fields, fields1987, fields1993, sizeOf } from './fields.ts'
import type { Framing } from './framing.ts'
import type { MacAlgorithm } from './mac.ts'
import {
  type EntryKind,
  type ExampleName,
  type GivenProfile,
  type Profile,
  type ProfiledMessage,
  type Situation,
  wholeProfile,
} from './profile.ts'

export type Encoding = Characters | 'bcd' | 'binary'

/** A field as it is written on the wire. */
export type SpokenField = Field & {
  readonly encoding: Encoding
  readonly lengthEncoding: Exclude<Encoding, 'binary'>
  readonly filling: Profile['filling']
  /** Read over: only its length is known. */
  readonly dropped: boolean
}

export type FieldValues = readonly (readonly [field: number, value: string])[]

export type Dialect = Pick<Profile, 'characters' | 'bitmap' | 'matching' | 'privateData' | 'timeZone' | 'retrievalReference'> & {
  readonly reconciliation: Required<Profile['reconciliation']>
  readonly captures: Profile['captures']
  readonly settlementFile?: NonNullable<Profile['settlementFile']>
  readonly name: string
  /** Decides where times and original data stand, see versions.ts. */
  readonly version: Profile['edition']
  readonly fields: ReadonlyMap<number, SpokenField>
  readonly framing: Framing
  readonly header: { readonly sent: Buffer; readonly answered?: Buffer }
  readonly typeIndicator: Exclude<Encoding, 'binary'>
  /** The fields that a message may carry; absent: all. */
  readonly messages: Readonly<Partial<Record<ProfiledMessage, ReadonlySet<number>>>>
  readonly constants: FieldValues
  readonly entry: Readonly<Record<EntryKind, FieldValues>>
  /** The host's codes as those of 1987. */
  readonly codes: Readonly<Record<Situation, ReadonlyMap<string, string>>>
  readonly mac?: { readonly algorithm: MacAlgorithm; readonly exchange: boolean }
}

export function dialectOf(given: GivenProfile): Dialect {
  const profile = wholeProfile(given)
  const { edition, characters, bitmap, matching, privateData, timeZone, retrievalReference, framing, header, mac } = profile
  const codesOf = (situation: Situation) => new Map(Object.entries({ ...profile.codes.first, ...profile.codes[situation] }))
  return {
    name: given.like,
    version: edition,
    ...{ characters, bitmap, matching, privateData, timeZone, retrievalReference, framing },
    fields: spokenFields(edition === '1987' ? fields1987 : fields1993, profile),
    header: {
      sent: Buffer.from(header?.sent ?? '', 'hex'),
      ...(header?.answered !== undefined && { answered: Buffer.from(header.answered, 'hex') }),
    },
    typeIndicator: profile.typeIndicator === 'bcd' ? 'bcd' : characters,
    reconciliation: { timeZone, ...profile.reconciliation },
    captures: profile.captures,
    ...(profile.settlementFile && { settlementFile: profile.settlementFile }),
    messages: mapped(profile.messages, numbers => new Set(numbers)),
    constants: valuesOf(profile.constants),
    entry: mapped(profile.entry, valuesOf) as Dialect['entry'],
    codes: { first: codesOf('first'), repeat: codesOf('repeat'), reversal: codesOf('reversal') },
    ...(mac.algorithm !== 'none' && { mac: { algorithm: mac.algorithm, exchange: mac.exchange } }),
  }
}

/** As the host itself speaks: what it sends is what we expect. */
export const fromTheHost = (dialect: Dialect): Dialect => ({
  ...dialect,
  header: { sent: dialect.header.answered ?? dialect.header.sent, answered: dialect.header.sent },
})

/** A code of DE39 as that of 1987; in an edition with codes of its own an unknown one says nothing. */
export const responseOf = (code: string, situation: Situation, { codes, version }: Pick<Dialect, 'codes' | 'version'>): string =>
  codes[situation].get(code) ?? (version === '1987' ? code : '??')

function spokenFields(table: Fields, profile: Profile): ReadonlyMap<number, SpokenField> {
  const rows: [Field, Profile['fields'][string]['written'], dropped: boolean][] = [...table.values()].map(row => [
    row,
    undefined,
    false,
  ])
  for (const [number, { length, written, ...row }] of Object.entries(profile.fields))
    rows.push([
      { number: Number(number), name: table.get(Number(number))?.name ?? '', ...row, ...sizeOf(length) },
      written,
      false,
    ])
  for (const [number, length] of Object.entries(profile.tolerates))
    rows.push([{ number: Number(number), name: '', content: 'ans', ...sizeOf(length), secret: true }, 'characters', true])
  const holdsSecrets = new Set(profile.privateData.map(({ field }) => field))
  return new Map(
    rows.map(([row, written, dropped]) => [
      row.number,
      {
        ...row,
        secret: row.secret || holdsSecrets.has(row.number),
        encoding: encodingOf(row, written, profile),
        lengthEncoding: profile.lengths === 'bcd' ? 'bcd' : profile.characters,
        filling: profile.filling,
        dropped,
      },
    ]),
  )
}

function encodingOf({ content }: Field, written: Profile['fields'][string]['written'], profile: Profile): Encoding {
  const natural = content === 'b' ? 'binary' : content === 'n' || content === 'z' ? profile.digits : ('characters' as const)
  const chosen = written ?? natural
  return chosen === 'characters' ? profile.characters : chosen
}

const valuesOf = (values: Readonly<Record<string, string>>): FieldValues =>
  Object.entries(values).map(([number, value]) => [Number(number), value])

const mapped = <Value, Made>(values: Readonly<Record<string, Value>>, make: (value: Value) => Made): Record<string, Made> =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, make(value)]))

const examples = new Map<ExampleName, Dialect>()

/** An example by its name. Made when it is first asked for: most gateways speak to no acquirer. */
export function exampleDialect(like: ExampleName): Dialect {
  const known = examples.get(like) ?? dialectOf({ like })
  examples.set(like, known)
  return known
}
