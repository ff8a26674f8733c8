// Where the money of a refund goes: merchantMemo is a free text, and is read only where it can mean one thing. Everything else is for a person to read. Pure.

import { isClabe } from '../../contract/clabe.ts'
import { readTaxId } from '../../contract/taxId.ts'

/** An account in Brazil, or one in Mexico by its CLABE. */
export type BankDetails = { readonly holder: string } & (
  | {
      /** CPF or CNPJ without signs. */
      readonly taxId: string
      /** In clearing, 3 digits. */
      readonly bank: string
      readonly agency: string
      readonly agencyDigit: string
      readonly account: string
      /** May be a letter. */
      readonly accountDigit: string
    }
  | { readonly clabe: string }
)

/**
 * `João da Silva; 111.444.777-35; Banco Itaú; 1234; 56789-0` (name, tax id, bank, agency, account, in this order), or the five with their names in any order
 * (`nome: …; CPF: …`), between semicolons, bars, line ends or commas. Of Mexico a name and a CLABE. Undefined where anything is missing, left over or wrong, or
 * the account is in a country of another currency: no file of a bank could carry it.
 */
export function readBankDetails(text: string, currency: string): BankDetails | undefined {
  const parts = partsOf(text)
  if (parts?.some(part => part.length > labelMost + detailMost)) return undefined
  const fields = parts && (named(parts) ?? inOrder(parts))
  if (!fields) return undefined
  const found = checkBankDetails(fields)
  return 'wrong' in found || fields.has('clabe') !== (currency === 'MXN') ? undefined : found
}

/** What each country asks for; a CLABE says the rest itself. */
export const detailsAsked = {
  BRL: ['holder', 'taxId', 'bank', 'agency', 'account'],
  MXN: ['holder', 'clabe'],
} as const satisfies Readonly<Record<string, readonly BankDetail[]>>

/** In characters: of what stands in a field, the longest of which is a name, and of the label before it. Nobody writes more, and no pattern below sees more. */
const detailMost = 100
const labelMost = 44

