// A switch of the simulators: who shops without hands says on redirect.url what the shopper does (`?auto=approve`), and it goes along from page to page.

import { peek, readForm } from '../contract/form.ts'

/** The address with the switch of the page that leads there. */
export function passAuto(url: string, query: string): string {
  const form = readForm(query)
  const auto = form === 'tooManyParameters' ? undefined : peek(form, 'auto')
  if (auto === undefined || !/^[a-zA-Z0-9]{1,20}$/.test(auto)) return url
  return `${url}${url.includes('?') ? '&' : '?'}auto=${auto}`
}
