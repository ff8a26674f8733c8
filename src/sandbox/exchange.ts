// What a simulator is given and what it answers: it is a server of its own, which knows nothing of the gateway but its protocols.

import { html, type Page, renderPage } from '../pages/html.ts'
import type { Language } from '../pages/languages/languages.ts'

export type PageRequest = {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
  readonly language: Language
}

export type PageAnswer = { readonly status: number; readonly body: string; readonly headers: Readonly<Record<string, string>> }

/** A simulator answers what lies below its path, or nothing. */
export type Simulator = (asked: PageRequest) => Promise<PageAnswer | undefined> | PageAnswer | undefined

/** What simulators share: time, randomness, a way to other servers, and their own address as browsers see it. */
export type World = {
  readonly time: () => number
  readonly uuid: () => string
  readonly bytes: (count: number) => Buffer
  readonly wait: (milliseconds: number) => Promise<void>
  /** Posts to the gateway, as another server does. */
  readonly post: (url: string, contentType: string, body: string) => Promise<{ readonly status: number; readonly body: string }>
  /** As browsers reach it: `https://gateway.example/simulators`. */
  readonly publicUrl: () => string
  /** Whether an address is one of a payment at the gateway: simulators send shoppers and notices nowhere else, for whoever asks them may be anybody's page. */
  readonly isOfPayment: (address: string | undefined) => address is string
}

export function page(
  { language }: PageRequest,
  world: World,
  made: Pick<Page, 'title' | 'body' | 'script' | 'tester'>,
  status = 200,
): PageAnswer {
  const nonce = world.bytes(16).toString('base64')
  const rendered = renderPage(
    { ...made, language, notice: language.texts.testNotice, formsAnywhere: true, framable: true },
    nonce,
  )
  return { status, ...rendered }
}

/** Of what a simulator does not know, or no longer. */
export function endedPage(asked: PageRequest, world: World): PageAnswer {
  const { endedTitle, endedText } = asked.language.texts
  return page(asked, world, { title: endedTitle, body: html`<h1>${endedTitle}</h1><p>${endedText}</p>` }, 404)
}

export const jsonPage = (status: number, body: object): PageAnswer => ({
  status,
  body: JSON.stringify(body),
  headers: { 'Content-Type': 'application/json;charset=UTF-8' },
})

export const textPage = (status: number, body: string, contentType = 'text/plain'): PageAnswer => ({
  status,
  body,
  headers: { 'Content-Type': contentType },
})

export const seeOther = (url: string): PageAnswer => ({
  status: 303,
  body: '',
  headers: { Location: new URL(url).href, 'Content-Type': 'text/plain' },
})

/** Of each kind of things that are kept: how many, and what they may take all together. */
const keptMost = 10_000
export const keptBytesMost = 16 * 1024 * 1024
/** What one takes beside its texts. */
const bytesOfOne = 512

/** Things that end by themselves, the oldest before their time where there are too many: a sandbox of weeks does not fill up, nor one that somebody floods. */
export function expiring<Value extends object>(time: () => number, milliseconds: number) {
  const kept = new Map<string, { readonly value: Value; readonly until: number; readonly bytes: number }>()
  let bytes = 0
  const drop = (key: string) => {
    bytes -= kept.get(key)?.bytes ?? 0
    kept.delete(key)
  }
  return {
    get(key: string): Value | undefined {
      const found = kept.get(key)
      return found && found.until > time() ? found.value : undefined
    },
    set(key: string, value: Value): void {
      drop(key)
      const added = bytesOfOne + 2 * (key.length + JSON.stringify(value).length)
      for (const [old, { until }] of kept) {
        if (until > time() && kept.size < keptMost && bytes + added <= keptBytesMost) break
        drop(old)
      }
      kept.set(key, { value, until: time() + milliseconds, bytes: added })
      bytes += added
    },
  }
}
