// The canary: marked card numbers, CVVs, passwords and tokens go through every route, failures included; afterwards they are looked for in all
// answers, all logs, every table (by COPY), and the bytes of the data folder with its WAL.

import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { testPool } from './support/database.ts'
import { eventually } from './support/gateway.ts'
import { type Started, startProcess } from './support/process.ts'
import { makeShopper } from './support/shopper.ts'

const dataDir = join(mkdtempSync(join(tmpdir(), 'tollgate-canary-')), 'data')
let gateway: Started
const heard: string[] = []

// Numbers that pass the check digit and stand nowhere else; the CVVs are searched for only where nothing else has four such digits.
const numbers = { good: '4539578763621486', master: '5425233430109903', badDigit: '4539578763621487', amex: '374245455400126' }
const secrets = [...Object.values(numbers), 'canary-password-1', 'canary-memo-IBAN-DE02', 'canaryAccountPassword']

before(async () => {
  gateway = await startProcess({ DATA_DIR: dataDir, LOG_LEVEL: 'debug' })
})
after(async () => {
  await gateway.stop()
  rmSync(join(dataDir, '..'), { recursive: true, force: true })
})

async function send(
  method: string,
  path: string,
  fields: Record<string, string>,
  headers: Record<string, string> = {},
  credentials = true,
): Promise<{ id?: string; redirect?: { url: string } }> {
  const { baseUrl, entityId, accessToken } = gateway.sandbox
  const form = new URLSearchParams({ ...(credentials && { entityId }), ...fields })
  const response = await fetch(method === 'POST' ? `${baseUrl}${path}` : `${baseUrl}${path}?${form}`, {
    method,
    headers: { ...(credentials && { Authorization: `Bearer ${accessToken}` }), ...headers },
    ...(method === 'POST' && { body: form }),
  })
  const text = await response.text()
  heard.push(text)
  return JSON.parse(text)
}

