// The banks that slips are issued with: what each puts into the 25 digits that are its own, and how it numbers slips. Pure.
// A number (nosso número) is here the digits that are ours to give, filled up with zeros; what the bank adds to them, it adds here. Source: the banks' manuals.

import { elevenDigit, elevenRest, tenDigit, weightedSum } from '../../../contract/checkDigits.ts'

/** An account as the bank's contract names it, all of digits and as long as the bank's `lengths` say. */
export type BankAccount = {
  readonly agency: string
  readonly account: string
  /** May be a letter. */
  readonly accountDigit: string
  /** Carteira. */
  readonly wallet: string
  /** Convênio, or the code of the beneficiary. */
  readonly agreement: string
}

export type Bank = {
  /** In clearing. */
  readonly code: string
  /** Printed beside the code. */
  readonly digit: string
  readonly name: string
  /** What the bank needs of an account, and how many digits it may have. */
  readonly lengths: Readonly<Partial<Record<keyof BankAccount, readonly number[]>>>
  /** Of files of CNAB 400; 240 is every bank's. */
  hasCnab400(account: BankAccount): boolean
  /** Centavos, where it is less than a barcode holds. */
  readonly amountMost?: number
  /** Of the digits that are ours. */
  numberLength(account: BankAccount): number
  /** All that stands for the slip in files of the bank, without the check digit. */
  fullNumber(account: BankAccount, number: string): string
  /** What stands before it in the twenty columns of CNAB 240, and whether its digit stands behind it. */
  inFile(account: BankAccount): { readonly before: string; readonly withDigit: boolean }
  /** May be a letter. */
  numberDigit(account: BankAccount, number: string): string
  /** The 25 digits. `document` is the merchant's own number, which some wallets of Itaú hold. */
  freeField(account: BankAccount, number: string, document?: string): string
  /** As slips show it. */
  showNumber(account: BankAccount, number: string): string
  /** Agência / código do beneficiário, as slips show it. */
  showAccount(account: BankAccount): string
}

const accountWithDigit = ({ agency, account, accountDigit }: BankAccount): string => `${agency}/${account}-${accountDigit}`

// ---- Itaú

/** Their digit is over wallet and number alone. */
const withoutAccount = new Set(['112', '126', '131', '146', '150', '168'])
/** They hold the merchant's own number and the code of the client. */
const withDocument = new Set(['106', '107', '122', '142', '143', '195', '196', '198'])

const itau: Bank = {
  code: '341',
  digit: '7',
  name: 'Banco Itaú S.A.',
  lengths: { agency: [4], account: [5], accountDigit: [1], wallet: [3] },
  hasCnab400: () => true,
  numberLength: () => 8,
  fullNumber: (_, number) => number,
  inFile: ({ wallet }) => ({ before: wallet, withDigit: true }),
  numberDigit: ({ agency, account, wallet }, number) =>
    tenDigit((withoutAccount.has(wallet) ? '' : agency + account) + wallet + number),
  freeField(one, number, document = number) {
    const { agency, account, wallet, agreement } = one
    if (!withDocument.has(wallet))
      return `${wallet}${number}${itau.numberDigit(one, number)}${agency}${account}${tenDigit(agency + account)}000`
    const own = wallet + number + document.slice(-7).padStart(7, '0') + agreement
    return `${own}${tenDigit(own)}0`
  },
  showNumber: (one, number) => `${one.wallet}/${number}-${itau.numberDigit(one, number)}`,
  showAccount: accountWithDigit,
}

// ---- Banco do Brasil

/** By the length of the agreement: 17 digits with one of seven, else 11; an agreement of six may number freely in wallet 21. */
const isFree = ({ agreement, wallet }: BankAccount): boolean => agreement.length === 6 && wallet === '21'

