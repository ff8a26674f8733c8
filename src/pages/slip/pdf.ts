// A slip on paper, as a PDF of one page. Of banks: the payer's receipt above, the clearing slip below, with bars of the exact size (103 × 13 mm) drawn as
// vectors. Of stores: one voucher. Sources: the slip specifications of the banks, Lei 12.039/2009.

import { othersTurn } from '../../clearing/steps.ts'
import type { BankSlipAccount, ChainSlipAccount } from '../../connectors/slips/accounts.ts'
import type { Clock } from '../../platform/clock.ts'
import { leastFirst } from '../../platform/database/turns.ts'
import { moneyText } from '../languages/languages.ts'
import { darkRuns, qrModules } from '../qrCode.ts'
import { barPlaces, barsOf, modulesOf, type Symbology } from './bars.ts'
import { dayText } from './page.ts'
import { filledIn, slipLanguage } from './texts.ts'
import { groupsOf, type SlipView, writtenPostcode, writtenTaxId } from './view.ts'

/** The library is large, and loaded when the first one is drawn. */
const library = async () => (await import('pdfkit')).default
type Document = PDFKit.PDFDocument
type Writing = { readonly bold?: boolean; readonly align?: 'left' | 'center' | 'right'; readonly lines?: number }
type Box = readonly [label: string, value: string, width: number]
type BankView = SlipView & { readonly account: BankSlipAccount }
type StoreView = SlipView & { readonly account: ChainSlipAccount }

const mm = 72 / 25.4
const [left, width] = [10, 190]

/**
 * Draws a slip for somebody of a network. One is drawn at a time, and everybody else has a turn before it: it takes some milliseconds, most of them for the widths of
 * letters. Networks come one after the other, and in each other turn the one that has had least. Throws NoTurn when others have not ended in time.
 */
export type DrawSlip = (network: string, view: SlipView) => Promise<Buffer>

export function slipPapers(clock: Clock): DrawSlip {
  const turns = leastFirst(clock, 30, 1, { cost: () => 1, abreast: 1 })
  return (network, view) => turns(network, () => othersTurn().then(() => draw(view)))
}

async function draw(view: SlipView): Promise<Buffer> {
  const { account } = view
  const { texts } = slipLanguage(undefined, account.country)
  const PDFDocument = await library()
  const document = new PDFDocument({
    size: 'A4',
    margin: 0,
    info: { Title: texts.title, CreationDate: new Date(view.slip.issuedAt) },
  })
  const chunks: Buffer[] = []
  const ended = new Promise<void>((resolve, reject) => {
    document.on('data', (chunk: Buffer) => chunks.push(chunk))
    document.on('end', resolve)
    document.on('error', reject)
  })
  if (view.isTest) say(document, texts.testNotice, left, 8, width, 11, { bold: true, align: 'center' })
  if (account.kind === 'bank') bankSlip(document, { ...view, account })
  else storeSlip(document, { ...view, account })
  document.end()
  await ended
  return Buffer.concat(chunks)
}

const dayOnSlip = (day: string): string => day.split('-').reverse().join('/')
const money = ({ slip: { amount, currency } }: SlipView, locale: string): string =>
  moneyText(locale, amount, currency).replace(/\u00a0/g, ' ')

function bankSlip(document: Document, view: BankView): void {
  const { account, shop, product, slip, number } = view
  const { bank, beneficiary } = account
  const place = `${beneficiary.street}, ${beneficiary.city} ${beneficiary.state}, CEP ${writtenPostcode(beneficiary.postcode)}`
  const receiver = `${beneficiary.name}  CNPJ/CPF ${beneficiary.taxId}`
  const [due, issued, amount] = [dayOnSlip(slip.dueOn), dayOnSlip(view.issuedOn), money(view, 'pt-BR')]
  const bought = [`Referente a ${shop.name}`, product].filter(Boolean).join(' – ')
  say(document, 'Recibo do Pagador', left, 18, width, 9, { align: 'right' })
  // biome-ignore format: one line a row of the slip
  rows(document, heading(document, view, 22), [
    [['Beneficiário', receiver, 190]],
    [['Endereço do beneficiário', place, 190]],
    [['Pagador', payerLine(view), 190]],
    [['Nosso número', number, 50], ['Nº do documento', slip.document, 50], ['Vencimento', due, 40], ['Valor do documento', amount, 50]],
    [['Demonstrativo', bought, 190]],
  ])
  document
    .moveTo(left * mm, 186 * mm)
    .lineTo((left + width) * mm, 186 * mm)
    .dash(3, { space: 3 })
    .lineWidth(0.5)
    .stroke()
    .undash()
  // biome-ignore format: one line a row of the slip
  const end = rows(document, heading(document, view, 190), [
    [['Local de pagamento', 'Pagável em qualquer banco', 140], ['Vencimento', due, 50]],
    [['Beneficiário', receiver, 140], ['Agência/Código do beneficiário', bank.showAccount(account), 50]],
    [['Data do documento', issued, 30], ['Nº do documento', slip.document, 50], ['Espécie doc.', 'DS', 18], ['Aceite', 'N', 12], ['Data processamento', issued, 30], ['Nosso número', number, 50]],
    [['Uso do banco', '', 40], ['Carteira', account.wallet, 20], ['Espécie moeda', 'R$', 25], ['Quantidade', '', 25], ['Valor', '', 30], ['(=) Valor do documento', amount, 50]],
  ])
  const payments = [
    '(-) Desconto/Abatimento',
    '(-) Outras deduções',
    '(+) Mora/Multa',
    '(+) Outros acréscimos',
    '(=) Valor cobrado',
  ]
  for (const [at, label] of payments.entries()) box(document, left + 140, end + at * 7, [label, '', 50])
  frame(document, left, end, 140, 35)
  say(document, 'Instruções (texto de responsabilidade do beneficiário)', left + 1, end + 1, 138, 6)
  say(document, `${bought}.\nDepois do vencimento, consulte a loja antes de pagar.`, left + 1, end + 5, 105, 9, { lines: 5 })
  if (view.pix !== undefined) drawCode(document, view.pix, left + 110, end + 6, 24)
  frame(document, left, end + 35, width, 12)
  say(document, 'Pagador', left + 1, end + 36, 40, 6)
  say(document, payerLine(view), left + 1, end + 39, width - 2, 8, { lines: 2 })
  // The middle of the bars is at least 12 mm above the lower edge, and 5 mm of white are before them.
  bars(document, 'interleaved2of5', slip.barcode, left + 5, end + 49, 103, 13)
  say(document, 'Autenticação mecânica – Ficha de Compensação', left + 120, end + 49, 70, 7, { align: 'right' })
}

