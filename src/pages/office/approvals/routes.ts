// Orders of colleagues: approved, they are carried out by the same way as a merchant's.

import { results } from '../../../contract/results/results.ts'
import type { BankDetails } from '../../../payments/transfers/bankDetails.ts'
import { approvalHours } from '../../../staff/kept.ts'
import { decideOrder, detailsOfOrder, isYoung } from '../../../staff/orders/orders.ts'
import { listWaiting, type StaffOrder, setOutcome } from '../../../staff/orders/store.ts'
import type { SignedIn } from '../../../staff/sessions.ts'
import { namesOfStaff } from '../../../staff/store.ts'
import { type Html, html } from '../../html.ts'
import { moneyText } from '../../languages/languages.ts'
import { button, message, nextPage, pageFrom, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { carryOut } from '../payments/carryOut.ts'
import { enterOrdered } from '../payments/transfer.ts'
import { goTo, nothingHere, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, officeLocales, wordsIn } from '../words.ts'

const approvalsShown = 200

export function approvalRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database, clock } = parts
  const decides =
    (decision: 'approved' | 'refused'): OfficeRoute['answer'] =>
    async ({ language, number }, signedIn, { entity = '', approval: id = '' }) => {
      const decided = /^[0-9a-f]{32}$/.test(id) ? await decideOrder(parts, signedIn, entity, id, decision) : 'gone'
      if (decided === 'gone') return nothingHere(language)
      const words = approvalWords(language)
      if (decided === 'own' || decided === 'elsewhere')
        return { status: 403, title: frameWords(language).approvals, body: message(words[decided], 'wrong') }
      if (decision === 'approved') await setOutcome(database.work, decided, await begin(parts, signedIn, decided, number))
      return goTo('/office/approvals')
    }
  return [
    {
      method: 'GET',
      path: '/approvals',
      action: 'readPayments',
      async answer({ language, values }, signedIn) {
        const words = approvalWords(language)
        const page = pageFrom(values)
        const since = clock.real() - 30 * 24 * 3_600_000
        const isOpen = ({ outcome, askedAt }: StaffOrder) => outcome === null && isYoung({ askedAt }, clock.real())
        const open = clock.real() - approvalHours * 3_600_000
        const skip = (page - 1) * approvalsShown
        const found = await listWaiting(database.work, signedIn.merchants, { since, open, limit: approvalsShown + 1, skip })
        const names = await namesOfStaff(
          database.work,
          found.flatMap(({ askedBy, decidedBy }) => [askedBy, decidedBy ?? '']),
        )
        const rows = found
          .slice(0, approvalsShown)
          .map(one => [
            momentText(language, one.askedAt),
            names.get(one.askedBy) ?? one.askedBy,
            html`${one.type === 'transfer' ? words.transfer : one.type} ${moneyText(officeLocales[language], one.amount, one.currency)}${isOpen(one) && signedIn.may('approve') && destinationOf(parts, one)}`,
            html`<code>${one.paymentId}</code>`,
            one.reason,
            isOpen(one) && signedIn.may('approve') && one.askedBy !== signedIn.by.id
              ? html`${button(addressOfApproval(one, 'approve'), words.approve, '')}${one.decision === null && button(addressOfApproval(one, 'refuse'), words.refuse, 'danger')}`
              : (one.outcome ?? (isOpen(one) ? words.waits : words.over)),
          ])
        const title = frameWords(language).approvals
        const heads = [words.asked, words.by, words.what, words.payment, words.reason, '']
        return {
          title,
          body: html`${rows.length === 0 ? message(words.none) : tableOf(title, heads, rows)}
${nextPage('/office/approvals', page, found.length > approvalsShown, {}, language)}`,
        }
      },
    },
    {
      method: 'POST',
      path: '/approvals/{entity}/{approval}/approve',
      action: 'approve',
      proven: true,
      answer: decides('approved'),
    },
    { method: 'POST', path: '/approvals/{entity}/{approval}/refuse', action: 'approve', answer: decides('refused') },
  ]
}

const addressOfApproval = ({ merchantId, id }: StaffOrder, verb: 'approve' | 'refuse') =>
  `/office/approvals/${merchantId}/${id}/${verb}`

/** Where the money would go: nobody can approve what he does not see. */
function destinationOf(parts: OfficeParts, order: StaffOrder): Html {
  const details = detailsOfOrder<BankDetails>(parts, order)
  if (!details) return html``
  const account =
    'clabe' in details ? details.clabe : `${details.bank} ${details.agency} ${details.account}-${details.accountDigit}`
  return html`<br>${details.holder}<br><code>${account}</code>`
}

/** What became of it, in the words of its result. */
async function begin(parts: OfficeParts, { by }: SignedIn, ordered: StaffOrder, number: string): Promise<string> {
  const { channelId, id, type } = ordered
  if (type === 'transfer') return enterOrdered({ ...parts, by }, ordered, detailsOfOrder<BankDetails>(parts, ordered))
  const channel = parts.directory.entity(channelId)
  if (channel?.kind !== 'channel') return results.channelDisabled.description
  return (await carryOut({ ...parts, by }, channel, ordered, 'approvals', id, number)).description
}

const approvalWords = wordsIn(
  {
    none: 'Nothing waits for a second pair of eyes.',
    transfer: 'Bank data of the refund',
    asked: 'Ordered (UTC)',
    by: 'By',
    what: 'What',
    payment: 'Payment',
    reason: 'Reason',
    approve: 'Approve, and carry out',
    refuse: 'Refuse',
    own: 'You ordered this yourself: a colleague has to approve it.',
    elsewhere: 'This was ordered before the merchant came here, by somebody who is not known here: refuse it, and order it anew.',
    waits: 'waits for a colleague',
    over: 'nobody approved it in time',
  },
  {
    none: 'Nada espera um segundo par de olhos.',
    transfer: 'Dados bancários do estorno',
    asked: 'Pedido em (UTC)',
    by: 'Por',
    what: 'O quê',
    payment: 'Pagamento',
    reason: 'Motivo',
    approve: 'Aprovar e realizar',
    refuse: 'Recusar',
    own: 'Você mesmo pediu isto: um colega precisa aprovar.',
    elsewhere: 'Isto foi pedido antes de o lojista vir para cá, por alguém que não é conhecido aqui: recuse e peça de novo.',
    waits: 'espera um colega',
    over: 'ninguém aprovou a tempo',
  },
)
