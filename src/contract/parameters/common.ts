// Parameters that any payment request may carry, and who is calling.

import { currencies, notMoney } from '../currencies.ts'
import { AN, amount, ascii, dateTime, oneWordOf, prose, returnUrl, shaped, url } from '../formats.ts'
import type { Parameters } from './parameter.ts'

export const hex32 = {
  ...shaped('AN32: 32 lower-case hex characters', '^[0-9a-f]{32}$', ['0'.repeat(32), '8a8294174b7ecb28014b9699220015ca'], ['0'.repeat(31), '0'.repeat(33), 'G'.repeat(32), 'A'.repeat(32)]),
  quantity: true,
} as const

export const currency = {
  ...shaped('A3, upper-case, ISO 4217', '^[A-Z]{3}$', ['EUR', 'JPY', 'BRL'], ['eur', 'EU', 'EURO', 'ZZZ', 'BGN', 'XAU', 'CLF'], value => currencies.has(value)),
  rule: 'must be an upper-case ISO 4217 currency code',
  why: (value: string) => (notMoney.has(value) ? `${value} is ${notMoney.get(value)}, not a currency to pay in` : undefined),
}

export const paymentTypeFormat = shaped('A2', '^[A-Z]{2}(\\.[A-Z]{2})?$', ['PA', 'DB', 'PA.CP'], ['P', 'pa', 'PAX', '3D', 'PA.'])

export const common = {
  'entityId':                { format: hex32, needed: 'unless the token acts for one channel only', note: 'Channel id; a merchant id with channel dispatching; a division id for registrations.' },
  'paymentType':             { format: paymentTypeFormat, echo: true, needed: 'always' },
  'paymentBrand':            { format: ascii('A-Za-z0-9_', 32), echo: true, needed: 'unless card brand detection is used' },
  'amount':                  { format: amount, echo: true, needed: 'always, except for a full reversal' },
  'currency':                { format: currency, echo: true, needed: 'always, except for a full reversal' },
  'overridePaymentType[brand]': { format: shaped('A2', '^[A-Z]{2}$', ['PA'], ['P', 'PAX']), key: ascii('A-Za-z0-9_', 32), note: 'Only when a checkout is created.' },
  'descriptor':              { format: AN(127), echo: true, descriptive: true },
  'merchantTransactionId':   { format: AN(255, 8), echo: true, descriptive: true, needed: 'by some receivers', note: 'A lenient channel takes any length up to 255.', cardNumbers: 'byChance' },
  'merchantInvoiceId':       { format: AN(255, 8), echo: true, descriptive: true, note: 'Never passed onward.', cardNumbers: 'byChance' },
  'transactionCategory':     { format: ascii('A-Za-z0-9', 32, 0), echo: true, descriptive: true, blankCounts: true },
  'testMode':                { format: oneWordOf('EXTERNAL', 'INTERNAL'), note: 'INTERNAL when absent on a test channel.' },
  'merchantMemo':            { format: prose(2048), secret: true, ownNumbers: { kinds: ['taxId', 'clabe'] }, note: 'Bank details of the customer on the refund of a slip payment. Never echoed.' },
} satisfies Parameters

export const authentication = {
  'authentication.entityId': { format: hex32, note: 'Older spelling of entityId.' },
  'authentication.userId':   { format: AN(255), note: 'Only where the merchant allows the old credentials.', cardNumbers: 'belong' },
  'authentication.password': { format: AN(255), secret: true, note: 'Only where the merchant allows the old credentials.', cardNumbers: 'belong' },
} satisfies Parameters

export const standingInstruction = {
  'standingInstruction.type':   { format: oneWordOf('UNSCHEDULED', 'INSTALLMENT', 'RECURRING'), echo: true },
  'standingInstruction.mode':   { format: oneWordOf('INITIAL', 'REPEATED'), echo: true },
  'standingInstruction.source': { format: oneWordOf('CIT', 'MIT'), echo: true },
  'standingInstruction.initialTransactionId': { format: ascii('A-Za-z0-9', 40), echo: true, note: "The network's id of the payment that began the agreement, from that payment's answer.", cardNumbers: 'byChance' },
} satisfies Parameters

