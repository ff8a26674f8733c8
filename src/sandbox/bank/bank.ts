// The other side of online transfers: a bank that is told of a transfer, shows the shopper its page, and says by notice and on request what
// became of it.

import { html } from '../../pages/html.ts'
import { moneyText } from '../../pages/languages/languages.ts'
import {
  endedPage,
  expiring,
  jsonPage,
  type PageAnswer,
  type PageRequest,
  page,
  type Simulator,
  seeOther,
  type World,
} from '../exchange.ts'
import { testerPanel } from '../testerPanel.ts'

const transferMilliseconds = 7 * 86_400_000
/** `Make the transfer later`: it is pending so long, then received. */
const laterMilliseconds = 1000

type BankTransfer = {
  readonly fields: TransferFields
  status: 'opened' | 'pending' | 'received' | 'aborted' | 'declined'
  /** By reference: a refund that is asked for twice is made once. */
  readonly refunds: Map<string, { readonly id: string; readonly amount: number }>
}

/** What is read of a transfer later, and kept; whatever else is told is not. */
const fieldNames = [
  'reference',
  'amount',
  'currency',
  'success_url',
  'abort_url',
  'notification_url',
  'creditor_name',
  'purpose',
] as const
type FieldName = (typeof fieldNames)[number]
type TransferFields = Readonly<Partial<Record<FieldName, string>>>
const fieldMost = 2048
const refundsMost = 100

