// Entities: their settings, by the same rules as a seed file has, and the access tokens that act for them, each shown once.

import { otherBrands } from '../../../contract/brands.ts'
import { limits } from '../../../contract/limits.ts'
import { makeToken, revokeByHand, tokenByChance } from '../../../merchants/access/tokens.ts'
import { changeEntity, kindsBelow, makeEntity, settingsOf, settingsText } from '../../../merchants/change.ts'
import { ofOperator } from '../../../merchants/settings.ts'
import { type EntityRow, isValidAt, readBelow, readLineage, readTokens, type TokenRow } from '../../../merchants/store.ts'
import { turnsOfMerchants } from '../../../merchants/turns.ts'
import { OperatorError } from '../../../platform/errors.ts'
import { type Mistake, mistakeText, parseJson } from '../../../platform/schema.ts'
import { type FieldParts, fieldsOf } from '../../../platform/schemaFields.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { button, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute, personOf } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { entityWords } from './entityWords.ts'
import {
  type Inherited,
  readSettings,
  type SettingsView,
  settingFields,
  settingStyle,
  settingsTextMost,
  writeSettings,
} from './settingForm.ts'

export function entityRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, keys, clock, random, directory } = parts
  const recorder = ({ by }: SignedIn) => ({ keys, clock, random, by })
  const turns = turnsOfMerchants(clock)
  const inTurn = <Value>(signedIn: SignedIn, { id, merchantId }: EntityRow, work: () => Promise<Value>) =>
    turns(personOf(signedIn), merchantId ?? id, work)
  const found = async (id: string): Promise<EntityRow | undefined> => (await readLineage(database.work, id))[0]
  /** Those whose whole reach is within that of whoever looks. */
  const tokensOf = async (signedIn: SignedIn, id: string): Promise<TokenRow[]> =>
    (await readTokens(database.work, { entities: [id] })).filter(({ entities }) => entities.every(one => signedIn.reaches(one)))
  /** What counts where the entity sets nothing: of the nearest group above that sets it. */
  const inheritedBy = async (signedIn: SignedIn, entity: EntityRow, fields: FieldParts, someone: string) => {
    const [, ...rows] = await readLineage(database.work, entity.id)
    const above = rows.filter(({ kind }) => kind === 'psp' || kind === 'division')
    return new Map(
      [...fields].map(([name, { inPlace }]): [string, Inherited] => {
        const from = above.find(({ settings }) => settings[name] !== undefined)
        if (!from) return [name, { value: inPlace }]
        return [name, { value: from.settings[name], from: signedIn.reaches(from.id) ? from.name : someone }]
      }),
    )
  }
  const show = async (
    { language }: OfficeRequest,
    signedIn: SignedIn,
    entity: EntityRow,
    more: { above?: Html; given?: Sent; mistakes?: readonly Mistake[] } = {},
  ): Promise<OfficeAnswer> => {
    const words = entityWords(language)
    const { above, given, mistakes = [] } = more
    const settings = settingsText(entity)
    const address = `/office/entities/${entity.id}`
    const mayChange = signedIn.may('changeSettings')
    const fields = fieldsOf(settingsOf(entity.kind, brandsKnown(parts)))
    const marked = mistakesByField(fields, mistakes)
    const view: SettingsView = {
      fields,
      values: given?.values ?? writeSettings(fields, entity.settings),
      mistakes: marked.fields,
      fixed: signedIn.isWhole ? new Set() : ofOperator,
      inherited: await inheritedBy(signedIn, entity, fields, words.someoneAbove),
      known: { brands: [...brandsKnown(parts)].sort(), riskRules: [...(parts.riskRules?.keys() ?? [])] },
      language,
    }
    const hidden = html`<input type="hidden" name="shown" value="${settings}">`
    const below = kindsBelow[entity.kind]
    const nameField = (id: string) => field({ name: 'name', id, label: words.name, value: given?.name ?? entity.name })
    return {
      title: entity.name,
      style: settingStyle,
      ...(mistakes.length > 0 && { status: 400 }),
      body: html`${above}${
        mistakes.length > 0 &&
        html`<div class="message wrong" role="alert"><p>${words.wrong}</p><ul>${[...marked.fields].map(
          ([name, [first]]) => html`<li><a href="#setting-${name}">${name}</a> ${mistakeText(first!)}</li>`,
        )}${marked.others.map(text => html`<li>${text}</li>`)}</ul></div>`
      }
<div class="card"><dl><dt>id</dt><dd><code>${entity.id}</code></dd><dt>${words.kind}</dt><dd>${entity.kind}</dd></dl></div>
<h2>${words.settings}</h2><p class="soft">${words.seeded}</p>
<form method="post" action="${address}">${hidden}<fieldset class="all"${!mayChange && html` disabled`} aria-label="${words.settings}">
<div class="card">${nameField('name')}</div>
${settingFields(view)}</fieldset>${mayChange && html`<button>${words.save}</button>`}</form>
<details class="card json"${given?.json !== undefined && html` open`}><summary><h3>${words.json}</h3></summary><form method="post" action="${address}">${hidden}
${mayChange && nameField('name-json')}
<div class="field"><label for="settings">${words.json}</label>
<textarea id="settings" name="settings" rows="12" spellcheck="false" aria-describedby="settings-hint"${!mayChange && html` readonly`}>${given?.json ?? settings}</textarea>
<p class="hint" id="settings-hint">${words.hint}</p></div>
${mayChange && html`<button>${words.save}</button>`}</form></details>
${
  below &&
  signedIn.may('makeEntities') &&
  html`<h2>${words.below}</h2><div class="card"><form class="line" method="post" action="${address}/below">
<div>${field({ name: 'name', id: 'below-name', label: words[`below_${below}` as keyof typeof words] })}</div><button>${words.makeBelow}</button></form></div>`
}
<h2>${words.tokens}</h2>
${tokenTable(await tokensOf(signedIn, entity.id), entity.id, signedIn, language, clock.real())}
${
  signedIn.may('changeTokens') &&
  html`<div class="card"><form class="line" method="post" action="${address}/tokens">
<div>${field({ name: 'label', label: words.label })}</div><button>${words.make}</button></form></div>`
}`,
    }
  }
  return [
    {
      method: 'GET',
      path: '/entities',
      action: 'readSettings',
      async answer({ language }, signedIn) {
        const words = entityWords(language)
        const rows = inTree(await readBelow(database.work, signedIn.entities))
        const title = frameWords(language).entities
        return {
          title,
          body: tableOf(
            title,
            [words.name, words.kind, 'id'],
            rows.map(({ entity: { id, name, kind }, depth }) => [
              html`${'  '.repeat(depth)}<a href="/office/entities/${id}">${name}</a>`,
              kind,
              html`<code>${id}</code>`,
            ]),
          ),
        }
      },
    },
    {
      method: 'GET',
      path: '/entities/{entity}',
      action: 'readSettings',
      async answer(request, signedIn, { entity: id = '' }) {
        const entity = await found(id)
        return entity ? show(request, signedIn, entity) : nothingHere(request.language)
      },
    },
    {
      method: 'POST',
      path: '/entities/{entity}',
      action: 'changeSettings',
      exact: true,
      bodyMax: limits.bodyMaxBytes, // logos, and lists of rules
      proven: true,
      async answer(request, signedIn, { entity: id = '' }) {
        const { values } = request
        const entity = await found(id)
        if (!entity) return nothingHere(request.language)
        const name = values.get('name') ?? ''
        const json = values.get('settings') ?? undefined
        // A browser sends lines as CR LF.
        const shown = (values.get('shown') ?? '').replaceAll('\r\n', '\n')
        const fields = fieldsOf(settingsOf(entity.kind, brandsKnown(parts)))
        const read = json === undefined ? readSettings(fields, values) : readWhole(json)
        const { mistakes } = read
        // A browser does not send the fields that somebody may not change.
        const settings = json === undefined && !signedIn.isWhole ? withFixed(read.settings as object, entity) : read.settings
        const wrong =
          mistakes.length > 0
            ? mistakes.map(one => ({ ...one, path: ['settings', ...one.path] }))
            : await inTurn(signedIn, entity, () =>
                changeEntity(
                  database.work,
                  recorder(signedIn),
                  { brands: brandsKnown(parts), isOperator: signedIn.isWhole, refusal: parts.channelRefusal },
                  id,
                  { name, settings },
                  shown,
                ),
              )
        if (wrong.length === 0) return goTo(`/office/entities/${id}`)
        const given: Sent = { name, ...(json === undefined ? { values } : { json }) }
        return show(request, signedIn, entity, { given, mistakes: wrong })
      },
    },
    {
      method: 'POST',
      path: '/entities/{entity}/below',
      action: 'makeEntities',
      whole: true, // what is new has none of the bounds that those beside it were given
      proven: true,
      async answer(request, signedIn, { entity: id = '' }) {
        const entity = await found(id)
        if (!entity) return nothingHere(request.language)
        const name = (request.values.get('name') ?? '').trim().slice(0, 200)
        const made = await inTurn(signedIn, entity, () =>
          makeEntity(database.work, recorder(signedIn), id, name, parts.channelRefusal),
        )
        if (made === undefined)
          return { status: 400, title: entity.name, body: message(entityWords(request.language).wrongName, 'wrong') }
        // The page of what was made is asked for before this process is told of it.
        await directory.reload()
        return goTo(`/office/entities/${made}`)
      },
    },
    {
      method: 'POST',
      path: '/entities/{entity}/tokens',
      action: 'changeTokens',
      proven: true,
      async answer(request, signedIn, { entity: id = '' }) {
        const entity = await found(id)
        const label = (request.values.get('label') ?? '').trim().slice(0, 100)
        if (!entity || !/^[^\p{Cc}\p{Cf}]+$/u.test(label)) return nothingHere(request.language)
        const sent = tokenByChance(random)
        try {
          await inTurn(signedIn, entity, () => makeToken(database.work, recorder(signedIn), { sent, label, entities: [id] }))
        } catch (error) {
          if (!(error instanceof OperatorError)) throw error
          return { ...(await show(request, signedIn, entity, { above: message(error.message, 'wrong') })), status: 409 }
        }
        const { shownOnce } = entityWords(request.language)
        const above = html`<div class="message secret" role="status"><p>${shownOnce}</p><p><code id="token">${sent}</code></p></div>`
        return show(request, signedIn, entity, { above })
      },
    },
    {
      method: 'POST',
      path: '/entities/{entity}/tokens/{token}/revoke',
      action: 'changeTokens',
      proven: true,
      async answer({ language }, signedIn, { entity: id = '', token: tokenId = '' }) {
        const token = (await tokensOf(signedIn, id)).find(one => one.id === tokenId)
        if (!token || !(await revokeByHand(database.work, recorder(signedIn), tokenId))) return nothingHere(language)
        return goTo(`/office/entities/${id}`)
      },
    },
  ]
}

