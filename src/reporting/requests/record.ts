// A request of the interface as it is shown to the people of its merchant: masked by the parameter table. Of a secret stands that it was sent, of a card
// number what an answer tells of it, and of an unknown parameter the name alone, because its value may be a mistyped secret.

import { beginningOf, crossed, maskCardNumbers, maskKeyed, mayBeRepeated, withoutCodes } from '../../contract/cardNumbers.ts'
import type { Form } from '../../contract/form.ts'
import { matches } from '../../contract/formats.ts'
import type { ParameterError } from '../../contract/formCheck.ts'
import { meantNames, namesNear } from '../../contract/nearest.ts'
import { operations } from '../../contract/operations.ts'
import { hex32 } from '../../contract/parameters/common.ts'
import { type Group, groups, lookup, type NamedParameter } from '../../contract/parameters/table.ts'
import { maskedCard } from '../../payments/read/record.ts'
import { isId, isTimeOrdered } from '../../platform/clock.ts'

/** What the server knows of a request when its answer is given. Held for a moment only: nothing in it is masked. */
export type RequestTrace = {
  readonly method: string
  readonly path: string
  /** The path of its route; absent when there is none. */
  readonly route?: string
  readonly status: number
  readonly milliseconds: number
  /** Ends its ndc. */
  readonly number: string
  /** Real time of the answer. */
  readonly at: number
  /** As the request is read. */
  form?: HeldForm
  /** Whoever has shown who he is; what a stranger names says nothing. */
  caller?: { readonly merchantId: string; readonly entityId: string; readonly tokenId?: string }
  /** JSON of the answer, where it is one piece. */
  readonly answer?: string
}

/** `isCut`: of long texts in it the beginnings stand there alone. */
export type HeldForm = Pick<Form, 'pairs'> & { readonly isCut?: true }

export type RequestContent = {
  readonly fields: readonly (readonly [name: string, value: string])[]
  readonly description?: string
  readonly parameterErrors?: readonly ParameterError[]
  /** Names that the request knows no parameter of, with the one that was probably meant. */
  readonly unknown?: readonly string[]
}

export type MaskedRequest = Pick<RequestTrace, 'method' | 'path' | 'status' | 'milliseconds' | 'number' | 'at' | 'caller'> & {
  readonly paymentId?: string
  readonly result?: string
  readonly content: RequestContent
}

const fieldsMost = 100
const valueMost = 255
const answerMost = 64 * 1024

/** What is longer is looked at as far as it is shown, also where it is held whole: each field is one step. */
const stepMost = 2048
/** Signs that are held of a form as it came, of each text of a longer one, and of all of it. */
const [wholeMost, textMost, heldMost] = [8 * 1024, 2 * valueMost, 32 * 1024]

/**
 * What is kept of a form until its answer is known, which can take minutes: its first fields, of a long one the beginnings. Nobody knows yet who asks: nothing is
 * looked for in them.
 */
export function heldForm({ pairs: all }: Pick<Form, 'pairs'>): HeldForm {
  const pairs = all.slice(0, fieldsMost)
  const lengthOf = ([name, value]: readonly [string, string]) => name.length + value.length
  if (pairs.reduce((sum, pair) => sum + lengthOf(pair), 0) <= wholeMost) return { pairs }
  const held: [string, string][] = []
  let left = heldMost
  for (const [name, value] of pairs) {
    const pair: [string, string] = [copyOfBeginning(name), copyOfBeginning(value)]
    left -= lengthOf(pair)
    if (left < 0) break
    held.push(pair)
  }
  return { pairs: held, isCut: true }
}

/** One sign more shows that it goes on. A copy keeps nothing of the text that it was cut from. */
const copyOfBeginning = (text: string): string =>
  text.length <= textMost + 1 ? text : Buffer.from(text.slice(0, textMost + 1)).toString()

/** Masked with so much more of it that a number is known again where it is cut. */
function beginning(text: string): string {
  if (text.length <= valueMost) return text
  // The number beside which it would be known for a CVV may stand in what is cut.
  const masked = withoutCodes(maskCardNumbers(beginningOf(text, textMost)), true, crossed)
  return `${beginningOf(masked, valueMost)}…`.toWellFormed()
}

/**
 * `sandbox`: names that nobody knows are told as they came; elsewhere one may be a secret. Of strangers stands no field: they could fill the table. It can be left off between
 * its fields, each of which may cost much.
 */
