// The own account: where one is signed in, ending sessions, setting other factors.

import { makeOwnLink } from '../../../staff/links.ts'
import { begunSince, endOwnSession } from '../../../staff/sessions.ts'
import { countRecoveryCodes, listSessions } from '../../../staff/store.ts'
import { html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { button, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { passkeyWords } from '../passkeyForm.ts'
import { goTo, nothingHere, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, wordsIn } from '../words.ts'
import { passkeyRoutes } from './passkeys.ts'

export function accountRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, clock } = parts
  return [
    ...passkeyRoutes(parts),
    {
      method: 'GET',
      path: '/account',
      action: 'own',
      async answer({ language }, { staffId, sessionId, name, role }) {
        const words = accountWords(language)
        const sessions = await listSessions(database.work, staffId, begunSince(clock.real()))
        const codes = staffId === null ? undefined : await countRecoveryCodes(database.work, staffId)
        return {
          title: frameWords(language).account,
          body: html`<div class="card"><dl><dt>${words.name}</dt><dd>${name}</dd><dt>${words.role}</dt><dd>${
            frameWords(language)[`role_${role}`]
          }</dd></dl>
${
  codes === undefined
    ? html`<p>${words.sandbox}</p>`
    : html`<p>${fill(words.codes, { count: String(codes) })}</p>${button('/office/account/factors', words.factors)}<p><a class="button plain" href="/office/account/passkeys">${passkeyWords(language).title}</a></p>`
}</div>
<h2>${words.sessions}</h2>
${tableOf(
  words.sessions,
  [words.begun, words.used, words.from, words.browser, ''],
  sessions.map(one => [
    momentText(language, one.begunAt),
    momentText(language, one.usedAt),
    one.address,
    one.agent,
    one.id === sessionId ? words.here : button(`/office/account/sessions/${one.id}/end`, words.end, 'danger'),
  ]),
)}`,
        }
      },
    },
    {
      method: 'POST',
      path: '/account/sessions/{session}/end',
      action: 'own',
      async answer({ language }, signedIn, { session = '' }) {
        const isEnded = /^[0-9a-f]{32}$/.test(session) && (await endOwnSession(parts, signedIn, session))
        return isEnded ? goTo('/office/account') : nothingHere(language)
      },
    },
    {
      method: 'POST',
      path: '/account/factors',
      action: 'own',
      proven: true,
      async answer(_, signedIn) {
        const token = await makeOwnLink(parts, signedIn)
        return goTo(token === undefined ? '/office/account' : `/office/invitation/${token}`)
      },
    },
  ]
}

const accountWords = wordsIn(
  {
    name: 'Name',
    role: 'Role',
    sandbox: 'You came by the link of a sandbox, which needs no account.',
    codes: '{count} recovery codes are left.',
    factors: 'Set another password and second factor',
    sessions: 'Where you are signed in',
    begun: 'Since (UTC)',
    used: 'Last used',
    from: 'Address',
    browser: 'Browser',
    here: 'this one',
    end: 'End',
  },
  {
    name: 'Nome',
    role: 'Papel',
    sandbox: 'Você entrou pelo link de um sandbox, que não precisa de conta.',
    codes: 'Restam {count} códigos de recuperação.',
    factors: 'Definir outra senha e outro segundo fator',
    sessions: 'Onde você está conectado',
    begun: 'Desde (UTC)',
    used: 'Último uso',
    from: 'Endereço',
    browser: 'Navegador',
    here: 'esta',
    end: 'Encerrar',
  },
)
