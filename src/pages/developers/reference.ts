// The reference of the interface: what there is, and a page for each request with its parameters, answers, examples and a form that sends it.

import type { Format } from '../../contract/formats.ts'
import { type ApiOperation, always, authenticated, operations, posted } from '../../contract/operations.ts'
import { effectsOf, needOf } from '../../contract/parameters/describe.ts'
import type { Parameter, Parameters } from '../../contract/parameters/parameter.ts'
import { groups } from '../../contract/parameters/table.ts'
import { groupTitles } from '../../contract/parameters/titles.ts'
import { type Html, html } from '../html.ts'
import { programs, type SampleRequest } from './browser/programs.ts'
import { codeBlock, wideTable } from './frame.ts'
import { sampleOf } from './samples.ts'

/** Whose credentials the forms begin with: a sandbox's, which are public. */
export type Playground = { readonly entityId: string; readonly accessToken: string }

const pathOf = ({ id }: ApiOperation): string => `/docs/api/${id}`
export const operationNamed = (id: string): ApiOperation | undefined => operations.find(one => one.id === id)

const signOf = ({ method, path }: ApiOperation): Html =>
  html`<span class="method ${method}">${method.toUpperCase()}</span> <code>${path}</code>`

/** The paths with one beginning stand together. */
const chapters: readonly (readonly [title: string, paths: RegExp])[] = [
  ['Payments', /^\/v1\/(payments|threeDSecure)/],
  ['Checkouts: the payment form', /^\/v1\/checkouts/],
  ['Registrations: stored payment details', /^\/v1\/registrations/],
  ['Searches', /^\/v[13]\/query/],
  ['Reports', /^\/reports/],
  ['The sandbox alone', /^\/sandbox/],
  ['And the rest', /^/],
]

export function referenceIndex(): Html {
  const byChapter = Map.groupBy(operations, ({ path }) => chapters.find(([, paths]) => paths.test(path))![0])
  return html`<h1>API reference</h1>
<p>Requests are form-encoded in UTF-8, answers are JSON. Every answer has <code>result.code</code>: <a href="/docs/codes">what the codes mean</a>.
As a document for tools: <a href="/openapi.json">/openapi.json</a>.</p>
${chapters
  .filter(([title]) => byChapter.has(title))
  .map(
    ([title]) => html`<section class="panel"><h2>${title}</h2><ul class="plain">
${byChapter.get(title)!.map(
  one => html`<li><a href="${pathOf(one)}">${signOf(one)} <span>${one.says}</span></a></li>
`,
)}</ul></section>`,
  )}`
}

/** Without a playground the examples have words in the place of credentials, and nothing can be sent. */
export function operationPage(
  operation: ApiOperation,
  publicUrl: string,
  today: string,
  playground: Playground | undefined,
): Html {
  const { says, more, byBrowser, answers, method, open } = operation
  const { entityId, accessToken } = playground ?? { entityId: 'ENTITY_ID', accessToken: 'ACCESS_TOKEN' }
  const fields = sampleOf(operation, entityId, today)
  const all = { ...answers, ...always, ...(open || byBrowser ? {} : authenticated), ...(method === 'post' ? posted : {}) }
  return html`<p><a href="/docs/api">API reference</a></p>
<h1>${says}</h1>
<p>${signOf(operation)}</p>
${more !== undefined && html`<p>${more}</p>`}
${fields ? sampleParts(operation, { method: methodOf(operation), url: publicUrl + operation.path, token: open ? undefined : accessToken, fields }, playground !== undefined) : html`<p class="soft">${byBrowser ? 'A shopper’s browser sends it from the payment form, so there is nothing to try here.' : 'It takes and answers XML, which the examples of these pages do not speak.'}</p>`}
<section class="panel"><h2>Parameters</h2>
${parameterParts(operation)}</section>
<section class="panel"><h2>Answers</h2>
${wideTable(
  'Answers',
  ['HTTP', 'When'],
  Object.entries(all)
    .sort(([a], [b]) => Number(a) - Number(b))
    .map(([status, [text]]) => [html`<code>${status}</code>`, html`${text}`]),
)}</section>`
}

