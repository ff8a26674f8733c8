// What people and tokens do to a gateway, done as they do it: by the command line and over HTTP. Then the audit is read and verified.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { thisProcess } from '../src/audit/entry.ts'
import { sandboxSeed } from '../src/merchants/seed.ts'
import { runningEmbedded } from '../src/platform/database/find.ts'
import { withPool } from './support/database.ts'
import { sandbox, visa } from './support/gateway.ts'
import { manyCommands, type Started, startProcess } from './support/process.ts'
import { startReceiver } from './support/receiver.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-trail-'))
const dataDir = join(folder, 'data')
let gateway: Started
before(async () => {
  gateway = await startProcess({ DATA_DIR: dataDir })
})
after(async () => {
  commandHost.stop()
  await gateway.stop()
  rmSync(folder, { recursive: true, force: true })
})

const commandHost = manyCommands({ DATA_DIR: dataDir })
const tollgate = commandHost.run

type Told = Record<'actorKind' | 'actor' | 'address' | 'action' | 'entityId' | 'subject' | 'result', string> & {
  sequence: number
  // biome-ignore lint/suspicious/noExplicitAny: each action has details of its own
  details: any
}
let reached = 0
/** What was told since the last time. */
async function told(...filter: string[]): Promise<Told[]> {
  const { out } = await tollgate('audit', '--json', '--limit', '1000', ...filter)
  const rows = (JSON.parse(out).rows as Told[]).filter(({ sequence }) => filter.length > 0 || sequence > reached)
  if (filter.length === 0) reached = rows.at(-1)?.sequence ?? reached
  return rows
}
const me = `commandLine ${thisProcess('commandLine').id} ${hostname()}`
const whoDid = ({ actorKind, actor, address, action }: Told) => `${actorKind} ${actor} ${address} ${action}`

const ourToken = 'a-token-of-our-own-for-this-test'
const channelId = '7e57c0de0000000000000000000000c7'
async function seedWith(settings: object): Promise<void> {
  const { psp, divisions } = JSON.parse(readFileSync(sandboxSeed, 'utf8'))
  divisions[0].merchants[0].channels.push({ id: channelId, name: 'Shop', settings })
  writeFileSync(
    join(folder, 'seed.json'),
    JSON.stringify({ psp, divisions, tokens: [{ label: 'shop', token: ourToken, entities: [channelId] }] }),
  )
  const { code, out } = await tollgate('seed', join(folder, 'seed.json'))
  assert.equal(code, 0, out)
}
const post = async (path: string, fields: Record<string, string>, token = gateway.sandbox.accessToken) => {
  const headers = { Authorization: `Bearer ${token}` }
  const response = await fetch(`${gateway.sandbox.baseUrl}${path}`, {
    method: 'POST',
    headers,
    body: new URLSearchParams(fields),
  })
  return (await response.json()) as { id: string }
}

it('the start of a sandbox tells of what its seed made, once', async () => {
  const rows = await told()
  assert.deepEqual(
    rows.map(({ actorKind, address, action }) => `${actorKind} ${address} ${action}`),
    [...Array(5).fill(`gateway ${hostname()} entityMade`), `gateway ${hostname()} tokenMade`],
  )
  await gateway.stop()
  gateway = await startProcess({ DATA_DIR: dataDir })
  assert.deepEqual(await told(), [])
})

it('a seed by hand: what it made, and which settings it changed', async () => {
  await seedWith({ lenient: true })
  const made = await told()
  assert.deepEqual(made.map(whoDid), [`${me} entityMade`, `${me} tokenMade`])
  assert.equal(made[0]!.entityId, channelId)
  assert.ok(!JSON.stringify(made).includes(ourToken))
  await seedWith({ lenient: true })
  assert.deepEqual(await told(), [])
  await seedWith({ lenient: false, brands: ['VISA'] })
  const [changed, ...more] = await told()
  assert.deepEqual(
    [changed!.action, changed!.subject, changed!.details, more],
    ['entityChanged', channelId, { lenient: [true, false], brands: [null, ['VISA']] }, []],
  )
})

it('a revocation', async () => {
  const [{ subject: tokenId }] = (await told('--action', 'tokenMade', '--entity', channelId)) as [Told]
  assert.equal((await tollgate('revoke', '0'.repeat(32))).code, 1)
  assert.equal((await tollgate('revoke', tokenId)).code, 0)
  const rows = await told()
  assert.deepEqual(
    rows.map(row => `${whoDid(row)} ${row.subject} ${row.entityId}`),
    [`${me} tokenRevoked ${tokenId} ${channelId}`],
  )
})

