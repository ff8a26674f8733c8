// The own passkeys: made with a name, listed, removed.

import { beginningOf, shortenCards } from '../../../contract/cardNumbers.ts'
import { addPasskey, relyingParty, removePasskey } from '../../../staff/passkeys/passkeys.ts'
import { listPasskeys } from '../../../staff/passkeys/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { html } from '../../html.ts'
import { button, field, message, tableOf } from '../fields.ts'
import type { OfficePage } from '../frame.ts'
import type { OfficeParts } from '../parts.ts'
import { makeForm, passkeyWords } from '../passkeyForm.ts'
import { goTo, nothingHere, type OfficeRoute } from '../route.ts'
import { momentText, type OfficeLanguage } from '../words.ts'

export const passkeyRoutes = (parts: OfficeParts): OfficeRoute[] => [
  {
    method: 'GET',
    path: '/account/passkeys',
    action: 'own',
    proven: true,
    answer: ({ language }, signedIn) => passkeyPage(parts, language, signedIn),
  },
  {
    method: 'POST',
    path: '/account/passkeys',
    exact: true,
    action: 'own',
    proven: true,
    counted: true,
    async answer({ values, language }, signedIn) {
      const given = (values.get('name') ?? '').replace(/[\p{Cc}\p{Cf}]/gu, '').trim()
      const name = beginningOf(shortenCards(beginningOf(given, 200), parts.cardBrands), 100)
      const isAdded = name !== '' && (await addPasskey(parts, signedIn, name, values.get('credential') ?? ''))
      return isAdded ? goTo('/office/account/passkeys') : passkeyPage(parts, language, signedIn, true)
    },
  },
  {
    method: 'POST',
    path: '/account/passkeys/{passkey}/remove',
    action: 'own',
    async answer({ language }, signedIn, { passkey = '' }) {
      return (await removePasskey(parts, signedIn, passkey)) ? goTo('/office/account/passkeys') : nothingHere(language)
    },
  },
]

async function passkeyPage(
  parts: OfficeParts,
  language: OfficeLanguage,
  signedIn: SignedIn,
  isRefused = false,
): Promise<OfficePage> {
  const words = passkeyWords(language)
  const { staffId } = signedIn
  const passkeys = staffId === null ? [] : await listPasskeys(parts.database.work, staffId)
  const { form, page } = makeForm(
    parts,
    language,
    signedIn,
    '/office/account/passkeys',
    passkeys,
    field({ name: 'name', label: words.name }),
  )
  return {
    title: words.title,
    ...page,
    ...(isRefused && { status: 400 }),
    body: html`${isRefused && message(words.refused, 'wrong')}<p>${words.what} ${relyingParty(parts) === undefined && words.notHere}</p>
${
  passkeys.length === 0
    ? message(words.none)
    : tableOf(
        words.title,
        [words.named, words.made, words.used, ''],
        passkeys.map(one => [
          one.name,
          momentText(language, one.madeAt),
          one.usedAt === null ? words.never : momentText(language, one.usedAt),
          button(`/office/account/passkeys/${one.id}/remove`, words.remove, 'danger'),
        ]),
      )
}<div class="narrow">${form}</div>`,
  }
}
