// Who works here: added with a link, given another role, reset, removed. Nobody changes people who act for more than oneself.

import { addPerson, changeRole, dismissPerson, resetPerson, type StaffRefusal } from '../../../staff/people.ts'
import { type Role, roleMay, roles, staffActions } from '../../../staff/permissions.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { findPerson, listStaff, type Person } from '../../../staff/store.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, choiceField, field, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, type OfficeLanguage, wordsIn } from '../words.ts'

export function peopleRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, directory } = parts
  const by = (signedIn: SignedIn) => ({ ...parts, by: signedIn.by })
  const isWithin = (signedIn: SignedIn, entities: readonly string[]) => entities.every(id => signedIn.reaches(id))
  const entityNames = (ids: readonly string[]) => ids.map(id => directory.entity(id)?.name ?? id).join(', ')
  const options = (signedIn: SignedIn): [string, string][] =>
    directory
      .below(signedIn.entities)
      .filter(({ kind }) => kind !== 'channel')
      .map(({ id, name, kind }) => [id, `${name} (${kind})`])

  /** Somebody whom this one may change; oneself is for a colleague. */
  const found = async (
    signedIn: SignedIn,
    { person: id = '' }: Readonly<Record<string, string>>,
  ): Promise<Person | undefined> => {
    const person = /^[0-9a-f]{32}$/.test(id) ? await findPerson(database.work, 'id', id) : undefined
    return person && isWithin(signedIn, person.entities) && person.id !== signedIn.staffId ? person : undefined
  }
  const changing =
    (change: (request: OfficeRequest, signedIn: SignedIn, person: Person) => Promise<OfficeAnswer>): OfficeRoute['answer'] =>
    async (request, signedIn, named) => {
      const person = await found(signedIn, named)
      return person ? change(request, signedIn, person) : nothingHere(request.language)
    }
  const refusedPage = (language: OfficeLanguage, { refused }: StaffRefusal): OfficeAnswer => ({
    status: 400,
    title: frameWords(language).staff,
    body: html`${message(refused, 'wrong')}<p><a href="/office/staff">${frameWords(language).staff}</a></p>`,
  })
  const linkPage = ({ language, publicUrl }: OfficeRequest, name: string, link: string): OfficeAnswer => {
    const words = peopleWords(language)
    return {
      title: words.linkTitle,
      body: html`<div class="message secret"><p>${fill(words.linkText, { name })}</p><p><code id="link">${publicUrl}/office/invitation/${link}</code></p></div>
<p><a href="/office/staff">${frameWords(language).staff}</a></p>`,
    }
  }

  return [
    {
      method: 'GET',
      path: '/staff',
      action: 'readStaff',
      async answer({ language }, signedIn) {
        const words = peopleWords(language)
        const people = await listStaff(database.work, directory.ownersBelow(signedIn.entities))
        const rows = people.map(one => [
          one.id === signedIn.staffId ? one.name : html`<a href="/office/staff/${one.id}">${one.name}</a>`,
          roleName(one.role, language),
          entityNames(one.entities),
          one.password === null ? words.waiting : words.ready,
        ])
        return {
          title: frameWords(language).staff,
          body: html`${rows.length === 0 ? message(words.none) : tableOf(frameWords(language).staff, [words.name, words.role, words.actsFor, words.state], rows)}
${
  signedIn.may('changeStaff') &&
  html`<h2>${words.add}</h2><div class="card"><form method="post" action="/office/staff">
${field({ name: 'name', label: words.name, type: 'email' })}
${roleField(language)}${choiceField('entity', words.actsFor, options(signedIn))}
<button>${words.addButton}</button></form></div>`
}
<h2>${words.permissions}</h2>${permissionsTable(language)}`,
        }
      },
    },
    {
      method: 'POST',
      path: '/staff',
      action: 'changeStaff',
      counted: true,
      proven: true,
      async answer(request, signedIn) {
        const { values, language } = request
        const [name, entity, role] = [values.get('name') ?? '', values.get('entity') ?? '', roleIn(values)]
        if (!role || !isWithin(signedIn, [entity])) return nothingHere(language)
        const added = await addPerson(by(signedIn), { name, role, entities: [entity] })
        return 'refused' in added ? refusedPage(language, added) : linkPage(request, name, added.link)
      },
    },
    {
      method: 'GET',
      path: '/staff/{person}',
      action: 'readStaff',
      answer: changing(async ({ language }, signedIn, { id, name, role, entities }) => {
        const words = peopleWords(language)
        return {
          title: name,
          body: html`<div class="card"><dl><dt>${words.role}</dt><dd>${roleName(role, language)}</dd><dt>${words.actsFor}</dt><dd>${entityNames(entities)}</dd></dl></div>
${
  signedIn.may('changeStaff') &&
  html`<div class="card"><form class="line" method="post" action="/office/staff/${id}/role">
${roleField(language, role)}${choiceField('entity', words.actsFor, options(signedIn), entities[0])}
<button>${words.change}</button></form></div>
<div class="card"><p>${words.resetText}</p>${button(`/office/staff/${id}/reset`, words.reset)}</div>
<div class="card"><p>${words.removeText}</p>${button(`/office/staff/${id}/remove`, words.remove, 'danger')}</div>`
}`,
        }
      }),
    },
    {
      method: 'POST',
      path: '/staff/{person}/role',
      action: 'changeStaff',
      counted: true,
      proven: true,
      answer: changing(async ({ values, language }, signedIn, person) => {
        const [entity, role] = [values.get('entity') ?? '', roleIn(values)]
        if (!role || !isWithin(signedIn, [entity])) return nothingHere(language)
        const changed = await changeRole(by(signedIn), person, role, [entity])
        return 'refused' in changed ? refusedPage(language, changed) : goTo(`/office/staff/${person.id}`)
      }),
    },
    {
      method: 'POST',
      path: '/staff/{person}/reset',
      action: 'changeStaff',
      proven: true,
      answer: changing(async (request, signedIn, person) => {
        const reset = await resetPerson(by(signedIn), person)
        return 'refused' in reset ? refusedPage(request.language, reset) : linkPage(request, person.name, reset.link)
      }),
    },
    {
      method: 'POST',
      path: '/staff/{person}/remove',
      action: 'changeStaff',
      proven: true,
      answer: changing(async ({ language }, signedIn, person) => {
        const removed = await dismissPerson(by(signedIn), person)
        return 'refused' in removed ? refusedPage(language, removed) : goTo('/office/staff')
      }),
    },
  ]
}

