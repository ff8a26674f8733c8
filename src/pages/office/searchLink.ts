// Where a figure leads: to the payments behind it. The search understands what its box is given; where there is no search, a figure is a figure.

import { type Html, html } from '../html.ts'
import { menu } from './navigation.ts'

/** `words`: as somebody would type them, for example a day, a result code and a currency. */
export function searchLink(text: string, ...words: readonly string[]): Html {
  if (!menu.some(({ path }) => path === '/payments')) return html`${text}`
  return html`<a href="/office/payments?${new URLSearchParams({ q: words.join(' ') }).toString()}">${text}</a>`
}
