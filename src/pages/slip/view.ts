// All that a page or a PDF of a slip shows, put together from the slip, its payment and the account.

import type { SlipAccount, SlipAccounts } from '../../connectors/slips/accounts.ts'
import { pixCode } from '../../connectors/slips/pix.ts'
import { type Payer, payerOf, todayAt } from '../../connectors/slips/request.ts'
import { bankText } from '../../connectors/slips/text.ts'
import { amountText } from '../../contract/amounts.ts'
import { merchantOfTail } from '../../merchants/merchantTail.ts'
import { type Shop, shopOf } from '../../merchants/shop.ts'
import { cleared } from '../../payments/followUps/rules.ts'
import { findChain } from '../../payments/store/read.ts'
import { type SlipState, stateOf } from '../../slips/state.ts'
import { findSlipByToken, type Slip } from '../../slips/store.ts'
import type { PageParts } from '../parts.ts'
import { shopAddressOf } from '../shopper/redirect.ts'

export type SlipPageParts = PageParts & {
  readonly slipAccounts: SlipAccounts
  /** Pays a slip as a bank or a store would tell it; only in a sandbox. */
  readonly paySlip?: (slip: Slip) => Promise<unknown>
}

export type SlipView = {
  readonly slip: Slip
  readonly account: SlipAccount
  readonly state: SlipState
  /** Hundredths. */
  readonly paid: number
  readonly shop: Shop
  readonly payer: Payer
  readonly product?: string
  /** Where the shopper goes back to. */
  readonly shopUrl?: string
  /** As slips show it. */
  readonly number: string
  readonly pix?: string
  /** No real account stands behind it. */
  readonly isTest: boolean
  /** `yyyy-MM-dd`, in the account's place. */
  readonly issuedOn: string
}

/** Undefined: there is no such slip, or its account is gone. */
export async function findView(parts: SlipPageParts, token: string): Promise<SlipView | undefined> {
  const tail = /^[A-Za-z0-9_-]{22}\.([0-9a-z]{1,25})$/.exec(token)?.[1]
  const merchantId = tail === undefined ? undefined : merchantOfTail(tail)
  if (merchantId !== undefined) parts.directory.mustServe(merchantId)
  const slip = merchantId === undefined ? undefined : await findSlipByToken(parts.database.work, merchantId, token)
  const account = slip && parts.slipAccounts.get(slip.account)
  if (!slip || !account) return undefined
  const payments = await findChain(parts.database.work, slip.merchantId, slip.paymentId)
  const root = payments.find(({ id }) => id === slip.paymentId)!
  const fields: ReadonlyMap<string, string> = new Map(root.record.fields)
  const custom = (name: string) => fields.get(`customParameters[${name}]`) || undefined
  const followers = payments.filter(one => one !== root)
  const shop = shopOf(parts.directory, root.channelId, custom('merchant_sitename') ?? fields.get('merchant.name'))
  const logo = custom('url_logo')
  const product = custom('product')
  const shopUrl = fields.has('shopperResultUrl') ? shopAddressOf(root) : undefined
  return {
    slip,
    account,
    state: stateOf(slip, root, followers, todayAt(account, parts.directory.businessTime(slip.merchantId)), account),
    paid: cleared(root, followers),
    shop: { ...shop, ...(logo !== undefined && { logo }) },
    payer: payerOf(fields),
    ...(product !== undefined && { product }),
    ...(shopUrl !== undefined && { shopUrl }),
    number: account.kind === 'bank' ? account.bank.showNumber(account, slip.number) : slip.number,
    ...pixOf(account, slip),
    isTest: root.mode !== 'live',
    issuedOn: todayAt(account, slip.issuedAt),
  }
}

function pixOf(account: SlipAccount, { amount, document }: Slip): { readonly pix?: string } {
  if (account.kind !== 'bank' || !account.pix) return {}
  const { name, city } = account.beneficiary
  return { pix: pixCode({ key: account.pix.key, amount: amountText(amount) }, bankText(name, 25), bankText(city, 15), document) }
}

/** It can be paid as it stands. */
export const canBePaid = ({ state }: Pick<SlipView, 'state'>): boolean => state === 'payable' || state === 'overdue'

/** In groups, as people read them. */
export const groupsOf = (digits: string): string => digits.replace(/\d{4}(?=\d)/g, '$& ')

/** On a screen only the middle of a tax id is shown. */
export const maskedTaxId = (id: string): string => `***${id.slice(3, -2)}**`

/** A CPF or a CNPJ with its signs. */
export const writtenTaxId = (id: string): string =>
  id.length === 11
    ? id.replace(/^(.{3})(.{3})(.{3})(.{2})$/, '$1.$2.$3-$4')
    : id.replace(/^(.{2})(.{3})(.{3})(.{4})(.{2})$/, '$1.$2.$3/$4-$5')

export const writtenPostcode = (postcode: string): string => postcode.replace(/^(\d{5})(\d{3})$/, '$1-$2')
