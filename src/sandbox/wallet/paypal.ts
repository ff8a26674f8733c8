// The other side of the wallet: an NVP endpoint that checks credentials, sums and tokens as the real one does, and the buyer's pages.

import { readPairs, writePairs } from '../../connectors/wallet/nvp.ts'
import type { ResultName } from '../../contract/results/results.ts'
import { html } from '../../pages/html.ts'
import { moneyText } from '../../pages/languages/languages.ts'
import { fill, type TextName } from '../../pages/languages/texts.ts'
import {
  endedPage,
  expiring,
  type PageAnswer,
  type PageRequest,
  page,
  type Simulator,
  seeOther,
  textPage,
  type World,
} from '../exchange.ts'
import { type TesterButton, testerPanel } from '../testerPanel.ts'

export const simulatorCredentials = { user: 'tollgate_simulator', password: 'simulator-only', signature: 'SIMULATOR' }

const tokenMilliseconds = 3 * 3_600_000
const transactionMilliseconds = 30 * 86_400_000

type Buyer = {
  readonly email: string
  readonly first: string
  readonly last: string
  readonly country: string
  readonly state: string
  readonly tax?: string
  /** For testers: what this buyer is like, and what the merchant reads after it, first to last. */
  readonly label: TextName
  readonly follows: readonly ResultName[]
}

const buyer = (
  first: string,
  last: string,
  country: string,
  state: string,
  label: TextName,
  ...follows: ResultName[]
): Buyer => ({
  email: `${first}.${last}@buyer.example`.toLowerCase(),
  first,
  last,
  country,
  state,
  label,
  follows,
})
const buyers: Readonly<Record<string, Buyer>> = {
  verified: buyer('Jane', 'Jones', 'US', 'CA', 'verifiedBuyer', 'succeededInTestMode'),
  brazil: { ...buyer('Maria', 'Silva', 'BR', 'SP', 'brazilianBuyer', 'succeededInTestMode'), tax: '11144477735' },
  pending: buyer('Petra', 'Pending', 'DE', 'Berlin', 'pendingBuyer', 'reviewStillPending'),
  insufficient: buyer('Ivo', 'Insufficient', 'FR', 'Paris', 'insufficientBuyer', 'pending', 'succeededInTestMode'),
  declined: buyer('Dora', 'Declined', 'US', 'NY', 'declinedBuyer', 'declinedByWallet'),
  slow: buyer('Sam', 'Slow', 'US', 'WA', 'slowBuyer', 'succeededInTestMode'),
  broken: buyer('Bo', 'Broken', 'US', 'WA', 'brokenBuyer', 'pending', 'succeededInTestMode'),
}

type WalletPairs = Readonly<Record<string, string>>
/** What is read of a checkout later, and kept; whatever else is told of it is not. */
const orderNames = [
  'PAYMENTREQUEST_0_AMT',
  'PAYMENTREQUEST_0_CURRENCYCODE',
  'PAYMENTREQUEST_0_SHIPTOSTATE',
  'RETURNURL',
  'CANCELURL',
  'BRANDNAME',
]
const pairMost = 2048

type WalletCheckout = {
  readonly pairs: WalletPairs
  payerId?: string
  buyer?: string
  sentBack?: boolean
  broke?: boolean
  transaction?: string
  messages: Map<string, WalletPairs>
}
type Transaction = {
  readonly amount: number
  readonly currency: string
  readonly kind: 'Sale' | 'Authorization' | 'Capture'
  refunded: number
  captured: number
  voided: boolean
}

