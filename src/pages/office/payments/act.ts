// Captures, refunds and reversals ordered by the staff: by the same way as a merchant's, with a reason, and told of in the audit before they are begun.

import { amountText, hundredths } from '../../../contract/amounts.ts'
import { type Chain, type FollowUpType, forbids, refundOpen, reversalOpen } from '../../../payments/followUps/rules.ts'
import type { PaymentState } from '../../../payments/payment.ts'
import { findChain } from '../../../payments/store/read.ts'
import { placeOrder, waitingMost } from '../../../staff/orders/orders.ts'
import type { StaffAction } from '../../../staff/permissions.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { message } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, type OfficeRoute, proveFirst } from '../route.ts'
import { carryOut } from './carryOut.ts'
import { paymentAt, type Story } from './story.ts'
import { type PaymentWords, paymentWords } from './words.ts'

type OrderKind = { readonly type: FollowUpType; readonly word: 'capture' | 'refund' | 'reverse'; readonly action: StaffAction }

export const orders: readonly OrderKind[] = [
  { type: 'CP', word: 'capture', action: 'capture' },
  { type: 'RF', word: 'refund', action: 'refund' },
  { type: 'RV', word: 'reverse', action: 'refund' },
]

export const actRoutes = (parts: OfficeParts): OfficeRoute[] =>
  orders.map(({ type, word, action }) => ({
    method: 'POST',
    path: `/payments/{entity}/{id}/${word}`,
    action,
    async answer(request, signedIn, { entity = '', id = '' }) {
      const { values, language, number } = request
      const words = paymentWords(language)
      const payment = await paymentAt(parts, entity, id)
      const channel = payment && parts.directory.entity(payment.channelId)
      if (!payment || channel?.kind !== 'channel') return { status: 404, title: words.notDone, body: html`` }
      const rootId = payment.rootId ?? id
      const back = `/office/payments/${entity}/${rootId}`
      const refuse = (status: number, text: string) => ({
        status,
        title: words.notDone,
        body: html`${message(text, 'wrong')}<p><a class="button" href="${back}">${words.back}</a></p>`,
      })
      const [amount, reason, once] = [values.get('amount') ?? '', (values.get('reason') ?? '').trim(), values.get('once') ?? '']
      if (!/^\d{1,10}\.\d\d$/.test(amount) || hundredths(amount) === 0) return refuse(400, words.wrongAmount)
      if (reason.length < 3 || reason.length > 500) return refuse(400, words.wrongReason)
      if (values.get('confirmed') !== 'yes' || !/^[0-9a-f]{32}$/.test(once)) return refuse(400, words.notConfirmed)
      const { proofFrom, approvalFrom } = channel.settings
      const { currency, merchantId } = payment
      const about = { merchantId, rootId, paymentId: id, channelId: channel.id }
      const order = { ...about, type, amount: hundredths(amount), currency, reason, once }
      const isForbidden = approvalFrom !== undefined && !(await isPossible(parts, payment, order))
      const placed = await placeOrder(parts, signedIn, { ...order, isForbidden }, approvalFrom, proofFrom)
      if (placed === 'unproven') return proveFirst(parts, request)
      if (placed === 'used') return refuse(409, words.formUsed)
      if (placed === 'forbidden') return refuse(409, words.forbidden)
      if (placed === 'tooMany') return refuse(409, fill(words.tooManyWait, { count: String(waitingMost) }))
      if (placed.waits) return goTo('/office/approvals')
      // A second press of the button is the same order.
      const { status, code, description } = await carryOut(
        { ...parts, by: signedIn.by },
        channel,
        order,
        `office ${id}`,
        once,
        number,
      )
      if (status !== 200) return refuse(status, code === undefined ? description : `${code}: ${description}`)
      return goTo(`${back}?done=${word}&amount=${amount}`)
    },
  }))

/** Whether the chain as it is now lets an order be carried out. */
async function isPossible(
  parts: OfficeParts,
  payment: PaymentState,
  { type, amount }: { readonly type: FollowUpType; readonly amount: number },
): Promise<boolean> {
  const { merchantId, id } = payment
  const rootId = payment.rootId ?? id
  const chain = await findChain(parts.database.work, merchantId, rootId)
  const root = chain.find(one => one.id === rootId)
  if (!root) return false
  const followers = chain.filter(one => one.id !== rootId)
  return possible(parts, { payment, root, followers }).some(one => one.type === type && amount <= one.most)
}

/** What may still be done about the payment of the page, and up to which amount; hundredths. */
export function possible(
  parts: OfficeParts,
  { payment, root, followers }: Pick<Story, 'payment' | 'root' | 'followers'>,
): readonly (OrderKind & { readonly most: number })[] {
  const connector = parts.connectors.get(root.connector)
  const abilities = { partialReversal: connector?.partialReversal(root.answer?.kept ?? {}) === true }
  const now = parts.directory.businessTime(payment.merchantId)
  const asked: Chain = { reference: payment, root, followers }
  return orders.flatMap(order => {
    const { type } = order
    const most = type === 'RF' ? refundOpen(asked) : reversalOpen(payment, followers)
    const request = { type, amount: most, channelId: payment.channelId, now }
    const isOffered = connector?.operations[type] !== undefined
    return forbids(request, asked, { ...abilities, offered: isOffered }) === undefined ? [{ ...order, most }] : []
  })
}

export function orderForms(parts: OfficeParts, story: Story, { may }: SignedIn, words: PaymentWords): Html {
  const { merchantId, id, currency } = story.payment
  const forms = possible(parts, story).filter(({ action }) => may(action))
  if (forms.length === 0) return html``
  return html`<h2>${words.actions}</h2>${forms.map(({ word, most }) => {
    const [amount, what] = [amountText(most), words[word]]
    const name = (of: string) => `${word}-${of}`
    return html`<details class="card order"><summary>${what}</summary>
<form method="post" action="/office/payments/${merchantId}/${id}/${word}">
<input type="hidden" name="once" value="${parts.random.bytes(16).toString('hex')}">
<div class="field"><label for="${name('amount')}">${words.amount} (${currency})</label><input id="${name('amount')}" name="amount" value="${amount}" required inputmode="decimal" pattern="[0-9]{1,10}\\.[0-9]{2}" autocomplete="off"></div>
<div class="field"><label for="${name('reason')}">${words.reason}</label><input id="${name('reason')}" name="reason" required minlength="3" maxlength="500" autocomplete="off" aria-describedby="${name('hint')}"><p class="hint" id="${name('hint')}">${words.reasonHint}</p></div>
<p><label><input type="checkbox" name="confirmed" value="yes" required> ${fill(words.confirm, { what: what.toLowerCase() })}</label></p>
<button>${what}</button></form></details>`
  })}`
}
