// The command line for notifications, as a person uses it: against a gateway process with its own database.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { eventually, sandbox } from './support/gateway.ts'
import { manyCommands, project, type Started, startProcess } from './support/process.ts'
import { opened, type Receiver, startReceiver } from './support/receiver.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'tollgate-test-'))
const env = { DATA_DIR: dataDir, LOG_LEVEL: 'silent' }
const processEnv = { PATH: process.env.PATH, HOME: process.env.HOME, ...env }
const commands = manyCommands(env)
let gateway: Started
let receiver: Receiver

before(async () => {
  receiver = await startReceiver()
  gateway = await startProcess(env)
})
after(async () => {
  commands.stop()
  await gateway.stop('SIGTERM')
  await receiver.close()
  rmSync(dataDir, { recursive: true, force: true })
})

const tollgate = commands.run
const good = async (...words: string[]) => {
  const { code, stdout, out } = await tollgate(...words)
  assert.equal(code, 0, `${words.join(' ')}: ${out}`)
  return stdout
}

test('an endpoint is made, activated, told, checked, told again, rotated and deleted', async () => {
  const made = await good(
    'endpoints',
    'create',
    '--entity',
    sandbox.entityId,
    '--url',
    `${receiver.url}/hook`,
    '--wrapper',
    'json',
  )
  const id = /endpoint +([0-9a-f]{32}) \(inactive\)/.exec(made)![1]!
  const secret = /secret +([0-9A-F]{64})/.exec(made)![1]!
  receiver.answer = () => 500
  const refused = await tollgate('endpoints', 'activate', id)
  assert.equal(refused.code, 1)
  assert.match(refused.out, /HTTP 500[\s\S]*not activated/)
  receiver.answer = () => 200
  assert.match(await good('endpoints', 'activate', id), /is active/)
  receiver.received.length = 0
  const triggered = await good('trigger', 'refund')
  await eventually(async () => receiver.received.length === 2, 'debit and refund')
  assert.ok(triggered.includes(opened(receiver.received[1]!, secret).payload.id))
  const check = await eventually(async () => {
    const out = await good('notifications', 'check')
    return / 2 +2 +0 +0 +0 +0 +0 +balanced/.test(out) && out
  }, 'both are acknowledged')
  assert.match(check, /^0 events wait/m)
  assert.match(await good('notifications', 'list', id), /acknowledged +1 +200/)
  assert.match(await good('notifications', 'list', id, '--position', '1'), /1 .* 200 +"said 200"/)
  assert.equal((await tollgate('notifications', 'replay', id)).code, 2)
  assert.equal(await good('notifications', 'replay', id, '--from', '2'), '1 notifications are sent again.\n')
  await eventually(async () => receiver.received.length === 3, 'the replay')
  const rotated = await good('endpoints', 'rotate', id)
  assert.ok(rotated.includes(secret) && /new +[0-9A-F]{64}/.test(rotated))
  assert.equal((await good('endpoints', 'rotate', id, '--finish')).includes(secret), false)
  assert.equal((await good('endpoints', 'list')).includes(secret), false)
  assert.match(await good('endpoints', 'delete', id), /is deleted/)
  assert.equal((await tollgate('endpoints', 'activate', id)).stderr, `There is no endpoint ${id}.\n`)
})

test('listen prints what happened, hands it on, and goes on where it stopped', async () => {
  assert.equal(await good('listen', '--once', '--json'), '') // from now on
  receiver.received.length = 0
  const approved = (await good('trigger', 'payment.approved')).split(/ +/)[1]!
  const declined = (await good('trigger', 'payment.declined')).split(/ +/)[1]!
  const first = await good('listen', '--once', '--forward-to', receiver.url)
  assert.match(first, new RegExp(`DB +92.00 +EUR +000.100.110 +${approved}\\n.*${declined}\\n$`))
  assert.equal(receiver.received.length, 2)
  const captured = (await good('trigger', 'capture')).split(/ +/)[1]!
  const lines = (await good('listen', '--once', '--json'))
    .trim()
    .split('\n')
    .map(line => JSON.parse(line))
  assert.deepEqual(
    lines.map(({ payload }) => payload.paymentType),
    ['PA', 'CP'],
  )
  assert.equal(lines[1].payload.id, captured)
})

