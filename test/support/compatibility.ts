// Compares two OpenAPI documents of ours: what a client could do or read by the old one, it must be able to do and read by the new one.

type Node = { readonly [name: string]: unknown }

/** What disappeared or became tighter, a line each. */
export function breaks(old: Node, now: Node): string[] {
  const found: string[] = []
  const say = (path: string, what: string) => found.push(`${path}: ${what}`)
  compare(old, now, '', say)
  return found
}

type Say = (path: string, what: string) => void

function compare(old: unknown, now: unknown, path: string, say: Say): void {
  if (Array.isArray(old)) compareLists(old, Array.isArray(now) ? now : [], path, say)
  else if (!isNode(old)) {
    if (old !== now) say(path, `was ${JSON.stringify(old)} and is ${JSON.stringify(now)}`)
  } else if (isNode(now)) compareNodes(old, now, path, say)
  else say(path, 'is gone')
}

function compareNodes(old: Node, now: Node, path: string, say: Say): void {
  for (const [name, before] of Object.entries(old)) {
    const here = `${path}/${name}`
    const rule = isNode(before) ? undefined : rules[name]
    if (rule) {
      for (const what of rule(before as never, now[name] as never, isAnswer(path))) say(here, what)
    } else if (name in now) compare(before, now[name], here, say)
    else say(here, 'is gone')
  }
  // Demands that the old document did not make.
  if (path.endsWith('roperties')) return // names of parameters, not of rules
  for (const name of ['enum', 'pattern', 'minLength', 'maxLength'])
    if (name in now && !(name in old)) say(`${path}/${name}`, 'is new')
  if (!('required' in old) && 'required' in now)
    for (const what of rules.required!(undefined as never, now.required as never, isAnswer(path))) say(`${path}/required`, what)
}

/** A request demands, an answer promises. */
const isAnswer = (path: string): boolean => /\/schemas\/[A-Z]/.test(path)

type Rule = (old: never, now: never, inAnswer: boolean) => string[]
const nothing: Rule = () => []

const rules: Readonly<Record<string, Rule>> = {
  description: nothing,
  summary: nothing,
  title: nothing,
  operationId: nothing,
  version: nothing,
  url: nothing,
  writeOnly: nothing, // a value that is returned now was not promised before
  minLength: (old: number, now = 0) => (now > old ? [`rose from ${old} to ${now}`] : []),
  maxLength: (old: number, now = Number.POSITIVE_INFINITY) => (now < old ? [`fell from ${old} to ${now}`] : []),
  // A wider length changes the quantifier of a pattern too: patterns are compared without it, lengths by their numbers.
  pattern: (old: string, now?: string) =>
    now !== undefined && withoutLength(old) !== withoutLength(now) ? [`was ${old} and is ${now}`] : [],
  enum: (old: string[], now?: string[]) =>
    now === undefined ? [] : old.filter(word => !now.includes(word)).map(word => `${word} is gone`),
  required: (old: string[] | boolean = [], now: string[] | boolean = [], inAnswer) => {
    if (!Array.isArray(old) || !Array.isArray(now)) return now === true && old !== true ? ['is demanded now'] : []
    return inAnswer
      ? old.filter(name => !now.includes(name)).map(name => `${name} is not promised any more`)
      : now.filter(name => !old.includes(name)).map(name => `${name} is demanded now`)
  },
}

const withoutLength = (pattern: string): string => pattern.replace(/\{\d+,\d+\}(?=\$|\))/g, '{}')

/** Members are found again by their name, their reference or their text. */
function compareLists(old: readonly unknown[], now: readonly unknown[], path: string, say: Say): void {
  const key = (member: unknown) =>
    isNode(member) ? String(member.name ?? member.$ref ?? JSON.stringify(member)) : String(member)
  const there = new Map(now.map(member => [key(member), member]))
  const before = new Set(old.map(key))
  for (const member of old) {
    const found = there.get(key(member))
    if (found === undefined) say(path, `${key(member)} is gone`)
    else compare(member, found, `${path}/${key(member)}`, say)
  }
  for (const [name, member] of there)
    if (!before.has(name) && isNode(member) && member.required === true) say(path, `${name} is demanded now`)
}

const isNode = (value: unknown): value is Node => value !== null && typeof value === 'object' && !Array.isArray(value)
