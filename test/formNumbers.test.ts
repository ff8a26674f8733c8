// What the form understands of what people type and paste, and what it says to it: pure functions that browsers run.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { standardBrands } from '../src/contract/brands.ts'
import { brandTitle } from '../src/pages/form/brandNames.ts'
import { type BrandRow, brandOfNumber, brandsToPayAs } from '../src/pages/form/browser/brands.ts'
import { cvvProblem, expiryProblem, holderProblem, numberProblem, numberProblemSoon } from '../src/pages/form/browser/checks.ts'
import { contrast, textOn, variables } from '../src/pages/form/browser/colours.ts'
import { expiryOf, expiryText } from '../src/pages/form/browser/expiry.ts'
import { isFrameMessage, isShopMessage } from '../src/pages/form/browser/messages.ts'
import { digitsOf, groupedNumber, placeBehind } from '../src/pages/form/browser/number.ts'

const rows: readonly BrandRow[] = standardBrands.rows.map(row => ({ ...row, title: brandTitle(row.name) }))

describe('a card number', () => {
  for (const [what, text] of [
    ['spaces', '4200 0000 0000 0000'],
    ['hyphens and a line break', '4200-0000-0000-0000\n'],
    ['Arabic digits', '٤٢٠٠ ٠٠٠٠ ٠٠٠٠ ٠٠٠٠'],
    ['Persian digits', '۴۲۰۰۰۰۰۰۰۰۰۰۰۰۰۰'],
    ['Devanagari digits', '४२०००००००००००००००'.slice(0, 16)],
    ['full width digits', '４２００　００００　００００　００００'],
    ['invisible marks', '\u200e4200\u00a00000\u200f0000\u20600000\ufeff'],
  ] as const)
    it(`is understood with ${what}`, () => assert.equal(digitsOf(text), '4200000000000000'))

  it('is grouped as on the card', () => {
    assert.equal(groupedNumber('4200000000000000', 'VISA'), '4200 0000 0000 0000')
    assert.equal(groupedNumber('377777777777770', 'AMEX'), '3777 777777 77770')
    assert.equal(groupedNumber('30082246403846', 'DINERS'), '3008 224640 3846')
    assert.equal(groupedNumber('4200000000000000000', 'VISA'), '4200 0000 0000 0000 000')
    assert.equal(groupedNumber('42', 'VISA'), '42')
    assert.equal(groupedNumber('', 'VISA'), '')
  })

  it('keeps all its digits when it is grouped, and the caret its place', () => {
    fc.assert(
      fc.property(
        fc.stringMatching(/^\d{0,24}$/),
        fc.nat(24),
        fc.constantFrom('', 'VISA', 'AMEX', 'DINERS'),
        (digits, at, brand) => {
          const text = groupedNumber(digits, brand)
          assert.equal(text.replaceAll(' ', ''), digits)
          assert.doesNotMatch(text, /^ | $| {2}/)
          assert.equal(digitsOf(text.slice(0, placeBehind(text, at))), digits.slice(0, at))
        },
      ),
    )
  })

  const taken = ['VISA', 'MASTER', 'AMEX', 'CARTEBLEUE']
  const wrong = (digits: string) => numberProblem(rows, taken, digits)
  it('has one message for each cause', () => {
    assert.equal(wrong('')?.text, 'cardNumberMissing')
    assert.equal(wrong('420000')?.text, 'cardNumberIncomplete')
    assert.equal(wrong('4200000000000001')?.text, 'cardNumberWrong')
    assert.equal(wrong('42000000000000000000')?.text, 'cardNumberWrong')
    assert.deepEqual(wrong('6799851000000032'), { text: 'brandNotTaken', slots: { brand: 'Maestro' } })
    assert.equal(wrong('9999999999999999')?.text, 'cardNotTaken')
    assert.equal(wrong('4200000000000000'), undefined)
    assert.equal(wrong('377777777777770'), undefined)
  })

  it('is not called wrong while it is still being typed', () => {
    const soon = (digits: string) => numberProblemSoon(rows, taken, digits)?.text
    for (let length = 0; length < 16; length++) assert.equal(soon('4200000000000001'.slice(0, length)), undefined)
    assert.equal(soon('4200000000000001'), 'cardNumberWrong')
    assert.equal(soon('42000000000000010'), undefined, 'of nineteen digits the last may still make it right')
    assert.equal(soon('679985'), 'brandNotTaken')
    assert.equal(soon('67998'), undefined)
  })
})

describe('the brand', () => {
  it('of the first digits is the one that the server finds', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[2-6]\d{7,17}$/), digits => {
        assert.equal(brandOfNumber(rows, digits)?.name, standardBrands.detect(digits)?.name)
      }),
      { numRuns: 2000 },
    )
  })

  it('is a choice where a national brand is on the card, and never one that the server would refuse', () => {
    const names = (taken: string[], digits: string) => brandsToPayAs(rows, taken, digits).map(({ name }) => name)
    assert.deepEqual(names(['CARTEBLEUE', 'VISA'], '4200'), ['VISA', 'CARTEBLEUE'])
    assert.deepEqual(names(['VISA', 'VISAELECTRON'], '4200'), ['VISA'])
    assert.deepEqual(names(['VISAELECTRON'], '4200'), ['VISAELECTRON'])
    assert.deepEqual(names(['MASTER'], '4200'), [])
    const all = rows.map(({ name }) => name)
    fc.assert(
      fc.property(fc.stringMatching(/^[2-6]\d{15}$/), digits => {
        for (const { name } of brandsToPayAs(rows, all, digits))
          assert.ok(standardBrands.fits(standardBrands.named(name)!, digits), name)
      }),
    )
  })
})