it('what is secret is nowhere but sealed', async () => {
  const card = (number: string, more = {}) => ({
    amount: '92.00',
    currency: 'EUR',
    paymentType: 'PA',
    'card.number': number,
    'card.holder': 'Jane Jones',
    'card.expiryMonth': '05',
    'card.expiryYear': '2034',
    'card.cvv': '123',
    ...more,
  })
  const { id } = await send('POST', '/v1/payments', card(numbers.good), { 'Idempotency-Key': 'canary-1' })
  await send('POST', '/v1/payments', card(numbers.good, { amount: '93.00' }), { 'Idempotency-Key': 'canary-1' })
  await send('POST', '/v1/payments', card(numbers.master, { paymentType: 'DB', 'customParameters[simulateAnswer]': 'none' }))
  await send(
    'POST',
    '/v1/payments',
    card(numbers.master, { paymentType: 'DB', 'customParameters[forceResultCode]': '800.100.151' }),
  )
  // 3-D Secure: one shopper is away, one came back.
  const away = { paymentType: 'DB', 'customParameters[3DS2_enrolled]': 'true', shopperResultUrl: 'http://127.0.0.1:9/' }
  await send('POST', '/v1/payments', card(numbers.good, { ...away, 'threeDSecure.challengeIndicator': '04' }))
  const { redirect } = await send('POST', '/v1/payments', card(numbers.good, away))
  await makeShopper().walk(redirect!.url, gateway.sandbox.baseUrl)
  await send('POST', '/v1/payments', card(numbers.badDigit))
  await send('POST', '/v1/payments', card(numbers.amex, { paymentBrand: 'VISA' }))
  await send('POST', '/v1/payments', card(numbers.amex, { 'card.cvv': 'x123', 'card.number': `${numbers.amex} ` }))
  await send('POST', '/v1/payments', card(numbers.good, { paymentType: 'PA.CP' }))
  // In the wrong field: refused or not, it is not repeated in an error.
  await send(
    'POST',
    '/v1/payments',
    card('123', {
      amount: numbers.good,
      'card.expiryMonth': numbers.good,
      'card.nummer': numbers.good,
      currency: numbers.master,
      entityid: numbers.amex,
    }),
  )
  await send(
    'POST',
    '/v1/payments',
    card(numbers.good, { 'virtualAccount.password': 'canaryAccountPassword', merchantMemo: 'canary-memo-IBAN-DE02' }),
  )
  await send('POST', `/v1/payments/${id}`, {
    paymentType: 'CP',
    amount: '92.00',
    currency: 'EUR',
    'card.number': numbers.good,
    merchantMemo: 'canary-memo-IBAN-DE02',
  })
  await send('POST', `/v1/payments/${id}`, {
    paymentType: 'RF',
    amount: '92.00',
    currency: 'EUR',
    merchantMemo: 'canary-memo-IBAN-DE02',
  })
  await send('POST', `/v1/payments/${numbers.good}`, { paymentType: 'RV' })
  await send('POST', `/v1/payments?card.number=${numbers.good}`, card(numbers.good))
  await send('GET', `/v1/payments/${id}`, { 'card.number': numbers.good })
  await send('GET', `/v1/payments/${numbers.good}`, {})
  await send('GET', `/v1/query/${numbers.good}`, {})
  await send('GET', '/v3/query', { 'date.from': '2000-01-01', 'date.to': '2099-12-31' })
  await send('GET', `/v1/nothing/${numbers.good}`, { 'card.number': numbers.good })
  await send(
    'POST',
    '/v1/payments',
    { ...card(numbers.good), 'authentication.userId': 'someone', 'authentication.password': 'canary-password-1' },
    {},
    false,
  )
  await send('POST', '/v1/payments', card(numbers.good), { 'Content-Type': 'text/plain' })
  await send('POST', '/v1/payments', card(numbers.good), { Authorization: `Bearer ${numbers.good}` })
  // Registrations and checkouts: made, changed, paid, failed, ended.
  const { registrationId } = (await send('POST', '/v1/payments', card(numbers.good, { createRegistration: 'true' }))) as {
    registrationId: string
  }
  await send('POST', `/v1/registrations/${registrationId}/payments`, {
    amount: '92.00',
    currency: 'EUR',
    paymentType: 'PA',
    'card.cvv': '123',
  })
  await send('POST', `/v1/registrations/${registrationId}/payments`, card(numbers.good))
  await send('GET', `/v1/registrations/${registrationId}`, {})
  const alone = card(numbers.master, { amount: '', currency: '', paymentType: '' })
  await send('POST', '/v1/registrations', alone, { 'Idempotency-Key': 'canary-2' })
  await send('POST', '/v1/registrations', { ...alone, 'card.number': numbers.badDigit })
  await send('DELETE', `/v1/registrations/${registrationId}`, { 'card.number': numbers.good })
  await send('POST', '/v1/checkouts', card(numbers.good, { 'virtualAccount.password': 'canaryAccountPassword' }))
  const order = { amount: '92.00', currency: 'EUR', paymentType: 'PA', merchantMemo: 'canary-memo-IBAN-DE02' }
  const { id: checkout } = await send('POST', '/v1/checkouts', order)
  await send('POST', `/v1/checkouts/${checkout}`, card(numbers.good))
  const form = { Accept: 'application/json' }
  await send('POST', `/v1/checkouts/${checkout}/payment`, card(numbers.badDigit), form, false)
  await send(
    'POST',
    `/v1/checkouts/${checkout}/payment`,
    card(numbers.amex, { paymentBrand: 'VISA', 'customParameters[x]': numbers.good }),
    form,
    false,
  )
  await send(
    'POST',
    `/v1/checkouts/${checkout}/payment`,
    card(numbers.good, { 'customParameters[SHOPPER_card]': numbers.good }),
    form,
    false,
  )
  await send('POST', `/v1/checkouts/${checkout}/payment`, card(numbers.good), form, false)
  await send('GET', `/v1/checkouts/${checkout}/payment`, {})
  await send('POST', '/sandbox/clock', { advance: '2m', 'card.number': numbers.good })

  const connection = runningEmbedded(dataDir)!
  const pool = testPool(connection, 1)
  // A failing statement must not bring its values into the server's log.
  await pool.query('select $1::integer', [numbers.good]).catch(() => {})
  await eventually(async () => (await pool.query(lastRequest)).rowCount === 1, 'the last request is recorded')
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I', tablename) as name from pg_tables where schemaname = 'public'`,
  )
  const searched: [where: string, bytes: Buffer][] = [['the answers', Buffer.from(heard.join('\n'))]]
  for (const { name } of tables) {
    const { rows } = await pool.query<{ line: string }>(`select t::text as line from ${name} t`)
    searched.push([`table ${name}`, Buffer.from(rows.map(({ line }) => line).join('\n'))])
  }
  assert.ok(searched.find(([where]) => where === 'table sealed_cards')![1].length > 100, 'cards are sealed')
  await pool.end()
  // A server that runs removes files while they are read, and keeps some of what it has from the disk.
  await gateway.stop()
  searched.push(['what it printed', Buffer.from(gateway.printed().replace(/^ *curl .*$/m, ''))])
  for (const path of filesBelow(dataDir)) searched.push([path, readFileSync(path)])
  assert.ok(
    searched.some(([where]) => /pg_wal/.test(where)),
    'the WAL is searched',
  )

  for (const [where, bytes] of searched) {
    for (const secret of secrets) {
      for (const [how, form] of Object.entries(formsOf(secret)))
        assert.ok(!bytes.includes(form), `${secret.slice(0, 6)}… (${how}) stands in ${where}`)
    }
    // The form's script, which is public, names the field.
    if ((where.startsWith('table') && where !== 'table form_scripts') || where.startsWith('what'))
      assert.ok(!/card\.cvv|"cvv"/.test(withoutMention(bytes.toString('utf8'))), `a CVV stands in ${where}`)
  }
  assert.ok(!heard.join().includes(gateway.sandbox.accessToken))
  assert.ok(!searched.some(([where, bytes]) => where.startsWith('table') && bytes.includes(gateway.sandbox.accessToken)))
})

const lastRequest = `select from request_records where method = 'GET' and path like '/v1/checkouts/%'`

/** The record of a request says that one was sent, or what was wrong with it, and never which. */
const withoutMention = (text: string): string => text.replace(/"+card\.cvv"+(,"+•••"+\]|,"+message"+:)/g, '')

const formsOf = (secret: string): Record<string, string> => ({
  plain: secret,
  spaced: secret.replace(/(\d{4})(?=\d)/g, '$1 '),
  hex: Buffer.from(secret).toString('hex'),
  base64: Buffer.from(secret).toString('base64').replace(/=+$/, ''),
})

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(path => statSync(path).size > 0)
}
