// Card numbers where none belongs: in texts, in free keys, in identifiers, in the wrong parameter. What a channel refuses, masks or keeps, what is
// stored, answered and sent on, and that no error repeats one.

import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { connect, createServer, type Server } from 'node:net'
import { after, before, describe, it, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { standardBrands } from '../src/contract/brands.ts'
import {
  beginningOf,
  maskCardNumbers,
  maskKeyed,
  maskKeyedCode,
  mayBeRepeated,
  shortenCards,
  withoutNumber,
} from '../src/contract/cardNumbers.ts'
import { type Form, readForm } from '../src/contract/form.ts'
import { matches } from '../src/contract/formats.ts'
import { formChecker } from '../src/contract/formCheck.ts'
import { hasLuhnDigit } from '../src/contract/luhn.ts'
import type { Parameter } from '../src/contract/parameters/parameter.ts'
import { type Group, groups, valueNamed } from '../src/contract/parameters/table.ts'
import { requests } from '../src/contract/requests.ts'
import type { Seed } from '../src/merchants/seed.ts'
import { ownLine } from '../src/payments/initial/descriptor.ts'
import { writtenText } from '../src/payments/read/written.ts'
import { storableJson } from '../src/platform/database/json.ts'
import { scrub } from '../src/platform/log.ts'
import { costsMilliseconds, costsTimes } from './support/costs.ts'
import { type Fields, sandbox, type TestGateway, testGateway, visa } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'

const number = '4539578763621486'
const forms = [
  number,
  '4539 5787 6362 1486',
  '4539-5787-6362-1486',
  '4539.5787.6362.1486',
  '4539 - 5787 - 6362 - 1486',
  '4 5 3 9 5 7 8 7 6 3 6 2 1 4 8 6',
  '4539\u00a05787\u00a06362\u00a01486',
  '4539\u20135787\u20136362\u20131486',
  '4539\u200b5787\u200b6362\u200b1486',
  // What nobody sees, letters by their class, marks and signs, in any groups.
  ...[
    '\u3164',
    '\uffa0',
    '\u115f',
    '\u1160',
    '\ufe0f',
    '\u{e01ef}',
    '\u034f',
    '\u180b',
    '\u2800',
    '\u{13441}',
    '\u{13442}',
    '\u{1d159}',
  ].flatMap(unseen => [
    ['4539', '5787', '6362', '1486'].join(unseen),
    ['45395787', '63621486'].join(unseen),
    [...'4539578763621486'].join(unseen),
  ]),
  '４５３９５７８７６３６２１４８６',
  '٤٥٣٩ ٥٧٨٧ ٦٣٦٢ ١٤٨٦',
  '⁴⁵³⁹⁵⁷⁸⁷⁶³⁶²¹⁴⁸⁶',
  '₄₅₃₉ ₅₇₈₇ ₆₃₆₂ ₁₄₈₆',
  '④⑤③⑨⑤⑦⑧⑦⑥③⑥②①④⑧⑥',
  '❹❺❸❾ ➄➆➇➆ ➏➌➏➋ ⓵⓸⓼⓺',
  '⑷⑸⑶⑼⑸⑺⑻⑺⑹⑶⑹⑵⑴⑷⑻⑹',
  '⒋⒌⒊⒐⒌⒎⒏⒎⒍⒊⒍⒉⒈⒋⒏⒍',
  '㊺㊴57⑧⑦⑥③62⑭86',
  '45፫957876፫62፩፬86',
  '\u17f4\u17f53\u{1d2c9}578763621\u{1d2e4}86',
  '\u{1d363}5\u{10109}9578763621\u{111e4}\u{1ec78}6',
  '%E2%81%B4539578763621486',
  '&#9315;539578763621486',
  '4539/5787/6362/1486',
  '4539, 5787, 6362, 1486',
  '4539_5787_6362_1486',
  "4539'5787'6362'1486",
  '4539|5787|6362|1486',
  '4539·5787·6362·1486',
  '4539----5787----6362----1486',
  '4*5*3*9*5*7*8*7*6*3*6*2*1*4*8*6',
  '4539<br>5787<br/>6362</b> 1486',
  '4539%205787%206362%201486',
  '%34%35%33%39%35%37%38%37%36%33%36%32%31%34%38%36',
  '%2534539578763621486',
  '4539&nbsp;5787&nbsp;6362&nbsp;1486',
  '4539&NonBreakingSpace;5787&there4;6362&CounterClockwiseContourIntegral;1486',
  '4539&nbsp5787&nbsp6362&nbsp1486',
  'amount < limit, card 4539%205787%206362%201486, total > some',
  '%3Ccard%20pan%3D%224539%205787%206362%201486%22%2F%3E',
  '<card pan="4539&nbsp;5787&nbsp;6362\\u00201486"/>',
  'qty &lt; some card 4539%205787%206362%201486 total &gt; few',
  'Jane <4539%2D5787%2D6362%2D1486>',
  encodeURIComponent(encodeURIComponent('<card pan="4539 5787 6362 1486"/>')),
  '&#60;card pan=4539&nbsp;5787&nbsp;6362&nbsp;1486&#62;',
  '&amp;lt;card pan=4539%205787%206362%201486&amp;gt;',
  '%26lt;card pan=4539%205787%206362%201486%26gt;',
  '&#52&#53&#51&#57;578763621486',
  'see &#4539%205787%206362%201486',
  `4539<span style="${'margin: 0; '.repeat(40)}">5787</span>6362 1486`,
  '4539&lt;br&gt;5787&amp;lt;br/&amp;gt;6362&lt;/td&gt;&lt;td class=x&gt;1486',
  '4539&#32;5787&#x20;6362&middot;1486',
  '&#52;539578763621486',
  '4539<span class="number of 4 digits">5787</span><br>6362 1486',
  '%094539578763621486',
  '%E5%8F%B74539578763621486',
  '4539%0A5787%0A6362%0A1486',
  '4539%C2%A05787%C2%A06362%C2%A01486',
  '%EF%BC%94%EF%BC%95%EF%BC%93%EF%BC%99578763621486',
  '\\u53f74539578763621486',
  '\\u0034539578763621486',
  '4539\\u00a05787\\u00a06362\\u00A01486',
  '4539\\n5787\\n6362\\n1486',
  '%5Cu0034539578763621486',
  '&amp;#52;539578763621486',
  '&#37;34539578763621486',
  '&#000052;539578763621486',
  '\\x34539578763621486',
  '&#120786;539578763621486',
  '4539\\u{a0}5787\\u{A0}6362\\u{2003}1486',
  '4539\\xc2\\xa05787\\xA06362\\xe2\\x80\\x891486',
]

const mask = (text: string) => maskCardNumbers(text, standardBrands)

const each = (written: (point: number) => string) => (text: string) => [...text].map(one => written(one.codePointAt(0)!)).join('')
const hex = (point: number, length: number) => point.toString(16).padStart(length, '0')
/** How programs escape a text: what they must, or all of it. */
const usualEscapes: readonly ((text: string) => string)[] = [
  text => text,
  encodeURIComponent,
  text => new URLSearchParams([['', text]]).toString().slice(1),
  text => JSON.stringify(text).slice(1, -1),
  text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;'),
]
const escapes: readonly ((text: string) => string)[] = [
  ...usualEscapes,
  text => [...Buffer.from(text)].map(byte => `%${hex(byte, 2)}`).join(''),
  each(point => `\\u${hex(point, 4)}`),
  each(point => `&#${point};`),
  each(point => `&#x${hex(point, 2)};`),
]
const gaps = ['', ' ', '-', '.', '\u00a0', '\u200b', ' / ', '\n', '_', ', ', '|', '&nbsp;', '<br>', '</td><td>', '<b class="x">']
const places: readonly (readonly [before: string, behind: string])[] = [
  ['card ', ' here'],
  ['<td>', '</td>'],
  ['<input name="a" value="', '">'],
  ['&lt;input value="', '"&gt;'],
  ['<!-- ', ' -->'],
  ['{"card":"', '"}'],
  ['https://shop.example/?card=', '&d=1'],
]

function* combinations<A, B, C, D>(
  all: readonly A[],
  others: readonly B[],
  more: readonly C[],
  last: readonly D[],
): Generator<readonly [A, B, C, D]> {
  for (const a of all) for (const b of others) for (const c of more) for (const d of last) yield [a, b, c, d]
}

/** Of somebody who undoes all escapes, and for whom marks between them are none. */
function seenDigits(text: string): string {
  let seen = text
  for (let times = 0; times < 4; times++)
    seen = seen
      .replace(/%([0-9a-f]{2})|\\u([0-9a-f]{4})|&#x([0-9a-f]+);/gi, (_, ...found) =>
        String.fromCharCode(Number.parseInt(found.find(Boolean), 16)),
      )
      .replace(/&#(\d+);/g, (_, point) => String.fromCharCode(Number(point)))
      .replace(/&amp;|\\\\/g, one => one.slice(0, 1))
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
  return seen.replace(/\D/g, '')
}

describe('what is a card number', () => {
  for (const [digits, is, why] of [
    ['4539578763621486', true, 'sixteen digits of VISA'],
    ['374245455400126', true, 'fifteen digits of AMEX'],
    ['5425233430109903', true, 'MASTER'],
    ['6759649826438453', true, 'MAESTRO'],
    ['4539578763621487', false, 'a wrong check digit'],
    ['1234567812345670', false, 'no brand begins like it'],
    ['42000000000000', false, 'VISA has no fourteen digits'],
    ['0000000000000000', false, 'nothing but noughts'],
  ] as const)
    test(`${digits}: ${why}`, () => assert.equal(mask(digits) !== digits, is))

  test('it is found however it is written, and its last four digits are left', () => {
    for (const form of forms) {
      const masked = mask(`Paid with ${form}, thanks`)
      assert.equal(masked.match(/\p{Nd}/gu)?.length, 4, form)
      assert.equal(masked.match(/x/g)?.length, 12, form)
    }
    assert.equal(mask('4539 5787 6362 1486'), 'xxxx xxxx xxxx 1486')
  })

  test('one that is escaped in part hides none that stands beside it', () => {
    for (const text of [`${number}%31 and 374245455400126`, `4539 5787 6362 1486%31 and %33374245455400126`]) {
      const masked = mask(text)
      assert.ok(!masked.replace(/\D/g, '').includes(number), masked)
    }
    assert.equal(mask(`${number}%31 and 374245455400126`), 'xxxxxxxxxxxx14861 and xxxxxxxxxxx0126')
    // A sign before it takes its first digits for the end of an escape.
    for (const sign of ['%', '\\x', '\\u'])
      for (const [one, other] of [
        [`${sign}4000174417058224`, 'and 4539%205787%206362%201486'],
        [`${sign}4000 1744 1705 8224`, 'and &#52;539578763621486'],
      ])
        for (const text of [`${one} ${other}`, `${other} LIKE '${one}%'`, `LIKE '${one}%' OR pan = '4000174417058224' ${other}`])
          for (const kept of [mask(text), scrub(text)])
            assert.doesNotMatch(kept.replace(/[^\dx]/g, ''), /1744|1705|5787|6362/, kept)
    // Within a mark too.
    const within = mask(`<a b="${number}" c="%3374245455%3400126">`)
    assert.doesNotMatch(seenDigits(within), /57876362|4245455/, within)
    // Nor where that sign was escaped itself.
    for (const text of [
      `%25${number}`,
      `LIKE%20%25${number}%25`,
      `%2525${number}`,
      `\\\\x${number}`,
      `&amp;%25${number} 942`,
      `%254539 5787 6362 1486`,
    ])
      for (const kept of [mask(text), scrub(text)]) assert.doesNotMatch(kept.replace(/[^\dx]/g, ''), /5787|7636|6362/, kept)
  })

  test('however often it was escaped, no more than its last four digits are left', () => {
    const escaped = (text: string) => [...text].map(one => `%${one.charCodeAt(0).toString(16)}`).join('')
    for (let at = 0; at < 300; at++) {
      const bare = `4${String(at * 7919).padStart(14, '0')}`
      const sum = [...bare].reduce(
        (sum, one, place) => sum + (place % 2 === 0 ? [0, 2, 4, 6, 8, 1, 3, 5, 7, 9][Number(one)]! : Number(one)),
        0,
      )
      const card = `${bare}${(10 - (sum % 10)) % 10}`
      for (const text of [escaped(card), escaped(card).replaceAll('%', '%25'), card.replace(/(\d{4})(?=\d)/g, '$1%2520')]) {
        let plain = mask(text)
        for (let times = 0; times < 3; times++) plain = decodeURIComponent(plain.replace(/%(?![0-9a-f]{2})/gi, '%25'))
        assert.ok(plain.replace(/\D/g, '').length <= 4, `${text} ${plain}`)
      }
    }
  })

  test('whatever parts it, wherever it stands, and escaped twice in any way, its reader sees its last four digits', () => {
    const shown: string[] = []
    for (const [gap, [before, behind], one, other] of combinations(gaps, places, escapes, escapes))
      for (const text of [
        before + other(one(number.match(/.{4}/g)!.join(gap))) + behind,
        other(before + one(number.match(/.{4}/g)!.join(gap)) + behind),
      ])
        for (const kept of [mask(text), scrub(text)]) if (seenDigits(kept).includes(number.slice(4))) shown.push(kept)
    assert.deepEqual(shown.slice(0, 5), [])
  })

  test('what was escaped comes back as no sign that a text may not have', () => {
    for (const mark of [
      '&#0;',
      '&#x0;',
      '&#xD800;',
      '&#55296;',
      '&#127;',
      '%00',
      '%7F',
      '%C2%85',
      '\\u0000',
      '\\ud83d',
      '\\uDE00',
      '%5Cu0000',
    ]) {
      const masked = mask(`%34539578763621486 ${mark}`)
      assert.match(masked, /^x{12}1486/, mark)
      assert.doesNotMatch(masked, /[\p{Cc}\p{Cs}]/u, mark)
    }
    assert.equal(mask('%34539578763621486 \\ud83d\\ude00 &#x1F600;'), 'xxxxxxxxxxxx1486 😀 😀')
  })

  test('numerals that are no digits stay as they are where there is no number in them', () => {
    for (const text of ['45 m², 10 cm³', '① first ② second', '½ of it', 'order 12²']) assert.equal(mask(text), text)
    assert.equal(mask(`${number}²`).slice(0, 16), 'xxxxxxxxxxxx1486')
    assert.equal(beginningOf('Card ⁴⁵³⁹⁵⁷⁸⁷⁶³⁶²¹⁴⁸⁶', 20), 'Card ')
    assert.ok(!mayBeRepeated('⁴⁵³⁹⁵⁷⁸⁷⁶³⁶²¹⁴⁸⁵'), 'nor a mistyped one')
  })

  test('a figure in thousands is looked at whole; figures that follow each other, or are parted elsewhere, are not one', () => {
    for (const sign of [',', '’', "'", '_', '\u066c', '&#8217;']) {
      const masked = mask(`Total: ${['4', '539', '578', '763', '621', '486'].join(sign)}.00 EUR`)
      assert.doesNotMatch(masked, /539|578|763/)
    }
    assert.equal(mask('36,259,600,000,004'), 'xx,xxx,xxx,xx0,004')
    for (const text of [
      '4,539,578, 763,621,486',
      "4,539,578'763,621,486",
      '4,539,578,763,62,1486',
      '45,39,578,763,621,486',
      '4,539,578,763,621,487',
      '1,234,567,890,123,456',
    ])
      assert.equal(mask(text), text)
  })

  test('a figure as sheets write it is one with its exponent, whatever sign its point is, and no other decimal is', () => {
    for (const figure of ['4,539578763621486E+15', '4.539578763621486e15', '4\u066b539578763621486E15'])
      assert.doesNotMatch(mask(`1, 2, ${figure}; 3`), /539|578|763/, figure)
    assert.equal(mask('3,6259600000004e+13'), 'x,xxxxxxxxx0004e+13')
    for (const text of [
      '4,539578763621486',
      '4,539578763621486E+14',
      '4,539578763621486E+150',
      '4,539578763621487E+15',
      '45,39578763621486E+15',
      '4,539578763621486 7E+15',
    ])
      assert.equal(mask(text), text)
  })

  test('one that is known goes wherever it stands, whatever is between its digits and beside them', () => {
    const spaced = (sign: string) => number.replace(/\d{2}(?=\d)/g, `$&${sign}`)
    for (const [text, left] of [
      [number, 'xxxxxxxxxxxx1486'],
      [`PAN ${number}0534, CVV`, 'PAN xxxxxxxxxxxx14860534, CVV'],
      [`99${number}${number}7`, '99xxxxxxxxxxxx1486xxxxxxxxxxxx14867'],
      [spaced(','), 'xx,xx,xx,xx,xx,xx,14,86'],
      [`1,${spaced(' and then ')}`, '1,xx and then xx and then xx and then xx and then xx and then xx and then 14 and then 86'],
      ['⁴⁵³⁹⁵⁷⁸⁷⁶³⁶²¹⁴⁸⁶0534', 'xxxxxxxxxxxx14860534'],
      ['&#52;539578763621486%30', 'xxxxxxxxxxxx14860'],
      ['<a n="4539%205787 6362 1486">', '<a n="xxxx xxxx xxxx 1486">'],
      ['٤٥٣٩٥٧٨٧٦٣٦٢١٤٨٦9', 'xxxxxxxxxxxx١٤٨٦9'],
      [`${number.slice(1)} 4`, `${number.slice(1)} 4`],
      ['', ''],
    ] as const)
      assert.equal(withoutNumber(text, number), left)
    assert.equal(withoutNumber('4444444444444', '444444444444'), 'xxxxxxxxx4444', 'numbers that overlap go together')
  })

  test('it is found beside other numbers, and they are left', () => {
    assert.equal(mask(`12345 ${number} 05/34 12345`), '12345 xxxxxxxxxxxx1486 05/34 12345')
    assert.equal(mask(`${number} ${number}`), 'xxxxxxxxxxxx1486 xxxxxxxxxxxx1486')
    assert.equal(mask(`a${number}b`), 'axxxxxxxxxxxx1486b')
  })

  test('numbers that overlap go together: which of them is the card cannot be known', () => {
    assert.equal(mask('5100 0000 4929 9900 0000 0002'), 'xxxx xxxx xxxx xxxx xxxx xxxx')
  })

  test('letters and long gaps part digits', () => {
    const groups = ['4539', '5787', '6362', '1486']
    for (const gap of [' a ', 'x', '-é-', '.'.repeat(33), '/'.repeat(33), ' '.repeat(33)])
      assert.equal(mask(groups.join(gap)), groups.join(gap))
    for (const gap of ['.'.repeat(32), '/'.repeat(32), '",\n        "', '</td>\r\n    <td class="x">\r\n      '])
      assert.notEqual(mask(groups.join(gap)), groups.join(gap))
  })

  test('a longer run of digits is no card number, nor are a date, an amount and a phone number', () => {
    for (const text of [
      `99${number}`,
      `${number}0534123`,
      '2034-05-31 10:00:00',
      'double room 24.12.2026 - 30.12.2026',
      '23.12.2026-31.12.2026',
      '24.12.2026 - 1.1.2027',
      '2026-12-01 2026-12-12',
      '70.110.228.119 2026-11-28 06:12:13',
      '1234567.89',
      '+49 89 1234567',
      'x'.repeat(40),
      '4539/578763/621486',
      '[45,3957,8763621486]',
      '100 % 12',
      'a%20b',
    ])
      assert.equal(mask(text), text)
  })

  test('no stay of a hotel is one, and a number beside a date is', () => {
    const day = (time: number) => new Date(time).toISOString().slice(0, 10).split('-')
    for (let from = Date.UTC(2026, 0, 1), days = 0; days < 365; days++)
      for (let nights = 1; nights <= 14; nights++) {
        const [one, two] = [from + days * 86_400_000, from + (days + nights) * 86_400_000].map(day)
        for (const text of [
          `${one!.toReversed().join('.')} - ${two!.toReversed().join('.')}`,
          `${one!.join('-')} ${two!.join('-')}`,
        ])
          if (mask(text) !== text) assert.fail(text)
      }
    for (const text of ['45 39 5787 6362 1486', '4539.57.87.6362.1486', '4539 5787 63 62 1486', '4539 5787 6362 12 05 2026'])
      assert.doesNotMatch(mask(text).replace(/\D/g, ''), /453957/, text)
    for (const date of ['24.12.2026', '2026-12-24', '1.1.2027'])
      for (const text of [
        `${date} ${number}`,
        `${number} ${date}`,
        `4539 5787 6362 1486 ${date}`,
        `${date} - 4539.5787.6362.1486`,
      ])
        assert.doesNotMatch(mask(text).replace(/\D/g, ''), /45395787|57876362|87636214/, text)
  })

  test('what honest shops write stays as it came, also where it is escaped twice', () => {
    const honest = [
      'Order 2034-118842 of 31.05.2034, 3 x 1.249,00 EUR, delivered from 8:00 to 12:30',
      '{"order":"A-100234","items":[{"sku":"100200300","qty":2},{"sku":"100200301","qty":1}],"total":"92.00"}',
      'https://shop.example/orders/118842?lang=de&from=2034-05-31T10:00:00Z&page=3',
      '<p>Dear Mrs Jones,<br>your room 2345 is booked from 05/12 to 05/15. Call +49 (0)89 1234567-89.</p>',
      '01a21f99-8e28-7147-80b3-51b61e131387',
      'IBAN DE89 3704 0044 0532 0130 00, BIC COBADEFFXXX, tax DE123456789',
      'Rua Augusta 1500, 01304-001 São Paulo; 48.137154, 11.576124; 192.0.2.17',
      'Parcel 1Z 999 AA1 0123 4567 84, weight 12,50 kg (100 % wool)',
      'Invoice 4711/2034: 12,00 + 24,00 + 36,00 = 72,00',
      '<table><tr><td>10</td><td>20</td><td>30</td><td>40</td></tr></table>',
    ]
    for (const [text, first, second] of combinations(honest, usualEscapes, usualEscapes, [0])) {
      const escaped = second(first(text))
      assert.equal(mask(escaped), escaped)
    }
  })

  test('a hostile text costs milliseconds', async () => {
    for (const text of [
      '1 '.repeat(60_000),
      '0 '.repeat(60_000),
      '6 '.repeat(60_000),
      '1'.repeat(120_000),
      `${'4'.repeat(11)}${' '.repeat(100_000)}`,
      '٤ '.repeat(60_000),
      `${'1'.repeat(11)}   1`.repeat(8000),
      '1</a>'.repeat(20_000),
      `${'1<a/></>'.repeat(11)}`.repeat(1000),
      '<a'.repeat(60_000),
      '1</////>'.repeat(15_000),
      '%25'.repeat(40_000),
      '%34'.repeat(40_000),
      '4/5,3:9'.repeat(17_000),
      '\u{1d7ff},'.repeat(52_000),
      '4-'.repeat(130_000),
      '&#52;'.repeat(50_000),
      '<4'.repeat(100_000),
      '&a'.repeat(100_000),
      '④'.repeat(100_000),
      '⁴ '.repeat(60_000),
      '\u{1f10a}'.repeat(60_000),
      '24.12.2026 '.repeat(11_000),
      'cvv s:3:'.repeat(15_000),
      'cvv '.repeat(30_000),
      'cvv       number      '.repeat(6000),
      `${number} ${'security code is '.repeat(7000)}`,
      `${number} ${'05/34 '.repeat(20_000)}`,
      `${number} ${'0534 '.repeat(24_000)}`,
      `${number} ${'1234    1'.repeat(14_000)}`,
      `${number} ${'cvv        is        code        '.repeat(4000)}`,
    ]) {
      await costsMilliseconds(400, () => mask(text), text.slice(0, 9))
    }
  })

  test('one is found wherever it stands in a run of digits, however long that is', () => {
    for (const count of [1, 1000, 1363, 1364, 1365, 1366, 3000]) {
      const masked = mask(`${'00 '.repeat(count)}${number}`)
      assert.equal(masked, `${'00 '.repeat(count)}xxxxxxxxxxxx1486`)
      assert.ok(!mask(`${number}${' 00'.repeat(count)}`).includes(number))
    }
  })

  test('a form full of digits costs a few times what one of letters does, and one that is refused for them no more', async () => {
    const check = formChecker(requests.payment)
    const formOf = (value: string) =>
      readForm(
        new URLSearchParams(
          Array.from({ length: 800 }, (_, at): [string, string] => [`customParameters[k${at}]`, value]),
        ).toString(),
      ) as Form
    const judged = (form: Form) => () => check(form, false, { inTexts: 'refuse', inIdentifiers: 'keep' })
    const letters = formOf('x'.repeat(240))
    for (const [value, most] of [
      ['4 2 '.repeat(60), 4],
      ['4200-0000*0000/000a&#45;'.repeat(10), 20],
      ['%2542%2530%34'.repeat(14), 26],
    ] as const)
      await costsTimes(most, judged(letters), judged(formOf(value)), value.slice(0, 9))
    // One number at each third depth of escaping, within a mark.
    const deep = Array.from({ length: 150 }, (_, at) => `4539578763621 4%${'25'.repeat(3 * at)}386 `).join('')
    await costsTimes(
      8,
      () => maskCardNumbers(` ${deep}`),
      () => maskCardNumbers(`<${deep}`),
      'depths within a mark',
    )
  })

  test('where they were looked for before they are not, but in what is said anew', () => {
    const check = formChecker(requests.payment)
    const [kept, said] = [
      ['customParameters[before]', `${number} of before`],
      ['customParameters[now]', `${number} now`],
    ] as const
    const form = { pairs: [kept, said], broken: new Set<string>() } as Form
    const judged = (before?: readonly (readonly [string, string])[]) => {
      const { errors } = check(form, false, { inTexts: 'refuse', inIdentifiers: 'refuse' }, before && (new Map(before) as never))
      return errors.filter(({ message }) => /card number/.test(message)).map(({ name }) => name)
    }
    assert.deepEqual(judged(), [kept[0], said[0]])
    assert.deepEqual(judged([kept]), [said[0]])
    assert.deepEqual(judged([kept, [said[0], 'something else']]), [said[0]])
  })

  test('the log masks more: whatever has a right check digit', () => {
    for (const form of [...forms, '1234567812345670', `12345 ${number}`]) assert.match(scrub(`why ${form}.`), /\[card number\]/)
    assert.equal(scrub('5a11d0000000000000000000000000c1'), '5a11d0000000000000000000000000c1')
  })
})

describe('what is a CVV', () => {
  const beside = `4539 5787 6362 1486 05/34`
  for (const [text, masked] of [
    ['x cvv 942', 'x cvv xxx'],
    ['CVV2: 9421', 'CVV2: xxxx'],
    ['cvc2=942.', 'cvc2=xxx.'],
    ['{"cardCvv" : "942"}', '{"cardCvv" : "xxx"}'],
    ['the cvv is 942', 'the cvv is xxx'],
    ['cvv%20942', 'cvv xxx'],
    ['cvv %2520942', 'cvv  xxx'],
    ['&lt;cvv%3D942&gt;', ' cvv=xxx '],
    ['<a cvv%3D"942">', '<a cvv="xxx">'],
    ['cvv ٩٤٢', 'cvv xxx'],
    [`cvv${'-'.repeat(8)}942`, `cvv${'-'.repeat(8)}xxx`],
    ['cvc2 942', 'cvc2 xxx'],
    ['CVC-2: 9421', 'CVC-2: xxxx'],
    ['cvv 2 942', 'cvv 2 xxx'],
    ['cvv2942', 'cvvxxxx'],
    ['cvv 9421', 'cvv xxxx'],
    ['CVV/CVC: 942', 'CVV/CVC: xxx'],
    ['CVC/CVV 942', 'CVC/CVV xxx'],
    ['the cvv code is 942', 'the cvv code is xxx'],
    ['a:1:{s:3:"cvv";s:3:"942";}', 'a:1:{s:3:"cvv";s:3:"xxx";}'],
    ['["cvv"]=> string(3) "942"', '["cvv"]=> string(3) "xxx"'],
    ['{"cvv":{"S":"942"}}', '{"cvv":{"S":"xxx"}}'],
    ['{"cvv":{"stringValue":"942"}}', '{"cvv":{"stringValue":"xxx"}}'],
    ['{"cvv":{"$numberInt":"942"}}', '{"cvv":{"$numberInt":"xxx"}}'],
    ["{u'cvv': u'942'}", "{u'cvv': u'xxx'}"],
    ['cvv=Optional("942")', 'cvv=Optional("xxx")'],
  ] as const)
    test(`${text}: by a name that means nothing else`, () => {
      assert.equal(mask(text), masked)
      assert.equal(mask(masked), masked)
      assert.ok(!/942|٩/.test(shortenCards(text, standardBrands)))
    })
  for (const name of ['CVC', 'cvn', 'CID', 'csc', 'Security Code', 'verification value', 'código de segurança', 'cod. seguranca'])
    test(`${name}: beside a card number, and not without one`, () => {
      for (const [text, is] of [
        [`${beside} ${name}: 942`, true],
        [`${name} 942, ${number}`, true],
        [`${name}: 942`, false],
      ] as const) {
        assert.equal(mask(text).includes('942'), !is, text)
        assert.equal(shortenCards(text, standardBrands).includes('942'), !is, text)
      }
    })
  test('it is known behind month and year whatever parts them, with the year first, and where another number may begin in the card', () => {
    for (const [text, masked] of [
      [`${number}^12^30^942`, 'xxxxxxxxxxxx1486^12^30^xxx'],
      [`${number}~12~30~942`, 'xxxxxxxxxxxx1486~12~30~xxx'],
      [`${number}_12_2030_942`, 'xxxxxxxxxxxx1486_12_2030_xxx'],
      [`${number}#12#30#942`, 'xxxxxxxxxxxx1486#12#30#xxx'],
      [`${number}&12&30&942`, 'xxxxxxxxxxxx1486&12&30&xxx'],
      [`${number}|3012|942`, 'xxxxxxxxxxxx1486|3012|xxx'],
      [`${number} 2030-12 942`, 'xxxxxxxxxxxx1486 2030-12 xxx'],
      [`${number} 24.12.2026`, 'xxxxxxxxxxxx1486 24.12.2026'],
      ['4625 5349 5736 5658 1127 890', 'xxxx xxxx xxxx xxxx xxxx xxx'],
    ] as const)
      assert.equal(mask(text), masked)
  })
  test('it is hidden as programs write it: in words of a name, in tables that were escaped, behind a date that was', () => {
    const cell = (text: string) => `&lt;td style=&quot;width:120px&quot;&gt;${text}&lt;/td&gt;`
    for (const text of [
      `{"creditCardNumber":"${number}","creditCardCvv":"942"}`,
      '{"creditCardCvv":"942"}',
      'userCvv=942',
      `${number} userSecurityCode=942`,
      `${cell('Card')}${cell(number)}${cell('CVV')}${cell('942')}`,
      `${number} &lt;td class=&quot;cvv&quot;&gt;&lt;b class=&quot;x&quot;&gt;942&lt;/b&gt;`,
      '&lt;td class=&quot;cvv&quot;&gt;&lt;b class=&quot;x&quot;&gt;942&lt;/b&gt;',
      ...['&nbsp;', '&#160;', '&#xA0;'].map(blank => `${number} &lt;td class=&quot;cvv&quot;&gt;${blank}942&lt;/td&gt;`),
      `${number} 05\\/34 942`,
      `${number} 05\uff0f34 942`,
      `"${number}","05","2034","942"`,
      `| ${number} | 05/34 |     942 |`,
      `我的CVV：942 ${number}`,
      'カードのCVV: 942',
      'CVV: 942입니다',
      `${number} C&oacute;digo de seguran&ccedil;a: 942`,
      `${number} C%F3digo+de+seguran%E7a: 942`,
      `${number} Co\u0301digo de seguranc\u0327a 942`,
      ...['\u00a0', '\n', '.', '  '].map(joint => `${number} security${joint}code: 942`),
      `${number} creditcardcvv=942`,
      `${number} cccvv: 942`,
      `${number} &lt;td class=&quot;cvv&quot;&gt;&lt;b style=&quot;${'color:red;'.repeat(10)}&quot;&gt;942`,
      `[\\"${number}\\",\\"05/34\\",\\"942\\"]`,
    ])
      for (const hidden of [mask(text), shortenCards(text, standardBrands)]) assert.ok(!hidden.includes('942'), hidden)
    for (const text of [
      '{"reason":"invalidCvv","code":942}',
      'POST /v1/checkCvv 942',
      'subcvv 942',
      'subcvv=942',
      'SUBCVV 942',
      `${number} acid 942`,
      `${number} suBcid 942`,
    ])
      assert.match(mask(text), /942/)
  })
  test('it is hidden however its name is joined to it and however both are escaped, and so is the number beside it', () => {
    const joined: readonly ((name: string) => string)[] = [
      name => `${name}: 942`,
      name => `${name}=942&a=b`,
      name => `{"${name}":"942"}`,
      name => `{"${name}": 942}`,
      name => `{"name":"${name}","value":"942"}`,
      name => `<${name}>942</${name}>`,
      name => `<td class="${name}">942</td>`,
      name => `<td>${name}</td><td>942</td>`,
      name => `<b>${name}:</b> 942`,
      name => `<input name="${name}" value="942">`,
      name => `${name}&nbsp;942`,
      name => `${name}\n942\n`,
    ]
    const names = ['cvv', 'CVV2', 'cvc_2', 'cardCvv', 'cvc', 'securityCode', 'security code']
    for (const [name, join, first, second] of combinations(names, joined, escapes, escapes)) {
      if (name.includes(' ') && /^<(?!td>|b>|input)|class=/.test(join(name))) continue // no mark is named so
      for (const text of [`${number} ${join(name)}`, `${join(name)} ${number}`]) {
        const escaped = second(first(text))
        const seen = seenDigits(mask(escaped))
        assert.ok(!seen.includes('942') && !seen.includes(number.slice(0, 12)), `${escaped}\n${mask(escaped)}`)
      }
    }
  })
  test('a mark that names one is read as its name', () => {
    for (const [text, left] of [
      [`<card><number>${number}</number><cvv>942</cvv></card>`, ' xxxxxxxxxxxx1486  cvv xxx '],
      [`<SecurityCode>942</SecurityCode><PAN>4539 5787 6362 1486</PAN>`, ' SecurityCode xxx  xxxx xxxx xxxx 1486 '],
      [
        `&lt;pan&gt;${number}&lt;/pan&gt;&lt;ns:cardCvv2 x=&quot;1&quot;&gt;942&lt;/ns:cardCvv2&gt;`,
        ' xxxxxxxxxxxx1486  cardCvv2 xxx ',
      ],
      [`<td>${number}</td><td class="cvv">942</td><td>250</td>`, ' xxxxxxxxxxxx1486  cvv xxx  250 '],
      [`<pan>${number}</pan><cvvCode>942</cvvCode>`, ' xxxxxxxxxxxx1486 cvv xxx '],
      ...['[', '(', ': ', '#', '“', '\u200b', '"\''].map(
        sign => [`<pan>${number}</pan><cvv>${sign}942</cvv>`, ` xxxxxxxxxxxx1486  cvv ${sign}xxx `] as const,
      ),
      [`<pan>${number}</pan><cvv>&#10;&#xA;942</cvv>`, ' xxxxxxxxxxxx1486  cvv xxx '],
      ['&lt;cvv&gt;&#10; &ldquo;942&#10;&lt;/cvv&gt;', ' cvv xxx '],
      // Digits of its own hide none that it names, nor does a number in another mark.
      ['<cvv xmlns="https://card.example/2003/05">942</cvv>', ' cvv xxx '],
      [`<card pan="${number}"><cvv id="cvv-1034">942</cvv></card>`, '<card pan="xxxxxxxxxxxx1486"><cvv id="cvv-xxxx"> cvv xxx '],
      [
        `&lt;card pan=&quot;${number}&quot;&gt;&lt;cvv xmlns=&quot;https://card.example/2003/05&quot;&gt;942&lt;/cvv&gt;`,
        ' card pan= xxxxxxxxxxxx1486 cvv xmlns= https://card.example/2003/05 cvv xxx ',
      ],
      [`<pan>${number}</pan><cvv>942<\\/cvv>`, ' xxxxxxxxxxxx1486 cvv xxx '],
      [`${number} <cvv><b>942</b></cvv>`, 'xxxxxxxxxxxx1486 cvv xxx '],
      [`${number} <x:cav2>942</x:cav2>`, 'xxxxxxxxxxxx1486 cav2 xxx '],
      [`${number} <VerificationValue>942</VerificationValue>`, 'xxxxxxxxxxxx1486 VerificationValue xxx '],
      [`${number} <SecurityCode type="a"><Value>"942"</Value></SecurityCode>`, 'xxxxxxxxxxxx1486 SecurityCode "xxx" '],
      [`${number} &lt;cvv&gt;942&lt;&#x2F;cvv&gt;`, 'xxxxxxxxxxxx1486 cvv xxx '],
      ['<cvv>942</cvv> and 250', '<cvv>xxx</cvv> and 250'],
      ['<ns:cardCvv2 x="1">942</ns:cardCvv2> cvv: 942', ' cardCvv2 xxx cvv: xxx'],
      ['<cvvResult>942</cvvResult>', '<cvvResult>942</cvvResult>'],
    ] as const) {
      assert.equal(mask(text).replace(/ +/g, ' '), left.replace(/ +/g, ' '))
      assert.ok(scrub(text).includes('942') === left.includes('942'), scrub(text))
    }
    // One that names none, or what is none, leaves the figures behind it.
    for (const text of [
      '<cvv>***</cvv><amount>1500</amount>',
      '<cvv></cvv><amount>1500</amount>',
      '<cvv/><amount>1500</amount>',
      '&lt;cvv&gt;***&lt;/cvv&gt;1500&lt;/row&gt;',
      '<cvv>***<\\/cvv><amount>1500<\\/amount>',
      '<img src="cvv.png"> 1500',
      '<td id="cvv-row">1500</td>',
      '<i class="cvv-icon"></i> total <b>1500</b>',
    ])
      assert.equal(mask(text), text)
    for (const sign of ['&#160;', '&#x2013;', '&#0160;']) assert.match(mask(`CVV:${sign}942`), /^CVV:[^\d]xxx$/)
  })
  test('beside a card number a name keeps no digit of the code for itself', () => {
    for (const name of ['CVC', 'cvn', 'cvv'])
      for (const [text, code] of [
        [`${number} ${name} 2942`, 'xxxx'],
        [`${number} ${name}2942`, 'xxxx'],
        [`${number} ${name}2 942`, 'xxx'],
      ] as const) {
        assert.ok(mask(text).endsWith(code) && !mask(text).includes('942'), mask(text))
      }
    assert.equal(mask(`${number} CAV2942`), 'xxxxxxxxxxxx1486 CAV2xxx')
  })
  test('none stands in a number that is kept, whatever its groups look like', () => {
    const keep = (text: string) => maskKeyedCode(undefined, text, standardBrands)
    for (const text of ['4716-7420-0104-8374', '4364-4276-0498-8474', '5258-2026-0312-6525', '6799 9901 0000 0000 019']) {
      assert.notEqual(mask(text), text)
      assert.equal(keep(text), text)
      assert.equal(keep(`${text}; cvv 947`), `${text}; cvv xxx`)
    }
    assert.equal(keep('4716-7420-0104-8374 05/34 947'), '4716-7420-0104-8374 05/34 xxx')
    assert.equal(keep('4716742001048374 cid\u200b: 947'), '4716742001048374 cid\u200b: xxx')
    // As an attribute it stands in a mark, which is blank where numbers are looked for.
    for (const text of [
      '<card><number>4716742001048374</number><cvv value="947"/></card>',
      '<card cvc="947" exp="05/34">4716742001048374</card>',
      '&lt;cardNumber cvv=&quot;947&quot;&gt;4716 7420 0104 8374&lt;/cardNumber&gt;',
      '{"x":"<Card SecurityCode=\\"947\\"><CardNumber>4716742001048374</CardNumber></Card>"}',
      'cvv: <947> 4716742001048374',
      '<card cvc="947">4716&nbsp;7420&#160;0104&nbsp;8374</card>',
      '<tr data-cvv="947"><td>4716</td><td>7420</td><td>0104</td><td>8374</td></tr>',
      '{"x":"<cvv value=\\"947\\"/>4716\\u00a07420\\u00a00104\\u00a08374"}',
    ])
      assert.doesNotMatch(keep(text), /947/, text)
    assert.equal(keep('<card cvc="947">4716742001048374</card>').replace(/ /g, ''), '<cardcvc="xxx">xxxxxxxxxxxxxxxx')
    for (const text of ['4716&nbsp;7420&nbsp;0104&nbsp;8374', '5258%202026%200312%206525', '4364&#160;4276&#160;0498&#160;8474'])
      assert.equal(keep(text), text)
    // Where a sign takes the place of several, the number is hidden with it.
    assert.equal(keep('4716742001048374%20cvv%3D947'), 'xxxxxxxxxxxxxxxx cvv=xxx')
    assert.equal(keep('4716742001048374 cvv 𝟗𝟒𝟕!'), 'xxxxxxxxxxxxxxxx cvv xxx!')
  })
  test('it is found behind its card as lists of programs have both', () => {
    for (const list of [
      '["4716742001048374", "05", "2034", "947"]',
      "['4716742001048374', '05', '2034', '947']",
      '[4716742001048374, "5" , "2034", "947"]',
      "VALUES ('4716742001048374', '05', '2034', '947')",
      '"4716742001048374" , "05" , "2034" , "947"',
      JSON.stringify(JSON.stringify(['4716742001048374', '05', '2034', '947'], null, 1)),
      JSON.stringify(['4716742001048374', '2034', '05', '947'], null, 2),
      '<td>4716742001048374</td>\n  <td>05</td>\n  <td>2034</td>\n  <td>947</td>',
    ]) {
      for (const hidden of [
        mask(list),
        shortenCards(list, standardBrands),
        maskKeyedCode(undefined, list, standardBrands),
        scrub(list),
      ])
        assert.doesNotMatch(hidden, /947/, hidden)
    }
  })
  test('of a number that is known it goes with the number, whatever its name is', () => {
    for (const text of [
      'PAN=4716742001048374;EXP=3405;CVC=947',
      '00164716742001048374 05/34 947',
      '{"pan":"4716742001048374","cvn":"947"}',
    ])
      assert.doesNotMatch(withoutNumber(text, '4716742001048374'), /947|474200/, text)
    assert.equal(withoutNumber('CVC=947 ref 4716', '4716742001048374'), 'CVC=947 ref 4716')
  })
  /** One of many, as `form` writes it. */
  const endOfCard = (form: string, at: number): string => {
    const month = String(1 + (at % 12))
    return form
      .replace('MM', month.padStart(2, '0'))
      .replace('M', month)
      .replace('YYYY', `20${26 + (at % 9)}`)
      .replace('YY', `${26 + (at % 9)}`)
  }
  test('it is found behind every card and its end, whatever its digits and groups, and whatever passes for a number beside it', () => {
    const drawn = (at: number, count: number) => hash('sha256', `card ${at}`).replace(/\D/g, '').slice(0, count)
    const withCheckDigit = (bare: string) => [...'0123456789'].map(last => bare + last).find(hasLuhnDigit)!
    const cards: Record<string, (at: number) => string> = {
      '4 4 4 4': at => withCheckDigit(`4${drawn(at, 14)}`).replace(/(.{4})(?=.)/g, '$1 '),
      '4-4-4-4': at => withCheckDigit(`4${drawn(at, 14)}`).replace(/(.{4})(?=.)/g, '$1-'),
      '4 6 5': at => withCheckDigit(`37${drawn(at, 12)}`).replace(/(.{4})(.{6})/, '$1 $2 '),
      '4 4 4 3': at => withCheckDigit(`37${drawn(at, 12)}`).replace(/(.{4})(?=.)/g, '$1 '),
      '4 4 4 4 3': at => withCheckDigit(`6222${drawn(at, 14)}`).replace(/(.{4})(?=.)/g, '$1 '),
      'in one piece': at => withCheckDigit(`4${drawn(at, 14)}`),
    }
    const before = ['', '45.17 ', '20261128 ', 'Order 73 4021, ', '4539 5787 6362 1486, ']
    const ends = [
      'exp MMYY',
      'Expiry date: MMYYYY',
      'valid thru MMYY,',
      'MM YY',
      'MM/YY',
      'MMYY',
      'MM YYYY',
      'MM/YYYY',
      'MMYYYY',
      'YYYY MM',
      'M/YY',
      'MM, YYYY,',
    ]
    const left = new Set<string>()
    for (const [groups, card] of Object.entries(cards))
      for (const end of ends)
        for (let at = 0; at < 250; at++) {
          const expiry = endOfCard(end, at)
          const text = `${before[at % before.length]}${card(at)} ${expiry} 9${String(at).padStart(2, '0').slice(-2)}`
          const changes = [mask(text), maskCardNumbers(text), shortenCards(text, standardBrands), scrub(text)]
          // Where numbers are kept those beside it are, too: which of its digits are the card cannot be known then.
          if (before[at % before.length] === '') changes.push(maskKeyedCode(undefined, text, standardBrands))
          for (const changed of changes) if (/\d$/.test(changed)) left.add(`${groups} ${end}: ${text} -> ${changed}`)
        }
    assert.deepEqual([...left].slice(0, 5), [])
  })
  test('it is found in a row though the columns beside the end of the card pass for a number with it, one time in ten by chance', () => {
    const drawn = (at: number, count: number) => hash('sha256', `row ${at}`).replace(/\D/g, '').slice(0, count)
    const columns: Record<string, (at: number) => string> = {
      PIN: at => `56${drawn(at, 4)}`,
      'ZIP of Illinois': at => `6${drawn(at, 4)}`,
      'ZIP+4': at => `6${drawn(at, 8)}`.replace(/(.{5})/, '$1-'),
      'phone of Singapore': at => `6${drawn(at, 7)}`.replace(/(.{4})/, '$1 '),
      'phone of the USA': at => `6${drawn(at, 9)}`.replace(/(.{3})(.{3})/, '$1-$2-'),
      'order number': at => `6${drawn(at, 6)}`,
      'postcode of Vienna': at => `6${drawn(at, 3)}`,
    }
    const ends = ['MM\tYYYY', 'MM\tYY', 'MM-YYYY', '01.MM.YYYY', 'MM/YY', 'MM/28/YYYY', 'M/1/YYYY']
    const behind = [[], ['3'], ['41.47'], ['6020206452']]
    const left = new Set<string>()
    for (const [name, column] of Object.entries(columns))
      for (const end of ends)
        for (let at = 0; at < 100; at++) {
          const expiry = endOfCard(end, at)
          const [code, others] = [`9${String(at % 100).padStart(2, '0')}`, behind[at % 4]!]
          const row = [number, 'Jane Jones', column(at), ...expiry.split('\t'), code, ...others]
          if (row.filter(one => one.includes(code)).length > 1) continue
          for (const text of [row.join('\t'), row.join(' '), `<tr><td>${row.join('</td><td>')}</td></tr>`]) {
            const keeps = maskKeyedCode(undefined, text, standardBrands)
            for (const changed of [mask(text), maskCardNumbers(text), shortenCards(text, standardBrands), scrub(text), keeps])
              if (changed.split(/\D+/).includes(code)) left.add(`${name} ${end}: ${text} -> ${changed}`)
          }
        }
    assert.deepEqual([...left].slice(0, 5), [])
  })
  test('it is found in marks behind a date, whose year passes for one as it is written', () => {
    for (const date of ['01.05.2034', '05/31/2034', '01/05/2034', '31.05.2034', '5/1/2034'])
      for (const text of [
        `<tr><td>${number}</td><td>Jones</td><td>${date}</td><td>942</td></tr>`,
        `<card><number>${number}</number><expiry>${date}</expiry><code>942</code></card>`,
        `${number}<br>${date}<br>942`,
        `${number} ${date} ⑨④②`,
      ]) {
        const hidden = [mask(text), maskKeyedCode(undefined, text, standardBrands), withoutNumber(text, number), scrub(text)]
        for (const one of hidden) assert.doesNotMatch(one, /942|⑨④②/, text)
      }
  })
  test('it is found behind its name though it passes for a number with what stands behind it, and beside numbers that are kept', () => {
    for (const text of [
      'Card: 4539 4763 1590 5137\nExp: 09/32\nCVV: 488\n6020206452',
      'Card: 4539 4763 1590 5137, cvc 488 6020206452',
      'Card: 4539 4763 1590 5137, security code 488 6020206452',
    ]) {
      assert.notEqual(mask(text.slice(text.indexOf('488'))), text.slice(text.indexOf('488')), 'they pass for one')
      for (const one of [mask(text), shortenCards(text, standardBrands), scrub(text)]) assert.doesNotMatch(one, /488/, text)
      assert.equal(maskKeyedCode(undefined, text, standardBrands), text.replace('488', 'xxx'))
    }
    // By its own name also where no other number is there.
    assert.notEqual(mask('497 5382 0472 4682 2553').indexOf('x'), 4, 'they pass for one number')
    assert.equal(maskKeyedCode(undefined, 'cvv 497 5382 0472 4682 2553', standardBrands), 'cvv xxx 5382 0472 4682 2553')
    // The first group of a number is none.
    for (const text of [
      'cid 4716-7420-0104-8374',
      '05/34 4716 7420 0104 8374',
      '28.11.2026+4716+7420+0104+8374',
      '4716 7420 0104 8374, 4539 5787 6362 1486',
      'csc 3714 496353 98431',
    ])
      assert.equal(maskKeyedCode(undefined, text, standardBrands), text)
    // Nor is more of one shown because a date, or a name, stands before it.
    for (const before of ['28.11.2026', '05/34', 'CID'])
      for (const sign of ['+', ', ', '·', '|', ':', ' -- '])
        for (const one of [shortenCards, (text: string) => scrub(text), (text: string) => mask(text)])
          assert.doesNotMatch(
            one([before, ...number.match(/.{4}/g)!].join(sign), standardBrands),
            /5787|6362/,
            `${before} ${sign}`,
          )
    // Two dates are no number, and no CVV stands in them.
    for (const one of [shortenCards, (text: string) => scrub(text)])
      assert.equal(one('2026-02-01..2026-02-28', standardBrands), '2026-02-01..2026-02-28')
  })
  test('what stands on a magnetic stripe goes though it passes for a number itself, and identifiers and telephone numbers that pass for one hold none', () => {
    const left = new Set<string>()
    for (let at = 0; at < 200; at++) {
      const rest = `3405101${hash('sha256', `stripe ${at}`).replace(/\D/g, '').slice(0, 10)}`
      for (const text of [`;${number}=${rest}?`, `${number}D${rest}`, `%B${number}^JONES/JANE^${rest}?`]) {
        const keeps = maskKeyedCode(undefined, text, standardBrands)
        for (const changed of [mask(text), maskCardNumbers(text), shortenCards(text, standardBrands), scrub(text), keeps])
          if (changed.includes(rest.slice(-4))) left.add(`${text} -> ${changed}`)
      }
      const identifier = `2026-12-25-36${rest.slice(8, 10)}-${rest.slice(-7)}${at % 1000}`
      for (const one of [
        identifier,
        `+61 11 99 2${rest.slice(8, 10)} ${rest.slice(10, 13)} ${rest.slice(13, 16)}`,
        `CID-${rest.slice(9, 13)}-${rest.slice(-8)}`,
      ])
        if (maskKeyedCode(undefined, one, standardBrands) !== one) left.add(one)
    }
    assert.deepEqual([...left].slice(0, 5), [])
  })
  test('it is found right behind month and year without a sign though it passes for a number with what stands behind it', () => {
    const drawn = (at: number, count: number) => hash('sha256', `glued ${at}`).replace(/\D/g, '').slice(0, count)
    const left = new Set<string>()
    for (const end of ['0534', 'exp 0534', '5/34', '052034', '3405'])
      for (const [name, column] of Object.entries({
        phone: (at: number) => `91${drawn(at, 10)}`,
        'ZIP+4': (at: number) => `${drawn(at, 5)}-${drawn(at + 1, 4)}`,
        EAN: (at: number) => `40${drawn(at, 11)}`,
      }))
        for (let at = 0; at < 120; at++) {
          const code = `4${String(at % 100).padStart(2, '0')}`
          const row = [number, end, code, column(at)]
          if (row.filter(one => one.includes(code)).length > 1) continue
          for (const text of [row.join('\t'), row.join(' ')]) {
            const keeps = maskKeyedCode(undefined, text, standardBrands)
            for (const changed of [mask(text), maskCardNumbers(text), shortenCards(text, standardBrands), scrub(text), keeps])
              if (changed.includes(code)) left.add(`${name} ${end}: ${text} -> ${changed}`)
          }
        }
    assert.deepEqual([...left].slice(0, 5), [])
  })
  test('month and year are known in the digits of all scripts, and whatever sign parts them', () => {
    const scripts = { fullwidth: 0xff10, Arabic: 0x660, Persian: 0x6f0, Devanagari: 0x966 }
    const written = (text: string, zero: number) => text.replace(/\d/g, one => String.fromCharCode(zero + Number(one)))
    for (const text of [`${number} 05/34 942`, `${number} 0534 942`, `${number} Jane 01.05.2034 942`, `${number} 2034-05 942`])
      for (const [script, zero] of Object.entries(scripts)) {
        const hidden = [mask, scrub, (one: string) => maskKeyedCode(undefined, one, standardBrands)]
        for (const one of hidden.map(hide => hide(written(text, zero)).normalize('NFKC')))
          assert.ok(!one.includes('942') && !one.includes(written('942', zero)), `${script}: ${text} -> ${one}`)
      }
    for (const text of [
      `Jane+4539+5787+6362+1486+05+%2F+34+942`,
      `${number}+05+34+942`,
      `${number}、05、34、942`,
      `“${number}” “05” “34” “942”`,
      `[${number}][05][34][942]`,
      `${number} · 05 · 34 · 942`,
    ])
      for (const one of [mask(text), scrub(text), maskKeyedCode(undefined, text, standardBrands)])
        assert.ok(!one.includes('942'), `${text} -> ${one}`)
  })
  test('it is none of the last four digits that are left of a number, where its card, end and it pass for one', () => {
    for (const text of [
      '4488 0963 3604 0077 06 28 986',
      '4478 2010 6411 0595 0926 984',
      '4261 8495 7273 0410 0734 957',
      '4510 7896 7310 4108 3203 525',
    ]) {
      const hidden = [mask(text), shortenCards(text, standardBrands), maskKeyedCode(undefined, text, standardBrands)]
      for (const one of hidden) assert.match(one, /(?:\Dxxx|…)$/, text)
    }
  })
  test('three or four digits behind number, month and year are one, without a name', () => {
    for (const text of [
      `${beside} 942`,
      `${number}|05|34|942`,
      `${number};12/2034;942`,
      `${number}, valid until 05/34, 942`,
      `${number} 0534 942`,
      `${number}:0534:942`,
      `${number};052034;942`,
      `${number} 5/34 942`,
      `${number} 9-2034 942`,
      '4539 5787 6362 1486, 12 34 942',
      `${number};01.05.2034;942`,
      `${number};05/01/2034;942`,
      `["${number}","01-05-2034","942"]`,
      `${number};Jones;5/1/2034;942`,
      `${number};1.5.2034;942`,
      `${number};03;05/2034;942`,
      `${number};EUR 12.05;05/2034;942`,
      `2026-11-02 05/2034 942 ${number}`,
      `{\\"card\\":[\\"${number}\\",\\"Jones\\",\\"05/2034\\",\\"942\\"]}`,
    ])
      for (const hidden of [mask(text), shortenCards(text, standardBrands), maskKeyedCode(undefined, text, standardBrands)])
        assert.ok(!hidden.includes('942'), `${text}\n${hidden}`)
    for (const text of [
      `${number} 942`,
      '05/34 942',
      '0534 942',
      `${number} 13/34 942`,
      `${number} 0034 942`,
      `${number}, some time in 5/34, 942`,
      `${number} 2034.5.1 942`,
      `${number} on 31.5.34, 942`,
      '01.05.2034;942',
      `${number} order 0534 942`,
      `${number} 05/34 94221`,
    ])
      assert.ok(mask(text).includes('942'), text)
  })
  test('what stands on a magnetic stripe goes with the number', () => {
    for (const [text, masked] of [
      [`;${number}=34051010000000000000?`, ';xxxxxxxxxxxx1486=xxxxxxxxxxxxxxxxxxxx?'],
      [`%B${number}^JONES/JANE^3405101000?`, '%Bxxxxxxxxxxxx1486^JONES/JANE^xxxxxxxxxx?'],
      // Both tracks: the first begins as an escape does.
      [
        `%B${number}^JONES/JANE^3405101000?;${number}=3405101000?`,
        '%Bxxxxxxxxxxxx1486^JONES/JANE^xxxxxxxxxx?;xxxxxxxxxxxx1486=xxxxxxxxxx?',
      ],
      [`%25B${number}%5EJONES%5E3405101000%3F`, '%Bxxxxxxxxxxxx1486^JONES^xxxxxxxxxx?'],
      [`%B${number}%5EJONES%5E3405101000;${number}=3405101`, '%Bxxxxxxxxxxxx1486^JONES^xxxxxxxxxx;xxxxxxxxxxxx1486=xxxxxxx'],
      [`${number}=3405101`, 'xxxxxxxxxxxx1486=xxxxxxx'],
      [`${number}=340510`, 'xxxxxxxxxxxx1486=340510'],
      [`${number}D34051010000094200000`, 'xxxxxxxxxxxx1486Dxxxxxxxxxxxxxxxxxxxx'],
      [`${number}d340510100000942F`, 'xxxxxxxxxxxx1486dxxxxxxxxxxxxxxxF'],
      [`${number}D340510`, 'xxxxxxxxxxxx1486D340510'],
      ['1234D34051010000000000000', '1234D34051010000000000000'],
      ['1234=34051010000000000000', '1234=34051010000000000000'],
    ] as const)
      assert.equal(mask(text), masked)
  })
  test('ordinary digits and words are left', () => {
    for (const text of [
      'room 942',
      'Order 942 of 9421',
      'cvv 94',
      'cvv 94212',
      'cvv checked, 942 left',
      'xcvv 942',
      `cvv${'-'.repeat(9)}942`,
      'cvv 942nd',
      'CVC 9421 Turismo',
      'CVC 2345 Turismo',
      'CVC 21234',
      'Pacote CVC 2100 EUR',
      'CVC-2345-22',
      'CVC2345',
      'CVV 21234',
      'cvv and cvc of 942 cards',
    ])
      assert.deepEqual([mask(text), shortenCards(text, standardBrands)], [text, text])
  })
  test('of a short number the last four digits are left, of others the first six too', () => {
    for (const [text, shown] of [
      ['a 5018 7643 3217', 'a …3217'],
      ['a 5018764332133, b', 'a …2133, b'],
      ['3056-930902-5904', '…5904'],
      ['378282246310005', '378282…0005'],
      [number, '453957…1486'],
      ['6759649826438453003', '675964…3003'],
    ] as const)
      assert.equal(shortenCards(text, standardBrands), shown)
  })
  test('the value of a free key is one by the last words of the key', () => {
    for (const key of [
      'cvv',
      'CVV2',
      'cvc',
      'cvn',
      'card.cvv',
      'SHOPPER_cardCvc',
      'cardcvv',
      'cvv_code',
      'securityCode',
      'card_security_code',
    ])
      for (const [value, masked] of [
        ['942', 'xxx'],
        [' 9-421 ', ' x-xxx '],
        ['%39421', 'xxxx'],
        ['94', '94'],
        ['94212', '94212'],
        ['M', 'M'],
        ['', ''],
      ] as const)
        assert.equal(maskKeyed(key, value, standardBrands), masked, `${key} ${value}`)
    for (const key of ['code', 'cid', 'table', 'cvvResult', 'verificationCode', 'securityCodeSent', 'vcvv', 'orderNumber'])
      assert.equal(maskKeyed(key, '942', standardBrands), '942', key)
    assert.equal(maskKeyed('cvv', number, standardBrands), mask(number))
    assert.equal(maskKeyed(undefined, '942', standardBrands), '942')
  })
})

// A row may keep what passes for a card number only when it is on this list: a new one is a decision.
const identifiers = [
  'merchantTransactionId', 'merchantInvoiceId', 'virtualAccount.accountId', 'shopperResultUrl', 'notificationUrl', 'risk.accountToken',
  'customer.merchantCustomerId', 'customer.phone', 'customer.mobile', 'customer.workPhone', 'customer.identificationDocId',
  'customer.browserFingerprint.id', 'customer.browserFingerprint.value', 'shipping.customer.merchantCustomerId', 'shipping.customer.phone',
  'shipping.customer.mobile', 'shipping.customer.workPhone', 'shipping.customer.identificationDocId', 'shipping.trackingNumber',
  'cart.items[n].merchantItemId', 'cart.items[n].sku', 'cart.items[n].shippingTrackingNumber', 'merchant.phone', 'merchant.submerchantId',
  'standingInstruction.initialTransactionId', 'threeDSecure.xid', 'threeDSecure.dsTransactionId', 'threeDSecure.acsTransactionId', 'airline.bookingRefNum', 'airline.passengers[n].ticketNumber', 'airline.passengers[n].phone',
  'airline.passengers[n].frequentFlyerNumber', 'airline.passengers[n].legs[n].ticketNumber', 'airline.passengers[n].legs[n].flightNumber',
  'airline.passengers[n].legs[n].exchangeTicketNum', 'airline.passengers[n].legs[n].couponNumber',
] // biome-ignore format: one list
const belongs = ['card.number', 'authentication.userId', 'authentication.password', 'virtualAccount.password']

describe('the beginning of a longer text', () => {
  it('ends before the digits that are cut', () => {
    const letters = fc.string({
      unit: fc.constantFrom('1', '２', '٣', '⁴', '⑤', 'a', 'é', '-', ' ', '\n', '\u2028', '💳', '\ud83d'),
      maxLength: 40,
    })
    const cut = (text: string, most: number) => text.slice(0, most).replace(/[\p{Nd}\p{No}][^\p{L}]*$/u, '')
    fc.assert(
      fc.property(letters, fc.nat(40), (text, most) =>
        assert.equal(beginningOf(text, most), text.length > most ? cut(text, most) : text),
      ),
      { numRuns: 2000 },
    )
  })
  it('ends before them also where what stands between them, or for one, is written with letters', () => {
    for (const between of ['&nbsp;', '<br>', '&lt;br/&gt;', '</td><td>', '\\t', '\\u0020', '%C2%A0', '&#160;'])
      for (const cut of [`4539${between}5787${between}63`, `4539${between}`, `4539${between}5787${between}`])
        assert.equal(beginningOf(`no ${cut}${'x'.repeat(9)}`, `no ${cut}`.length), 'no ', cut)
    assert.equal(beginningOf('no \\u0034\\u0035\\u0033\\u0039578', 27), 'no ')
    for (const half of ['&nbs', '<t', '&lt;b', '&lt;br&g', '\\u00', '%2'])
      assert.equal(beginningOf(`no 4539${half}xx`, 7 + half.length), 'no ', half)
    assert.equal(beginningOf('see <b>this</b> & that page', 20), 'see <b>this</b> & th')
    for (const sign of ['<', 'a < ', 'a &lt; ', '&', '<b>'])
      assert.ok(!/4539/.test(beginningOf(`no ${sign}4539 5787 6362 1486`, `no ${sign}4539 5787 6362 148`.length)), sign)
    assert.equal(writtenText(`${'a'.repeat(2041)} 4539 5787 6362 1486`).slice(2041), ' xxxx x')
  })
  it('is found in one look along the text, however many digits stand in it', () => {
    const most = 2_000_000
    for (const [text, length] of [
      [`${'1'.repeat(most - 1)}x`, most],
      ['1'.repeat(most), 0],
      ['-'.repeat(most), most],
      ['<'.repeat(most), most],
    ] as const) {
      // Whoever begins anew at every digit takes a quarter of an hour and more.
      const read = runInNewContext('read()', { read: () => beginningOf(`${text}1`, most) }, { timeout: 60_000 })
      assert.equal(read.length, length)
    }
  })
})

describe('every row of the parameter table', () => {
  const check = formChecker(requests.payment)
  const rules = { inTexts: 'refuse', inIdentifiers: 'keep' } as const
  const rows = requests.payment.groups.flatMap(group => Object.entries(groups[group as Group]) as [string, Parameter][])
  const wireName = (row: string) => row.replaceAll('[n]', '[0]').replace(/\[(name|brand)\]/, '[key]')
  const judged = (name: string, value: string, lenient: boolean, how: Parameters<typeof check>[2]) =>
    check(readForm(new URLSearchParams([[name, value]]).toString()) as Form, lenient, how)

  for (const [row, parameter] of rows) {
    const accepted = [...forms, `https://shop.example/?order=${number}`].filter(form => matches(parameter.format, form))
    if (accepted.length === 0 || belongs.includes(row)) continue
    test(row, () => {
      for (const value of accepted) {
        const name = wireName(row)
        const { errors, values, numbered } = judged(name, value, false, rules)
        const refused = errors.some(error => error.name === name && error.message === 'must not hold a card number')
        assert.equal(refused, !identifiers.includes(row), `${row} ${value}`)
        assert.deepEqual([valueNamed(values, name) !== undefined, numbered], refused ? [false, []] : [true, [row]])
        assert.ok(!JSON.stringify(errors).includes(value))
        const masked = valueNamed(judged(name, value, true, { inTexts: 'mask', inIdentifiers: 'mask' }).values, name)!
        assert.equal(mask(masked), masked)
        assert.match(masked, /x/)
      }
    })
  }
})

describe('a name that is cut', () => {
  const judged = (value: string, inTexts: 'refuse' | 'mask') =>
    formChecker(requests.payment)(readForm(new URLSearchParams({ 'customer.surname': value }).toString()) as Form, true, {
      inTexts,
      inIdentifiers: 'keep',
    })
  test('is looked at where it stands, and around it', () => {
    for (const before of ['', 'a'.repeat(40), 'a'.repeat(300)]) {
      const { errors } = judged(`${before} ${number}`, 'refuse')
      assert.deepEqual(errors[0], { name: 'customer.surname', message: 'must not hold a card number' })
      const { values } = judged(`${before} ${number}`, 'mask')
      assert.doesNotMatch(valueNamed(values, 'customer.surname')!, /[0-9]{5}/)
    }
  })
  test('is not looked at where nothing of it is kept', () => {
    for (const inTexts of ['refuse', 'mask'] as const) {
      const { errors, values } = judged(`${'a'.repeat(3060)}${number}`, inTexts)
      assert.ok(!errors.some(({ name }) => name === 'customer.surname'))
      assert.equal(valueNamed(values, 'customer.surname'), 'a'.repeat(48))
    }
  })
})

describe('an identifier that is kept', () => {
  const check = formChecker(requests.payment)
  const judged = (name: string, value: string, lenient: boolean, inIdentifiers: 'refuse' | 'mask' | 'keep' = 'keep') =>
    check(readForm(new URLSearchParams([[name, value]]).toString()) as Form, lenient, { inTexts: 'refuse', inIdentifiers })
  for (const [name, value, masked] of [
    ['merchantTransactionId', `${number} 05/34 942`, `${number} 05/34 xxx`],
    ['merchantInvoiceId', `${number} cvc 942`, `${number} cvc xxx`],
    ['merchantTransactionId', 'order cvv 942 xx', 'order cvv xxx xx'],
    ['notificationUrl', 'https://shop.example/?cvv=942', 'https://shop.example/?cvv=xxx'],
    ['merchantInvoiceId', `${number}D34051010000094200000`, `${number}Dxxxxxxxxxxxxxxxxxxxx`],
  ] as const)
    test(`${value}: keeps no CVV: ${name} is refused by a strict channel, masked by a lenient one`, () => {
      const strict = judged(name, value, false)
      assert.deepEqual(
        strict.errors.filter(error => error.name === name),
        [{ name, message: 'must not hold a CVV' }],
      )
      assert.equal(valueNamed(strict.values, name), undefined)
      const lenient = judged(name, value, true)
      assert.deepEqual([valueNamed(lenient.values, name), lenient.numbered], [masked, [name]])
      for (const isLenient of [true, false]) {
        assert.ok(judged(name, value, isLenient, 'refuse').errors.some(error => error.name === name))
        assert.equal(mask(valueNamed(judged(name, value, isLenient, 'mask').values, name)!), mask(masked))
      }
    })
  for (const [name, value] of [
    ['merchantTransactionId', number],
    ['merchantTransactionId', `order ${number} of 942`],
    ['merchantInvoiceId', '4539-5787-6362-1486'],
    ['customer.phone', `+${number}`],
    ['notificationUrl', `https://shop.example/${number}?year=2034&n=942`],
  ] as const)
    test(`${value}: stays as it is in ${name}, with a warning`, () => {
      for (const lenient of [true, false]) {
        const { errors, values, numbered } = judged(name, value, lenient)
        assert.deepEqual([errors.filter(error => error.name === name), valueNamed(values, name), numbered], [[], value, [name]])
      }
    })
  for (const value of ['CVC-2345-22', 'order 942', '05/34 942', '4539578763621487 cvc 942', 'cvv2 94 x'])
    test(`${value}: stays as it is, and nothing is said`, () => {
      for (const lenient of [true, false]) {
        const { values, numbered } = judged('merchantTransactionId', value, lenient)
        assert.deepEqual([valueNamed(values, 'merchantTransactionId'), numbered], [value, []])
      }
    })
})

describe('numbers with check digits of their own, where they belong', () => {
  const check = formChecker(requests.payment)
  const memo = 'merchantMemo'
  const taxId = 'customParameters[CUSTOM_CPF_number]'
  const judged = (name: string, value: string, inTexts: 'refuse' | 'mask' | 'keep') =>
    check(readForm(new URLSearchParams([[name, value]]).toString()) as Form, true, { inTexts, inIdentifiers: 'keep' })
  // Each passes for a card number: a CLABE of STP for MAESTRO, a company for DINERS, a CPF and the bank behind it for MAESTRO.
  const [clabe, company, person] = ['646180054111658752', '36000009000140', '56812340103']

  for (const [name, text] of [
    [memo, `Juan Perez; ${clabe}`],
    [memo, `CLABE: ${clabe}; Nombre: Juan Perez`],
    [memo, clabe],
    [memo, 'Juan Perez; 646 180 05411165825 7'],
    [memo, `Juan\u2028${clabe}\n`],
    [memo, `Empresa; ${company}; Itaú; 1234; 56789-0`],
    [memo, `Empresa; CNPJ${company}, 36.000.009/0001-40`],
    [memo, `João\n${person}\n341\n1234\n56789-0`],
    [memo, 'João\n568.123.401-03\n341\n1234\n56789-0'],
    [memo, `${clabe} ${company} ${person}`],
    [taxId, ` ${company} `],
    [taxId, `${company} ${company}`],
  ] as const)
    test(`${name} ${JSON.stringify(text)}: is kept as it is, and nothing is said`, () => {
      for (const inTexts of ['refuse', 'mask', 'keep'] as const) {
        const { errors, values, numbered } = judged(name, text, inTexts)
        assert.deepEqual([errors.filter(error => error.name === name), valueNamed(values, name), numbered], [[], text, []])
        assert.notEqual(mask(text), text, 'elsewhere it would pass for a card number')
      }
    })

  for (const [name, text, masked] of [
    [memo, `Juan; ${clabe}; ${number}`, `Juan; ${clabe}; xxxxxxxxxxxx1486`],
    [memo, `${clabe} 4539 5787 6362 1486`, `${clabe} xxxx xxxx xxxx 1486`],
    [memo, `${number}\n${company}`, `xxxxxxxxxxxx1486\n${company}`],
    [memo, `${clabe}, ${number}, cvc 942`, `${clabe}, xxxxxxxxxxxx1486, cvc xxx`],
    // A card number in groups with the month behind it has as many digits as a CLABE, and one in ten the check digit too.
    [memo, '4539 5787 6362 1486 02', 'xxxx xxxx xxxx 1486 02'],
    [memo, '646180054111658018', 'xxxxxxxxxxxxxx8018'],
    [memo, `646180054111658752${number}`, undefined],
    [memo, `%36${clabe.slice(1)}`, 'xxxxxxxxxxxxxx8752'],
    [memo, '36000009000141 and 36000009000041', '36000009000141 and xxxxxxxxxx0041'],
    [taxId, clabe, 'xxxxxxxxxxxxxx8752'],
    [taxId, `${company} ${number}`, `${company} xxxxxxxxxxxx1486`],
    ['descriptor', clabe, 'xxxxxxxxxxxxxx8752'],
    ['descriptor', company, 'xxxxxxxxxx0140'],
    ['customParameters[note]', company, 'xxxxxxxxxx0140'],
  ] as const)
    test(`${name} ${JSON.stringify(text)}: what stands beside them, or is none of them here, may be a card number`, () => {
      assert.equal(valueNamed(judged(name, text, 'mask').values, name), masked ?? text)
      const { errors } = judged(name, text, 'refuse')
      assert.equal(
        errors.some(error => error.name === name),
        masked !== undefined,
      )
    })

  test('a memo beside which no card number stands holds no CVV by a name that means other things too', () => {
    for (const inTexts of ['mask', 'keep'] as const)
      assert.equal(valueNamed(judged(memo, `${clabe}; CID 942`, inTexts).values, memo), `${clabe}; CID 942`)
  })

  test('a hostile memo costs milliseconds', async () => {
    for (const text of [
      '1.'.repeat(1024),
      '123 '.repeat(512),
      '11144477735 '.repeat(170),
      '1'.repeat(2048),
      '36.000.009/'.repeat(186),
    ])
      await costsMilliseconds(20, () => judged(memo, text, 'mask'), text.slice(0, 9))
  })
})

test('what the database keeps of others it can read: no NUL, and no half of a pair', () => {
  const said = ['a\0b', '\ud800', 'x\udc00y', '\\u0000', '\\\\ud800', '\\\0', '😀', '\n"']
  assert.deepEqual(JSON.parse(storableJson(said)), [
    'a\ufffdb',
    '\ufffd',
    'x\ufffdy',
    '\\u0000',
    '\\\\ud800',
    '\\\ufffd',
    '😀',
    '\n"',
  ])
})

it('an id of ours may pass for a card number by chance: it is what it is', () => {
  const id = `${number}${'a'.repeat(16)}`
  const rules = { inTexts: 'refuse', inIdentifiers: 'refuse' } as const
  for (const [kind, name] of [
    [requests.payment, 'entityId'],
    [requests.checkout, 'registrations[0].id'],
  ] as const) {
    const { errors, values } = formChecker(kind)(readForm(`${name}=${id}`) as Form, false, rules)
    assert.deepEqual([errors.filter(error => error.name === name), valueNamed(values, name)], [[], id])
  }
})

describe('a free key that is kept', () => {
  const check = formChecker(requests.payment)
  const judged = (name: string, lenient: boolean) =>
    check(readForm(new URLSearchParams([[name, 'x']]).toString()) as Form, lenient, { inTexts: 'keep', inIdentifiers: 'keep' })
  for (const [key, masked] of [
    ['cvv_7391', 'cvv_xxxx'],
    [`${number}_cvv_739`, `${number}_cvv_xxx`],
  ] as const)
    test(`${key}: keeps no CVV: it is refused by a strict channel, masked by a lenient one`, () => {
      const name = `customParameters[${key}]`
      const strict = judged(name, false)
      assert.ok(strict.errors.some(error => error.message === 'must not hold a CVV' && error.name === mask(name)))
      assert.equal(valueNamed(strict.values, name), undefined)
      const lenient = judged(name, true)
      const kept = lenient.known.get(`customParameters[${masked}]`)
      assert.equal(kept?.path.at(-1), masked)
      assert.deepEqual([lenient.known.has(name), valueNamed(lenient.values, `customParameters[${masked}]`)], [false, 'x'])
    })
  test('a card number in one is', () => {
    const name = `customParameters[k.${number}]`
    for (const lenient of [true, false]) assert.equal(judged(name, lenient).known.get(name)?.path.at(-1), `k.${number}`)
  })
})

const masking = '7e57ca4d000000000000000000000001'
const keeping = '7e57ca4d000000000000000000000002'
const strictIdentifiers = '7e57ca4d000000000000000000000003'
const seed: Seed = {
  psp: { id: '5a11d0000000000000000000000000a0', name: 'Sandbox' },
  divisions: [
    {
      id: '5a11d0000000000000000000000000d1',
      name: 'Sandbox division',
      merchants: [
        {
          id: sandbox.merchantId,
          name: 'Sandbox merchant',
          settings: { legacyCredentials: true, channelDispatching: [{ channel: sandbox.entityId }] },
          channels: [
            { id: sandbox.entityId, name: 'Sandbox strict' },
            { id: sandbox.lenientEntityId, name: 'Sandbox lenient', settings: { lenient: true, requireCvv: false } },
            { id: masking, name: 'masking', settings: { cardNumbersInTexts: 'mask', cardNumbersInIdentifiers: 'mask' } },
            { id: keeping, name: 'keeping', settings: { cardNumbersInTexts: 'keep' } },
            { id: strictIdentifiers, name: 'strict', settings: { cardNumbersInIdentifiers: 'refuse' } },
          ],
        },
      ],
    },
  ],
}

const texts: Fields = {
  descriptor: 'Card 4539 5787 6362 1486',
  merchantMemo: `IBAN or card ${number}`,
  'customParameters[note]': number,
  [`customParameters[k.${number}]`]: 'a key',
  'risk.parameters[note]': '4539-5787-6362-1486',
  'giftCard.message': 'for 4539.5787.6362.1486',
  'cart.items[0].description': `x\n${number}`,
}
// Cut after 48 characters, fifteen digits of the number would be left.
const cut: Fields = { 'customer.givenName': `${'J'.repeat(33)}${number}`, 'customer.surname': number }

describe('through the interface', () => {
  let gateway: TestGateway
  let tap: { port: number; heard(): string; close(): void }
  let host: Awaited<ReturnType<typeof testHost>>
  let file: ReturnType<typeof acquirersFile>
  before(async () => {
    host = await testHost()
    tap = await tapOf(host.port)
    file = acquirersFile({ one: [tap.port] })
    gateway = await testGateway({ seed, environment: { ACQUIRERS_FILE: file.path } })
  })
  after(async () => {
    await gateway.stop()
    tap.close()
    await host.stop()
    file.remove()
  })

  /** All rows of all tables, as text. */
  async function stored(): Promise<string> {
    const { rows } = await gateway.pool.query<{ name: string }>(
      `select format('%I', tablename) as name from pg_tables where schemaname = 'public'`,
    )
    const all = await Promise.all(
      rows.map(({ name }) => gateway.pool.query<{ line: string }>(`select t::text as line from ${name} t`)),
    )
    return all.flatMap(({ rows }) => rows.map(({ line }) => line)).join('\n')
  }
  const holdsNumber = (text: string) =>
    text
      .replaceAll('\\n', ' ')
      .replace(/[\s\p{Pd}\p{Cf}.]/gu, '')
      .includes(number)

  it('a strict channel refuses each by its name, in payments, follow-ups and authentications, and stores nothing', async () => {
    const paid = await gateway.pay({ paymentType: 'PA' })
    const answers = [
      await gateway.pay({ ...texts, ...cut }),
      await gateway.refer(paid.body.id, { paymentType: 'CP', amount: '92.00', currency: 'EUR', ...texts, ...cut }),
      await gateway.post('/v1/threeDSecure', {
        entityId: sandbox.entityId,
        amount: '92.00',
        currency: 'EUR',
        ...visa,
        ...texts,
        ...cut,
      }),
    ]
    for (const { status, body, text } of answers) {
      assert.equal(status, 400)
      const named = body.result.parameterErrors.map(({ name }: { name: string }) => name)
      for (const name of [
        'descriptor',
        'merchantMemo',
        'customParameters[note]',
        'cart.items[0].description',
        'customer.givenName',
        'customer.surname',
      ])
        assert.ok(named.includes(name), `${name} in ${named}`)
      assert.ok(named.includes('customParameters[k.xxxxxxxxxxxx1486]'), String(named))
      assert.ok(!holdsNumber(text), text)
    }
    assert.ok(!holdsNumber(await stored()))
  })

  it('beside a tax id none is let pass, and a tax id alone is none', async () => {
    const name = 'customParameters[CUSTOM_CPF_number]'
    for (const text of [
      number,
      `11144477735 ${number}`,
      `${number} 11.144.477/7350-35`,
      ...forms.slice(1, 4),
      '42000000000000000000 4200000000000000',
    ]) {
      const refused = await gateway.pay({ [name]: text })
      assert.equal(refused.status, 400, text)
      assert.deepEqual(refused.body.result.parameterErrors, [{ name, message: 'must not hold a card number' }])
    }
    // Companies whose ids pass for numbers of Diners.
    for (const id of ['36000009000140', ' 36000009000140 ', '36.000.009/0001-40'])
      assert.equal((await gateway.pay({ [name]: id })).status, 200)
    assert.notEqual(mask('36000009000140'), '36000009000140')
    assert.notEqual(mask('3600000900014 0'), '3600000900014 0')
    assert.equal((await gateway.pay({ [name]: '3600000900014 0' })).status, 400)
    assert.ok(!holdsNumber(await stored()))
  })

  it('a lenient channel masks before anything is stored, answered or sent on', async () => {
    const before = tap.heard().length
    const fields: Fields = {
      ...texts,
      ...cut,
      entityId: sandbox.lenientEntityId,
      testMode: 'EXTERNAL',
      'merchant.name': 'Shop 4539 5787 6362 1486',
    }
    const paid = await gateway.pay({ ...fields, paymentType: 'PA' })
    assert.equal(paid.status, 200, paid.text)
    assert.equal(paid.body.descriptor, 'Card xxxx xxxx xxxx 1486')
    assert.deepEqual({ ...paid.body.customParameters }, { note: 'xxxxxxxxxxxx1486', 'k.xxxxxxxxxxxx1486': 'a key' })
    assert.equal(paid.body.customer.givenName, `${'J'.repeat(33)}${'x'.repeat(12)}148`)
    const captured = await gateway.post(`/v1/payments/${paid.body.id}`, {
      ...fields,
      paymentType: 'CP',
      amount: '92.00',
      currency: 'EUR',
    })
    assert.equal(captured.status, 200, captured.text)
    const read = await gateway.get(`/v1/payments/${paid.body.id}`, { entityId: sandbox.lenientEntityId })
    for (const { text } of [paid, captured, read]) assert.ok(!holdsNumber(text), text)
    const heard = tap.heard().slice(before)
    assert.ok(heard.includes('Shop xxxx xxxx xxxx'), 'the host is sent the masked name')
    assert.ok(!heard.replace(/\D/g, '').includes(number))
    assert.ok(!holdsNumber(await stored()))
    assert.ok(gateway.logged.some(line => line.includes('card numbers') && line.includes('giftCard.message')))
    assert.ok(!gateway.logged.some(holdsNumber))
  })

  const codes: Fields = {
    descriptor: 'x cvc2: 9417',
    merchantMemo: 'CVV 9417',
    'customParameters[cvv]': '9417',
    'customParameters[card.securityCode]': '941',
    'risk.parameters[cardCvc]': '9417',
  }
  const ordinary: Fields = {
    'customParameters[table]': '941',
    'customParameters[simulateCvv]': 'M',
    'customParameters[verificationCode]': '9417',
    'giftCard.message': 'for room 941',
  }
  const holdsCode = (text: string) => /(?:cv[cv]2?|securitycode)\W{0,9}\d{3}/i.test(text)

  it('a CVV is refused by the name of its parameter, and stands nowhere', async () => {
    const refused = await gateway.pay({ ...codes, ...ordinary })
    assert.equal(refused.status, 400)
    assert.deepEqual(
      refused.body.result.parameterErrors,
      Object.keys(codes).map(name => ({ name, message: 'must not hold a CVV' })),
    )
    const both = await gateway.pay({ descriptor: `${number} cvv 9417` })
    assert.deepEqual(both.body.result.parameterErrors, [{ name: 'descriptor', message: 'must not hold a card number' }])
    assert.equal((await gateway.pay(ordinary)).status, 200)
    assert.ok(!holdsCode(await stored()))
  })

  it('or masked, also where card numbers are kept', async () => {
    for (const entityId of [sandbox.lenientEntityId, masking, keeping]) {
      const paid = await gateway.pay({ ...codes, ...ordinary, 'customParameters[note]': `${number} cid 9417`, entityId })
      assert.equal(paid.status, 200, paid.text)
      assert.equal(paid.body.descriptor, 'x cvc2: xxxx')
      assert.deepEqual(
        { ...paid.body.customParameters },
        {
          cvv: 'xxxx',
          'card.securityCode': 'xxx',
          note: `${entityId === keeping ? number : 'xxxxxxxxxxxx1486'} cid xxxx`,
          table: '941',
          simulateCvv: 'M',
          verificationCode: '9417',
        },
      )
      assert.equal(paid.body.giftCard.message, 'for room 941')
    }
    assert.ok(!holdsCode(await stored()))
    assert.ok(gateway.logged.some(line => line.includes('CVVs') && line.includes('risk.parameters[name]')))
    assert.ok(!gateway.logged.some(holdsCode))
  })

  it('what is masked brings no sign with it that the database cannot read: the day of an acquirer would not end', async () => {
    const paid = await gateway.pay({
      entityId: sandbox.lenientEntityId,
      merchantMemo: '%34539578763621486 &#0;',
      'customer.browser.acceptHeader': '%34539578763621486 &#xD800;%00',
    })
    assert.equal(paid.status, 200, paid.text)
    const { rows } = await gateway.pool.query(
      `select record::jsonb ->> 'fields' as fields from payments where record::json ->> 'fields' like '%xxxxxxxxxxxx1486%'`,
    )
    assert.ok(rows.some(({ fields }) => fields.includes('xxxxxxxxxxxx1486  ')))
  })

  it('identifiers are kept with a warning that names them, or refused or masked where the channel says so', async () => {
    const ids = { merchantTransactionId: number, merchantInvoiceId: number }
    const kept = await gateway.pay(ids)
    assert.equal(kept.body.merchantTransactionId, number)
    assert.ok(
      gateway.logged.some(
        line => line.includes('"names":["merchantTransactionId","merchantInvoiceId"]') && line.includes('warn'),
      ),
    )
    assert.ok(!gateway.logged.some(holdsNumber))
    const found = await gateway.get('/v1/query', { entityId: sandbox.entityId, merchantTransactionId: number })
    assert.equal(found.body.payments.length, 1, 'it is found by it')
    const masked = await gateway.pay({ ...ids, entityId: masking })
    assert.equal(masked.body.merchantTransactionId, 'xxxxxxxxxxxx1486')
    const coded = { merchantTransactionId: `${number} 05/34 9417`, merchantInvoiceId: 'invoice cvv 9417' }
    const strict = await gateway.pay(coded)
    assert.deepEqual(
      strict.body.result.parameterErrors,
      Object.keys(coded).map(name => ({ name, message: 'must not hold a CVV' })),
    )
    const lenient = await gateway.pay({ ...coded, entityId: sandbox.lenientEntityId })
    assert.deepEqual(
      [lenient.status, lenient.body.merchantTransactionId, lenient.body.merchantInvoiceId],
      [200, `${number} 05/34 xxxx`, 'invoice cvv xxxx'],
    )
    assert.ok(!/(?:34|cvv) 9417/.test(await stored()))
    const refused = await gateway.pay({ ...ids, entityId: strictIdentifiers })
    assert.deepEqual(
      refused.body.result.parameterErrors.map(({ name }: { name: string }) => name),
      ['merchantTransactionId', 'merchantInvoiceId'],
    )
  })

  it('a channel may keep texts, with a warning', async () => {
    const kept = await gateway.pay({ descriptor: 'Card 4539 5787 6362 1486', entityId: keeping })
    assert.equal(kept.body.descriptor, 'Card 4539 5787 6362 1486')
    assert.ok(gateway.logged.some(line => line.includes(keeping) && line.includes('"names":["descriptor"]')))
  })

  it('no error repeats a number, wherever it was sent', async () => {
    for (const form of forms) {
      const wrong: Fields = { paymentBrand: form, currency: form, amount: form, 'card.expiryYear': form, 'customer.email': form }
      const answers = [
        await gateway.pay({ ...wrong, [`customParameters[${form}!]`]: 'x', [`customParameters[${form}]`]: '\u0000' }),
        await gateway.post(`/v1/payments?${new URLSearchParams({ [form]: '1', [`customParameters[${form}]`]: '2' })}`, {
          entityId: sandbox.entityId,
        }),
        await gateway.get('/v3/query', { entityId: sandbox.entityId, 'date.from': form, limit: form }),
      ]
      for (const { status, body } of answers) {
        assert.equal(status, 400)
        const text = JSON.stringify({ ...body, buildNumber: '', ndc: '' }) // random digits may look like a card's
        assert.equal(mask(text), text, `${form}: ${text}`)
      }
    }
  })
})

/** Stands before the host and remembers what it is sent. */
async function tapOf(port: number): Promise<{ port: number; heard(): string; close(): void }> {
  const heard: Buffer[] = []
  const sockets = new Set<{ destroy(): void }>()
  const server: Server = createServer(socket => {
    const onward = connect(port, '127.0.0.1')
    for (const one of [socket, onward]) {
      sockets.add(one)
      one.on('error', () => {})
      one.on('close', () => socket.destroy() && onward.destroy())
    }
    socket.on('data', bytes => heard.push(bytes))
    socket.pipe(onward).pipe(socket)
  })
  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  return {
    port: (server.address() as { port: number }).port,
    heard: () => Buffer.concat(heard).toString('latin1'),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

describe('the line of a payment that names none', () => {
  const ids = Array.from({ length: 4000 }, (_, at) => (BigInt(at) * 48_271_777_777n).toString(16).padStart(32, '0'))
  for (const name of ['Shop', '365 Shop', '4711 Store', '2.0 Shop', '1822 direkt'])
    it(`passes for no card number, whichever its id is: ${name}`, () => {
      const lines = ids.map(id => ownLine(id, name))
      const wrong = (line: string) => maskCardNumbers(line, standardBrands) !== line || !/^\d{4}\.\d{4}\.\d{4} /.test(line)
      assert.deepEqual(lines.filter(wrong), [])
      assert.ok(lines.every(line => line.endsWith(` ${name}`)))
      const own = ids.map(id => (BigInt(`0x${id}`) % 10n ** 12n).toString().padStart(12, '0'))
      const changed = lines.filter((line, at) => line.slice(0, 14).replaceAll('.', '') !== own[at]).length
      assert.ok(changed > 0 && changed < 400, `${changed}`)
    })
  it('is one also where nothing helps', () => assert.match(ownLine(ids[1]!, '4539578763621486'), / 4539578763621486$/))
})
