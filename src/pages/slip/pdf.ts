// A slip on paper, as a PDF of one page. Of banks: the payer's receipt above, the clearing slip below, with bars of the exact size (103 × 13 mm) drawn as
// vectors. Of stores: one voucher. Sources: the slip specifications of the banks, Lei 12.039/2009.

import type { BankSlipAccount, ChainSlipAccount } from '../../connectors/slips/accounts.ts'
import { qrCode } from '../form/code.ts'
import type { Html } from '../html.ts'
import { languages, moneyText } from '../languages/languages.ts'
import { barPlaces, barsOf, modulesOf, type Symbology } from './bars.ts'
import { dayText } from './page.ts'
import { filled, slipLanguage } from './texts.ts'
import { groupsOf, type SlipView, writtenPostcode, writtenTaxId } from './view.ts'

/** The library is large, and loaded when the first one is drawn. */
const library = async () => (await import('pdfkit')).default
type Document = PDFKit.PDFDocument
type Box = readonly [label: string, value: string, width: number]
type BankView = SlipView & { readonly account: BankSlipAccount }
type StoreView = SlipView & { readonly account: ChainSlipAccount }

const mm = 72 / 25.4
const [left, width] = [15, 180]

export async function slipPdf(view: SlipView): Promise<Buffer> {
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
  const code = view.pix === undefined ? undefined : await qrCode(view.pix)
  if (account.kind === 'bank') bankSlip(document, { ...view, account }, code)
  else storeSlip(document, { ...view, account })
  document.end()
  await ended
  return Buffer.concat(chunks)
}

const dayOnSlip = (day: string): string => day.split('-').reverse().join('/')
const money = ({ slip: { amount, currency } }: SlipView, locale: string): string =>
  moneyText(locale, amount, currency).replace(/\u00a0/g, ' ')

function bankSlip(document: Document, view: BankView, code: Html | undefined): void {
  const { account, shop, product } = view
  const { bank, beneficiary } = account
  const place = `${beneficiary.street}, ${beneficiary.city} ${beneficiary.state}, CEP ${writtenPostcode(beneficiary.postcode)}`
  const receiver = `${beneficiary.name}  CNPJ/CPF ${beneficiary.taxId}`
  say(document, 'Recibo do Pagador', left, 18, width, 9, { align: 'right' })
  const top = heading(document, view, 22)
  rows(document, top, [
    [['Beneficiário', receiver, 180]],
    [['Endereço do beneficiário', place, 180]],
    [['Pagador', payerLine(view), 180]],
    [
      ['Nosso número', view.number, 45],
      ['Nº do documento', view.slip.document, 45],
      ['Vencimento', dayOnSlip(view.slip.dueOn), 45],
      ['Valor do documento', money(view, 'pt-BR'), 45],
    ],
    [['Referente a', [shop.name, product].filter(Boolean).join(' – '), 180]],
  ])
  document
    .moveTo(left * mm, 148 * mm)
    .lineTo((left + width) * mm, 148 * mm)
    .dash(3, { space: 3 })
    .lineWidth(0.5)
    .stroke()
    .undash()
  const from = heading(document, view, 165)
  const due: Box = ['Vencimento', dayOnSlip(view.slip.dueOn), 50]
  const end = rows(document, from, [
    [['Local de pagamento', 'Pagável em qualquer banco', 130], due],
    [
      ['Beneficiário', receiver, 130],
      ['Agência/Código do beneficiário', bank.showAccount(account), 50],
    ],
    [
      ['Data do documento', dayOnSlip(view.issuedOn), 30],
      ['Nº do documento', view.slip.document, 40],
      ['Espécie doc.', 'DS', 18],
      ['Aceite', 'N', 12],
      ['Data processamento', dayOnSlip(view.issuedOn), 30],
      ['Nosso número', view.number, 50],
    ],
    [
      ['Uso do banco', '', 30],
      ['Carteira', account.wallet, 20],
      ['Espécie moeda', 'R$', 25],
      ['Quantidade', '', 25],
      ['Valor', '', 30],
      ['(=) Valor do documento', money(view, 'pt-BR'), 50],
    ],
  ])
  const payments = [
    '(-) Desconto/Abatimento',
    '(-) Outras deduções',
    '(+) Mora/Multa',
    '(+) Outros acréscimos',
    '(=) Valor cobrado',
  ]
  for (const [at, label] of payments.entries()) box(document, left + 130, end + at * 7, [label, '', 50])
  frame(document, left, end, 130, 35)
  say(document, 'Instruções (texto de responsabilidade do beneficiário)', left + 1, end + 1, 128, 6)
  say(
    document,
    [`Referente a ${shop.name}.`, product, 'Após o vencimento, consulte a loja antes de pagar.'].filter(Boolean).join('\n'),
    left + 1,
    end + 5,
    90,
    9,
  )
  if (code) drawCode(document, code, left + 102, end + 6, 24)
  frame(document, left, end + 35, width, 12)
  say(document, 'Pagador', left + 1, end + 36, 40, 6)
  say(document, payerLine(view), left + 1, end + 39, width - 2, 8)
  // The middle of the bars is at least 12 mm above the lower edge, and 5 mm of white are before them.
  bars(document, 'interleaved2of5', view.slip.barcode, left + 5, end + 49, 103, 13)
  say(document, 'Autenticação mecânica – Ficha de Compensação', left + 110, end + 49, 70, 7, { align: 'right' })
}

