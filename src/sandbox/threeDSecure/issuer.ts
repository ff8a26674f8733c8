// The other side of 3-D Secure: a directory server with its card ranges, and an issuer's access control server with its pages. It checks what it
// is sent as strictly as a real one, and sends results from server to server before it lets the browser go.

import {
  decodeMessage,
  encodeMessage,
  messageBounds,
  parseMessage,
  type ThreeDSecureMessage,
  wrongFields,
} from '../../connectors/cards/threeDSecure/messages.ts'
import { type ResultName, results } from '../../contract/results/results.ts'
import { html } from '../../pages/html.ts'
import { moneyText } from '../../pages/languages/languages.ts'
import { fill, type TextName } from '../../pages/languages/texts.ts'
import {
  endedPage,
  expiring,
  jsonPage,
  type PageAnswer,
  type PageRequest,
  page,
  type Simulator,
  type World,
} from '../exchange.ts'
import { type TesterButton, testerPanel } from '../testerPanel.ts'
import { authenticationCards, type Behaviour, notParticipating } from './cards.ts'

const challengeMilliseconds = 660_000
const reference = 'TOLLGATE-SIMULATOR'

/** What is read of a request after it was answered. Whatever else it held is not kept: a message has up to 300 kB. */
const readLater = [
  'messageVersion',
  'threeDSServerTransID',
  'threeDSServerURL',
  'notificationURL',
  'messageCategory',
  'acctNumber',
  'merchantName',
  'purchaseAmount',
  'purchaseCurrency',
  'purchaseExponent',
] as const
/** By the table of messages each is a text of at most 2048 characters. */
type ChallengeRequest = Readonly<Partial<Record<(typeof readLater)[number], string>>> & { readonly unavailable: ResultName }

type Challenge = {
  readonly request: ChallengeRequest
  readonly acsTransId: string
  readonly dsTransId: string
  attempts: number
  ended?: true
}

/** What can happen on the page: what the result then says, its button for testers, and what the merchant reads. */
type ChallengeEnd = {
  readonly name: string
  readonly transStatus: string
  readonly reason?: string
  readonly cancel?: string
  readonly label?: TextName
  /** Absent where the channel decides: then the gateway says it along. */
  readonly follows?: ResultName
}
const endings: readonly ChallengeEnd[] = [
  { name: 'approve', transStatus: 'Y', label: 'approve', follows: 'succeededInTestMode' },
  { name: 'attempt', transStatus: 'A', label: 'attempt', follows: 'succeededInTestMode' },
  { name: 'decline', transStatus: 'N', reason: '01', label: 'decline', follows: 'userAuthenticationFailed' },
  { name: 'unavailable', transStatus: 'U', reason: '06', label: 'unavailable' },
  { name: 'cancel', transStatus: 'N', reason: '01', cancel: '01', label: 'cancelButton', follows: 'threeDSecureAbandoned' },
  { name: 'timeout', transStatus: 'N', reason: '14', cancel: '04', label: 'timeout', follows: 'threeDSecureAbandoned' },
  { name: 'reject', transStatus: 'R', reason: '11' },
]
const endingOf = (name: string | null): ChallengeEnd | undefined => endings.find(ending => ending.name === name)
const rightCode = '1234'
const attemptsMax = 3
const decoupledMilliseconds = 700