it('endpoints and their secrets, and never a secret', async () => {
  const receiver = await startReceiver()
  const made = await tollgate('endpoints', 'create', '--entity', sandbox.merchantId, '--url', receiver.url)
  const id = /endpoint {2}([0-9a-f]{32})/.exec(made.out)![1]!
  receiver.answer = () => 500
  assert.match((await tollgate('endpoints', 'activate', id)).out, /not activated/)
  await tollgate('endpoints', 'test', id)
  receiver.answer = () => 200
  await tollgate('endpoints', 'activate', id)
  const shown = await tollgate('endpoints', 'secret', id)
  await tollgate('endpoints', 'rotate', id)
  await tollgate('endpoints', 'rotate', id, '--finish')
  await tollgate('endpoints', 'disable', id)
  await receiver.close()
  await tollgate('endpoints', 'test', id)
  const rows = await told()
  const test = ['actBegun', 'endpointTested']
  assert.deepEqual(
    rows.map(row => `${whoDid(row)} ${row.subject} ${row.entityId}`),
    [
      'endpointMade',
      ...[...test, ...test, ...test, 'endpointActivated'],
      ...['secretShown', 'secretRotated', 'secretRotated', 'endpointClosed'],
      ...test,
    ].map(action => `${me} ${action} ${id} ${sandbox.merchantId}`),
  )
  const tested = rows.filter(({ action }) => action === 'endpointTested')
  assert.deepEqual(
    tested.map(({ details }) => details.status),
    [500, 500, 200, 'no answer'],
  )
  const secret = /[0-9A-F]{64}/.exec(shown.out)![0]
  assert.ok(!JSON.stringify(rows).includes(secret))
})

it('a rebuild of what is searched, when it begins and when it ends', async () => {
  assert.equal((await tollgate('search', 'rebuild')).code, 0)
  assert.deepEqual((await told()).map(whoDid), [`${me} actBegun`, `${me} searchRebuilt`])
})

it("a sandbox's clock, by the token that moved it", async () => {
  await post('/sandbox/clock', { entityId: sandbox.entityId, advance: '90s' })
  await post('/sandbox/clock', { entityId: sandbox.entityId })
  const [{ subject: tokenId }] = (await told('--action', 'tokenMade', '--since', '2020-01-01')) as [Told]
  const rows = await told()
  assert.deepEqual(
    rows.map(row => [whoDid(row), row.entityId, row.details]),
    [[`token ${tokenId} 127.0.0.1 clockMoved`, sandbox.merchantId, { milliseconds: 90_000 }]],
  )
})

it('a report of chargebacks, each line that became one, and the whole', async () => {
  const { id } = await post('/v1/payments', {
    entityId: sandbox.entityId,
    paymentType: 'DB',
    amount: '92.00',
    currency: 'EUR',
    ...visa,
  })
  const report = join(folder, 'north.csv')
  const lines = [`north-1,1,CB,,${id},92.00,EUR,10.4,2031-03-04`, `north-1,2,CB,,${'0'.repeat(32)},92.00,EUR,10.4,2031-03-04`]
  writeFileSync(report, ['report,line,type,acquirer,reference,amount,currency,reason,date', ...lines].join('\n'))
  await tollgate('chargebacks', 'import', report)
  const rows = await told()
  const file = { kind: 'chargebackReport', name: 'north.csv' }
  assert.deepEqual(
    rows.map(row => [whoDid(row), row.details]),
    [
      [`${me} actBegun`, { act: 'fileImported', ...file }],
      [`${me} chargebackRecorded`, { type: 'CB', referenceId: id, report: 'north-1', line: 1 }],
      [`${me} fileImported`, { ...file, noted: 0, recorded: 1, known: 0, refused: 1, begun: rows[0]!.sequence }],
    ],
  )

  const broken = join(folder, 'broken.csv')
  writeFileSync(broken, 'hello')
  const read = await tollgate('chargebacks', 'import', broken)
  const why = 'it does not begin with the heading that docs/reference/chargeback-report.md shows'
  assert.deepEqual([read.code, read.out], [1, `Nothing of ${broken} was read: ${why}.\n`])
  const [refused] = await told()
  assert.deepEqual(
    [whoDid(refused!), refused!.result, refused!.details],
    [`${me} fileImported`, 'refused', { what: 'chargebacks', name: 'broken.csv', why }],
  )
})

