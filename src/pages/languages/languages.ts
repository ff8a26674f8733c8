// The languages that shoppers read, which of them a browser or a merchant wants, and amounts as people write them.

import { shopperAdvice } from '../../contract/results/shopperAdvice.ts'
import { ar } from './ar.ts'
import { bg } from './bg.ts'
import { cn } from './cn.ts'
import { cz } from './cz.ts'
import { de } from './de.ts'
import { dk } from './dk.ts'
import { en } from './en.ts'
import { es } from './es.ts'
import { fi } from './fi.ts'
import { fr } from './fr.ts'
import { gr } from './gr.ts'
import { hu } from './hu.ts'
import { it } from './it.ts'
import { ja } from './ja.ts'
import { ko } from './ko.ts'
import { nl } from './nl.ts'
import { no } from './no.ts'
import { pl } from './pl.ts'
import { pt } from './pt.ts'
import { ro } from './ro.ts'
import { ru } from './ru.ts'
import { se } from './se.ts'
import { sk } from './sk.ts'
import { sl } from './sl.ts'
import type { Texts } from './texts.ts'
import { tr } from './tr.ts'

export type Language = {
  /** The interface's code: `dk`. */
  readonly code: string
  /** For the lang attribute: `da`. */
  readonly tag: string
  /** With the region where one was named, for amounts and dates: `da-DK`. */
  readonly locale: string
  readonly direction: 'ltr' | 'rtl'
  readonly texts: Texts
}

/** By the interface's codes; the tag follows where it is another. */
const rows: readonly (readonly [code: string, texts: Texts, tag?: string])[] = [
  ['en', en],
  ['de', de],
  ['fr', fr],
  ['es', es],
  ['it', it],
  ['nl', nl],
  ['dk', dk, 'da'],
  ['fi', fi],
  ['se', se, 'sv'],
  ['tr', tr],
  ['ja', ja],
  ['sl', sl],
  ['pt', pt],
  ['pl', pl],
  ['cz', cz, 'cs'],
  ['hu', hu],
  ['bg', bg],
  ['ro', ro],
  ['ru', ru],
  ['cn', cn, 'zh-Hans'],
  ['gr', gr, 'el'],
  ['no', no, 'nb'],
  ['sk', sk],
  ['ar', ar],
  ['ko', ko],
]

/** Every language by its code, English first. */
export const languages: ReadonlyMap<string, Language> = new Map(
  rows.map(([code, texts, tag = code]) => [
    code,
    { code, tag, locale: tag, direction: code === 'ar' ? 'rtl' : 'ltr', texts } satisfies Language,
  ]),
)
export const english = languages.get('en')!

/** What browsers and merchants call a language beside its code. */
const aliases: Readonly<Record<string, string>> = { da: 'dk', sv: 'se', cs: 'cz', el: 'gr', zh: 'cn', nb: 'no', nn: 'no' }

/** As they are at the longest, and some more. */
const localeMost = 64

/** The language of a locale: `de`, `de-AT`, `de_AT`, `zh-Hans-CN`, `dk`, `da-DK`; nothing of one that there is not. */
export function languageOf(locale: string): Language | undefined {
  const [name = '', ...rest] = locale.trim().slice(0, localeMost).split(/[-_]/)
  const code = name.toLowerCase()
  const found = languages.get(aliases[code] ?? code)
  const region = rest.find(part => /^[a-z]{2}$/i.test(part))
  return found && region !== undefined ? { ...found, locale: `${found.tag}-${region.toUpperCase()}` } : found
}

/** The first language of `Accept-Language` that there is, by weight; English else. */
export function chooseLanguage(accepted: string | undefined): Language {
  const wanted = (accepted ?? '')
    .split(',', 20)
    .map(part => {
      const [locale, ...rest] = part.slice(0, 2 * localeMost).split(';')
      const weight = Number(/q=([0-9.]+)/.exec(rest.join(';'))?.[1] ?? 1)
      return { language: languageOf(locale!), weight }
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight)
  return wanted.find(({ language }) => language)?.language ?? english
}

/** What a shopper is advised about a result; nothing about a success. */
export function adviceText(texts: Texts, code: string): string | undefined {
  const advice = shopperAdvice(code)
  return advice && texts[advice]
}

/** An amount of hundredths as people of a language write it, in digits as they stand on cards. */
export function moneyText(locale: string, amount: number, currency: string): string {
  const whole = `${Math.trunc(amount / 100)}.${String(amount % 100).padStart(2, '0')}` as `${number}`
  return moneyFormat(locale, currency).format(whole)
}

/** To make one takes a tenth of a millisecond, as much as the rest of a form. */
function moneyFormat(locale: string, currency: string): Intl.NumberFormat {
  const name = `${locale} ${currency}`
  const known = moneyFormats.get(name)
  if (known) return known
  const made = new Intl.NumberFormat(locale, { style: 'currency', currency, numberingSystem: 'latn' })
  if (moneyFormats.size >= moneyFormatsMost) moneyFormats.clear()
  moneyFormats.set(name, made)
  return made
}
const moneyFormats = new Map<string, Intl.NumberFormat>()
const moneyFormatsMost = 100
