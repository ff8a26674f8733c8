// What an operator does about acquirers on the command line: looks at the lines, and decides what an answer did not prove.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { thisProcess } from '../src/audit/entry.ts'
import { eventually, sandbox, visa } from './support/gateway.ts'
import { type AcquirersFile, acquirersFile } from './support/host.ts'
import { manyCommands, type Started, startProcess } from './support/process.ts'
import { type ToldHost, toldHost } from './support/toldHost.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-acquirer-commands-'))
let gateway: Started
let host: ToldHost
let file: AcquirersFile
before(async () => {
  host = await toldHost()
  file = acquirersFile({ north: [host.port] }, { answerWithinSeconds: 0.5, recoverAfterSeconds: 0.1 })
  gateway = await startProcess({ DATA_DIR: join(folder, 'data'), ACQUIRERS_FILE: file.path })
})
after(async () => {
  commandHost.stop()
  await gateway.stop()
  host.stop()
  file.remove()
  rmSync(folder, { recursive: true, force: true })
})

const commandHost = manyCommands({ DATA_DIR: join(folder, 'data') })
const tollgate = commandHost.run

async function send(path: string, fields?: Record<string, string>) {
  const query = fields ? '' : `?entityId=${sandbox.entityId}`
  const response = await fetch(`${gateway.sandbox.baseUrl}${path}${query}`, {
    headers: { Authorization: `Bearer ${sandbox.accessToken}` },
    ...(fields && { method: 'POST', body: new URLSearchParams({ entityId: sandbox.entityId, ...fields }) }),
  })
  return (await response.json()) as { id: string; result: { code: string } }
}

it('a refund that nobody can tell about waits for the one who asked the acquirer', async () => {
  const money = { amount: '92.00', currency: 'EUR' }
  const { id } = await send('/v1/payments', { paymentType: 'DB', testMode: 'EXTERNAL', ...money, ...visa })
  host.tell = message => (message.type === '0200' ? { code: 'silence', books: true } : '12')
  const refund = await send(`/v1/payments/${id}`, { paymentType: 'RF', ...money })
  const found = await eventually(async () => {
    const { cases } = JSON.parse((await tollgate('cases', 'list', '--json')).out) as {
      cases: { id: string; subject: string; kind: string }[]
    }
    return cases.find(({ subject, kind }) => subject === refund.id && kind === 'answerUnproven')
  }, 'a case')
  const undecided = await tollgate('cases', 'close', found.id, '--reason', 'no idea')
  assert.deepEqual([undecided.code, /--as carriedOut or --as notCarriedOut/.test(undecided.out)], [1, true])
  const close = async (reason: string) =>
    (await tollgate('cases', 'close', found.id, '--reason', reason, '--as', 'carriedOut')).code
  for (const reason of [' ', 'x'.repeat(501), 'they\u202e have it', 'they\x1b[2J have it', 'they\nhave it'])
    assert.equal(await close(reason), 2)
  assert.equal(await close(` they have it: 4916 8437 1952 6087, cvv 123${'!'.repeat(456)} `), 0)
  const { cases } = JSON.parse((await tollgate('cases', 'list', '--all', '--json')).out) as {
    cases: { id: string; reason: string }[]
  }
  assert.equal(cases.find(({ id }) => id === found.id)!.reason, `they have it: 491684…6087, cvv …${'!'.repeat(456)}`)
  const [told] = JSON.parse(
    (await tollgate('audit', '--json', '--entity', sandbox.merchantId, '--action', 'caseClosed')).out,
  ).rows
  const { kind, id: actor, address } = thisProcess('commandLine')
  assert.deepEqual([told.subject, told.actorKind, told.actor, told.address], [found.id, kind, actor, address])
  await eventually(async () => (await send(`/v1/payments/${refund.id}`)).result.code === '000.100.112', 'it is settled')
  assert.equal(host.totals().cleared, 0)
})

it('status shows each line, and reversals that are open', async () => {
  host.tell = message => (message.type.startsWith('042') ? '96' : 'silence')
  const { id } = await send('/v1/payments', { paymentType: 'DB', testMode: 'EXTERNAL', amount: '5.00', currency: 'EUR', ...visa })
  const shown = await eventually(async () => {
    const { code, out } = await tollgate('acquirers', 'status')
    return /north line 1 +up/.test(out) && out.includes(id) && code === 1 && out
  }, 'the line and the reversal are shown')
  assert.match(shown, /TERM0001/)
  host.tell = () => '00'
  await eventually(async () => (await tollgate('acquirers', 'status')).code === 0, 'it is given back')
})