it('a payment and what followed, by the token that asked for each', async () => {
  const token = 'the-token-of-the-refund-desk-of-the-shop'
  const { psp } = JSON.parse(readFileSync(sandboxSeed, 'utf8'))
  const tokens = [{ label: 'refund desk', token, entities: [sandbox.merchantId] }]
  writeFileSync(join(folder, 'desk.json'), JSON.stringify({ psp, tokens }))
  await tollgate('seed', join(folder, 'desk.json'))
  const [desk] = (await told()) as [Told]
  const at = { entityId: sandbox.entityId, amount: '92.00', currency: 'EUR' }
  const pa = await post('/v1/payments', { ...at, paymentType: 'PA', ...visa })
  const cp = await post(`/v1/payments/${pa.id}`, { ...at, paymentType: 'CP' })
  const rf = await post(`/v1/payments/${pa.id}`, { ...at, paymentType: 'RF' }, token)
  const atOnce = await post('/v1/payments', { ...at, paymentType: 'PA.CP', ...visa }, token)
  const [{ subject: shop }] = (await told('--action', 'tokenMade')) as [Told]
  const columns = async (id: string) =>
    (await tollgate('audit', 'payment', id)).out
      .trim()
      .split('\n')
      .slice(1)
      .map(line => line.split(/ {2,}/))
  assert.deepEqual(
    (await columns(cp.id)).map(([id, type, , , , by, label]) => [id, type, by, label]),
    [
      [pa.id, 'PA', shop, 'Sandbox'],
      [cp.id, 'CP', shop, 'Sandbox'],
      [rf.id, 'RF', desk.subject, 'refund desk'],
    ],
  )
  assert.deepEqual(
    (await columns(atOnce.id)).map(([, type, , , , by]) => [type, by]),
    [
      ['PA', desk.subject],
      ['CP', desk.subject],
    ],
  )
  assert.match((await tollgate('audit', 'payment', '4200000000000000')).out, /There is no payment/)
})

it('filters find, and a wrong one is named', async () => {
  const entity = await told('--entity', sandbox.divisionId)
  assert.ok(entity.some(row => row.entityId === channelId) && entity.every(row => row.entityId !== null))
  assert.ok((await told('--actor', userInfo().username)).every(({ actor }) => actor === userInfo().username))
  assert.deepEqual(await told('--since', '2999-01-01'), [])
  for (const [option, value, sentence] of [
    ['--action', 'nothing', /--action must be one of logInFailed, /],
    ['--since', 'yesterday', /--since must be a time/],
    ['--since', '+275760-09-13', /--since must be a time/],
    ['--since', '-000001-01-01', /--since must be a time/],
    ['--limit', 'many', /--limit must be a number/],
    ['--entity', 'x', /--entity must be 32/],
  ] as const) {
    const { code, out } = await tollgate('audit', option, value)
    assert.equal(code, 2)
    assert.match(out, sentence)
  }
  const { out } = await tollgate('audit', '--action', 'clockMoved')
  assert.match(out, /^row +at +who +from +did +for +to +result +details\n\d+ +20/)
})

it('names are shown without what a terminal would obey, and a seed takes none', async () => {
  const { psp } = JSON.parse(readFileSync(sandboxSeed, 'utf8'))
  for (const name of ['nu\u0000l', 'clear\u001b[2J', 'two\nlines', 'back\u202ewards']) {
    const path = join(folder, 'name.json')
    writeFileSync(path, JSON.stringify({ psp: { ...psp, name } }))
    const { code, out } = await tollgate('seed', path)
    assert.equal(code, 1)
    assert.match(
      out,
      /^The seed file [^\n]* (psp\.name must be without control characters|holds the character U\+0000[^\n]*)\.\n$/,
    )
  }
  await withPool(runningEmbedded(dataDir)!, pool => pool.query(`update access_tokens set label = E'\\x1b[2Jtwo\\nlines'`))
  const { out } = await tollgate('list')
  assert.match(out, /\\u001b\[2Jtwo\\u000alines/)
})

it('the chain is whole, and its head can be asked for again', async () => {
  const { code, out } = await tollgate('audit', 'verify')
  assert.equal(code, 0, out)
  const [, rows, head] = /^(\d+) rows, as they were written\. Head: (\d+:[0-9a-f]{64})\n$/.exec(out)!
  assert.equal(Number(rows), reached)
  await seedWith({})
  assert.equal((await tollgate('audit', 'verify', '--expect', head!)).code, 0)
  const other = await tollgate('audit', 'verify', '--expect', `3:${'0'.repeat(64)}`)
  assert.equal(other.code, 1)
  assert.match(other.out, /The chain does not hold 3:0/)
})
