// The simulators of shopper-facing methods as a server of their own on a loopback port. The gateway asks it over HTTP like any other party;
// browsers reach it through the gateway's own address, below /simulators/, so that one port is enough.

import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseUrl } from '../contract/url.ts'
import { type HostRules, isOwnHost } from '../http/host.ts'
import { chooseLanguage } from '../pages/languages/languages.ts'
import { type Clock, type Random, randomHex } from '../platform/clock.ts'
import { http, https } from '../platform/http.ts'
import { callable } from '../platform/network.ts'
import { bank } from './bank/bank.ts'
import { type PageAnswer, type Simulator, textPage, type World } from './exchange.ts'
import { issuer } from './threeDSecure/issuer.ts'
import { walletSimulator } from './wallet/paypal.ts'

export type Simulators = { readonly url: string; stop(): Promise<void> }

const bodyMax = 300_000

/** Where the gateway listens, for the simulators beside it: its public name need not lead anywhere from this machine. */
export type Home = { readonly host: string; readonly port: number; readonly tls: boolean; readonly hosts: HostRules }

/** `simulatorPages`: where browsers reach what is served here. */
export async function startSimulators(
  clock: Clock,
  random: Random,
  simulatorPages: () => string,
  home: () => Home,
): Promise<Simulators> {
  const world: World = {
    time: () => clock.real(),
    uuid: random.uuid,
    bytes: random.bytes,
    wait: milliseconds => new Promise(resolve => clock.after(milliseconds, resolve).unref()),
    publicUrl: simulatorPages,
    isOfPayment: (address): address is string => {
      const at = parseUrl(address ?? '')
      if (!at?.pathname.startsWith('/r/')) return false
      const { names, followed } = home().hosts
      return at.origin === new URL(simulatorPages()).origin || (followed === true && isOwnHost(at.hostname, names!))
    },
    post: async (url, contentType, body) => postHome(home(), new URL(url), contentType, body),
  }
  const simulators: readonly Simulator[] = [issuer(world), walletSimulator(world), bank(world)]
  // A page of another site finds the port by trying, and not this.
  const base = `/${randomHex(random)}/simulators`
  const server = http.createServer((incoming, outgoing) => {
    const send = ({ status, body, headers }: PageAnswer) =>
      outgoing.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) }).end(body)
    answer(simulators, base, incoming)
      .then(send)
      .catch(error => send(textPage(500, String((error as Error).message))))
      .catch(() => outgoing.destroy())
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  server.unref()
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${base}`,
    async stop() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

async function answer(simulators: readonly Simulator[], base: string, incoming: IncomingMessage): Promise<PageAnswer> {
  const url = parseUrl(incoming.url ?? '/', 'http://simulators')
  if (!url?.pathname.startsWith(`${base}/`)) return textPage(404, 'There is nothing here.')
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > bodyMax) return textPage(413, 'too large')
    chunks.push(chunk)
  }
  const headers = incoming.headers as Record<string, string | undefined>
  const path = url.pathname.slice(base.length)
  const asked = {
    method: incoming.method ?? 'GET',
    path,
    query: url.searchParams,
    headers,
    body: Buffer.concat(chunks).toString('utf8'),
    language: chooseLanguage(headers['accept-language']),
  }
  for (const simulator of simulators) {
    const told = await simulator(asked)
    if (told) return told
  }
  return textPage(404, 'There is nothing here.')
}

/** Posts a notice to the gateway itself. Its certificate is not looked at: the call does not leave this machine's sandbox. */
function postHome({ host, port, tls }: Home, { pathname, host: name }: URL, contentType: string, body: string) {
  return new Promise<{ status: number; body: string }>((resolve, reject) => {
    const options = {
      host: callable(host).replace(/^\[|\]$/g, ''),
      port,
      method: 'POST',
      path: pathname,
      headers: { Host: name, 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(body) },
      timeout: 10_000,
    }
    const request = tls ? https.request({ ...options, rejectUnauthorized: false }) : http.request(options)
    request.once('error', reject)
    request.once('timeout', () => request.destroy(new Error('no answer')))
    request.once('response', response => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => {
        text += part
      })
      response.once('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
      response.once('error', reject)
    })
    request.end(body)
  })
}
