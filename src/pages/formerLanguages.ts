// Texts by language, from data files. The shopper's browser says which; what no file has falls back to English.

import { readdirSync, readFileSync } from 'node:fs'

export type FormerTexts = Readonly<Record<string, string>>
export type FormerLanguages = ReadonlyMap<string, FormerTexts>

/** Reads a folder of `<language>.json`; every language has all of the English texts, its own where there are any. */
export function readLanguages(folder: URL): FormerLanguages {
  const read = (name: string): FormerTexts => JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
  const english = read('en.json')
  return new Map(
    readdirSync(folder)
      .filter(name => name.endsWith('.json'))
      .map(name => [name.slice(0, -5), { ...english, ...read(name) }]),
  )
}

/** The first language of `Accept-Language` that there is, by weight; English else. */
export function chooseFormer(
  languages: FormerLanguages,
  accepted: string | undefined,
): { readonly language: string; readonly texts: FormerTexts } {
  const wanted = (accepted ?? '')
    .split(',')
    .slice(0, 20)
    .map((part, at) => {
      const [tag, ...rest] = part.trim().split(';')
      const weight = Number(/q=([0-9.]+)/.exec(rest.join(';'))?.[1] ?? 1)
      return { language: tag!.toLowerCase().split('-')[0]!, weight: Number.isNaN(weight) ? 0 : weight, at }
    })
    .sort((a, b) => b.weight - a.weight || a.at - b.at)
  const language = wanted.find(one => one.weight > 0 && languages.has(one.language))?.language ?? 'en'
  return { language, texts: languages.get(language)! }
}
