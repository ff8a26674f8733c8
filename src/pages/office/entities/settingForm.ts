// Settings as the fields of a form, made of the schema that seed files are checked by. Of each setting one field says whether it counts what is above or what is
// written here (`brands`), and others what that is (`brands.own`, `bankAccount.own.holder`). What somebody sent is shown again as it was written.

import { amountText, hundredths } from '../../../contract/amounts.ts'
import { OperatorError } from '../../../platform/errors.ts'
import { type Mistake, mistakeText, parseJson } from '../../../platform/schema.ts'
import type { FieldPart, FieldParts, FieldShape } from '../../../platform/schemaFields.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import type { OfficeLanguage } from '../words.ts'
import { entityWords } from './entityWords.ts'
import { type SettingName, settingGroups, settingRows, settingText } from './settingWords.ts'

type SettingsMap = Readonly<Record<string, unknown>>

/** What counts where an entity sets nothing itself; `from`: the name of who set it, absent for a default. */
export type Inherited = { readonly value: unknown; readonly from?: string }

const rowOf = (name: string) => settingRows[name as SettingName]
const isChoice = ({ kind }: FieldShape): boolean => kind === 'flag' || kind === 'choice'

/** The fields as a browser sends them for these settings. */
export function writeSettings(fields: FieldParts, settings: SettingsMap): URLSearchParams {
  const values = new URLSearchParams()
  for (const [name, { shape }] of fields) {
    const value = settings[name]
    if (value === undefined) values.append(name, 'above')
    else if (isChoice(shape)) values.append(name, String(value))
    else {
      values.append(name, 'own')
      writeValue(values, `${name}.own`, shape, value, rowOf(name).unit === 'amount')
    }
  }
  return values
}

function writeValue(values: URLSearchParams, name: string, shape: FieldShape, value: unknown, isAmount = false): void {
  if (shape.kind === 'choices') for (const word of value as string[]) values.append(name, word)
  else if (shape.kind === 'texts') values.append(name, (value as string[]).join('\n'))
  else if (shape.kind === 'other') values.append(name, JSON.stringify(value, null, 2))
  else if (shape.kind === 'parts') {
    for (const [part, { shape: inner }] of shape.parts) {
      const own = (value as SettingsMap)[part]
      if (own !== undefined) writeValue(values, `${name}.${part}`, inner, own)
    }
  } else values.append(name, isAmount ? amountText(value as number) : String(value))
}

const flags = new Map([
  ['true', true],
  ['false', false],
])

/** Of what was sent the settings, not yet checked, and what cannot even be read. */
export function readSettings(fields: FieldParts, values: URLSearchParams): { settings: SettingsMap; mistakes: Mistake[] } {
  const settings: Record<string, unknown> = {}
  const mistakes: Mistake[] = []
  for (const [name, { shape }] of fields) {
    const chosen = values.get(name) ?? 'above'
    if (chosen === 'above') continue
    if (isChoice(shape)) settings[name] = shape.kind === 'flag' && flags.has(chosen) ? flags.get(chosen) : chosen
    else {
      const value = readValue(values, `${name}.own`, shape, rowOf(name).unit === 'amount')
      if (typeof value === 'object' && 'rule' in value) mistakes.push({ path: [name], rule: value.rule })
      else settings[name] = value.read
    }
  }
  return { settings, mistakes }
}

/** Of a text with one a line, or of boxes that were checked. One more than a list may have is enough to say that it is too long. */
const wordsSent = (values: URLSearchParams, name: string): string[] =>
  values
    .getAll(name)
    .slice(0, wordsMost + 1)
    .flatMap(text => text.slice(0, wordsMost * 32).split(/[\s,]+/))
    .filter(word => word !== '')
    .slice(0, wordsMost + 1)

/** Of one list of settings; beyond it a page is not drawn in reasonable time, and nobody reads it. */
const wordsMost = 500

/** Characters of settings as JSON: ten times what anybody has. */
export const settingsTextMost = 32_768

type ReadValue = { readonly read: unknown } | { readonly rule: string }

