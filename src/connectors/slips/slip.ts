// Slips: the connector that issues them. Nobody is asked: a number of the account, a barcode and a page of our own are the whole answer, and no
// money has moved. What is paid on them is told by files of the bank or the chain.

import { createHash } from 'node:crypto'
import { amountText } from '../../contract/amounts.ts'
import { merchantTail } from '../../merchants/merchantTail.ts'
import type { ChannelSettings } from '../../merchants/settings.ts'
import type { Random } from '../../platform/clock.ts'
import type { Connector, Mode, Operation, Reply, SlipIssue } from '../connector.ts'
import type { Method } from '../registry.ts'
import type { SlipAccount, SlipAccounts } from './accounts.ts'
import { digitableLine, slipBarcode } from './banks/barcode.ts'
import { dueOn, questionsTo, wrongForSlip } from './request.ts'
import { storeNumber } from './storeNumber.ts'
import { bankText } from './text.ts'

/** Gives the numbers of accounts, each once, as slips have them; undefined where there is none for us. */
export type SlipNumbers = { take(account: SlipAccount): Promise<string | undefined> }

export type SlipParts = {
  readonly accounts: SlipAccounts
  readonly numbers: SlipNumbers
  readonly random: Random
  publicUrl(): string
}

/** The account of a brand that a channel issues its slips with: the first that it names, or else the first of the brand. */
export function accountFor(
  accounts: SlipAccounts,
  { slipAccounts }: Pick<ChannelSettings, 'slipAccounts'>,
  brand: string,
  mode: Mode,
): SlipAccount | undefined {
  const fits = (one: SlipAccount) => one.brand === brand && one.modes.includes(mode)
  const named = slipAccounts[brand]
  return named ? named.flatMap(name => accounts.get(name) ?? []).find(fits) : [...accounts.values()].find(fits)
}

/** Of BOLETO also where no account issues it: a request is then told that nothing is configured. */
export function slipMethods(accounts: SlipAccounts): Method[] {
  const ofBrand = Map.groupBy(accounts.values(), ({ brand }) => brand)
  return [...new Set(['BOLETO', 'OXXO', ...ofBrand.keys()])].map(brand => ({
    brand,
    code: 'PP',
    connector: 'slip',
    types: ['PA'],
    currencies: [...new Set(ofBrand.get(brand)?.map(({ currency }) => currency))],
    needs: [],
    wrong(values, asked) {
      const account = accountFor(accounts, asked.channel.settings, brand, asked.mode)
      return account ? wrongForSlip(values, asked, account) : []
    },
    asks(values, settings, mode) {
      const account = accountFor(accounts, settings, brand, mode)
      return account && questionsTo(values, account)
    },
  }))
}

/** One for each mode that an account has. */
export function slips(mode: Mode, parts: SlipParts): Connector {
  const { accounts } = parts
  return {
    name: `slip ${mode}`,
    answerWithinSeconds: 5,
    // Nobody hears of a slip before its answer stands with its number: issuing again may give another one.
    operations: { PA: { how: 'repeat', afterSeconds: 5 }, RV: { how: 'repeat', afterSeconds: 5 } },
    partialReversal: () => false,
    refuses: ({ type, channel, brand }) =>
      type === 'PA' && !accountFor(accounts, channel.settings, brand, mode) ? 'processorNotConfigured' : undefined,
    // The request was judged by the rules of this account.
    prepare({ type, channel, brand }) {
      const account = type === 'PA' ? accountFor(accounts, channel.settings, brand, mode) : undefined
      return account ? [{ account: account.name }] : []
    },
    perform: async operation => (operation.type === 'PA' ? issue(parts, operation) : writeOff(parts, operation)),
  }
}

async function issue({ accounts, numbers, random, publicUrl }: SlipParts, operation: Operation): Promise<Reply> {
  const account = accounts.get(operation.prepared?.[0]?.account ?? '')
  if (!account) return withoutNumber('its account is not configured any more')
  const number = await numbers.take(account)
  if (number === undefined) return withoutNumber('no number was free')
  const { amount, currency, merchantId, fields, receivedAt } = operation
  const due = dueOn(fields, account, receivedAt)
  const token = `${random.bytes(16).toString('base64url')}.${merchantTail(merchantId)}`
  const link = `${operation.publicUrl ?? publicUrl()}/slip/${token}`
  const document =
    bankText(fields.get('merchantTransactionId') ?? '')
      .replace(/[^A-Z0-9]/g, '')
      .slice(-15) || number.slice(-15)
  const codes = codesOf(account, number, document, due, amount)
  const slip: SlipIssue = {
    account: account.name,
    number,
    document,
    dueOn: due,
    barcode: codes.barcode,
    line: codes.line,
    linkHash: createHash('sha256').update(token).digest('hex'),
    ...(isTold(account, operation.mode) && { order: 'entry' }),
  }
  return {
    kind: 'answer',
    result: 'succeeded',
    amount,
    currency,
    details: {
      EXTERNAL_SYSTEM_LINK: link,
      ...(account.kind === 'chain' && { EXTERNAL_SYSTEM_BARCODE_IMAGE: `${link}/barcode.png` }),
      EXTERNAL_SYSTEM_BARCODE_NUMBER: codes.barcode,
      ...codes.details,
      DueDate: due,
      ExtendedDescription: `Slip of ${amountText(amount)} ${currency} issued, due on ${due}`,
      ConnectorTxID1: codes.shown,
      acquirerReturnCode: '0',
      acquirerReturnMessage: 'Issued',
      acquirerTxId1: number,
      acquirerTxId2: document,
    },
    kept: { account: account.name, number, dueOn: due },
    slip,
  }
}

const withoutNumber = (why: string): Reply => ({ kind: 'notSent', why, never: true, result: 'noSlipNumber' })

type Codes = {
  readonly barcode: string
  readonly line: string
  /** The number as slips show it. */
  readonly shown: string
  readonly details: Readonly<Record<string, string>>
}

function codesOf(account: SlipAccount, number: string, document: string, due: string, amount: number): Codes {
  if (account.kind === 'chain') {
    const barcode = storeNumber({ prefix: account.prefix, reference: number, dueOn: due, amount })
    return { barcode, line: number, shown: number, details: { Reference: number } }
  }
  const { bank } = account
  const barcode = slipBarcode({
    bank: bank.code,
    dueOn: due,
    amount,
    freeField: bank.freeField(account, number, document.replace(/\D/g, '')),
  })
  const line = digitableLine(barcode)
  return { barcode, line, shown: bank.showNumber(account, number), details: { DigitableLine: line } }
}

/** The page of the slip says it at once; the bank hears of it where files are sent to it. */
function writeOff({ accounts }: SlipParts, { amount, currency, mode, reference }: Operation): Reply {
  const account = accounts.get(reference!.kept.account ?? '')
  return {
    kind: 'answer',
    result: 'succeeded',
    amount,
    currency,
    details: { ExtendedDescription: 'The slip is withdrawn' },
    kept: {},
    ...(account && isTold(account, mode) && { slip: { account: account.name, order: 'writeOff' as const } }),
  }
}

/** A slip of the simulator is in no file: a bank that got one would wait for its money. */
const isTold = (account: SlipAccount, mode: Mode): boolean => mode !== 'internal' && 'remittance' in account