export function bank(world: World): Simulator {
  const transfers = expiring<BankTransfer>(world.time, transferMilliseconds)

  function begin(asked: PageRequest): PageAnswer {
    const form = new URLSearchParams(asked.body)
    const fields: TransferFields = Object.fromEntries(
      fieldNames.flatMap(name => (form.has(name) ? [[name, form.get(name)!] as const] : [])),
    )
    const needs = needed(world)
    const wrong = fieldNames.filter(name => {
      const value = fields[name]
      return (value?.length ?? 0) > fieldMost || needs[name]?.(value) === false
    })
    if (wrong.length > 0) return jsonPage(400, { status: 'declined', reason: `missing or wrong: ${wrong.join(', ')}` })
    const id = world.uuid()
    transfers.set(id, { fields, status: 'opened', refunds: new Map() })
    return jsonPage(201, { transaction_id: id, status: 'opened', payment_url: `${world.publicUrl()}/bank/pay?transaction=${id}` })
  }

  const state = (id: string, { fields, status }: BankTransfer): PageAnswer =>
    jsonPage(200, { transaction_id: id, status, amount: fields.amount, currency: fields.currency, reference: fields.reference })

  function refund(asked: PageRequest, id: string, transfer: BankTransfer): PageAnswer {
    const form = new URLSearchParams(asked.body)
    const reference = form.get('reference') ?? ''
    const amount = Number((form.get('amount') ?? '').replace('.', ''))
    const paid = Number(transfer.fields.amount!.replace('.', ''))
    const refunded = [...transfer.refunds.values()].reduce((sum, refund) => sum + refund.amount, 0)
    const before = transfer.refunds.get(reference)
    if (before) return jsonPage(200, { transaction_id: before.id, status: 'received' })
    const isFull = transfer.refunds.size >= refundsMost || reference.length > fieldMost
    if (transfer.status !== 'received' || reference === '' || !(amount > 0) || refunded + amount > paid || isFull)
      return jsonPage(400, { transaction_id: id, status: 'declined', reason: 'nothing to refund' })
    const refundId = world.uuid()
    transfer.refunds.set(reference, { id: refundId, amount })
    return jsonPage(200, { transaction_id: refundId, status: 'received' })
  }

  function show(asked: PageRequest): PageAnswer {
    const id = asked.query.get('transaction') ?? ''
    const transfer = transfers.get(id)
    if (transfer?.status !== 'opened') return ended(asked)
    const auto = asked.query.get('auto')
    if (auto !== null) return decide(asked, id, transfer, actions[auto] ?? auto)
    const { texts, locale } = asked.language
    const { fields } = transfer
    const hidden = html`<input type="hidden" name="transaction" value="${id}">`
    return page(asked, world, {
      title: texts.bankTitle,
      body: html`<h1>${texts.bankTitle}</h1>
<p>${texts.bankText}</p>
<dl><dt>${texts.amount}</dt><dd><bdi>${moneyText(locale, Number(fields.amount!.replace('.', '')), fields.currency!)}</bdi></dd>
${fields.creditor_name && html`<dt>${texts.shop}</dt><dd><bdi>${fields.creditor_name}</bdi></dd>`}
${fields.purpose && html`<dt>${texts.purpose}</dt><dd><bdi>${fields.purpose}</bdi></dd>`}</dl>
<form method="post" action="decide">
${hidden}
<button name="action" value="pay">${texts.transferButton}</button>
<button class="plain" name="action" value="cancel">${texts.cancelButton}</button>
</form>`,
      tester: testerPanel(texts, 'decide', hidden, [
        ['action', 'pay', texts.transferButton, 'succeededInTestMode'],
        ['action', 'later', texts.payLater, 'pending', 'succeededInTestMode'],
        ['action', 'refuse', texts.refuse, 'refusedByBank'],
        ['action', 'cancel', texts.cancelButton, 'cancelledByShopper'],
        ['action', 'leavePaid', texts.payAndClose, 'succeededInTestMode'],
        ['action', 'leaveSilently', texts.payAndLose, 'pending', 'succeededInTestMode'],
        ['action', 'leave', texts.leave, 'pending', 'onlineTransferTimedOut'],
      ]),
    })
  }

  function decide(asked: PageRequest, id: string, transfer: BankTransfer, action: string): PageAnswer {
    if (transfer.status !== 'opened') return ended(asked)
    const { success_url: success, abort_url: abort } = transfer.fields as { success_url: string; abort_url: string }
    switch (action) {
      case 'pay':
        transfer.status = 'received'
        notify(id, transfer)
        return seeOther(success)
      case 'later':
        transfer.status = 'pending'
        world
          .wait(laterMilliseconds)
          .then(() => {
            transfer.status = 'received'
            notify(id, transfer)
          })
          .catch(lost)
        return seeOther(success)
      case 'refuse':
        transfer.status = 'declined'
        notify(id, transfer)
        return seeOther(abort)
      case 'cancel':
        transfer.status = 'aborted'
        return seeOther(abort)
      // The shopper pays and closes the window: only the notice tells.
      case 'leavePaid':
        transfer.status = 'received'
        notify(id, transfer)
        return ended(asked)
      // He pays, the window is closed and the notice is lost: only who asks learns of it.
      case 'leaveSilently':
        transfer.status = 'received'
        return ended(asked)
      default:
        return ended(asked)
    }
  }

  function notify(id: string, { fields, status }: BankTransfer): void {
    if (!fields.notification_url) return
    const body = new URLSearchParams({ transaction_id: id, status }).toString()
    world.post(fields.notification_url, 'application/x-www-form-urlencoded', body).catch(lost)
  }

  /** Notices are lost now and then: who waits for one asks. */
  const lost = () => {}

  const ended = (asked: PageRequest): PageAnswer => endedPage(asked, world)

  return asked => {
    const { method, path } = asked
    if (path === '/bank/transfers' && method === 'POST') return begin(asked)
    if (path === '/bank/pay' && method === 'GET') return show(asked)
    if (path === '/bank/decide' && method === 'POST') {
      const form = new URLSearchParams(asked.body)
      const id = form.get('transaction') ?? ''
      const transfer = transfers.get(id)
      return transfer ? decide(asked, id, transfer, form.get('action') ?? '') : ended(asked)
    }
    const [, id, refunds] = /^\/bank\/transfers\/([0-9a-f-]{36})(\/refunds)?$/.exec(path) ?? []
    const transfer = id === undefined ? undefined : transfers.get(id)
    if (id !== undefined && !transfer) return jsonPage(200, { status: 'expired', reason: 'no such transfer' })
    if (!transfer || id === undefined) return undefined
    return refunds && method === 'POST' ? refund(asked, id, transfer) : state(id, transfer)
  }
}

/** The shopper and the notice go only to a payment at the gateway. */
const needed = (world: World): Readonly<Partial<Record<FieldName, (value: string | undefined) => boolean>>> => ({
  reference: value => !!value,
  amount: value => /^\d{1,10}\.\d{2}$/.test(value ?? ''),
  currency: value => /^[A-Z]{3}$/.test(value ?? ''),
  success_url: value => world.isOfPayment(value),
  abort_url: value => world.isOfPayment(value),
  notification_url: value => value === undefined || world.isOfPayment(value),
})

/** Words of `?auto=` that are not the names of buttons. */
const actions: Readonly<Record<string, string>> = { approve: 'pay', decline: 'refuse' }
