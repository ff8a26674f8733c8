// The demo shop: a merchant's server of its own, on a port and so an origin of its own. It speaks to the gateway over HTTP, as every merchant does.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseUrl } from '../../contract/url.ts'
import { type HostRules, hostRefusal, reachedAt } from '../../http/host.ts'
import { languageOf } from '../../pages/languages/languages.ts'
import type { Clock, Random } from '../../platform/clock.ts'
import { boundConnections, http, takeOnly } from '../../platform/http.ts'
import type { Log } from '../../platform/log.ts'
import { type Account, beginCheckout, type GatewayRecord, isPending, openNotification, readStatus } from './merchant.ts'
import { payingPage, product, thanksPage } from './pages.ts'

export type DemoShop = { readonly url: string; stop(): Promise<void> }

export type DemoShopParts = {
  readonly account: Account
  readonly host: string
  readonly hosts: HostRules
  /** Where it would like to be; another one when that is taken. */
  readonly port: number
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
}

/** Orders that are remembered, so that a page of thanks can be loaded again: a status is read once. */
const ordersMost = 1000
const connectionsMost = 256
/** Pages that are being made, each by calls to the gateway. One more is told to come again. */
const pagesMost = 32
/** Pages that hear of notifications. One more is told that there is nothing, and asks no more. */
const listenersMost = 32
/** What a page may leave untaken: one that takes nothing is closed. */
const unreadMost = 1024 * 1024
/** Notifications that a page begins with. */
const heardMost = 20

/** What a page asks for, and where this browser finds gateway and shop. */
type Visit = { readonly query: URLSearchParams; readonly gateway: string; readonly shop: string }

