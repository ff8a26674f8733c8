// Plays scenario files: prose, request, expected answer. They are the specification made executable, and run against any base address.
//
//   # A title, and prose about it.                      every title begins a scenario with names of its own
//   POST /v1/payments   paymentType=PA amount=92.00 {channel} {visa}
//        more=parameters                                 an indented line goes on
//   → 200 succeededInTestMode   as {pa}   card.last4Digits=0000 !redirect   descriptor~^\d{4}
//   CLOCK 72h                                            moves the merchant's clock
//   EVENTUALLY GET /v1/payments/{pa} {channel}           asks again until the expectation holds, for what happens in the background
//
// `name=value`, `name="with spaces"`. Before the parameters: `auth:none`, `auth:"Basic x"`, `header:Idempotency-Key=x`, `raw:"a=b&c"`.
// Expectations: status, name of the result (or `any`), `field=value`, `field~pattern`, `!field`, `wrong=name,name` for the parameters named
// in result.parameterErrors, `as {x}` keeps the id, `keep {x}=field` keeps a field, `keep {x}=field~pattern` what
// the pattern finds in it.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type ResultName, results } from '../../src/contract/results/results.ts'

export type Target = { readonly baseUrl: string; readonly accessToken: string; readonly words: Readonly<Record<string, string>> }
export type Scenario = { readonly title: string; readonly line: number; readonly steps: readonly Step[] }
type Step = { readonly line: number; readonly request: string; readonly expected: readonly string[] }