function payerLine({ payer: { name, taxId, street, city, state, postcode } }: SlipView): string {
  const id = taxId ? `  CPF/CNPJ ${writtenTaxId(taxId.id)}` : ''
  return `${name}${id}  ${street}, ${city} ${state}, CEP ${writtenPostcode(postcode)}`
}

/** Bank, its code between rules, and the line that people type. Returns where the boxes begin. */
function heading(document: Document, { account: { bank }, slip }: BankView, top: number): number {
  say(document, bank.name, left, top + 3, 48, 10, { bold: true })
  say(document, `${bank.code}-${bank.digit}`, left + 50, top + 1.5, 20, 16, { bold: true, align: 'center' })
  for (const at of [49, 71])
    document
      .moveTo((left + at) * mm, top * mm)
      .lineTo((left + at) * mm, (top + 9) * mm)
      .lineWidth(1)
      .stroke()
  say(document, slip.line, left + 72, top + 2.5, width - 72, 11.5, { bold: true, align: 'right' })
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
  say(document, filled(texts.payable, { date: dayText(slip.dueOn, language.locale) }), left, 44, width, 12, { bold: true })
  say(document, `${languages.get('es')!.texts.amount}: ${money(view, language.locale)} ${slip.currency}`, left, 52, width, 16, {
    bold: true,
  })
  say(document, `${texts.reference}: ${groupsOf(slip.line)}`, left, 64, width, 14, { bold: true })
  say(document, `${texts.payer}: ${payer.name}`, left, 74, width, 10)
  bars(document, 'code128', slip.barcode, left + 5, 86, 103, 20)
  say(document, groupsOf(slip.barcode), left + 5, 108, 103, 9, { align: 'center' })
  say(document, texts.payableStoreText, left, 118, width, 10)
}

/** Filled rectangles, so that a printer of any kind keeps their size. */
function bars(document: Document, kind: Symbology, digits: string, at: number, top: number, wide: number, high: number): void {
  const drawn = barsOf(kind, digits)
  const module = (wide * mm) / modulesOf(drawn)
  for (const [from, modules] of barPlaces(drawn)) document.rect(at * mm + from * module, top * mm, modules * module, high * mm)
  document.fill('#000')
}

/** The squares of the image, as vectors too. */
function drawCode(document: Document, { html }: Html, at: number, top: number, wide: number): void {
  const size = Number(/viewBox="0 0 (\d+)/.exec(html)![1])
  document
    .save()
    .translate(at * mm, top * mm)
    .scale((wide * mm) / size)
  for (const [, path] of html.matchAll(/ d="([^"]+)"/g)) document.path(path!).fill('#000')
  document.restore()
}

const frame = (document: Document, at: number, top: number, wide: number, high: number): void =>
  void document
    .rect(at * mm, top * mm, wide * mm, high * mm)
    .lineWidth(0.5)
    .stroke('#000')

/** On one line where it fits, else on those that there is room for. */
function say(
  document: Document,
  text: string,
  at: number,
  top: number,
  wide: number,
  size: number,
  { bold = false, align = 'left' }: { readonly bold?: boolean; readonly align?: 'left' | 'center' | 'right' } = {},
): void {
  document
    .font(bold ? 'Helvetica-Bold' : 'Helvetica')
    .fontSize(size)
    .fillColor('#000')
    .text(text, at * mm, top * mm, { width: wide * mm, align, lineBreak: true, height: size * 3, ellipsis: true })
}