function payerLine({ payer: { name, taxId, street, city, state, postcode } }: SlipView): string {
  const id = taxId ? `  CPF/CNPJ ${writtenTaxId(taxId.id)}` : ''
  return `${name}${id}  ${street}, ${city} ${state}, CEP ${writtenPostcode(postcode)}`
}

/** Bank, its code between rules, and the line that people type, with digits 3.5 mm high. Returns where the boxes begin. */
function heading(document: Document, { account: { bank }, slip }: BankView, top: number): number {
  say(document, bank.name, left, top + 1, 22, 8, { bold: true, lines: 2 })
  say(document, `${bank.code}-${bank.digit}`, left + 23, top + 2, 18, 14, { bold: true, align: 'center' })
  for (const at of [23, 41])
    document
      .moveTo((left + at) * mm, top * mm)
      .lineTo((left + at) * mm, (top + 9) * mm)
      .lineWidth(1)
      .stroke()
  say(document, slip.line, left + 42, top + 2, width - 42, 14.2, { align: 'right' })
  return top + 9
}

function rows(document: Document, top: number, lines: readonly (readonly Box[])[]): number {
  lines.forEach((line, row) => {
    let at = left
    for (const one of line) {
      box(document, at, top + row * 7, one)
      at += one[2]
    }
  })
  return top + lines.length * 7
}

function box(document: Document, at: number, top: number, [label, value, wide]: Box): void {
  frame(document, at, top, wide, 7)
  say(document, label, at + 1, top + 0.7, wide - 2, 6)
  say(document, value, at + 1, top + 3, wide - 2, 8.5)
}

function storeSlip(document: Document, view: StoreView): void {
  const { account, slip, shop, payer, product } = view
  const { texts, language } = slipLanguage(undefined, account.country)
  say(document, account.title, left, 20, width, 22, { bold: true })
  say(document, `${shop.name}${product === undefined ? '' : ` – ${product}`}`, left, 32, width, 12)
  say(document, filledIn(texts.payable, { date: dayText(slip.dueOn, language.locale) }), left, 44, width, 12, { bold: true })
  say(document, `${language.texts.amount}: ${money(view, language.locale)} ${slip.currency}`, left, 52, width, 16, {
    bold: true,
  })
  say(document, `${texts.reference}: ${groupsOf(slip.line)}`, left, 64, width, 14, { bold: true })
  say(document, `${texts.payer}: ${payer.name}`, left, 74, width, 10)
  bars(document, 'code128', slip.barcode, left + 5, 86, 103, 20)
  say(document, groupsOf(slip.barcode), left + 5, 108, 103, 9, { align: 'center' })
  say(document, texts.payableStoreText, left, 118, width, 10, { lines: 3 })
}

/** Filled rectangles, so that a printer of any kind keeps their size. */
function bars(document: Document, kind: Symbology, digits: string, at: number, top: number, wide: number, high: number): void {
  const drawn = barsOf(kind, digits)
  const module = (wide * mm) / modulesOf(drawn)
  for (const [from, modules] of barPlaces(drawn)) document.rect(at * mm + from * module, top * mm, modules * module, high * mm)
  document.fill('#000')
}

/** The modules of the code, as vectors too. */
function drawCode(document: Document, text: string, at: number, top: number, wide: number): void {
  const code = qrModules(text)
  const module = (wide * mm) / code.size
  for (const [from, down, modules] of darkRuns(code))
    document.rect(at * mm + from * module, top * mm + down * module, modules * module, module)
  document.fill('#000')
}

const frame = (document: Document, at: number, top: number, wide: number, high: number): void =>
  void document
    .rect(at * mm, top * mm, wide * mm, high * mm)
    .lineWidth(0.5)
    .stroke('#000')

/** What does not fit on its lines is cut. */
function say(document: Document, text: string, at: number, top: number, wide: number, size: number, how: Writing = {}): void {
  const { bold = false, align = 'left', lines = 1 } = how
  document
    .font(bold ? 'Helvetica-Bold' : 'Helvetica')
    .fontSize(size)
    .fillColor('#000')
    .text(text, at * mm, top * mm, { width: wide * mm, align, height: size * (1.25 * lines - 0.2), ellipsis: true })
}