test('listen passes over what the receiver goes on refusing only when it is asked to, and names it', async () => {
  await good('listen', '--once', '--json')
  const refusedId = (await good('trigger', 'payment.approved')).split(/ +/)[1]!
  const takenId = (await good('trigger', 'payment.declined')).split(/ +/)[1]!
  receiver.received.length = 0
  let asked = 0
  receiver.answer = () => (++asked <= 3 ? 500 : 200) // the first of them goes on being refused

  // Not asked: nothing is passed over, whoever ends it, and the next one is told all of it again.
  const patient = spawn(join(project, 'bin/tollgate'), ['listen', '--forward-to', receiver.url], {
    env: processEnv,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let complaint = ''
  patient.stderr.on('data', chunk => (complaint += chunk))
  await eventually(async () => receiver.received.length === 2, 'it is sent again')
  patient.kill('SIGKILL')
  await once(patient, 'exit')
  assert.match(complaint, /answered 500; again in a second\./)
  assert.doesNotMatch(complaint, /Skipped|secret/)

  receiver.received.length = 0
  asked = 0
  const { code, stdout, stderr: told } = await tollgate('listen', '--once', '--forward-to', receiver.url, '--skip-after', '3')
  receiver.answer = () => 200
  assert.equal(code, 0)
  assert.match(stdout, new RegExp(`${refusedId}\\n.*${takenId}\\n$`))
  assert.match(
    told,
    /answered 500, 3 of 3 refusals\.\nSkipped #\d+ after 3 refusals; `tollgate notifications replay [0-9a-f]{32} --id [0-9a-f]{32}` tells it again\.\n/,
  )
  assert.equal(receiver.received.length, 4)

  // What was skipped is not lost: the command that it named brings it back.
  const [, ...words] = /`tollgate (notifications) (replay) ([0-9a-f]{32}) (--id) ([0-9a-f]{32})`/.exec(told)!
  await good(...words)
  receiver.received.length = 0
  await good('listen', '--once', '--forward-to', receiver.url)
  assert.equal(receiver.received.length, 1)

  // A receiver that is not there refuses nothing.
  await good('trigger', 'payment.approved')
  const waiting = spawn(join(project, 'bin/tollgate'), ['listen', '--forward-to', 'http://127.0.0.1:9/', '--skip-after', '1'], {
    env: processEnv,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  complaint = ''
  waiting.stderr.on('data', chunk => (complaint += chunk))
  await eventually(async () => complaint.split('again in a second').length > 2, 'it is tried again')
  waiting.kill('SIGKILL')
  await once(waiting, 'exit')
  assert.doesNotMatch(complaint, /Skipped/)
  receiver.received.length = 0
  await good('listen', '--once', '--forward-to', receiver.url)
  assert.equal(receiver.received.length, 1)
})

test('listen shows the secret to verify with on a terminal, and in a log only when it is told to', async () => {
  const words = ['listen', '--once', '--forward-to', receiver.url, '--name', 'secretive']
  assert.doesNotMatch(JSON.stringify(await tollgate(...words)), /[0-9A-F]{64}|whsec_/)
  const { stderr, stdout } = await tollgate(...words, '--show-secret')
  const [, secret] = /secret +([0-9A-F]{64})\n +signing whsec_\S+\n/.exec(stderr)!
  assert.ok(!stdout.includes(secret!))
  receiver.received.length = 0
  await good('trigger', 'payment.approved')
  await good(...words)
  assert.equal(opened(receiver.received[0]!, secret!).type, 'PAYMENT') // it is the one that receivers need
  if (process.platform !== 'linux') return // script(1) takes other words elsewhere
  const onTerminal = spawnSync('script', ['-qec', `${join(project, 'bin/tollgate')} ${words.join(' ')}`, '/dev/null'], {
    env: processEnv,
    encoding: 'utf8',
  })
  assert.ok(onTerminal.stdout.includes(secret!), onTerminal.stdout)
})

test('pending payments become final, and what people mistype is told in a sentence', async () => {
  const id = (await good('trigger', 'payment.pending')).split(/ +/)[1]!
  const seen: string[] = []
  await eventually(async () => {
    const lines = (await good('listen', '--once', '--json')).trim().split('\n').filter(Boolean)
    seen.push(
      ...lines
        .map(line => JSON.parse(line))
        .filter(({ payload }) => payload.id === id)
        .map(({ payload }) => payload.result.code),
    )
    return seen.length >= 2
  }, 'pending and final')
  assert.deepEqual(seen, ['000.200.000', '000.100.110'])
  const wrong = await tollgate('trigger', 'nonsense')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /^event must be one of payment\.approved, .*\.\n$/)
  const nowhere = await tollgate('endpoints', 'create', '--entity', sandbox.entityId, '--url', 'http://169.254.169.254/')
  assert.deepEqual([nowhere.code, nowhere.stderr], [1, 'The url must not name a private or special address.\n'])
  const long = `http://localhost:8099/${'a'.repeat(2048 - 22)}`
  const create = (url: string) => tollgate('endpoints', 'create', '--entity', sandbox.entityId, '--url', url)
  const longer = await create(`${long}a`)
  assert.deepEqual([longer.code, longer.stderr], [1, 'The url must have at most 2048 characters.\n'])
  assert.equal((await create(long)).code, 0)
})

test('a chargeback is triggered, and its reversal imported, once', async () => {
  const [, id] = /^chargeback {2}([0-9a-f]{32}) {2}000\.100\.220$/m.exec(await good('trigger', 'chargeback'))!
  const report = join(dataDir, 'report.csv')
  const today = new Date().toISOString().slice(0, 10)
  writeFileSync(
    report,
    `report,line,type,acquirer,reference,amount,currency,reason,date\nr,1,CR,,${id},92.00,EUR,,${today}\nr,2,CR,,${'0'.repeat(32)},1,EUR,,${today}\nr,3\n`,
  )
  const first = await tollgate('chargebacks', 'import', report)
  assert.equal(first.code, 1)
  assert.match(first.out, new RegExp(`^line 2 {2}recorded {2}CR [0-9a-f]{32} of ${id}$`, 'm'))
  assert.match(
    first.out,
    /^line 3 {2}refused {2}there is no such payment\nline 4 {2}refused {2}has 2 columns, the heading has 9$/m,
  )
  assert.match((await tollgate('chargebacks', 'import', report)).out, /^0 recorded, 1 known already, 2 refused\.$/m)
  assert.match(await good('doctor'), /The books agree/)
})
