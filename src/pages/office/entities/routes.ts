// Entities: their settings, by the same rules as a seed file has, and the access tokens that act for them, each shown once.

import { otherBrands } from '../../../contract/brands.ts'
import { makeToken, revokeByHand, tokenByChance } from '../../../merchants/access/tokens.ts'
import { changeEntity, settingsText } from '../../../merchants/change.ts'
import { type EntityRow, isValidAt, readEntities, readTokens, type TokenRow } from '../../../merchants/store.ts'
import { OperatorError } from '../../../platform/errors.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { button, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage, wordsIn } from '../words.ts'

export function entityRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, keys, clock, random } = parts
  const recorder = ({ by }: SignedIn) => ({ keys, clock, random, by })
  const found = async (id: string): Promise<EntityRow | undefined> =>
    (await readEntities(database.work)).find(entity => entity.id === id)
  /** Those whose whole reach is within that of whoever looks. */
  const tokensOf = async (signedIn: SignedIn, id: string): Promise<TokenRow[]> =>
    (await readTokens(database.work)).filter(
      ({ entities }) => entities.includes(id) && entities.every(one => signedIn.reaches(one)),
    )
  const show = async (
    { language }: OfficeRequest,
    signedIn: SignedIn,
    entity: EntityRow,
    more: { above?: Html; settings?: string; status?: number } = {},
  ): Promise<OfficeAnswer> => {
    const words = entityWords(language)
    const settings = settingsText(entity)
    const address = `/office/entities/${entity.id}`
    const mayChange = signedIn.may('changeSettings')
    return {
      title: entity.name,
      ...(more.status && { status: more.status }),
      body: html`${more.above}
<div class="card"><dl><dt>id</dt><dd><code>${entity.id}</code></dd><dt>${words.kind}</dt><dd>${entity.kind}</dd></dl></div>
<h2>${words.settings}</h2><div class="card"><form method="post" action="${address}">
<input type="hidden" name="shown" value="${settings}">
${mayChange && field({ name: 'name', label: words.name, value: entity.name })}
<div class="field"><label for="settings">${words.json}</label>
<textarea id="settings" name="settings" rows="12" spellcheck="false" aria-describedby="settings-hint"${!mayChange && html` readonly`}>${more.settings ?? settings}</textarea>
<p class="hint" id="settings-hint">${words.hint}</p></div>
${mayChange && html`<button>${words.save}</button>`}</form></div>
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
        const rows = inTree((await readEntities(database.work)).filter(({ id }) => signedIn.reaches(id)))
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
      proven: true,
      async answer(request, signedIn, { entity: id = '' }) {
        const { values } = request
        const entity = await found(id)
        if (!entity) return nothingHere(request.language)
        const given = { name: values.get('name') ?? '', settings: values.get('settings') ?? '' }
        // A browser sends lines as CR LF.
        const shown = (values.get('shown') ?? '').replaceAll('\r\n', '\n')
        try {
          await changeEntity(database.work, recorder(signedIn), brandsKnown(parts), id, given, shown)
        } catch (error) {
          if (!(error instanceof OperatorError)) throw error
          const above = html`${error.message.split('\n').map(one => message(one, 'wrong'))}`
          return show(request, signedIn, entity, { above, settings: given.settings, status: 400 })
        }
        return goTo(`/office/entities/${id}`)
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
        await makeToken(database.work, recorder(signedIn), { sent, label, entities: [id] })
        const { shownOnce } = entityWords(request.language)
        const above = html`<div class="message secret" role="status"><p>${shownOnce}</p><p><code id="token">${sent}</code></p></div>`
        return show(request, signedIn, entity, { above })
      },
    },
    {
      method: 'POST',
      path: '/entities/{entity}/tokens/{token}/revoke',
      action: 'changeTokens',
      async answer({ language }, signedIn, { entity: id = '', token: tokenId = '' }) {
        const token = (await tokensOf(signedIn, id)).find(one => one.id === tokenId)
        if (!token || !(await revokeByHand(database.work, recorder(signedIn), tokenId))) return nothingHere(language)
        return goTo(`/office/entities/${id}`)
      },
    },
  ]
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

const entityWords = wordsIn(
  {
    name: 'Name',
    kind: 'Kind',
    settings: 'Settings',
    json: 'As JSON',
    hint: 'What is not here has its default or that of an entity above; docs/operating.md describes every setting. A seed file that names this entity sets it again at the next start.',
    save: 'Save',
    tokens: 'Access tokens',
    noTokens: 'No token is made for this entity itself.',
    label: 'Label',
    make: 'Make a token',
    made: 'Made (UTC)',
    state: 'State',
    valid: 'valid',
    revoked: 'revoked',
    revoke: 'Revoke',
    shownOnce: 'The token is shown this once: only its keyed hash is kept.',
  },
  {
    name: 'Nome',
    kind: 'Tipo',
    settings: 'Configurações',
    json: 'Em JSON',
    hint: 'O que não está aqui tem seu valor padrão ou o de uma entidade acima; docs/operating.md descreve cada configuração. Um arquivo de seed que cite esta entidade a define de novo na próxima partida.',
    save: 'Salvar',
    tokens: 'Tokens de acesso',
    noTokens: 'Nenhum token foi criado para esta entidade.',
    label: 'Nome do token',
    make: 'Criar um token',
    made: 'Criado em (UTC)',
    state: 'Situação',
    valid: 'válido',
    revoked: 'revogado',
    revoke: 'Revogar',
    shownOnce: 'O token é mostrado só esta vez: guarda-se apenas seu hash com chave.',
  },
)