const brasil: Bank = {
  code: '001',
  digit: '9',
  name: 'Banco do Brasil S.A.',
  lengths: { agency: [4], account: [8], wallet: [2], agreement: [4, 6, 7] },
  hasCnab400: ({ agreement }) => agreement.length === 7,
  numberLength: one => (isFree(one) ? 17 : (one.agreement.length === 7 ? 17 : 11) - one.agreement.length),
  fullNumber: (one, number) => (isFree(one) ? number : one.agreement + number),
  inFile: one => ({ before: isFree(one) ? '' : one.agreement, withDigit: !isFree(one) && one.agreement.length < 7 }),
  numberDigit(one, number) {
    const rest = weightedSum(brasil.fullNumber(one, number), [9, 8, 7, 6, 5, 4, 3, 2]) % 11
    return rest === 10 ? 'X' : String(rest)
  },
  freeField(one, number) {
    const { agency, account, wallet, agreement } = one
    const full = brasil.fullNumber(one, number)
    if (isFree(one)) return agreement + full + wallet
    return (full.length === 17 ? `000000${full}` : full + agency + account) + wallet
  },
  showNumber: (one, number) => {
    const full = brasil.fullNumber(one, number)
    return full.length === 17 ? full : `${full}-${brasil.numberDigit(one, number)}`
  },
  showAccount: accountWithDigit,
}

// ---- Bradesco

const bradesco: Bank = {
  code: '237',
  digit: '2',
  name: 'Banco Bradesco S.A.',
  lengths: { agency: [4], account: [7], wallet: [2] },
  hasCnab400: ({ agreement }) => agreement !== '', // its headers name nothing else
  numberLength: () => 11,
  fullNumber: (_, number) => number,
  inFile: ({ wallet }) => ({ before: `0${wallet}00000`, withDigit: true }),
  numberDigit({ wallet }, number) {
    const rest = elevenRest(wallet + number, 7)
    return rest === 10 ? 'P' : String(rest % 11)
  },
  freeField: ({ agency, account, wallet }, number) => `${agency}${wallet}${number}${account}0`,
  showNumber: (one, number) => `${one.wallet}/${number}-${bradesco.numberDigit(one, number)}`,
  showAccount: accountWithDigit,
}

// ---- Santander

const santander: Bank = {
  code: '033',
  digit: '7',
  name: 'Banco Santander (Brasil) S.A.',
  lengths: { agency: [4], wallet: [3], agreement: [7] },
  hasCnab400: () => false,
  numberLength: () => 12,
  fullNumber: (_, number) => number,
  inFile: () => ({ before: '', withDigit: true }),
  numberDigit: (_, number) => elevenDigit(number),
  freeField: (one, number) => `9${one.agreement}${number}${santander.numberDigit(one, number)}0${one.wallet}`,
  showNumber: (one, number) => `${number}-${santander.numberDigit(one, number)}`,
  showAccount: ({ agency, agreement }) => `${agency}/${agreement}`,
}

// ---- Caixa

/** Registered, and issued by the beneficiary. */
const caixaKind = '14'
/** Codes of seven digits have no digit of their own. */
const beneficiaryOf = ({ agreement }: BankAccount): string =>
  agreement.length === 7 ? agreement : agreement + elevenDigit(agreement)

const caixa: Bank = {
  code: '104',
  digit: '0',
  name: 'Caixa Econômica Federal',
  lengths: { agency: [4], agreement: [6, 7] },
  hasCnab400: () => false,
  amountMost: 999_999_999,
  numberLength: () => 15,
  fullNumber: (_, number) => caixaKind + number,
  inFile: () => ({ before: caixaKind, withDigit: false }),
  numberDigit: (_, number) => elevenDigit(caixaKind + number),
  freeField(one, number) {
    const own = `${beneficiaryOf(one)}${number.slice(0, 3)}1${number.slice(3, 6)}4${number.slice(6)}`
    return own + elevenDigit(own)
  },
  showNumber: (one, number) => `${caixaKind}${number}-${caixa.numberDigit(one, number)}`,
  showAccount: one => `${one.agency}/${beneficiaryOf(one).slice(0, -1)}-${beneficiaryOf(one).at(-1)}`,
}

/** Code in clearing → bank. */
export const banks: ReadonlyMap<string, Bank> = new Map([itau, brasil, bradesco, santander, caixa].map(one => [one.code, one]))
