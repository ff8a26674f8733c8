// Brands as shoppers know them, and the marks that stand for them. The brands' own pictures are not ours to ship: a mark is the name on a plain ground.

import { type Html, html } from '../html.ts'

type Row = readonly [name: string, title: string, ground: string, ...lines: string[]]

// In the order in which they are shown where nobody chose one.
// biome-ignore format: one line a brand
const rows: readonly Row[] = [
  ['VISA',               'Visa',             '#1b3a8f', 'VISA'],
  ['MASTER',             'Mastercard',       '#3b2a2a', 'Master', 'card'],
  ['AMEX',               'American Express', '#0a5f8f', 'AMEX'],
  ['MAESTRO',            'Maestro',          '#0b4f8a', 'maestro'],
  ['DINERS',             'Diners Club',      '#3a4654', 'Diners', 'Club'],
  ['DISCOVER',           'Discover',         '#8a3d0c', 'Discover'],
  ['JCB',                'JCB',              '#14532d', 'JCB'],
  ['VISAELECTRON',       'Visa Electron',    '#1b3a8f', 'VISA', 'Electron'],
  ['VISADEBIT',          'Visa Debit',       '#1b3a8f', 'VISA', 'Debit'],
  ['VPAY',               'V PAY',            '#1b3a8f', 'V PAY'],
  ['MASTERDEBIT',        'Debit Mastercard', '#3b2a2a', 'Master', 'Debit'],
  ['MADA',               'mada',             '#1f5b3a', 'mada'],
  ['ELO',                'Elo',              '#1f2430', 'elo'],
  ['HIPERCARD',          'Hipercard',        '#8f1616', 'Hiper', 'card'],
  ['HIPER',              'Hiper',            '#8f4a0c', 'Hiper'],
  ['CARTEBLEUE',         'Carte Bleue',      '#174a8c', 'Carte', 'Bleue'],
  ['CARTEBANCAIRE',      'Cartes Bancaires', '#0e4c6b', 'CB'],
  ['DANKORT',            'Dankort',          '#8f1616', 'Dankort'],
  ['ASYACARD',           'AsyaCard',         '#1f5b3a', 'Asya', 'Card'],
  ['AXESS',              'Axess',            '#4a3a10', 'axess'],
  ['BONUS',              'Bonus',            '#14532d', 'bonus'],
  ['WORLD',              'World',            '#4a2a6b', 'world'],
  ['PAYPAL',             'PayPal',           '#12376b', 'PayPal'],
  ['SOFORTUEBERWEISUNG', 'Sofort',           '#6b2a4d', 'Sofort'],
  ['GIROPAY',            'giropay',          '#0e3f73', 'giro', 'pay'],
  ['EPS',                'EPS',              '#6b1f3a', 'eps'],
  ['IDEAL',              'iDEAL',            '#7a1f55', 'iDEAL'],
  ['BANCONTACT',         'Bancontact',       '#0e4c6b', 'Ban', 'contact'],
  ['KLARNA_INVOICE',     'Klarna',           '#5c2438', 'Klarna'],
  ['PAYSAFECARD',        'paysafecard',      '#0e3f73', 'paysafe', 'card'],
  ['PRZELEWY',           'Przelewy24',       '#8f1616', 'P24'],
  ['TRUSTLY',            'Trustly',          '#14532d', 'Trustly'],
  ['BOLETO',             'Boleto',           '#1f2430', 'Boleto'],
  ['OXXO',               'OXXO',             '#8f1616', 'OXXO'],
  ['CHINAUNIONPAY',      'UnionPay',         '#0e4c6b', 'Union', 'Pay'],
  ['ALIPAY',             'Alipay',           '#0e3f8a', 'Alipay'],
  ['DIRECTDEBIT_SEPA',   'SEPA',             '#12376b', 'SEPA'],
  ['MULTIBANCO',         'Multibanco',       '#12376b', 'MB'],
  ['MBWAY',              'MB WAY',           '#8f1616', 'MB', 'WAY'],
]

const byName = new Map(rows.map(row => [row[0], row]))

/** `EPS_TRANSFER` → `Eps transfer`, for brands of an operator's own. */
const spelled = (name: string): string => `${name[0]}${name.slice(1).toLowerCase().replaceAll('_', ' ')}`

/** What nobody knows comes last. */
export const brandPlace = (name: string): number => {
  const at = rows.findIndex(([known]) => known === name)
  return at < 0 ? rows.length : at
}

export const brandTitle = (name: string): string => byName.get(name)?.[1] ?? spelled(name)

/** A mark of 40 to 26; a screen reader reads the brand's name, unless that stands beside it already. */
export function brandMark(name: string, more?: Html): Html {
  const [, title = spelled(name), ground = '#3a4654', ...lines] = byName.get(name) ?? []
  const words = lines.length > 0 ? lines : [spelled(name).slice(0, 10)]
  const size = words.length > 1 ? 8.5 : 11
  return html`<svg xmlns="http://www.w3.org/2000/svg" class="mark" viewBox="0 0 40 26" width="40" height="26" role="img" aria-label="${title}"${more}>
<rect width="40" height="26" rx="4" fill="${ground}"/>
${words.map((word, at) => line(word, size, words.length > 1 ? 11.2 + at * 8.6 : 16.8))}
</svg>`
}

/** Words that would not fit are pressed together. */
function line(word: string, size: number, y: number): Html {
  const wide = word.length * size * 0.56 > 34
  return html`<text x="20" y="${y}" text-anchor="middle" font-family="Arial,Helvetica,sans-serif" font-weight="700" font-size="${size}" fill="#fff"${wide && html` textLength="34" lengthAdjust="spacingAndGlyphs"`}>${word}</text>`
}

/** Beside the brand's name. */
export const besideName = (name: string): Html => brandMark(name, html` aria-hidden="true"`)
