// Refunds that are paid by transfer: what became of the order, and the form that says where the money goes. What was entered is sealed, and shown to nobody again.

import { hash } from 'node:crypto'
import type { Actor } from '../../../audit/entry.ts'
import { transferWaitsFor } from '../../../clearing/transfers/write.ts'
import { shortenCards } from '../../../contract/cardNumbers.ts'
import { type BankDetail, type BankDetails, checkBankDetails, detailsAsked } from '../../../payments/transfers/bankDetails.ts'
import { findTransfer, type TransferRow, transfersAbout } from '../../../payments/transfers/store.ts'
import { enterDetails } from '../../../payments/transfers/transfer.ts'
import { carryOutOnce, placeOrder } from '../../../staff/orders/orders.ts'
import type { StaffOrder } from '../../../staff/orders/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { field, message } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { goTo, nothingHere, type OfficeRoute } from '../route.ts'
import { paymentAt, type Story } from './story.ts'
import { type PaymentWords, paymentWords } from './words.ts'

export const transferRoutes = (parts: OfficeParts): OfficeRoute[] => [
  {
    method: 'POST',
    path: '/payments/{entity}/{id}/transfer',
    action: 'enterTransfers',
    proven: true,
    exact: true, // numbers of accounts can pass for those of cards
    async answer({ values, language }, signedIn, { entity = '', id = '' }) {
      const { by } = signedIn
      const words = paymentWords(language)
      const payment = await paymentAt(parts, entity, id)
      const transfer = payment && openTransfer({ payment, transfers: await transfersAbout(parts.database.work, entity, [id]) })
      if (!transfer)
        return payment ? { status: 400, title: words.notDone, body: message(words.transferGone, 'wrong') } : nothingHere(language)
      const given = new Map(askedFor(transfer).map(name => [name, (values.get(name) ?? '').trim()]))
      const details = checkBankDetails(given)
      const reason = shortenCards((values.get('reason') ?? '').trim(), parts.cardBrands)
      const wrong: string[] = [
        ...('wrong' in details ? details.wrong : []),
        ...(reason.length < 3 || reason.length > 500 ? ['reason'] : []),
        ...(values.get('confirmed') === 'yes' ? [] : ['confirmed']),
      ]
      const pressed = values.get('once') ?? ''
      if ('wrong' in details || wrong.length > 0 || !/^[0-9a-f]{32}$/.test(pressed))
        return { status: 400, title: words.enterTransfer, body: transferForm(parts, transfer, words, { values, wrong }) }
      const { channelId, amount, currency } = payment
      // Another account is another order, whatever form it comes with.
      const once = hash('sha256', `${pressed} ${JSON.stringify(details)}`).slice(0, 32)
      const channel = parts.directory.entity(channelId)
      const order = {
        merchantId: entity,
        paymentId: id,
        rootId: payment.rootId ?? id,
        channelId,
        type: 'transfer',
        amount,
        currency,
        reason,
        once,
        details,
      } as const
      const approvalFrom = channel?.kind === 'channel' ? channel.settings.approvalFrom : 0
      const placed = await placeOrder(parts, signedIn, order, approvalFrom)
      if (typeof placed === 'string') return { status: 409, title: words.notDone, body: message(words.formUsed, 'wrong') }
      if (placed.waits) return goTo('/office/approvals')
      if ((await enterOrdered({ ...parts, by }, { ...order, ...placed }, details)) !== entered)
        return { status: 400, title: words.notDone, body: message(words.transferGone, 'wrong') }
      return goTo(`/office/payments/${entity}/${id}?done=transfer`)
    },
  },
]

const entered = 'entered'

/** What became of an order that says where the money of a refund goes, in words. Of a pressed and a late press alike. */
export const enterOrdered = (
  parts: OfficeParts & { readonly by: Actor },
  order: Pick<StaffOrder, 'merchantId' | 'id' | 'paymentId' | 'reason'>,
  details: BankDetails | undefined,
): Promise<string> =>
  carryOutOnce(parts, order, async db => {
    const transfer = await findTransfer(db, order.paymentId)
    const isEntered = details && transfer && (await enterDetails(parts, db, transfer, details, parts.by.id, order.reason))
    return isEntered ? entered : 'it had ended, or stood in a file'
  })

const askedFor = ({ currency }: TransferRow): readonly BankDetail[] => detailsAsked[currency === 'MXN' ? 'MXN' : 'BRL']

/** The order of the payment of the page, while somebody may still say where it goes. */
const openTransfer = ({
  payment,
  transfers,
}: { readonly payment: Pick<Story['payment'], 'id'> } & Pick<Story, 'transfers'>): TransferRow | undefined =>
  transfers.find(({ paymentId, result, sequence }) => paymentId === payment.id && result === null && sequence === null)

/** What became of the order of a refund, or what it waits for; undefined of whatever is not transferred. */
export function transferState(
  { slipAccounts }: OfficeParts,
  { transfers, chain }: Story,
  id: string,
  words: PaymentWords,
): string | undefined {
  const transfer = transfers.find(({ paymentId }) => paymentId === id)
  if (!transfer) return undefined
  const { account, sequence, line } = transfer
  const answer = chain.find(one => one.id === id)?.answer
  if (answer) return answer.approved ? words.transfer_paid : words.transfer_refused
  const waits = words[`transfer_${transferWaitsFor(transfer, slipAccounts)}`]
  return fill(waits, { account, file: String(sequence ?? ''), line: String(line ?? '') })
}

export function transferCard(parts: OfficeParts, story: Story, { may }: SignedIn, words: PaymentWords): Html | undefined {
  const transfer = openTransfer(story)
  if (!transfer || !may('enterTransfers')) return undefined
  return html`<details class="card order"${transfer.sealed === null && html` open`}><summary>${transfer.sealed === null ? words.enterTransfer : words.enterTransferAgain}</summary>${transferForm(parts, transfer, words)}</details>`
}

function transferForm(
  { random }: OfficeParts,
  transfer: TransferRow,
  words: PaymentWords,
  sent?: { readonly values: URLSearchParams; readonly wrong: readonly string[] },
): Html {
  const { merchantId, paymentId } = transfer
  const value = (name: string) => sent?.values.get(name) ?? ''
  const wrong = (name: string) => (sent?.wrong.includes(name) ? words[`wrong_${name}` as keyof PaymentWords] : undefined)
  return html`<form method="post" action="/office/payments/${merchantId}/${paymentId}/transfer">
<input type="hidden" name="once" value="${random.bytes(16).toString('hex')}">
${askedFor(transfer).map(name => field({ name, label: words[`bank_${name}`], hint: words[`hint_${name}`], value: value(name), wrong: wrong(name) }))}
${field({ name: 'reason', label: words.reason, hint: words.reasonHint, value: value('reason'), wrong: sent?.wrong.includes('reason') ? words.wrongReason : undefined })}
<p><label><input type="checkbox" name="confirmed" value="yes" required${sent?.wrong.includes('confirmed') && html` aria-invalid="true"`}> ${words.confirmTransfer}</label></p>
<button>${words.enterTransfer}</button></form>`
}
