// The words of shoppers' pages: 25 languages, complete and each its own, chosen as browsers and merchants name them, and amounts as people write them.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { results } from '../src/contract/results/results.ts'
import { adviceText, chooseLanguage, english, languageOf, languages, moneyText } from '../src/pages/languages/languages.ts'
import { fill, type TextName, type Texts } from '../src/pages/languages/texts.ts'

const codes = 'en de fr es it nl dk fi se tr ja sl pt pl cz hu bg ro ru cn gr no sk ar ko'.split(' ')
const names = Object.keys(english.texts) as TextName[]
const slots = (text: string) => (text.match(/\{\w+\}/g) ?? []).sort()

/** Words that are the same in English and in the languages named. */
const alike: Readonly<Partial<Record<TextName, string>>> = {
  card: 'ro',
  shop: 'de',
  optional: 'de',
}

describe('the texts', () => {
  it('are those of the 25 languages of the interface, in its order', () => assert.deepEqual([...languages.keys()], codes))

  for (const { code, texts } of languages.values())
    it(`${code} has every text, with the slots of the English one and its own words`, () => {
      assert.deepEqual(Object.keys(texts), names)
      for (const name of names) {
        const text = texts[name]
        assert.deepEqual(slots(text), slots(english.texts[name]), name)
        assert.equal(text, text.trim(), name)
        assert.doesNotMatch(text, /^$| {2}|\.\.\.|\s[.,]|[<>&"]/, name)
        if (code !== 'en' && !alike[name]?.split(' ').includes(code)) assert.notEqual(text, english.texts[name], name)
      }
    })

  it('end as the English ones do: a sentence as a sentence, a button without a stop', () => {
    const ends = /[.。…]$/
    for (const { code, texts } of languages.values())
      for (const name of names) {
        // Some languages cannot decline a name of others, and put it last.
        const slotEnds = /\}[\u2069]?$/.test(texts[name].replace(/[.。]$/, ''))
        assert.ok(slotEnds || ends.test(texts[name]) === ends.test(english.texts[name]), `${code} ${name}: ${texts[name]}`)
      }
  })

  it('are written in the script of the language', () => {
    const scripts: Record<string, RegExp> = {
      ru: /\p{Script=Cyrillic}/u,
      bg: /\p{Script=Cyrillic}/u,
      gr: /\p{Script=Greek}/u,
      ar: /\p{Script=Arabic}/u,
      ja: /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u,
      cn: /\p{Script=Han}/u,
      ko: /\p{Script=Hangul}/u,
    }
    for (const { code, texts } of languages.values())
      for (const name of names) {
        const script = scripts[code]
        if (script) assert.match(texts[name], script, `${code} ${name}`)
        else assert.match(texts[name], /\p{Script=Latin}/u, `${code} ${name}`)
        if (code !== 'ja' && code !== 'cn')
          assert.doesNotMatch(texts[name], /[\p{Script=Hiragana}\p{Script=Katakana}]/u, `${code} ${name}`)
        if (!['ru', 'bg'].includes(code)) assert.doesNotMatch(texts[name], /\p{Script=Cyrillic}/u, `${code} ${name}`)
      }
  })

  it('are all shown somewhere', () => {
    const folder = new URL('../src/', import.meta.url)
    const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(path => path.endsWith('.ts') && !path.startsWith('pages/languages/'))
      .map(path => readFileSync(new URL(path, folder), 'utf8'))
      .join('\n')
    const shown = new Set(sources.match(/\w+/g))
    // Pages that say nothing of a payment have a name, which their texts begin with.
    const ofPage = (name: TextName) => /^(unknown|error|forged|session)(Title|Text)$/.test(name)
    assert.deepEqual(
      names.filter(name => !shown.has(name) && !ofPage(name)),
      [],
    )
  })

  it('a text without a slot, or a word that is missing, does not compile', () => {
    const partial = { ...english.texts }
    // @ts-expect-error the slot {amount} is missing
    const wrong: Texts = { ...partial, payNow: 'Pay' }
    // @ts-expect-error a word is missing
    const short: Texts = { pay: 'Pay' }
    assert.ok(wrong && short)
  })

  it('take values into their slots, and leave what is no slot of theirs', () => {
    assert.equal(fill(english.texts.payNow, { amount: '€92.00' }), 'Pay €92.00')
    assert.equal(fill(languages.get('ar')!.texts.payNow, { amount: '$1' }), 'ادفع \u2068$1\u2069')
    assert.equal(fill('{a} {b}', { a: '{b}$&' }), '{b}$& {b}')
  })
})

describe('the language', () => {
  const cases: readonly (readonly [accepted: string | undefined, code: string, tag: string, locale: string])[] = [
    ['de-AT,de;q=0.9,en;q=0.8', 'de', 'de', 'de-AT'],
    ['xx,fr;q=0.5', 'fr', 'fr', 'fr'],
    ['en;q=0.1,pt-BR;q=0.9', 'pt', 'pt', 'pt-BR'],
    ['da,en', 'dk', 'da', 'da'],
    ['sv-SE', 'se', 'sv', 'sv-SE'],
    ['cs', 'cz', 'cs', 'cs'],
    ['el-GR', 'gr', 'el', 'el-GR'],
    ['nb-NO,nn;q=0.5', 'no', 'nb', 'nb-NO'],
    ['nn-NO', 'no', 'nb', 'nb-NO'],
    ['zh-Hans-CN', 'cn', 'zh-Hans', 'zh-Hans-CN'],
    ['zh-TW', 'cn', 'zh-Hans', 'zh-Hans-TW'],
    ['DE', 'de', 'de', 'de'],
    ['de;q=0', 'en', 'en', 'en'],
    ['*', 'en', 'en', 'en'],
    ['constructor,__proto__', 'en', 'en', 'en'],
    ['', 'en', 'en', 'en'],
    [undefined, 'en', 'en', 'en'],
  ]
  for (const [accepted, code, tag, locale] of cases)
    it(`of a browser that says ${accepted} is ${code}`, () => {
      const { code: chosen, tag: lang, locale: where } = chooseLanguage(accepted)
      assert.deepEqual([chosen, lang, where], [code, tag, locale])
    })

  it('of a merchant is named by code, by alias and with a region', () => {
    for (const [locale, code] of [
      ['dk', 'dk'],
      ['da', 'dk'],
      ['de_AT', 'de'],
      ['de-AT', 'de'],
      [' fr ', 'fr'],
      ['no', 'no'],
      ['cn', 'cn'],
      ['xx', undefined],
      ['', undefined],
    ] as const)
      assert.equal(languageOf(locale)?.code, code, locale)
  })

  it('is looked for in the beginning of what is said', () => {
    assert.equal(languageOf(`de${'-x'.repeat(5)}-AT`)?.locale, 'de-AT')
    assert.equal(languageOf(`de${'-x'.repeat(5000)}-AT`)?.locale, 'de')
    assert.equal(chooseLanguage(`${'xx,'.repeat(19)}de`).code, 'de')
    assert.equal(chooseLanguage(`${'xx,'.repeat(20)}de`).code, 'en')
    assert.equal(chooseLanguage(`de${';x'.repeat(5000)};q=0.1,fr;q=0.2`).code, 'de')
  })

  it('is written from the right in Arabic alone', () =>
    assert.deepEqual(
      [...languages.values()].filter(({ direction }) => direction === 'rtl').map(({ code }) => code),
      ['ar'],
    ))

  it('has a tag and a locale that browsers understand', () => {
    for (const { tag, locale } of languages.values()) assert.deepEqual(Intl.getCanonicalLocales([tag, locale]), [tag])
  })
})

describe('amounts', () => {
  const cases: readonly (readonly [locale: string, amount: number, currency: string, text: string])[] = [
    ['de', 9205, 'EUR', '92,05\u00a0€'],
    ['de-AT', 9205, 'EUR', '€\u00a092,05'],
    ['en', 999_999_999_999, 'USD', '$9,999,999,999.99'],
    ['en', 5, 'EUR', '€0.05'],
    ['ja', 920_000, 'JPY', '￥9,200'],
    ['pt-BR', 9200, 'BRL', 'R$\u00a092,00'],
  ]
  for (const [locale, amount, currency, text] of cases)
    it(`${amount} of ${currency} in ${locale} is ${text}`, () => assert.equal(moneyText(locale, amount, currency), text))

  it('are in the digits that stand on cards, also where Arabic has its own', () => {
    for (const locale of ['ar', 'ar-EG', 'ar-SA'])
      assert.match(moneyText(locale, 123_405, 'EUR').replace(/[\u200e\u200f]/g, ''), /^1,234\.05\u00a0€$|^€\u00a01,234\.05$/)
  })
})

it('a decline is told in the shopper’s words, a success needs none', () => {
  assert.equal(
    adviceText(languages.get('de')!.texts, results.expiredCard.code),
    'Ihre Karte ist abgelaufen. Bitte verwenden Sie eine andere Karte.',
  )
  assert.equal(adviceText(english.texts, results.succeeded.code), undefined)
})
