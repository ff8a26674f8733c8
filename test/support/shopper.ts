// A shopper without a browser: follows redirects, keeps cookies, submits the forms of pages. Fast, and able to do what no honest browser does.

import assert from 'node:assert/strict'
import { decode } from './entities.ts'

export type Form = { readonly action: string; readonly method: string; readonly fields: Record<string, string> }
export type Seen = {
  readonly status: number
  readonly url: string
  readonly text: string
  readonly location: string | undefined
  readonly headers: Headers
}

export type Shopper = {
  readonly cookies: Map<string, string>
  /** One request, no redirect followed. */
  open(url: string, form?: Record<string, string>): Promise<Seen>
  /** Goes on until an address that does not begin with `base`, or a page without a form that submits itself. */
  walk(url: string, base: string, form?: Record<string, string>): Promise<Seen>
  /** Presses a button of a page. */
  press(seen: Seen, button: string, base: string, more?: Record<string, string>): Promise<Seen>
}

/** `reach`: where an address is really to be found, for gateways under a name that leads nowhere. */
export function makeShopper(language = 'en', reach: (url: string) => string = url => url): Shopper {
  const cookies = new Map<string, string>()
  const shopper: Shopper = {
    cookies,
    async open(url, form) {
      const response = await fetch(reach(url), {
        redirect: 'manual',
        headers: {
          Accept: 'text/html',
          'Accept-Language': language,
          'User-Agent': 'Test shopper',
          Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          ...(form && { 'Content-Type': 'application/x-www-form-urlencoded' }),
        },
        ...(form && { method: 'POST', body: new URLSearchParams(form).toString() }),
      })
      for (const cookie of response.headers.getSetCookie()) {
        const [name, value] = cookie.split(';')[0]!.split('=') as [string, string]
        cookies.set(name, value)
      }
      const location = response.headers.get('location')
      return {
        status: response.status,
        url,
        text: await response.text(),
        location: location === null ? undefined : new URL(location, url).href,
        headers: response.headers,
      }
    },
    async walk(url, base, form) {
      let seen = await shopper.open(url, form)
      for (let hops = 0; hops < 20; hops++) {
        if (seen.location !== undefined) {
          if (!seen.location.startsWith(base)) return seen
          seen = await shopper.open(seen.location)
          continue
        }
        const [first] = formsOf(seen)
        if (first === undefined || !seen.text.includes('.submit()')) return seen
        const frame = /<iframe id="frame" src="([^"]+)"/.exec(seen.text)?.[1]
        if (frame !== undefined) await shopper.walk(decode(frame), base)
        seen = await shopper.open(first.action, { ...first.fields, ...(first.fields.browser && browserFields) })
      }
      return assert.fail(`the shopper goes round in circles at ${seen.url}`)
    },
    async press(seen, button, base, more = {}) {
      const form = formsOf(seen).find((_, at) => formTexts(seen)[at]!.includes(`value="${button}"`))
      assert.ok(form, `no button ${button} on ${seen.url}: ${seen.text.slice(0, 400)}`)
      return shopper.walk(form.action, base, { ...form.fields, action: button, ...more })
    },
  }
  return shopper
}

const browserFields = {
  language: 'en',
  screenHeight: '900',
  screenWidth: '1600',
  screenColorDepth: '24',
  timezone: '-60',
  javaEnabled: 'false',
  javascriptEnabled: 'true',
}

const formTexts = ({ text }: Seen): string[] => text.match(/<form[\s\S]*?<\/form>/g) ?? []

export const formsOf = (seen: Seen): Form[] =>
  formTexts(seen).map(text => {
    const attribute = (tag: string, name: string) => decode(new RegExp(`${name}="([^"]*)"`).exec(tag)?.[1] ?? '')
    const open = /<form[^>]*>/.exec(text)![0]
    const inputs = text.match(/<input type="hidden"[^>]*>/g) ?? []
    return {
      action: new URL(attribute(open, 'action'), seen.url).href,
      method: attribute(open, 'method'),
      fields: Object.fromEntries(inputs.map(input => [attribute(input, 'name'), attribute(input, 'value')])),
    }
  })