/** Of the fields of one country, no other among them; or which of them are missing or cannot be. */
export function checkBankDetails(
  fields: ReadonlyMap<BankDetail, string>,
): BankDetails | { readonly wrong: readonly BankDetail[] } {
  const asked: readonly BankDetail[] = fields.has('clabe') ? detailsAsked.MXN : detailsAsked.BRL
  const strange = [...fields.keys()].filter(name => !asked.includes(name))
  const given = (name: BankDetail) => {
    const value = fields.get(name) ?? ''
    return value.length > detailMost ? '' : value // as good as missing, under its name
  }
  const holder = given('holder')
  const isHolder = /^\p{L}[\p{L}\p{M} .'’-]{1,99}$/u.test(holder)
  if (fields.has('clabe')) {
    const clabe = given('clabe').replace(/ /g, '')
    const wrong = [...strange, ...(isHolder ? [] : ['holder' as const]), ...(isClabe(clabe) ? [] : ['clabe' as const])]
    return wrong.length > 0 ? { wrong } : { holder, clabe }
  }
  const taxId = readTaxId(given('taxId').toUpperCase())
  const bank = bankOf(given('bank'))
  const [, agency, agencyDigit = ''] = /^(\d{1,5})(?:-([\dX]))?$/i.exec(given('agency')) ?? []
  // Without its hyphen nobody knows whether the last digit is the check digit.
  const [, account, accountDigit] = /^(\d{1,12})-([\dXP])$/i.exec(given('account').replace(/[. ]/g, '')) ?? []
  if (strange.length > 0 || !isHolder || !taxId || bank === undefined || agency === undefined || account === undefined) {
    const parts = { holder: isHolder, taxId, bank, agency, account }
    return { wrong: [...strange, ...detailsAsked.BRL.filter(name => parts[name] === undefined || parts[name] === false)] }
  }
  return {
    holder,
    taxId: taxId.id,
    bank,
    agency,
    agencyDigit: agencyDigit.toUpperCase(),
    account,
    accountDigit: accountDigit!.toUpperCase(),
  }
}

export type BankDetail = 'holder' | 'taxId' | 'bank' | 'agency' | 'account' | 'clabe'

const labels: Readonly<Record<BankDetail, string>> = {
  holder: 'nome name titular holder favorecido beneficiario nombre accountholder nomedotitular',
  taxId: 'cpf cnpj cpfcnpj cnpjcpf taxid documento document',
  bank: 'banco bank bankname nomedobanco codigodobanco',
  agency: 'agencia agency branch ag agencynumber',
  account: 'conta contacorrente account accountnumber cc cuenta numerodaconta',
  clabe: 'clabe',
}
const fieldOfLabel = new Map(
  Object.entries(labels).flatMap(([field, words]) => words.split(' ').map(word => [word, field as BankDetail])),
)

/** Letters alone, without marks, small. */
const plainLetters = (text: string): string =>
  text
    .normalize('NFD')
    .replace(/[^\p{L}]/gu, '')
    .toLowerCase()

/** Undefined where there is nothing to tell them apart by. */
function partsOf(text: string): string[] | undefined {
  if (/[\p{Cf}]/u.test(text)) return undefined // what is read and what is seen shall be the same
  const split = [/[;|\n\v\f\r\u0085\u2028\u2029]+/, /,/].map(by => text.split(by)).find(found => found.length > 1)
  return split?.map(part => part.trim()).filter(part => part !== '')
}

/** Each part says what it is, each once. */
function named(parts: readonly string[]): ReadonlyMap<BankDetail, string> | undefined {
  const found = parts.map(part => /^([\p{L}\p{M} ./]{1,40})[:=](.+)$/u.exec(part))
  const entries = found.flatMap(one => {
    const field = one && fieldOfLabel.get(plainLetters(one[1]!))
    return field ? [[field, one[2]!.trim()] as const] : []
  })
  const fields = new Map(entries)
  return entries.length === parts.length && fields.size === parts.length ? fields : undefined
}

const orders: Readonly<Record<number, readonly BankDetail[]>> = {
  2: detailsAsked.MXN,
  5: detailsAsked.BRL,
}

function inOrder(parts: readonly string[]): ReadonlyMap<BankDetail, string> | undefined {
  const order = orders[parts.length]
  return order && new Map(order.map((field, at) => [field, withoutLabel(parts[at]!, field)]))
}

/** `CPF 111.444.777-35`, where a tax id is to stand. */
function withoutLabel(part: string, field: BankDetail): string {
  const [, label, number] = /^([\p{L}\p{M}./ ]{2,40}?)\.?[:=]? *(\d.*)$/u.exec(part) ?? []
  return label !== undefined && fieldOfLabel.get(plainLetters(label)) === field ? number! : part
}

/** Names as people write them, without "banco". */
const bankNames: Readonly<Record<string, string>> = {
  dobrasil: '001',
  brasil: '001',
  bb: '001',
  santander: '033',
  santanderbrasil: '033',
  banrisul: '041',
  inter: '077',
  caixa: '104',
  caixaeconomicafederal: '104',
  cef: '104',
  btgpactual: '208',
  bradesco: '237',
  nubank: '260',
  nupagamentos: '260',
  pagseguro: '290',
  pagbank: '290',
  mercadopago: '323',
  csix: '336',
  itau: '341',
  itauunibanco: '341',
  safra: '422',
  sicredi: '748',
  sicoob: '756',
}

/** By its code, its name, or both where they agree. */
function bankOf(text: string): string | undefined {
  const code = /^\d{3}/.exec(text)?.[0]
  const rest = code === undefined ? text : text.slice(code.length)
  if (code !== undefined && /\d/.test(rest)) return undefined
  const name = plainLetters(rest.replace(/\bC6\b/i, 'csix')).replace(/^banco|bank$|sa$/g, '')
  if (name === '') return code
  const byName = Object.hasOwn(bankNames, name)
    ? bankNames[name]
    : Object.hasOwn(bankNames, `${name}bank`)
      ? bankNames[`${name}bank`]
      : undefined
  return code === undefined || code === byName ? byName : undefined
}