function readValue(values: URLSearchParams, name: string, shape: FieldShape, isAmount = false): ReadValue {
  // A browser sends lines as CR LF.
  const text = (values.get(name) ?? '').replaceAll('\r\n', '\n').trim()
  switch (shape.kind) {
    case 'flag':
      return { read: flags.get(text) ?? text }
    case 'choices':
      return listRead(values.getAll(name))
    case 'texts':
      return listRead(wordsSent(values, name))
    case 'number':
      if (isAmount)
        return /^\d{1,10}(\.\d\d)?$/.test(text) ? { read: hundredths(text) } : { rule: 'must be an amount such as 1000.00' }
      // What is no number is told of by the rule of the schema.
      return { read: /^-?\d{1,15}$/.test(text) ? Number(text) : text }
    case 'other':
      return readJson(text)
    case 'parts': {
      const given = [...shape.parts].filter(
        ([part, { isOptional }]) => !isOptional || (values.get(`${name}.${part}`) ?? '') !== '',
      )
      const read = given.map(([part, { shape: inner }]) => [part, readValue(values, `${name}.${part}`, inner)] as const)
      // The parts of parts are texts, figures and words, which are always read.
      return { read: Object.fromEntries(read.map(([part, value]) => [part, 'read' in value ? value.read : undefined])) }
    }
    default:
      return { read: text }
  }
}

const listRead = (words: readonly string[]): ReadValue =>
  words.length > wordsMost ? { rule: `must hold at most ${wordsMost}` } : { read: words }

function readJson(text: string): ReadValue {
  if (text.length > settingsTextMost) return { rule: `must be at most ${settingsTextMost} characters` }
  try {
    return { read: parseJson(text, 'What stands here') }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return { rule: 'is not JSON' }
  }
}

/** What a form needs to be drawn. */
export type SettingsView = {
  readonly fields: FieldParts
  readonly values: URLSearchParams
  /** By the name of their setting; paths begin inside it. */
  readonly mistakes: ReadonlyMap<string, readonly Mistake[]>
  readonly inherited: ReadonlyMap<string, Inherited>
  /** Names that this installation knows. */
  readonly known: Readonly<Record<'brands' | 'riskRules', readonly string[]>>
  /** Names of settings that whoever looks may not change. */
  readonly fixed: ReadonlySet<string>
  readonly language: OfficeLanguage
}

/** The groups that have a setting of this kind of entity; open where somebody has set something, or something is wrong. */
export function settingFields(view: SettingsView): Html {
  const { fields, values, mistakes, language } = view
  const words = entityWords(language)
  const groups = settingGroups.map(group => {
    const names = (Object.keys(settingRows) as SettingName[]).filter(name => rowOf(name).group === group && fields.has(name))
    if (names.length === 0) return html``
    const own = names.filter(name => (values.get(name) ?? 'above') !== 'above').length
    const isOpen = group === 'accepted' || own > 0 || names.some(name => mistakes.has(name))
    return html`<details class="card"${isOpen && html` open`}><summary><h3>${words[`group_${group}`]}</h3>${
      own > 0 && html` <span class="role">${fill(words.setHere, { count: String(own) })}</span>`
    }</summary>${names.map(name => settingField(view, name, fields.get(name)!))}</details>`
  })
  return html`${groups}`
}

function settingField(view: SettingsView, name: SettingName, { shape }: FieldPart): Html {
  const { values, mistakes, fixed, language } = view
  const words = entityWords(language)
  const { title, hint } = settingText(language, name)
  const chosen = values.get(name) ?? 'above'
  const wrong = mistakes.get(name)
  const radio = (value: string, text: string | Html) =>
    html`<label><input type="radio" name="${name}" value="${value}"${chosen === value && html` checked`}> ${text}</label>`
  const options = shape.kind === 'flag' ? ['true', 'false'] : shape.kind === 'choice' ? shape.words : undefined
  const described = `${name}-hint${wrong ? ` ${name}-wrong` : ''}`
  return html`<fieldset class="setting" id="setting-${name}" aria-describedby="${described}"${fixed.has(name) && html` disabled`}><legend>${title} <code>${name}</code></legend>
<p class="hint" id="${name}-hint">${hint} ${fixed.has(name) && words.ofOperator}</p>${
    wrong && html`<p class="wrong" id="${name}-wrong">${wrong.map(one => html`<span>${mistakeText(one)}</span> `)}</p>`
  }
${radio('above', aboveText(view, name, shape))}
${options ? options.map(one => radio(one, valueText(language, one))) : html`${radio('own', words.own)}<div class="own">${ownField(view, `${name}.own`, name, shape, title)}</div>`}
</fieldset>`
}

