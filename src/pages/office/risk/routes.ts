// Lists of the risk check: whom the staff blocks and allows, for which entity, why and until when. What is searched for may be a card number: it does not come
// to stand in an address.

import { record } from '../../../audit/chain.ts'
import { beginningOf, shortenCards } from '../../../contract/cardNumbers.ts'
import { listedKinds, listedValue, riskLists } from '../../../payments/risk/lists/lists.ts'
import {
  countEntries,
  deleteEntry,
  entriesMost,
  findEntries,
  insertEntry,
  type RiskEntry,
} from '../../../payments/risk/lists/store.ts'
import { timeOrderedId } from '../../../platform/clock.ts'
import { inTransaction } from '../../../platform/database/connect.ts'
import { lockCounted } from '../../../platform/database/locks.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText } from '../words.ts'
import { riskWords } from './words.ts'

const pageSize = 100
const daysMost = 3650
const dayMilliseconds = 86_400_000

export function riskRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, directory, clock, random, keys } = parts
  const shortened = (text: string) => shortenCards(text, parts.cardBrands)
  const entitiesOf = (signedIn: SignedIn) => directory.below(signedIn.entities)
  const show = async (
    { language, values }: OfficeRequest,
    signedIn: SignedIn,
    more: { readonly wrong?: ReadonlyMap<string, string>; readonly sought?: string } = {},
  ): Promise<OfficeAnswer> => {
    const words = riskWords(language)
    const { wrong, sought = '' } = more
    const entities = entitiesOf(signedIn)
    const names = new Map(entities.map(({ id, name }) => [id, name]))
    const behind = /^[0-9a-f]{32}$/.test(values.get('behind') ?? '') ? values.get('behind') : null
    const card = listedValue(keys, 'card', sought)
    const text = shortened(sought.trim().toLowerCase())
    const entries = await findEntries(database.work, [...names.keys()], { text, value: card?.value ?? null }, behind, pageSize)
    const mayChange = signedIn.may('changeRiskLists')
    const stateOf = ({ endsAt }: RiskEntry) =>
      endsAt === null
        ? words.always
        : fill(endsAt <= clock.real() ? words.ended : words.until, { day: momentText(language, endsAt) })
    const sent = (name: string) => (wrong ? shortened(values.get(name) ?? '') : '')
    const asks = new Set(
      [...(parts.riskRules?.values() ?? [])]
        .filter(({ rules }) => rules.some(({ fact }) => fact.startsWith('list.')))
        .map(({ name }) => name),
    )
    const open = entities.filter(one => one.kind === 'channel' && !asks.has(one.settings.riskRules))
    return {
      title: frameWords(language).risk,
      ...(wrong && { status: 400 }),
      body: html`${open.length > 0 && message(fill(words.unscreened, { count: String(open.length) }))}
<form class="line" method="post" action="/office/risk/search" role="search"><div>${field({ name: 'q', label: words.search, value: text, isOptional: true })}</div><button class="plain">${words.find}</button></form>
${
  entries.length === 0
    ? message(words.none)
    : tableOf(
        frameWords(language).risk,
        [words.list, words.value, words.entity, words.reason, words.added, words.state, ''],
        entries.map(one => [
          words[`list_${one.list}`],
          html`<span class="soft">${words[`kind_${one.kind}`]}</span> <code>${one.shown}</code>`,
          names.get(one.ownerId) ?? one.ownerId,
          one.reason,
          `${one.addedBy}, ${momentText(language, one.addedAt)}`,
          stateOf(one),
          mayChange ? button(`/office/risk/${one.ownerId}/${one.id}/remove`, words.remove, 'danger') : '',
        ]),
      )
}
${entries.length === pageSize && sought === '' && html`<p><a class="button plain" href="/office/risk?behind=${entries.at(-1)!.id}" rel="next">${words.older}</a></p>`}
${
  mayChange &&
  html`<h2>${words.add}</h2><div class="card narrow"><form method="post" action="/office/risk">
${choiceField(
  'list',
  words.list,
  riskLists.map(list => [list, words[`list_${list}`]]),
  sent('list'),
)}
${choiceField(
  'kind',
  words.kind,
  listedKinds.map(kind => [kind, words[`kind_${kind}`]]),
  sent('kind'),
)}
${field({ name: 'value', label: words.value, hint: words.valueHint, value: sent('kind') === 'card' ? '' : sent('value'), wrong: wrong?.get('value') })}
${choiceField(
  'entity',
  words.entity,
  entities.map(({ id, name, kind }) => [id, `${name} (${kind})`]),
  sent('entity'),
)}
${field({ name: 'reason', label: words.reason, hint: words.reasonHint, value: sent('reason'), wrong: wrong?.get('reason') })}
${field({ name: 'days', label: words.days, hint: words.daysHint, value: sent('days'), isOptional: true, isNumeric: true, wrong: wrong?.get('days') })}
<button>${words.add}</button></form></div>`
}`,
    }
  }
  return [
    { method: 'GET', path: '/risk', action: 'readRiskLists', answer: (request, signedIn) => show(request, signedIn) },
    {
      method: 'POST',
      path: '/risk/search',
      exact: true,
      action: 'readRiskLists',
      answer: (request, signedIn) => show(request, signedIn, { sought: beginningOf(request.values.get('q') ?? '', 255) }),
    },
    {
      method: 'POST',
      path: '/risk',
      exact: true,
      action: 'changeRiskLists',
      counted: true,
      async answer(request, signedIn) {
        const { values, language } = request
        const words = riskWords(language)
        const list = riskLists.find(one => one === values.get('list'))
        const kind = listedKinds.find(one => one === values.get('kind'))
        const ownerId = values.get('entity') ?? ''
        if (!list || !kind || !entitiesOf(signedIn).some(({ id }) => id === ownerId)) return nothingHere(language)
        const value = listedValue(keys, kind, values.get('value') ?? '')
        const reason = (values.get('reason') ?? '').trim()
        const days = (values.get('days') ?? '').trim()
        const wrong = new Map([
          ...(value ? [] : [['value', words[`wrong_${kind}`]] as const]),
          // What people write down as a reason is kept as it is: not with a card number in it.
          ...(reason.length < 3 || reason.length > 500 || shortened(reason) !== reason
            ? [['reason', words.wrongReason] as const]
            : []),
          ...(days === '' || (/^[1-9]\d{0,3}$/.test(days) && Number(days) <= daysMost)
            ? []
            : [['days', words.wrongDays] as const]),
        ])
        if (!value || wrong.size > 0) return show(request, signedIn, { wrong })
        const now = clock.real()
        const id = timeOrderedId(now, random)
        const endsAt = days === '' ? null : now + Number(days) * dayMilliseconds
        const entry = { ...value, ownerId, id, kind, list, reason, addedBy: signedIn.name, addedAt: now, endsAt }
        const isNew = await inTransaction(database.work, async db => {
          await lockCounted(db, 'risk entries', [ownerId])
          if ((await countEntries(db, ownerId)) >= entriesMost) return undefined
          if (!(await insertEntry(db, entry, now))) return false
          const details = { list, kind, value: masked(entry), reason, ...(days !== '' && { days: Number(days) }) }
          await record(db, { keys, clock, by: signedIn.by }, [{ action: 'riskListed', entityId: ownerId, subject: id, details }])
          return true
        })
        if (isNew) return goTo('/office/risk')
        const why = isNew === undefined ? fill(words.listFull, { count: String(entriesMost) }) : words.listedAlready
        return show(request, signedIn, { wrong: new Map([['value', why]]) })
      },
    },
    {
      method: 'POST',
      path: '/risk/{entity}/{entry}/remove',
      action: 'changeRiskLists',
      async answer({ language }, { by }, { entity = '', entry: id = '' }) {
        const isGone = await inTransaction(database.work, async db => {
          const gone = /^[0-9a-f]{32}$/.test(id) ? await deleteEntry(db, entity, id) : undefined
          if (!gone) return false
          const { list, kind, addedBy } = gone
          const details = { list, kind, value: masked(gone), addedBy }
          await record(db, { keys, clock, by }, [{ action: 'riskUnlisted', entityId: entity, subject: id, details }])
          return true
        })
        return isGone ? goTo('/office/risk') : nothingHere(language)
      },
    },
  ]
}

/** The audit is never erased: of an e-mail address it has the first letter and the domain. */
const masked = ({ kind, shown }: Pick<RiskEntry, 'kind' | 'shown'>): string =>
  kind === 'email' ? shown.replace(/^(.)[^@]*@/, '$1…@') : shown