const roleIn = (values: URLSearchParams): Role | undefined => roles.find(one => one === values.get('role'))
const roleName = (role: Role, language: OfficeLanguage): string => frameWords(language)[`role_${role}`]

const roleField = (language: OfficeLanguage, chosen?: Role): Html =>
  choiceField(
    'role',
    peopleWords(language).role,
    roles.map(role => [role, roleName(role, language)]),
    chosen,
  )

/** The table itself, in the words that stand in it. */
const permissionsTable = (language: OfficeLanguage): Html =>
  tableOf(
    peopleWords(language).permissions,
    ['', ...roles.map(role => roleName(role, language))],
    staffActions.map(({ action, what }) => [
      html`<span lang="en">${what}</span>`,
      ...roles.map(role => (roleMay(role, action) ? '✓' : '')),
    ]),
  )

const peopleWords = wordsIn(
  {
    none: 'Nobody has an account yet.',
    name: 'E-mail address',
    role: 'Role',
    actsFor: 'Acts for',
    state: 'Password',
    ready: 'set',
    waiting: 'not yet',
    add: 'Add somebody',
    addButton: 'Add, and show the link',
    permissions: 'Who may do what',
    linkTitle: 'A link that works once',
    linkText:
      'Give this to {name} and to nobody else: whoever has it sets the password. It works for 24 hours and is not shown again.',
    change: 'Change',
    resetText:
      'For who lost the device, or whose password may be known: password and second factor are taken away, and all sessions end.',
    reset: 'Take both factors away, and show a new link',
    removeText: 'All sessions end at once. What was done stays in the audit.',
    remove: 'Remove',
  },
  {
    none: 'Ninguém tem conta ainda.',
    name: 'E-mail',
    role: 'Papel',
    actsFor: 'Responde por',
    state: 'Senha',
    ready: 'definida',
    waiting: 'ainda não',
    add: 'Adicionar alguém',
    addButton: 'Adicionar e mostrar o link',
    permissions: 'Quem pode fazer o quê',
    linkTitle: 'Um link que funciona uma vez',
    linkText: 'Dê isto a {name} e a mais ninguém: quem o tem define a senha. Vale por 24 horas e não é mostrado de novo.',
    change: 'Mudar',
    resetText:
      'Para quem perdeu o aparelho ou cuja senha pode ser conhecida: senha e segundo fator são retirados, e todas as sessões se encerram.',
    reset: 'Retirar os dois fatores e mostrar um novo link',
    removeText: 'Todas as sessões se encerram na hora. O que foi feito fica na auditoria.',
    remove: 'Remover',
  },
)