export function issuer(world: World): Simulator {
  const challenges = expiring<Challenge>(world.time, challengeMilliseconds)

  function directory(body: string): PageAnswer {
    const message = parseMessage(body)
    if (!message) return jsonPage(200, errorOf('101', 'not a message', undefined))
    if (message.messageType !== 'PReq' && message.messageType !== 'AReq')
      return jsonPage(200, errorOf('101', 'PReq or AReq is expected', message))
    const wrong = [
      ...wrongFields(message.messageType, message),
      ...['notificationURL', 'threeDSServerURL'].filter(name => {
        const address = message[name]
        return typeof address === 'string' && !world.isOfPayment(address)
      }),
    ]
    if (wrong.length > 0) return jsonPage(200, errorOf('203', wrong.join(','), message))
    return jsonPage(200, message.messageType === 'PReq' ? ranges(message) : authenticate(message))
  }

  const ranges = (request: ThreeDSecureMessage) => ({
    messageType: 'PRes',
    messageVersion: request.messageVersion,
    threeDSServerTransID: request.threeDSServerTransID,
    dsStartProtocolVersion: '2.1.0',
    dsEndProtocolVersion: '2.2.0',
    cardRangeData: [...authenticationCards].map(([number, { method }]) => ({
      startRange: number,
      endRange: number,
      acsStartProtocolVersion: '2.1.0',
      acsEndProtocolVersion: '2.2.0',
      ...(method && { threeDSMethodURL: `${world.publicUrl()}/acs/method` }),
    })),
  })

  function authenticate(request: ThreeDSecureMessage): ThreeDSecureMessage {
    const number = String(request.acctNumber)
    const wishes = wishesOf(request)
    if (notParticipating.has(number) || (!authenticationCards.has(number) && !wishes.enrolled))
      return errorOf('305', 'the card takes no part', request)
    const behaviour = behaviourOf(authenticationCards.get(number), wishes.flow, String(request.threeDSRequestorChallengeInd))
    const ids = { acsTransID: world.uuid(), dsTransID: world.uuid() }
    const begun = (): Challenge => ({
      request: laterOf(request),
      acsTransId: ids.acsTransID,
      dsTransId: ids.dsTransID,
      attempts: 0,
    })
    const answer: ThreeDSecureMessage = {
      messageType: 'ARes',
      messageVersion: request.messageVersion,
      threeDSServerTransID: request.threeDSServerTransID,
      ...ids,
      acsReferenceNumber: reference,
      dsReferenceNumber: reference,
      acsOperatorID: 'SIMULATOR',
    }
    const value = () => world.bytes(20).toString('base64')
    switch (behaviour) {
      case 'authenticate':
        return { ...answer, transStatus: 'Y', authenticationValue: value() }
      case 'attempt':
        return { ...answer, transStatus: 'A', authenticationValue: value() }
      case 'inform':
        return { ...answer, transStatus: 'I' }
      case 'error':
        return { ...answer, transStatus: 'U', transStatusReason: '03' }
      case 'notEnrolled':
        return { ...answer, transStatus: 'N', transStatusReason: '13' }
      case 'fraud':
        return { ...answer, transStatus: 'R', transStatusReason: '11' }
      // The cardholder is asked elsewhere, for example by the bank's app, and takes a while.
      case 'decoupled': {
        const late = begun()
        world
          .wait(decoupledMilliseconds)
          .then(() => report(late, endingOf('approve')!))
          .catch(() => {}) // a lost result is asked for
        return { ...answer, transStatus: 'D', authenticationType: '04' }
      }
      case 'challenge':
        challenges.set(ids.acsTransID, begun())
        return {
          ...answer,
          transStatus: 'C',
          acsChallengeMandated: request.threeDSRequestorChallengeInd === '04' ? 'Y' : 'N',
          authenticationType: '02',
          acsURL: `${world.publicUrl()}/acs/challenge`,
        }
    }
  }

  /** The hidden frame: the issuer has seen the browser and says so to the address that the method data names. */
  function method(asked: PageRequest): PageAnswer {
    const sent = new URLSearchParams(asked.body).get('threeDSMethodData') ?? ''
    const { threeDSServerTransID, threeDSMethodNotificationURL: url } =
      parseMessage(Buffer.from(sent, 'base64url').toString('utf8'), { ...messageBounds, parts: 100 }) ?? {}
    if (typeof url !== 'string' || !world.isOfPayment(url)) return ended(asked)
    const back = encodeMessage({ threeDSServerTransID })
    return page(asked, world, {
      title: '3-D Secure',
      body: html`<form id="go" method="post" action="${url}"><input type="hidden" name="threeDSMethodData" value="${back}"><button>3-D Secure</button></form>`,
      script: `document.getElementById('go').submit()`,
    })
  }

  async function challenge(asked: PageRequest): Promise<PageAnswer> {
    const form = new URLSearchParams(asked.body)
    const request = decodeMessage('CReq', form.get('creq') ?? '')
    const found = request && challenges.get(String(request.acsTransID))
    if (!found || found.request.threeDSServerTransID !== request.threeDSServerTransID || found.ended) return ended(asked)
    const auto = asked.query.get('auto')
    if (auto === 'leave') return ended(asked)
    const ending = endingOf(auto)
    if (ending) return end(asked, found, ending, form.get('threeDSSessionData') ?? '')
    return question(asked, found, form.get('threeDSSessionData') ?? '', false)
  }

  function question(asked: PageRequest, { request, acsTransId }: Challenge, session: string, wrongCode: boolean): PageAnswer {
    const { texts, locale } = asked.language
    const number = String(request.acctNumber)
    const scale = 10 ** Number(request.purchaseExponent)
    const currency = currencyCodes[String(request.purchaseCurrency)]
    const amount = currency
      ? moneyText(locale, Math.round((Number(request.purchaseAmount) / scale) * 100), currency)
      : String(request.purchaseAmount)
    const hidden = html`<input type="hidden" name="acsTransID" value="${acsTransId}">
<input type="hidden" name="threeDSSessionData" value="${session}">`
    return page(asked, world, {
      title: texts.issuerTitle,
      body: html`<h1>${texts.issuerTitle}</h1>
<p>${texts.issuerText}</p>
<dl><dt>${texts.shop}</dt><dd><bdi>${String(request.merchantName)}</bdi></dd>
<dt>${texts.card}</dt><dd><bdi dir="ltr">•••• ${number.slice(-4)}</bdi></dd>
<dt>${texts.amount}</dt><dd><bdi>${amount}</bdi></dd></dl>
<form method="post" action="answer">
${hidden}
<div class="field">
<label for="otp">${texts.oneTimeCode}</label>
<input type="text" id="otp" name="otp" dir="ltr" inputmode="numeric" autocomplete="one-time-code" autofocus${wrongCode && html` aria-invalid="true" aria-describedby="wrong"`}>
${wrongCode && html`<p class="wrong" id="wrong" role="alert">${texts.wrongCode}</p>`}
</div>
<button name="action" value="otp">${texts.confirmButton}</button>
<button class="plain" name="action" value="cancel">${texts.cancelButton}</button>
</form>`,
      tester: testerPanel(
        texts,
        'answer',
        hidden,
        endings
          .filter(({ label }) => label !== undefined)
          .map(({ name, label, follows }): TesterButton => ['action', name, texts[label!], follows ?? request.unavailable]),
        fill(texts.rightCode, { code: rightCode }),
      ),
    })
  }

  async function answer(asked: PageRequest): Promise<PageAnswer> {
    const form = new URLSearchParams(asked.body)
    const found = challenges.get(form.get('acsTransID') ?? '')
    if (!found || found.ended) return ended(asked)
    const session = form.get('threeDSSessionData') ?? ''
    const ending = endingOf(form.get('action'))
    if (ending) return end(asked, found, ending, session)
    if (digitsOf(form.get('otp') ?? '') === rightCode) return end(asked, found, endingOf('approve')!, session)
    found.attempts += 1
    return found.attempts >= attemptsMax
      ? end(asked, found, endingOf('decline')!, session, '19')
      : question(asked, found, session, true)
  }

  /** The result, from server to server. */
  async function report(
    { request, acsTransId, dsTransId, attempts }: Challenge,
    ending: ChallengeEnd,
    reason?: string,
  ): Promise<void> {
    const { transStatus, reason: usual, cancel } = ending
    const passed = transStatus === 'Y' || transStatus === 'A'
    const result = {
      messageType: 'RReq',
      messageVersion: request.messageVersion,
      threeDSServerTransID: request.threeDSServerTransID,
      acsTransID: acsTransId,
      dsTransID: dsTransId,
      messageCategory: request.messageCategory,
      transStatus,
      ...(!passed && { transStatusReason: reason ?? usual }),
      ...(passed && { authenticationValue: world.bytes(20).toString('base64') }),
      authenticationType: '02',
      interactionCounter: String(Math.min(attempts + 1, 99)).padStart(2, '0'),
      ...(cancel !== undefined && { challengeCancel: cancel }),
    }
    await world
      .post(String(request.threeDSServerURL), 'application/json;charset=UTF-8', JSON.stringify(result))
      .catch(() => undefined)
  }

  /** The result goes to the 3DS server first; only then the browser is let go with its CRes. */
  async function end(
    asked: PageRequest,
    found: Challenge,
    ending: ChallengeEnd,
    session: string,
    reason?: string,
  ): Promise<PageAnswer> {
    const { request, acsTransId } = found
    const { texts } = asked.language
    found.ended = true
    await report(found, ending, reason)
    const ids = {
      messageVersion: request.messageVersion,
      threeDSServerTransID: request.threeDSServerTransID,
      acsTransID: acsTransId,
    }
    const { transStatus } = ending
    const cres = { messageType: 'CRes', ...ids, transStatus: transStatus === 'Y' ? 'Y' : 'N', challengeCompletionInd: 'Y' }
    return page(asked, world, {
      title: texts.returningTitle,
      body: html`<h1>${texts.returningTitle}</h1><p>${texts.returningText}</p>
<form id="go" method="post" action="${String(request.notificationURL)}">
<input type="hidden" name="cres" value="${encodeMessage(cres)}">
<input type="hidden" name="threeDSSessionData" value="${session}">
<button>${texts.continueButton}</button></form>`,
      script: `document.getElementById('go').submit()`,
    })
  }

  const ended = (asked: PageRequest): PageAnswer => endedPage(asked, world)

  return asked => {
    if (asked.method !== 'POST') return undefined
    if (asked.path === '/ds') return directory(asked.body)
    if (asked.path === '/acs/method') return method(asked)
    if (asked.path === '/acs/challenge') return challenge(asked)
    if (asked.path === '/acs/answer') return answer(asked)
    return undefined
  }
}