const methodOf = ({ method }: ApiOperation) => method.toUpperCase() as SampleRequest['method']

const sampleParts = (operation: ApiOperation, sample: SampleRequest, canTry: boolean): Html => html`<div class="columns">
${canTry && tryForm(operation, sample)}
<section class="panel" aria-labelledby="examples-title"><h2 id="examples-title">In your language</h2>
${Object.entries(programs).map(
  ([name, write], at) => html`<details${at === 0 && html` open`}><summary>${name}</summary>
<button class="plain" type="button" data-copy="program-${at}">Copy</button>
${codeBlock(write(sample), name, `program-${at}`)}</details>
`,
)}</section>
</div>`

/** It works by a script alone: a browser's own form cannot say who is calling. */
function tryForm(operation: ApiOperation, sample: SampleRequest): Html {
  const inputs = [
    ...(sample.token === undefined ? [] : [field('Access token', 'token', sample.token, 'token')]),
    ...(operation.pathId === undefined ? [] : [field('{id}', 'id', '', 'id', operation.pathId)]),
    ...sample.fields.map(([name, value], at) => field(name, name, value, `field-${at}`)),
  ]
  return html`<section class="panel" aria-labelledby="try-title"><h2 id="try-title">Try it</h2>
<p class="soft">It goes to this sandbox; no money moves.</p>
<noscript><p>This form needs JavaScript. The examples beside it do not.</p></noscript>
<form id="try" data-method="${sample.method}" data-url="${sample.url}">
${inputs}
<div class="field"><input id="more-name" aria-label="Name of another parameter" placeholder="another parameter" autocomplete="off"><input id="more-value" aria-label="Its value" placeholder="its value" autocomplete="off"></div>
<div class="buttons"><button>Send</button></div>
</form>
<p role="status" id="status" class="soft">Nothing is sent yet.</p>
<div id="answer-part" hidden>${codeBlock('', 'The answer', 'answer')}</div>
</section>`
}

const field = (label: string, name: string, value: string, id: string, hint?: string): Html =>
  html`<div class="field"><label for="${id}"><code>${label}</code></label><input id="${id}" name="${name}" value="${value}" autocomplete="off" spellcheck="false"${hint !== undefined && html` placeholder="${hint}"`}></div>
`

function parameterParts({ form, fields, query, queryGroup }: ApiOperation): Html {
  if (form)
    return html`<p class="soft">All go into the body. Required: ${form.required.length === 0 ? 'depends on the others' : form.required.join(', ')}.</p>
${form.groups.map(group => html`<details><summary>${groupTitles[group]}</summary>${groupTable(groupTitles[group], groups[group])}</details>`)}`
  if (fields)
    return wideTable(
      'Parameters',
      ['Name', 'Pattern'],
      Object.entries(fields).map(([name, pattern]) => [html`<code>${name}</code>`, html`<code>${pattern}</code>`]),
    )
  if (!query) return html`<p>None.</p>`
  const rows: Parameters = { ...groups.common, ...groups.authentication, ...groups[queryGroup ?? 'query'] }
  return groupTable('Parameters', Object.fromEntries(query.map(asked => [asked.replace('!', ''), rows[asked.replace('!', '')]!])))
}

const groupTable = (label: string, rows: Parameters): Html =>
  wideTable(
    label,
    ['Name', 'Format', 'About'],
    Object.entries(rows).map(([name, row]) => [html`<code>${name}</code>`, formatOf(row.format), aboutOf(row)]),
  )

const formatOf = ({ words, label }: Format): Html =>
  words ? html`${words.map(word => html`<code>${word}</code> `)}` : html`${label}`

const aboutOf = (row: Parameter): Html => html`${[needOf(row), row.note, ...effectsOf(row)].filter(Boolean).join(' ')}`