export async function startDemoShop(parts: DemoShopParts): Promise<DemoShop> {
  const { account, random } = parts
  const orders = new Map<string, GatewayRecord>()
  const told = tellNotifications(parts)

  const show = (outgoing: ServerResponse, gateway: string, page: (nonce: string) => string) => {
    const nonce = random.bytes(16).toString('base64')
    outgoing.writeHead(200, {
      'Content-Type': 'text/html;charset=UTF-8',
      'Cache-Control': 'no-store',
      ...policy(gateway, nonce),
    })
    outgoing.end(page(nonce))
  }

  async function sell({ query, gateway, shop }: Visit, outgoing: ServerResponse): Promise<void> {
    const locale = languageOf(query.get('locale') ?? '')?.code ?? 'en'
    const secure = query.has('secure')
    const checkout = await beginCheckout(account, {
      amount: product.amount,
      currency: product.currency,
      paymentType: 'DB',
      merchantTransactionId: `order-${random.uuid()}`,
      'merchant.name': 'Coffee & Co',
      ...(secure && { 'customParameters[3DS2_enrolled]': 'true' }),
    })
    show(outgoing, gateway, nonce => payingPage({ gateway, nonce }, checkout, { thanks: `${shop}/done`, locale, secure }))
  }

  async function thank({ query, gateway }: Visit, outgoing: ServerResponse): Promise<void> {
    const id = query.get('id') ?? ''
    const status = orders.get(id) ?? (await readStatus(account, id))
    if (!isPending(status)) {
      if (orders.size >= ordersMost) orders.delete(orders.keys().next().value!)
      orders.set(id, status)
    }
    show(outgoing, gateway, nonce => thanksPage({ gateway, nonce }, status))
  }

  /** The shop as this browser reaches it, and the gateway beside it: under the same name, unless that has one of its own. */
  function placesFor(incoming: IncomingMessage): Pick<Visit, 'gateway' | 'shop'> {
    const shop = reachedAt('http', incoming) ?? `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const gateway = new URL(account.baseUrl)
    if (parts.hosts.followed) gateway.hostname = new URL(shop).hostname
    return { shop, gateway: gateway.origin }
  }

  let beingMade = 0
  const server = http.createServer((incoming, outgoing) => {
    takeOnly(incoming, outgoing)
    const refuse = (status: number, text: string) => void outgoing.writeHead(status, { 'Content-Type': 'text/plain' }).end(text)
    // A page of another site may reach this machine under a name of its own.
    if (hostRefusal(incoming, parts.hosts)) return refuse(400, 'This is not the shop of that name.')
    if (isPartOfOthers(incoming)) return refuse(403, 'The shop is a page of its own, and no part of another.')
    const asked = parseUrl(`http://shop${incoming.url ?? '/'}`)
    if (!asked) return refuse(400, 'That is no address.')
    const { pathname, searchParams: query } = asked
    const visit = { query, ...placesFor(incoming) }
    const nothing = async () => refuse(404, 'There is nothing here.')
    const pages: Readonly<Record<string, () => Promise<void>>> = {
      '/': () => sell(visit, outgoing),
      '/done': () => thank(visit, outgoing),
      '/notifications': async () => told.follow(outgoing),
    }
    const page = incoming.method === 'GET' && Object.hasOwn(pages, pathname) ? pages[pathname]! : nothing
    if (beingMade >= pagesMost) return refuse(503, 'Too many come at once. Try again in a moment.')
    beingMade++
    page()
      .catch((error: Error) => {
        parts.log.warn({ why: error.message }, 'the demo shop could not show a page')
        if (!outgoing.headersSent) outgoing.writeHead(502, { 'Content-Type': 'text/plain' })
        outgoing.end('The gateway did not answer.')
      })
      .finally(() => beingMade--)
  })
  boundConnections(server, connectionsMost)
  await listen(server, parts)
  server.unref()
  const own = new URL(account.baseUrl)
  return {
    url: `http://${own.hostname}:${(server.address() as AddressInfo).port}`,
    async stop() {
      told.stop()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** A picture, a frame or a request of another site's page: each would begin a checkout, or take the place of a page that listens. Whoever follows a link may come. */
const isPartOfOthers = ({ headers }: IncomingMessage): boolean =>
  headers['sec-fetch-site'] === 'cross-site' && headers['sec-fetch-dest'] !== 'document'

async function listen(server: Server, { port, host }: DemoShopParts): Promise<void> {
  const on = (wanted: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(wanted, host, () => {
        server.off('error', reject)
        resolve()
      })
    })
  await on(port).catch(error => {
    if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') throw error
    return on(0)
  })
}

/** What a shop's page needs for the form, beside itself. */
const policy = (gateway: string, nonce: string) => ({
  'Content-Security-Policy': `default-src 'none'; script-src 'nonce-${nonce}' ${gateway}; style-src 'nonce-${nonce}' ${gateway}; img-src data: ${gateway}; frame-src ${gateway}; connect-src 'self' ${gateway}; form-action 'self' ${gateway}; base-uri 'none'; frame-ancestors 'none'`,
})

/** While a page of the shop is open: reads notifications from where a sandbox keeps them for listeners without a public address, and tells every page. */
function tellNotifications({ account, clock, log }: DemoShopParts) {
  const pages = new Set<ServerResponse>()
  /** A page that opens later hears of it too: between two pages nobody listens. */
  const heard: string[] = []
  let after = '0'
  let reading = false
  const read = async (wait: number): Promise<void> => {
    const response = await fetch(`${account.baseUrl}/sandbox/notifications`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${account.accessToken}` },
      body: new URLSearchParams({ entityId: account.entityId, name: 'demo-shop', after, wait: String(wait) }),
    })
    const { secret, notifications } = (await response.json()) as Cursor
    for (const { position, headers, body } of notifications) {
      after = position
      const line = `data: ${JSON.stringify(openNotification(secret, headers, body))}\n\n`
      heard.splice(0, heard.length - heardMost + 1)
      heard.push(line)
      for (const page of pages) if (!page.write(line) && page.writableLength > unreadMost) page.destroy()
    }
  }
  const readOn = async () => {
    reading = true
    while (pages.size > 0)
      await read(2).catch(async (error: Error) => {
        log.debug({ why: error.message }, 'the demo shop could not read its notifications')
        await clock.sleep(1000)
      })
    reading = false
  }
  return {
    follow(outgoing: ServerResponse) {
      if (pages.size >= listenersMost) return void outgoing.writeHead(204).end()
      outgoing.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
      outgoing.write(`:\n\n${heard.join('')}`)
      pages.add(outgoing)
      outgoing.once('close', () => pages.delete(outgoing))
      if (!reading)
        readOn().catch((error: Error) => log.warn({ why: error.message }, 'the demo shop hears of no payments any more'))
    },
    stop() {
      for (const page of pages) page.end()
      pages.clear()
    },
  }
}

type Cursor = {
  readonly secret: string
  readonly notifications: readonly {
    readonly position: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }[]
}