const errorOf = (errorCode: string, errorDescription: string, about: ThreeDSecureMessage | undefined): ThreeDSecureMessage => ({
  messageType: 'Erro',
  messageVersion: '2.2.0',
  ...(about?.threeDSServerTransID !== undefined && { threeDSServerTransID: about.threeDSServerTransID }),
  errorCode,
  errorComponent: 'D',
  errorDescription,
})

/** What the gateway tells a simulator: of the test, and what the channel makes of an authentication that cannot be had. */
type Wishes = { readonly enrolled?: boolean; readonly flow?: string; readonly unavailable?: ResultName }

function wishesOf(request: ThreeDSecureMessage): Wishes {
  const extensions = (request.messageExtension ?? []) as ({ id?: string; data?: Wishes } | null)[]
  return extensions.find(one => one?.id === 'tollgate-simulator')?.data ?? {}
}

function laterOf(request: ThreeDSecureMessage): ChallengeRequest {
  const wished = String(wishesOf(request).unavailable)
  const unavailable = Object.hasOwn(results, wished) ? (wished as ResultName) : 'succeededInTestMode'
  const texts = readLater.flatMap(name => (request[name] === undefined ? [] : [[name, String(request[name])] as const]))
  return { ...Object.fromEntries(texts), unavailable }
}

/** The card decides; on other cards what was wished for, or what the merchant wants of the issuer. */
function behaviourOf(card: Behaviour | undefined, flow: string | undefined, indicator: string): Behaviour['does'] {
  if (flow === 'challenge' || flow === 'fraud' || flow === 'inform' || flow === 'decoupled') return flow
  if (flow === 'frictionless') return card && card.does !== 'challenge' ? card.does : 'authenticate'
  if (card) return card.does
  return indicator === '04' || indicator === '03' ? 'challenge' : 'authenticate'
}

/** As people paste it: with spaces, and in the digits of their script. */
const digitsOf = (text: string): string =>
  text.replace(/[٠-٩۰-۹０-９]/g, digit => String(digit.charCodeAt(0) & 15)).replace(/\D/g, '')

const currencyCodes: Readonly<Record<string, string>> = {
  '978': 'EUR',
  '840': 'USD',
  '826': 'GBP',
  '756': 'CHF',
  '986': 'BRL',
  '484': 'MXN',
  '392': 'JPY',
}