/** The settings that somebody of a merchant has sent, with those of the entity where the staff of the PSP alone changes them. */
const withFixed = (sent: object, { settings }: EntityRow): object =>
  Object.fromEntries([
    ...Object.entries(sent).filter(([name]) => !ofOperator.has(name)),
    ...Object.entries(settings).filter(([name]) => ofOperator.has(name)),
  ])

/** What somebody sent: fields, or the text of JSON. */
type Sent = { readonly name: string; readonly values?: URLSearchParams; readonly json?: string }

function readWhole(text: string): { settings: unknown; mistakes: readonly Mistake[] } {
  if (text.length > settingsTextMost)
    return {
      settings: undefined,
      mistakes: [{ path: [], rule: `What you wrote must be at most ${settingsTextMost} characters` }],
    }
  try {
    return { settings: parseJson(text, 'What you wrote'), mistakes: [] }
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return { settings: undefined, mistakes: [{ path: [], rule: error.message }] }
  }
}

/** Beside which field each stands; what is about none stands above them all. */
function mistakesByField(fields: FieldParts, mistakes: readonly Mistake[]) {
  const marked = new Map<string, Mistake[]>()
  const others: string[] = []
  for (const { path, rule } of mistakes) {
    const [, name, ...rest] = path
    if (typeof name === 'string' && fields.has(name)) marked.set(name, [...(marked.get(name) ?? []), { path: rest, rule }])
    else others.push(mistakeText({ path: path.slice(path[0] === 'settings' ? 1 : 0), rule }))
  }
  return { fields: marked, others }
}