export function walletSimulator(world: World): Simulator {
  const checkouts = expiring<WalletCheckout>(world.time, tokenMilliseconds)
  const transactions = expiring<Transaction>(world.time, transactionMilliseconds)
  const replies = expiring<WalletPairs>(world.time, transactionMilliseconds)

  const id = (length: number) => world.bytes(length).toString('hex').toUpperCase().slice(0, length)
  const ok = (more: WalletPairs = {}): WalletPairs => ({ ACK: 'Success', ...more })
  const no = (code: string, message: string): WalletPairs => ({
    ACK: 'Failure',
    L_ERRORCODE0: code,
    L_SHORTMESSAGE0: message,
    L_LONGMESSAGE0: message,
    L_SEVERITYCODE0: 'Error',
  })

  const methods: Readonly<Record<string, (pairs: WalletPairs) => WalletPairs | Promise<WalletPairs> | undefined>> = {
    SetExpressCheckout(pairs) {
      if (!isMoney(pairs.PAYMENTREQUEST_0_AMT)) return no('10004', 'The amount is not valid')
      if (!addsUp(pairs)) return no('10413', 'The totals of the cart item amounts do not match order amounts')
      for (const name of ['RETURNURL', 'CANCELURL'])
        if (!world.isOfPayment(pairs[name])) return no('10471', `${name} is not valid`)
      const token = `EC-${id(17)}`
      const kept = orderNames.flatMap(name => (pairs[name] === undefined ? [] : [[name, pairs[name]] as const]))
      checkouts.set(token, { pairs: Object.fromEntries(kept), messages: new Map() })
      return ok({ TOKEN: token })
    },

    GetExpressCheckoutDetails({ TOKEN }) {
      const found = checkouts.get(TOKEN ?? '')
      if (!found) return no('10411', 'This Express Checkout session has expired')
      const { pairs, payerId, buyer, transaction } = found
      const who = buyer === undefined ? undefined : buyers[buyer]
      return ok({
        TOKEN: TOKEN!,
        CHECKOUTSTATUS: transaction ? 'PaymentActionCompleted' : 'PaymentActionNotInitiated',
        PAYMENTREQUEST_0_AMT: pairs.PAYMENTREQUEST_0_AMT!,
        PAYMENTREQUEST_0_CURRENCYCODE: pairs.PAYMENTREQUEST_0_CURRENCYCODE!,
        ...(transaction && { PAYMENTREQUEST_0_TRANSACTIONID: transaction }),
        ...(payerId !== undefined && { PAYERID: payerId }),
        ...(who && {
          EMAIL: who.email,
          PAYERSTATUS: 'verified',
          FIRSTNAME: who.first,
          LASTNAME: who.last,
          COUNTRYCODE: who.country,
          PAYMENTREQUEST_0_SHIPTOSTATE: pairs.PAYMENTREQUEST_0_SHIPTOSTATE ?? who.state,
          ...(who.tax !== undefined && { TAXIDTYPE: 'BR_CPF', TAXID: who.tax }),
        }),
      })
    },

    async DoExpressCheckoutPayment(pairs) {
      const found = checkouts.get(pairs.TOKEN ?? '')
      if (!found) return no('10411', 'This Express Checkout session has expired')
      const before = found.messages.get(pairs.MSGSUBID ?? '')
      if (before) return before
      if (found.transaction) return no('10415', 'A successful transaction has already been completed for this token')
      if (found.payerId === undefined || pairs.PAYERID !== found.payerId)
        return no('10419', 'Express Checkout PayerID is missing or wrong')
      if (pairs.PAYMENTREQUEST_0_AMT !== found.pairs.PAYMENTREQUEST_0_AMT)
        return no('10413', 'The amount differs from the one agreed to')
      if (found.buyer === 'declined') return no('10417', 'The transaction cannot complete')
      if (found.buyer === 'insufficient' && !found.sentBack) {
        found.sentBack = true
        return no('10486', 'This transaction couldn’t be completed. Please redirect your customer')
      }
      if (found.buyer === 'slow') await world.wait(1500)
      const kind = pairs.PAYMENTREQUEST_0_PAYMENTACTION === 'Authorization' ? 'Authorization' : 'Sale'
      const transaction = id(17)
      found.transaction = transaction
      const waits = found.buyer === 'pending'
      transactions.set(transaction, {
        amount: cents(pairs.PAYMENTREQUEST_0_AMT!),
        currency: pairs.PAYMENTREQUEST_0_CURRENCYCODE!,
        kind,
        refunded: 0,
        captured: 0,
        voided: false,
      })
      const answer = ok({
        TOKEN: pairs.TOKEN!,
        PAYMENTINFO_0_TRANSACTIONID: transaction,
        PAYMENTINFO_0_AMT: pairs.PAYMENTREQUEST_0_AMT!,
        PAYMENTINFO_0_CURRENCYCODE: pairs.PAYMENTREQUEST_0_CURRENCYCODE!,
        PAYMENTINFO_0_PAYMENTSTATUS: waits || kind === 'Authorization' ? 'Pending' : 'Completed',
        PAYMENTINFO_0_PENDINGREASON: waits ? 'echeck' : kind === 'Authorization' ? 'authorization' : 'None',
      })
      found.messages.set(pairs.MSGSUBID ?? transaction, answer)
      // It is done, but the answer is lost once: whoever asks again hears the same.
      if (found.buyer === 'broken' && !found.broke) {
        found.broke = true
        return undefined as unknown as WalletPairs
      }
      return answer
    },

    DoCapture(pairs) {
      const found = transactions.get(pairs.AUTHORIZATIONID ?? '')
      if (found?.kind !== 'Authorization' || found.voided) return no('10609', 'The authorization is not valid')
      const amount = cents(pairs.AMT ?? '')
      if (found.captured > 0 || amount > found.amount) return no('10610', 'The amount is above what can be captured')
      found.captured = amount
      const transaction = id(17)
      transactions.set(transaction, {
        amount,
        currency: found.currency,
        kind: 'Capture',
        refunded: 0,
        captured: amount,
        voided: false,
      })
      return ok({
        AUTHORIZATIONID: pairs.AUTHORIZATIONID!,
        TRANSACTIONID: transaction,
        AMT: pairs.AMT!,
        CURRENCYCODE: found.currency,
        PAYMENTSTATUS: 'Completed',
      })
    },

    DoVoid(pairs) {
      const found = transactions.get(pairs.AUTHORIZATIONID ?? '')
      if (found?.kind !== 'Authorization' || found.captured > 0) return no('10600', 'The authorization cannot be voided')
      found.voided = true
      return ok({ AUTHORIZATIONID: pairs.AUTHORIZATIONID! })
    },

    RefundTransaction(pairs) {
      const found = transactions.get(pairs.TRANSACTIONID ?? '')
      if (!found || found.kind === 'Authorization') return no('10004', 'The transaction id is not valid')
      const amount = pairs.REFUNDTYPE === 'Full' ? found.amount - found.refunded : cents(pairs.AMT ?? '')
      if (amount <= 0 || found.refunded + amount > found.amount) return no('10009', 'The refund is above what is left')
      found.refunded += amount
      return ok({ REFUNDTRANSACTIONID: id(17), GROSSREFUNDAMT: money(amount), CURRENCYCODE: found.currency })
    },
  }

  async function endpoint(body: string): Promise<PageAnswer> {
    const pairs = readPairs(body)
    const { user, password, signature } = simulatorCredentials
    const envelope = {
      TIMESTAMP: new Date(world.time()).toISOString(),
      CORRELATIONID: id(13).toLowerCase(),
      VERSION: pairs.VERSION?.slice(0, 20) ?? '',
      BUILD: '1',
    }
    const known = pairs.USER === user && pairs.PWD === password && pairs.SIGNATURE === signature
    if (!known) return textPage(200, writePairs({ ...no('10002', 'Security header is not valid'), ...envelope }))
    const long = Object.keys(pairs).find(name => pairs[name]!.length > pairMost)
    if (long !== undefined) return textPage(200, writePairs({ ...no('10004', `${long.slice(0, 100)} is too long`), ...envelope }))
    const name = pairs.METHOD ?? ''
    const method = Object.hasOwn(methods, name) ? methods[name] : undefined
    if (!method) return textPage(200, writePairs({ ...no('81002', 'Method Specified is not Supported'), ...envelope }))
    const repeats = name !== 'DoExpressCheckoutPayment' && pairs.MSGSUBID ? `${name} ${pairs.MSGSUBID}` : undefined
    const before = repeats === undefined ? undefined : replies.get(repeats)
    const answer = before ?? (await method(pairs))
    if (answer === undefined) return textPage(500, 'Internal Server Error')
    if (repeats !== undefined && answer.ACK === 'Success') replies.set(repeats, answer)
    return textPage(200, writePairs({ ...answer, ...envelope }))
  }

  /** The buyer logs in, looks and agrees, or does not. */
  function review(asked: PageRequest): PageAnswer {
    const token = asked.query.get('token') ?? ''
    const found = checkouts.get(token)
    if (!found || found.transaction) return ended(asked)
    const auto = asked.query.get('auto')
    if (auto === 'cancel') return decide(asked, token, found, 'cancel', undefined)
    if (auto === 'leave') return ended(asked)
    const wanted = auto === 'approve' ? 'verified' : auto
    if (wanted !== null && Object.hasOwn(buyers, wanted)) return decide(asked, token, found, 'agree', wanted)
    const { texts, locale } = asked.language
    const { BRANDNAME: shop, PAYMENTREQUEST_0_AMT: sum, PAYMENTREQUEST_0_CURRENCYCODE: currency } = found.pairs
    const hidden = html`<input type="hidden" name="token" value="${token}">`
    return page(asked, world, {
      title: texts.walletTitle,
      body: html`<h1>${texts.walletTitle}</h1>
<p>${fill(texts.walletText, { account: buyers.verified!.email })}</p>
${found.sentBack && html`<p role="alert"><strong>${texts.fundsDeclined}</strong></p>`}
<dl>${shop !== undefined && html`<dt>${texts.shop}</dt><dd><bdi>${shop}</bdi></dd>`}
<dt>${texts.amount}</dt><dd><bdi>${moneyText(locale, cents(sum!), currency!)}</bdi></dd></dl>
<form method="post" action="decide">
${hidden}
<button name="action" value="agree">${texts.agreeButton}</button>
<button class="plain" name="action" value="cancel">${texts.cancelButton}</button>
</form>`,
      tester: testerPanel(texts, 'decide', hidden, [
        ...Object.entries(buyers).map(
          ([name, { label, follows }]): TesterButton => [
            'buyer',
            name,
            texts[label],
            ...(found.sentBack ? follows.slice(-1) : follows),
          ],
        ),
        ['action', 'cancel', texts.cancelButton, 'cancelledByShopper'],
      ]),
    })
  }

  function decide(
    asked: PageRequest,
    token: string,
    found: WalletCheckout,
    action: string,
    buyer: string | undefined,
  ): PageAnswer {
    if (found.transaction) return ended(asked)
    if (action !== 'agree' && buyer === undefined) return seeOther(withQuery(found.pairs.CANCELURL!, { token }))
    found.buyer = buyer !== undefined && Object.hasOwn(buyers, buyer) ? buyer : 'verified'
    found.payerId ??= id(13)
    return seeOther(withQuery(found.pairs.RETURNURL!, { token, PayerID: found.payerId }))
  }

  const ended = (asked: PageRequest): PageAnswer => endedPage(asked, world)

  return asked => {
    if (asked.path === '/wallet/nvp' && asked.method === 'POST') return endpoint(asked.body)
    if (asked.path === '/wallet/checkout' && asked.method === 'GET') return review(asked)
    if (asked.path === '/wallet/decide' && asked.method === 'POST') {
      const form = new URLSearchParams(asked.body)
      const token = form.get('token') ?? ''
      const found = checkouts.get(token)
      return found ? decide(asked, token, found, form.get('action') ?? '', form.get('buyer') ?? undefined) : ended(asked)
    }
    return undefined
  }
}