export function* maskingOf(trace: RequestTrace, sandbox: boolean): Generator<void, MaskedRequest> {
  const { method, path, route, status, milliseconds, number, at, form, caller } = trace
  const answer = readAnswer(trace.answer)
  const { find, near } = namesOf(method, route)
  const fields: (readonly [string, string])[] = []
  const unknown = new Set<string>()
  const told = sandbox || caller ? (form?.pairs ?? []) : []
  const read = (text: string) => (form?.isCut || text.length > stepMost ? beginning(text) : text)
  for (const [sentName, sentValue] of told.slice(0, fieldsMost)) {
    yield
    const name = read(sentName)
    const row = find(name)
    if (row) fields.push([maskCardNumbers(name).slice(0, valueMost), shownValue(row, read(sentValue))])
    else unknown.add(name)
  }
  yield
  const named = /^\/v1\/(?:payments|query)\/([0-9a-f]{32})$/.exec(path)?.[1]
  const paymentId = isPayment(answer) ? answer.id : named && isTimeOrdered(named) ? named : undefined
  const { code, description, parameterErrors } = answer.result ?? {}
  const meant = sandbox ? near([...unknown]) : meantNames(near([...unknown]))
  return {
    method,
    path: shownPath(path, sandbox),
    status,
    milliseconds,
    number,
    at,
    ...(caller && { caller }),
    ...(paymentId !== undefined && { paymentId }),
    ...(code !== undefined && { result: code }),
    content: {
      fields,
      ...(description !== undefined && { description }),
      ...(parameterErrors && { parameterErrors: sandbox ? parameterErrors : parameterErrors.map(withoutStrangeName) }),
      ...(meant.length > 0 && { unknown: meant }),
    },
  }
}

/** In the place of what is not shown. */
export const hidden = '•••'

function shownValue({ parameter, keyError, path, row }: NamedParameter, value: string): string {
  if (keyError !== undefined || (parameter.secret && row !== 'card.number')) return hidden
  if (parameter.cardNumbers === 'belong' && matches(parameter.format, value)) {
    const { bin = '', last4Digits } = maskedCard(value)
    return `${bin}${hidden}${last4Digits}`
  }
  if (parameter.secret) return hidden
  if (matches(hex32, value)) return value // ids are full of digits
  // What is not even well-formed may be a card number with a slip in it.
  if (!matches(parameter.format, value)) {
    // Behind the slip of a client that escapes what parts parameters stand others, among them secrets.
    const [own] = value.split(/[&;\r\n]/, 1) as [string]
    if (!mayBeRepeated(value)) return hidden
    if (own !== value) return `${own.slice(0, valueMost)}…`
  }
  const shown = maskKeyed(parameter.key && String(path.at(-1)), value)
  return shown.length > valueMost ? `${shown.slice(0, valueMost)}…` : shown
}

const words: ReadonlySet<string> = new Set([...operations.flatMap(({ path }) => path.split('/')), 'form'])

/**
 * Words of routes, and ids that have their time in them, as those of payments do. The id of a checkout, with which its holder pays, has none; and whatever else
 * stands in a path may be a password behind a slip (`&` for `?`). A sandbox shows also what is nothing but letters.
 */
const shownPath = (path: string, sandbox: boolean): string =>
  path
    .slice(0, pathMost)
    .split('/')
    .map(part => (words.has(part) || isTimeOrdered(part) || (sandbox && /^[a-z]{1,20}$/i.test(part)) ? part : '…'))
    .join('/')
    .slice(0, 200)

const pathMost = 2000

const withoutStrangeName = (error: ParameterError): ParameterError =>
  everyName.find(error.name) ? error : { ...error, name: hidden }

type ReadAnswer = {
  readonly id?: string
  readonly paymentType?: string
  readonly result?: {
    readonly code?: string
    readonly description?: string
    readonly parameterErrors?: readonly ParameterError[]
  }
}

/** Our own answer: what is no JSON is a page, or nothing. */
function readAnswer(text: string | undefined): ReadAnswer {
  return text?.startsWith('{') && text.length <= answerMost ? (JSON.parse(text) as ReadAnswer) : {}
}

const isPayment = (answer: ReadAnswer): answer is ReadAnswer & { id: string } =>
  answer.paymentType !== undefined && isId(answer.id ?? '')

type RequestNames = { readonly find: ReturnType<typeof lookup>; readonly near: ReturnType<typeof namesNear> }

const allGroups = Object.keys(groups) as Group[]
const everyName: RequestNames = { find: lookup(allGroups), near: namesNear({ groups: allGroups }) }
const namesOfRoutes = new Map(
  operations
    .filter(({ form }) => form !== undefined)
    .map(({ method, path, form }): [string, RequestNames] => {
      const { groups } = form!
      return [`${method} ${path}`, { find: lookup(groups), near: namesNear({ groups }) }]
    }),
)

/** The names that a route takes; all there are where it has no form of its own. */
const namesOf = (method: string, route: string | undefined): RequestNames =>
  namesOfRoutes.get(`${method.toLowerCase()} ${route}`) ?? everyName