/** The brands that settings may name in this process. */
const brandsKnown = ({ cardBrands, methods }: OfficeParts): ReadonlySet<string> =>
  new Set([...cardBrands.rows.map(({ name }) => name), ...otherBrands, ...methods.keys()])

/** Each below its parent; those whose parent is not among them stand at the top. */
function inTree(rows: readonly EntityRow[]): { entity: EntityRow; depth: number }[] {
  const ids = new Set(rows.map(({ id }) => id))
  const below = (parentId: string | null, depth: number): { entity: EntityRow; depth: number }[] =>
    rows
      .filter(row => (depth === 0 ? row.parentId === null || !ids.has(row.parentId) : row.parentId === parentId))
      .sort((one, other) => (one.name < other.name ? -1 : 1))
      .flatMap(entity => [{ entity, depth }, ...below(entity.id, depth + 1)])
  return below(null, 0)
}

function tokenTable(
  tokens: readonly TokenRow[],
  entityId: string,
  signedIn: SignedIn,
  language: OfficeLanguage,
  now: number,
): Html {
  const words = entityWords(language)
  if (tokens.length === 0) return message(words.noTokens)
  return tableOf(
    words.tokens,
    [words.label, words.made, words.state, ''],
    tokens.map(one => [
      one.label,
      momentText(language, one.createdAt),
      isValidAt(one, now) ? words.valid : words.revoked,
      isValidAt(one, now) && signedIn.may('changeTokens')
        ? button(`/office/entities/${entityId}/tokens/${one.id}/revoke`, words.revoke, 'danger')
        : '',
    ]),
  )
}