/** Items, shipping and tax must add up to the amount, to the hundredth. */
function addsUp(pairs: WalletPairs): boolean {
  if (pairs.PAYMENTREQUEST_0_ITEMAMT === undefined) return !('L_PAYMENTREQUEST_0_AMT0' in pairs)
  let items = 0
  for (let at = 0; pairs[`L_PAYMENTREQUEST_0_AMT${at}`] !== undefined; at++)
    items += cents(pairs[`L_PAYMENTREQUEST_0_AMT${at}`]!) * Number(pairs[`L_PAYMENTREQUEST_0_QTY${at}`] ?? 1)
  const parts = ['ITEMAMT', 'SHIPPINGAMT', 'TAXAMT'].map(name => cents(pairs[`PAYMENTREQUEST_0_${name}`] ?? '0.00'))
  return items === parts[0] && parts.reduce((sum, part) => sum + part, 0) === cents(pairs.PAYMENTREQUEST_0_AMT!)
}

const isMoney = (value: string | undefined): value is string => /^\d{1,10}(\.\d{2})?$/.test(value ?? '')
const cents = (value: string): number =>
  isMoney(value) ? Number(value.includes('.') ? value.replace('.', '') : `${value}00`) : 0
const money = (value: number): string => `${Math.trunc(value / 100)}.${String(value % 100).padStart(2, '0')}`

function withQuery(url: string, values: Readonly<Record<string, string>>): string {
  const to = new URL(url)
  for (const [name, value] of Object.entries(values)) to.searchParams.append(name, value)
  return to.href
}
