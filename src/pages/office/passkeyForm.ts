// A form that asks the browser for a passkey. It needs a script, which shows it where the browser can do it.

import { makeChallenge, type PasskeyParts, relyingParty } from '../../staff/passkeys/passkeys.ts'
import type { Passkey } from '../../staff/passkeys/store.ts'
import { algorithmsTaken } from '../../staff/passkeys/webauthn.ts'
import type { SignedIn } from '../../staff/sessions.ts'
import { pageScript } from '../form/build.ts'
import { type Html, html } from '../html.ts'
import type { OfficePage } from './frame.ts'
import { type OfficeLanguage, wordsIn } from './words.ts'

const script = pageScript(new URL('./browser/passkey.ts', import.meta.url))

/** What stands in a page that has the form; nothing where keys cannot be. */
export type PasskeyForm = { readonly form: Html; readonly page: Pick<OfficePage, 'script'> }
const none: PasskeyForm = { form: html``, page: {} }

/** Asks for one of these keys, or for any that the device knows for us. */
export function askForm(
  parts: PasskeyParts,
  language: OfficeLanguage,
  action: string,
  to: string,
  passkeys: readonly Passkey[] = [],
): PasskeyForm {
  const party = relyingParty(parts)
  if (!party) return none
  const allowCredentials = passkeys.map(({ id }) => ({ type: 'public-key', id }))
  const challenge = makeChallenge(parts, 'signIn')
  const options = { challenge, rpId: party.id, userVerification: 'required', allowCredentials }
  return formWith(
    'ask',
    action,
    options,
    passkeyWords(language).use,
    html`<input type="hidden" name="to" value="${to}">`,
    language,
  )
}

/** Asks for a new one; `fields` go with it. */
export function makeForm(
  parts: PasskeyParts,
  language: OfficeLanguage,
  { staffId, name }: SignedIn,
  action: string,
  passkeys: readonly Passkey[],
  fields: Html,
): PasskeyForm {
  const party = relyingParty(parts)
  if (!party || staffId === null) return none
  const options = {
    challenge: makeChallenge(parts, `make ${staffId}`),
    rp: { id: party.id, name: 'Tollgate' },
    user: { id: Buffer.from(staffId, 'hex').toString('base64url'), name, displayName: name },
    pubKeyCredParams: algorithmsTaken.map(alg => ({ type: 'public-key', alg })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    attestation: 'none',
    excludeCredentials: passkeys.map(({ id }) => ({ type: 'public-key', id })),
  }
  return formWith('make', action, options, passkeyWords(language).make, fields, language)
}

function formWith(
  kind: 'ask' | 'make',
  action: string,
  options: object,
  label: string,
  fields: Html,
  language: OfficeLanguage,
): PasskeyForm {
  const { failed } = passkeyWords(language)
  return {
    page: { script: script() },
    form: html`<form id="passkey" method="post" action="${action}" data-kind="${kind}" data-options="${JSON.stringify(options)}" hidden>
<p class="message wrong" role="alert" hidden>${failed}</p>
<input type="hidden" name="credential">${fields}<button class="plain">${label}</button></form>`,
  }
}

export const passkeyWords = wordsIn(
  {
    title: 'Passkeys',
    what: 'A passkey signs you in without a password and a code: your device asks for your PIN, finger or face.',
    use: 'Use a passkey',
    make: 'Add a passkey',
    failed: 'The browser gave no passkey. Try again, or go on without one.',
    refused: 'This passkey was not taken: it is known already, it came too late, or you have as many as one may.',
    wrong: 'This passkey is not known here, or it came too late. Try again, or sign in with your password.',
    name: 'Name of the passkey, for example its device',
    named: 'Name',
    made: 'Made (UTC)',
    used: 'Last used (UTC)',
    never: 'never',
    remove: 'Remove',
    none: 'You have none yet.',
    notHere: 'They need this office under a name with HTTPS (or localhost).',
  },
  {
    title: 'Passkeys',
    what: 'Uma passkey deixa você entrar sem senha e sem código: seu aparelho pede seu PIN, dedo ou rosto.',
    use: 'Usar uma passkey',
    make: 'Adicionar uma passkey',
    failed: 'O navegador não deu nenhuma passkey. Tente de novo, ou continue sem ela.',
    refused: 'Esta passkey não foi aceita: já é conhecida, chegou tarde demais, ou você já tem tantas quantas se pode.',
    wrong: 'Esta passkey não é conhecida aqui, ou chegou tarde demais. Tente de novo, ou entre com sua senha.',
    name: 'Nome da passkey, por exemplo o do aparelho',
    named: 'Nome',
    made: 'Criada em (UTC)',
    used: 'Usada em (UTC)',
    never: 'nunca',
    remove: 'Remover',
    none: 'Você ainda não tem nenhuma.',
    notHere: 'Elas precisam desta retaguarda sob um nome com HTTPS (ou localhost).',
  },
)
