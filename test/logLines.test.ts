// A running gateway with the most talkative log: whatever callers make up (paths, names, values, headers, tokens), none of it is in a line.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { eventually, visa } from './support/gateway.ts'
import { type Started, startProcess } from './support/process.ts'

const dataDir = join(mkdtempSync(join(tmpdir(), 'tollgate-lines-')), 'data')
let gateway: Started
before(async () => {
  gateway = await startProcess({ DATA_DIR: dataDir, LOG_LEVEL: 'debug' })
})
after(async () => {
  await gateway.stop()
  rmSync(join(dataDir, '..'), { recursive: true, force: true })
})

// No digit: what only looks for card numbers does not find it.
const made = 'MadeUpByACaller'
const number = '4111111111111111'

async function send(
  method: string,
  path: string,
  body?: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Response> {
  const { baseUrl, accessToken } = gateway.sandbox
  const form = body && new URLSearchParams(body)
  return fetch(`${baseUrl}${path}`, {
    method,
    redirect: 'manual',
    headers: { Authorization: `Bearer ${accessToken}`, ...headers },
    ...(form && { body: form }),
  })
}

it('no name and no value that a caller made is logged', async () => {
  const { entityId } = gateway.sandbox
  const lenientEntityId = '5a11d0000000000000000000000000c2'
  const payment = { entityId, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...visa }
  await send('GET', `/${made}/${number}`)
  await send('GET', `/v1/${made}?${made}=${number}`)
  await send('GET', `/v1/payments/${made}?entityId=${entityId}&${number}=${made}`)
  await send('POST', `/v1/payments/${made}`, { ...payment, paymentType: 'RV' })
  await send('POST', `/v1/payments?${made}=${number}`, payment)
  await send('DELETE', `/v1/payments/${made}`)
  await send('POST', '/v1/payments', {
    ...payment,
    [made]: number,
    [`customParameters[${made}]`]: made,
    merchantTransactionId: made,
  })
  await send('POST', '/v1/payments', {
    ...payment,
    entityId: lenientEntityId,
    [`customParameters[${made}${'x'.repeat(70)}]`]: made,
    [`customParameters[${number}]`]: '\u0001',
    'customer.email': made,
  })
  await send('POST', '/v1/payments', {
    ...payment,
    entityId: lenientEntityId,
    'customer.email': made,
    'customer.mobile': made,
    'cart.items[0].quantity': made,
    'cart.items[0].name': made,
  })
  await send('POST', '/v1/payments', payment, { 'Content-Type': `text/${made}`, 'User-Agent': made, 'Idempotency-Key': made })
  await send('GET', `/v1/payments/${'0'.repeat(32)}?entityId=${made}`)
  await send('GET', `/v1/payments/${'0'.repeat(32)}`, undefined, { Authorization: `Bearer ${made}` })
  await send('GET', `/v1/query?authentication.userId=${made}&authentication.password=${made}`, undefined, { Authorization: made })
  await send('GET', `/r/${made}?${number}=1`)
  await send('GET', `/r/return/${made}?${number}=1`)
  await send('POST', `/r/notice/${made}`, { [made]: number })
  await send('GET', `/simulators/${made}/${number}?${made}=${number}`)
  await send('POST', '/sandbox/clock', { entityId, advance: made })
  await send('POST', '/sandbox/notifications', { entityId, name: `${made}!` })
  const away = { 'customParameters[3DS2_enrolled]': 'true', shopperResultUrl: `http://127.0.0.1:9/${made}` }
  const { redirect } = (await (await send('POST', '/v1/payments', { ...payment, ...away })).json()) as {
    redirect: { url: string }
  }
  const token = redirect.url.split('/').at(-1)!
  await send('POST', `/r/return/${token}?${number}=${made}`, { [number]: made, [made]: number, cres: made })
  await send('GET', `/r/return/${token}?${number}=${made}`)
  await send('GET', '/health')

  const lines = await eventually(async () => {
    const found = gateway
      .printed()
      .split('\n')
      .filter(line => line.startsWith('{'))
    return found.some(line => line.includes('/health')) && found
  }, 'the last request is in the log')
  for (const needed of [
    'answered',
    'a caller was turned away',
    'a return was refused',
    'malformed descriptive parameters were dropped',
  ])
    assert.ok(
      lines.some(line => JSON.parse(line).msg === needed),
      `${needed} is logged`,
    )
  // In a sandbox the names of unknown parameters are shown on purpose, unless they look like a number.
  const shownOnPurpose = (line: string) => JSON.parse(line).msg === 'unknown parameters were ignored'
  assert.ok(!lines.some(line => line.includes(number)))
  for (const line of lines.filter(line => !shownOnPurpose(line))) {
    for (const secret of [made, number, token]) assert.ok(!line.includes(secret), line)
    assert.ok(line.length < 1000, line)
  }
  assert.ok(lines.some(line => JSON.parse(line).route === '/v1/payments/{id}'))
  assert.ok(lines.some(line => JSON.parse(line).route === 'elsewhere'))
})