export function readScenarios(path: string): Scenario[] {
  const scenarios: { title: string; line: number; steps: { line: number; request: string; expected: string[] }[] }[] = []
  let inTitle = false
  readFileSync(path, 'utf8')
    .split('\n')
    .forEach((text, at) => {
      const line = at + 1
      if (text.startsWith('#')) {
        const words = text.replace(/^#+ ?/, '')
        if (inTitle) scenarios.at(-1)!.title += ` ${words}`
        else scenarios.push({ title: words, line, steps: [] })
        inTitle = true
        return
      }
      inTitle = false
      if (text.trim() === '') return
      const steps = scenarios.at(-1)!.steps
      if (text.startsWith('→')) steps.at(-1)!.expected.push(text.slice(1).trim())
      else if (/^\s/.test(text)) {
        const last = steps.at(-1)!
        if (last.expected.length > 0) last.expected.push(text.trim())
        else last.request += ` ${text.trim()}`
      } else steps.push({ line, request: text.trim(), expected: [] })
    })
  return scenarios
}

export async function play(scenario: Scenario, target: Target): Promise<void> {
  const words = new Map(Object.entries(target.words))
  for (const { line, request, expected } of scenario.steps) {
    const playOnce = async (once: string) => {
      const reply = await send(once, target, words)
      if (expected.length > 0) expect(expected.join(' '), reply, words, `line ${line}: ${request}`)
    }
    await (request.startsWith('EVENTUALLY ') ? untilItHolds(() => playOnce(request.slice(11))) : playOnce(request))
  }
}

const patienceSeconds = 90

async function untilItHolds(attempt: () => Promise<void>): Promise<void> {
  for (const until = Date.now() + patienceSeconds * 1000; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
}

type Played = { readonly status: number; readonly body: Record<string, unknown> }

async function send(request: string, { baseUrl, accessToken }: Target, words: ReadonlyMap<string, string>): Promise<Played> {
  const [method, path, ...parts] = split(fill(request, words))
  if (method === 'CLOCK') return send(`POST /sandbox/clock {channel} advance=${path}`, { baseUrl, accessToken, words: {} }, words)
  const headers: Record<string, string> = { Authorization: `Bearer ${accessToken}` }
  const form: string[] = []
  for (const part of parts) {
    if (part === 'auth:none') delete headers.Authorization
    else if (part.startsWith('auth:')) headers.Authorization = part.slice(5)
    else if (part.startsWith('header:')) headers[part.slice(7, part.indexOf('='))] = part.slice(part.indexOf('=') + 1)
    else if (part.startsWith('raw:')) form.push(part.slice(4))
    else
      form.push(
        `${encodeURIComponent(part.slice(0, part.indexOf('=')))}=${encodeURIComponent(part.slice(part.indexOf('=') + 1))}`,
      )
  }
  const text = form.join('&')
  if (method === 'POST') headers['Content-Type'] ??= 'application/x-www-form-urlencoded; charset=UTF-8'
  const url = method === 'GET' && text !== '' ? `${baseUrl}${path}${path!.includes('?') ? '&' : '?'}${text}` : `${baseUrl}${path}`
  const response = await fetch(url, { method: method!, headers, ...(method === 'POST' && { body: text }) })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

function expect(expected: string, { status, body }: Played, words: Map<string, string>, where: string): void {
  const said = `${where}\nanswer: ${status} ${JSON.stringify(body)}`
  const [wantedStatus, wantedResult, ...parts] = split(fill(expected, words, true))
  assert.equal(String(status), wantedStatus, `status of ${said}`)
  const result = body.result as { code: string; description: string; parameterErrors?: { name: string }[] }
  for (const name of ['buildNumber', 'timestamp', 'ndc']) assert.equal(typeof body[name], 'string', `${name} of ${said}`)
  if (wantedResult !== 'any') {
    assert.ok(wantedResult! in results, `${where}: no result is called ${wantedResult}`)
    const { code, description } = results[wantedResult as ResultName]
    assert.deepEqual([result.code, result.description], [code, description], `result of ${said}`)
  }
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at]!
    if (part === 'as') words.set(parts[++at]!.slice(1, -1), String(body.id))
    else if (part === 'keep') {
      const [, name, field, pattern = '^[\\s\\S]*'] = /^\{(\w+)\}=([^~]+)(?:~(.*))?$/.exec(parts[++at]!)!
      words.set(name!, new RegExp(pattern).exec(String(at_(body, field!)))![0])
    } else if (part.startsWith('wrong=')) {
      assert.deepEqual(
        (result.parameterErrors ?? []).map(({ name }) => name).sort(),
        part.slice(6).split(',').sort(),
        `wrong parameters of ${said}`,
      )
    } else if (part.startsWith('!')) assert.equal(at_(body, part.slice(1)), undefined, `${part.slice(1)} of ${said}`)
    else {
      const [, field, sign, value] = /^([^=~]+)([=~])([\s\S]*)$/.exec(part) ?? assert.fail(`${where}: what does ${part} expect?`)
      const found = at_(body, field!)
      if (sign === '=') assert.equal(found === undefined ? undefined : String(found), value, `${field} of ${said}`)
      else assert.match(String(found), new RegExp(value!), `${field} of ${said}`)
    }
  }
}

/** `card.last4Digits`, `payments[0].id`, `records.length`; a free key in brackets: `customParameters[a.b]`. */
function at_(body: unknown, field: string): unknown {
  return field
    .split(/\.(?![^[]*\])|\[|\]/)
    .filter(step => step !== '')
    .reduce<unknown>((here, step) => {
      if (here === null || typeof here !== 'object') return undefined
      return step === 'length' && Array.isArray(here) ? here.length : (here as Record<string, unknown>)[step]
    }, body)
}

/** Replaces `{name}`; names not yet known stay, because `as {pa}` makes them. */
function fill(text: string, words: ReadonlyMap<string, string>, expecting = false): string {
  return text.replace(/\{([A-Za-z0-9]+)\}/g, (whole, name, offset: number) => {
    const makes = expecting && /(as|keep) $/.test(text.slice(0, offset))
    return makes ? whole : (words.get(name) ?? whole)
  })
}

/** Splits at spaces outside quotes. */
function split(text: string): string[] {
  return [...text.matchAll(/(?:[^\s"]|"[^"]*")+/g)].map(([part]) => part.replaceAll('"', ''))
}