/** `Use what is above: EUR, USD (Europe)`. */
function aboveText({ inherited, language }: SettingsView, name: SettingName, shape: FieldShape): string {
  const words = entityWords(language)
  const { value, from } = inherited.get(name) ?? { value: undefined }
  const isAmount = rowOf(name).unit === 'amount'
  const text =
    value === undefined || value === '' || (Array.isArray(value) && value.length === 0)
      ? words.nothing
      : isAmount
        ? amountText(value as number)
        : shape.kind === 'other' || shape.kind === 'parts'
          ? JSON.stringify(value)
          : Array.isArray(value)
            ? value.join(', ')
            : valueText(language, String(value))
  return from === undefined ? fill(words.byDefault, { value: text }) : fill(words.fromAbove, { value: text, from })
}

function valueText(language: OfficeLanguage, value: string): string {
  const { yes, no } = entityWords(language)
  return value === 'true' ? yes : value === 'false' ? no : value
}

function ownField(view: SettingsView, name: string, setting: SettingName, shape: FieldShape, label: string): Html {
  const { values, known, mistakes, language } = view
  const words = entityWords(language)
  const { unit, known: knownBy } = rowOf(setting)
  const value = values.get(name) ?? ''
  const wrong = mistakes
    .get(setting)
    ?.some(({ path: [part] }) => part === undefined || name === `${setting}.own` || name.endsWith(`.${part}`))
  const described = html` aria-describedby="${setting}-hint${wrong && html` ${setting}-wrong`}"${wrong && html` aria-invalid="true"`}`
  const checks = (all: readonly string[]) => {
    const sent = new Set(wordsSent(values, name))
    return html`<div class="checks">${[...new Set([...all, ...sent])].map(
      word =>
        html`<label><input type="checkbox" name="${name}" value="${word}"${sent.has(word) && html` checked`}> ${word}</label>`,
    )}</div>`
  }
  if (shape.kind === 'choices') return checks(shape.words)
  if (shape.kind === 'parts')
    return html`${[...shape.parts].map(
      ([part, { shape: inner }]) =>
        html`<div class="field"><span class="part"><code>${part}</code></span>${ownField(view, `${name}.${part}`, setting, inner, part)}</div>`,
    )}`
  if (knownBy === 'brands') return checks(known.brands)
  if (knownBy === 'riskRules')
    return html`<select name="${name}" aria-label="${label}"${described}>${[...new Set(['', ...known.riskRules, value])].map(
      one => html`<option value="${one}"${one === value && html` selected`}>${one === '' ? words.nothing : one}</option>`,
    )}</select>`
  if (shape.kind === 'texts' || shape.kind === 'other')
    return html`<textarea name="${name}" rows="4" aria-label="${label}" spellcheck="false"${described}>${value}</textarea>`
  const isFigure = shape.kind === 'number'
  return html`<input name="${name}" value="${value}" aria-label="${label}" autocomplete="off" spellcheck="false"${
    isFigure && html` inputmode="${unit === 'amount' ? 'decimal' : 'numeric'}" class="figures"`
  }${described}>${unit && html` <span class="soft">${words[`unit_${unit}`]}</span>`}`
}

/** What is not chosen is not in the way. */
export const settingStyle = `
summary { cursor: pointer; } summary h3 { display: inline; margin: 0; font-size: 1rem; }
form + details.json { margin-top: 1.25rem; } fieldset.all { margin: 0; padding: 0; border: 0; min-width: 0; }
.setting { margin: 1rem 0; padding: .6rem .9rem .8rem; border: 1px solid var(--line); border-radius: 8px; min-width: 0; }
.setting legend { padding: 0 .3rem; font-weight: 600; } .setting legend code { color: var(--soft); font-weight: 400; }
.setting .hint { margin: 0 0 .5rem; }
.setting label { font-weight: 400; overflow-wrap: anywhere; }
.setting:has(.wrong) { border-color: var(--wrong); } .setting .wrong { margin: 0 0 .5rem; }
.setting:has(> label > input[value=above]:checked) > .own { display: none; }
.setting .own { margin: .4rem 0 0 1.4rem; } .setting textarea { min-height: 5rem; }
.setting input.figures { width: 11rem; }
.checks { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .1rem .75rem; }
`