describe('the expiry', () => {
  for (const text of [
    '05/34',
    '5/34',
    '0534',
    '05 / 2034',
    '05-34',
    '052034',
    '2034-05',
    '٠٥/٣٤',
    '\u200e05\u200e/34',
    ' 05 / 34 ',
  ])
    it(`is understood as ${JSON.stringify(text)}`, () => assert.deepEqual(expiryOf(text), { month: '05', year: '2034' }))
  for (const text of ['', '5', '13/34', '00/34', '05/3', '05/034', '534', '05/1934', '05/34/1'])
    it(`is not understood as ${JSON.stringify(text)}`, () => assert.equal(expiryOf(text), undefined))

  it('is written while it is typed, and can be taken away again', () => {
    const typed = (keys: string) => [...keys].reduce((text, key) => expiryText(text + key, true), '')
    assert.equal(typed('0534'), '05 / 34')
    assert.equal(typed('534'), '05 / 34')
    assert.equal(typed('1234'), '12 / 34')
    assert.equal(typed('1/34'), '01 / 34')
    assert.equal(typed('05/34'), '05 / 34')
    assert.equal(expiryText('05 / ', false), '05')
    assert.equal(expiryText('05 / 3', false), '05 / 3')
  })

  it('holds to the end of its month', () => {
    const problem = (text: string, month?: string) => expiryProblem(text, month, '05 / 30')?.text
    assert.equal(problem('11/26', '2026-11'), undefined)
    assert.equal(problem('10/26', '2026-11'), 'expiryPast')
    assert.equal(problem('10/26'), undefined, 'the shop has switched it off')
    assert.equal(problem('1', '2026-11'), 'expiryWrong')
    assert.equal(problem('', '2026-11'), 'expiryMissing')
  })
})

it('the code and the name have messages of their own', () => {
  assert.equal(cvvProblem('', 3, false)?.text, 'cvvMissing')
  assert.equal(cvvProblem('', 3, true), undefined)
  assert.deepEqual(cvvProblem('12', 3, true), { text: 'cvvWrong', slots: { digits: '3' } })
  assert.equal(cvvProblem('1234', 4, false), undefined)
  assert.equal(holderProblem(' ', false)?.text, 'holderMissing')
  assert.equal(holderProblem(' ', true), undefined)
  assert.equal(holderProblem('4200 0000 0000 0000', false)?.text, 'holderWrong')
  assert.equal(holderProblem('李明', false)?.text, 'holderWrong')
  assert.equal(holderProblem('Jane Jones III', false), undefined)
})

it('a text on any colour of a shop can be read (WCAG 2.2, 1.4.3)', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^#[0-9a-f]{6}$/), colour => {
      assert.ok(contrast(textOn(colour), colour) >= 4.5, colour)
    }),
  )
})

it('a shop’s variables are values, never styles', () => {
  const takes = (name: string, value: string) => variables[name]!.test(value)
  assert.ok(takes('--wpwl-color-primary', '#12ab34') && takes('--wpwl-border-radius', '0') && takes('--wpwl-spacing', '1.25rem'))
  assert.ok(takes('--wpwl-font-family', 'Georgia, serif'))
  for (const value of ['red', '#123', 'url(https://x.example)', '#123456;', '#123456 url(x)', 'var(--x)', ''])
    assert.ok(!takes('--wpwl-color-primary', value), value)
  for (const value of ['100px', '1px;', 'calc(1px)', '-1px']) assert.ok(!takes('--wpwl-border-radius', value), value)
})

it('only messages of the agreed shape are heard', () => {
  assert.ok(isFrameMessage({ kind: 'height', pixels: 400 }))
  assert.ok(isShopMessage({ kind: 'options', flags: {}, texts: { a: 'b' }, variables: {}, shopperResultUrl: '' }))
  for (const message of [
    null,
    'height',
    [],
    {},
    { kind: 'height' },
    { kind: 'height', pixels: '400' },
    { kind: 'height', pixels: Number.NaN },
    { kind: 'toString' },
    { kind: '__proto__' },
    { kind: 'leave', url: 'x'.repeat(4097) },
    { kind: 'ready', container: 'card', method: 'card', cards: [1] },
  ])
    assert.ok(!isFrameMessage(message), JSON.stringify(message))
  assert.ok(!isShopMessage({ kind: 'options', flags: { a: 1 }, texts: {}, variables: {}, shopperResultUrl: '' }))
  assert.ok(!isShopMessage({ kind: 'height', pixels: 400 }), 'the frame does not take what it says itself')
})