export const virtualAccount = {
  'virtualAccount.accountId': { format: AN(100), echo: true, needed: 'by the brand', cardNumbers: 'byChance' },
  'virtualAccount.password':  { format: AN(100), secret: true, needed: 'by some brands', cardNumbers: 'belong' },
} satisfies Parameters

export const asynchronous = {
  'shopperResultUrl': { format: returnUrl, keep: true, needed: 'for methods that redirect the shopper', note: 'Sent URL-encoded.', cardNumbers: 'byChance' },
  'notificationUrl':  { format: url, keep: true, note: 'Sent URL-encoded.', cardNumbers: 'byChance' },
} satisfies Parameters

export const risk = {
  'risk.channelId':        { format: AN(255), keep: true, descriptive: true, note: 'A screening service may take 12 characters only.' },
  'risk.serviceId':        { format: AN(255), keep: true, descriptive: true, note: 'A screening service may take 1 character only.' },
  'risk.amount':           { format: amount, keep: true, default: 'amount', note: 'Also the amount of 3-D Secure.' },
  'risk.orderTimestamp':   { format: dateTime, keep: true, descriptive: true, note: 'The time of the request when absent.' },
  'risk.brand':            { format: AN(255), keep: true, descriptive: true, default: 'paymentBrand' },
  'risk.parameters[name]': { format: prose(2048, 0), key: freeKey(), keep: true, blankCounts: true },
  'risk.merchantWebsite':  { format: AN(60), keep: true, descriptive: true },
  'risk.accountToken':     { format: AN(64), keep: true, descriptive: true, cardNumbers: 'byChance' },
} satisfies Parameters

export const registration = {
  'createRegistration':             { format: oneWordOf('true', 'false'), note: 'A lenient channel takes True, False, 1 and 0 too.' },
  'recurringType':                  { format: oneWordOf('INITIAL', 'REPEATED'), echo: true },
  'recurring.numberOfInstallments': { format: shaped('up to 3 digits', '^[0-9]{1,3}$', ['1', '999'], ['1000', 'x', '-1']), echo: true },
  'customParameters[name]':         { format: prose(2048, 0), key: freeKey(), echo: true, blankCounts: true, ownNumbers: { kinds: ['taxId'], at: 'CUSTOM_CPF_number' }, needed: 'by some methods', note: 'Sent by a browser the name begins with SHOPPER_.' },
} satisfies Parameters

export const giftCard = {
  'giftCard.message': { format: prose(160, 2), echo: true, descriptive: true },
  'giftCard.type': {
    format: oneWordOf(
      'ANNIVERSARY', 'BIRTHDAY', 'CONGRATULATIONS', 'APRIL_FOOLS_DAY', 'EASTER', 'FATHERS_DAY', 'GRADUATION', 'HOLIDAY', 'SEASONS_GREETINGS', 'PASSOVER',
      'KWANZAA', 'HALLOWEEN', 'MOTHERS_DAY', 'NEW_YEARS_DAY', 'BOSSES_DAY', 'ST_PATRICKS_DAY', 'SWEETEST_DAY', 'CHRISTMAS', 'BABY_SHOWER', 'THANKSGIVING',
      'OTHER', 'VALENTINES_DAY', 'WEDDING', 'SECRETARYS_DAY', 'CHINESE_NEW_YEAR', 'HANUKKAH', 'CELEBRATE_FALL', 'GRANDPARENTS_DAY', 'INDEPENDENCE_DAY',
    ),
    echo: true, descriptive: true,
  },
} satisfies Parameters

function freeKey() {
  return ascii('A-Za-z0-9._', 64, 3)
}
