// The command line as a program: what it says of itself, exit codes, one document for each command that reads, and completion as a shell does it.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Command } from 'commander'
import { makeProgram } from '../src/cli/program.ts'
import { type DocumentShape, shapeOf } from '../src/cli/reads.ts'
import { banks } from '../src/connectors/slips/banks/banks.ts'
import { returnText } from '../src/sandbox/slipBank/returnText.ts'
import { type Body, sandbox } from './support/gateway.ts'
import { commandLine, manyCommands, project, type Started, startProcess } from './support/process.ts'
import { startReceiver } from './support/receiver.ts'
import { boleto, oxxo } from './support/slips.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-commands-'))
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
const metricsToken = join(folder, 'metrics.token')
writeFileSync(metricsToken, 'a-token-of-sixteen-characters', { mode: 0o600 })
const commandHost = manyCommands({ DATA_DIR: dataDir, METRICS_TOKEN_FILE: metricsToken })
const tollgate = commandHost.run

it('says which version it is', async () => {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
  const { code, stdout } = await tollgate('--version')
  assert.equal(code, 0)
  assert.match(stdout, new RegExp(`^tollgate ${version.replaceAll('.', '\\.')} \\([0-9a-f]{40}\\)\\n$`))
})

describe('wrong words are told in one sentence, with what was probably meant, and end with 2', () => {
  const cases: [line: string, sentence: RegExp][] = [
    ['lsit', /^Unknown command 'lsit': did you mean list\?\n$/],
    ['zzz', /^Unknown command 'zzz'; see `tollgate --help`\.\n$/],
    ['notifications chekc', /^Unknown command 'chekc': did you mean check\?\n$/],
    ['audit --sicne 3', /^Unknown option '--sicne': did you mean --since\?\n$/],
    ['audit --action tokenMad', /^--action must be one of .*, not tokenMad: did you mean tokenMade\?\n$/],
    ['audit --limit some', /^--limit must be a number\.\n$/],
    ['trigger refnd', /^event must be one of .*, not refnd: did you mean refund\?\n$/],
    ['revoke', /^Missing required argument 'id'; see `tollgate --help`\.\n$/],
    ['revoke shop', /^A token is named by the 32 hex characters/],
    ['list more', /^Too many arguments for 'list'\. Expected 0 arguments but got 1; see `tollgate --help`\.\n$/],
    ['keys retire 3 a-secret', /^Too many arguments for 'retire'\. Expected 0 arguments but got 2; see `tollgate --help`\.\n$/],
    ['list --tokn=a-secret', /^Unknown option '--tokn'; see `tollgate --help`\.\n$/],
    ['token create', /^Required option '--entity <id\.\.\.>' not specified; see/],
    ['acquirer-host --port 70000', /^--port must be a whole number from 0 to 65535\.\n$/],
    ['listen --skip-after 0', /^--skip-after must be a whole number from 1 to /],
    ['clock advance soon', /^A clock is moved by a number and ms, s, m, h or d/],
    ['report --entity x --from 2026-02-02 --to 2026-02-01', /^--from must not be after --to\.\n$/],
    ['report --entity x --from 2026-02-30 --to 2026-03-01', /^--from must be a day, for example 2026-01-31\.\n$/],
    ['report --entity x --from 2026-1-31 --to 2026-03-01', /^--from must be a day, for example 2026-01-31\.\n$/],
    ['archive write x.gz --before 2023-02-30', /^--before must be a day, for example 2026-01-31\.\n$/],
    ['restore x --to 12.11.2026', /^--to must be a time, for example 2026-01-31T12:00Z, or a day, which begins in UTC\.\n$/],
    ['restore x --to 2026-02-30T12:00Z', /^--to must be a time, /],
    ['audit --since 5', /^--since must be a time, /],
    ['audit --since 2026-01-31T12:00', /^--since must be a time, /],
    [`notifications replay ${'0'.repeat(32)} --since 2026-11-31`, /^--since must be a time, /],
    [`notifications replay ${'0'.repeat(32)} --since 2026-01-01 --until 1/2/2026`, /^--until must be a time, /],
    [`schedules again ${'0'.repeat(32)} ${'0'.repeat(32)} --from 2026-02-30`, /^--from must be a day, /],
    [`receipts again ${'0'.repeat(32)} --from 2026-02-30`, /^--from must be a day, /],
    ['acquirers reconcile --day 2026-02-30', /^--day must be a day, /],
    ['acquirer-host --settlement 2026-02-30', /^--settlement must be a day, /],
    ['report --entity x --from 2025-01-01 --to 2026-03-01', /^--to must be at most 366 days from --from, both counted\.\n$/],
    ['report --entity x --from 2026-01-01 --to 2026-01-01 --movements', /^--movements goes with --csv\.\n$/],
    ['endpoints create --entity x --wrapper jsn', /^--wrapper must be one of none, json, plain, not jsn: did you mean json\?\n$/],
    [`merchants move ${'f'.repeat(32)} --to two --to-file x`, /^--to-file holds the address/],
    [`merchants move ${'f'.repeat(32)} --cells x --to-file x`, /^--to-file holds the address/],
    ['endpoints', /^Usage: tollgate endpoints/],
    ['', /^Usage: tollgate/],
  ]
  for (const [line, sentence] of cases)
    it(line === '' ? '(nothing)' : line, async () => {
      const { code, stdout, stderr } = await tollgate(...line.split(' ').filter(word => word !== ''))
      assert.deepEqual([code, stdout], [2, ''])
      assert.match(stderr, sentence)
    })
})

describe('a password among the words is refused, said to be seen, and not said again', () => {
  for (const address of [
    'postgres://tollgate:gehe1m@db/tollgate',
    'POSTGRES://tollgate:gehe1m@db:5432,other:5432/tollgate',
    'postgresql://:ge/gehe1m@db/tollgate',
    'postgresql://db/tollgate?password=gehe1m',
    'host=db password=gehe1m',
  ])
    for (const words of [['move'], ['move', '--back'], ['forget']])
      it(`${words.join(' ')} ${address}`, async () => {
        const { code, out } = await tollgate('merchants', ...words, 'f'.repeat(32), '--to', address)
        assert.equal(code, 2)
        assert.match(
          out,
          /^--to holds a password, which everybody .* can see: change it, .* --to-file \(or - for standard input\)\.\n$/,
        )
        assert.doesNotMatch(out, /gehe1m/)
      })
})

describe('what fails ends with 1, what is well with 0', () => {
  for (const [line, code] of [
    ['list', 0],
    ['help', 0],
    ['audit --help', 0],
    [`revoke ${'0'.repeat(32)}`, 1],
    ['audit verify --expect 1:00', 1],
    ['seed /nonexistent', 1],
    ['clock show --base-url http://127.0.0.1:9', 1],
  ] as const)
    it(line, async () => assert.equal((await tollgate(...line.split(' '))).code, code))

  it('a gateway that is not there is told in a sentence', async () => {
    const { stderr } = await tollgate('clock', 'show', '--base-url', 'http://127.0.0.1:9')
    assert.match(stderr, /^No gateway answers at http:\/\/127\.0\.0\.1:9 \(.*\)\.\n$/)
    const nowhere = await commandLine({ DATA_DIR: join(folder, 'none') }, 'list')
    assert.deepEqual([nowhere.code, nowhere.out.split('\n').length], [1, 2])
  })
})

/** The demonstration's account with a bank, as the bank knows it. */
const itau = {
  bank: '341',
  layout: 'cnab240',
  agency: '0057',
  account: '12345',
  accountDigit: '7',
  wallet: '110',
  agreement: '',
} as const

/** A return of that bank that tells of no transfer. */
const noTransfers = [
  `34100000${' '.repeat(44)}00057 000000012345${'7'.padEnd(72)}2${'0'.repeat(20)}`,
  '34100011C2041046',
  `34100015${' '.repeat(9)}000002${'0'.repeat(18)}`,
  `34199999${' '.repeat(9)}000001000004`,
]
  .map(row => `${row.padEnd(240)}\r\n`)
  .join('')

const allOf = (command: Command, path: string[] = []): { path: string[]; command: Command }[] => [
  { path, command },
  ...command.commands.flatMap(one => allOf(one, [...path, one.name()])),
]
const commands = allOf(makeProgram()).filter(({ path }) => path.length > 0)

it('what people name things is stored without card numbers, in a line, and short', async () => {
  const entity = ['--entity', sandbox.merchantId]
  const create = (name: string, alert: string) =>
    tollgate('endpoints', 'create', ...entity, '--cursor', '--name', name, '--alert', alert)
  const [long, turned] = ['x'.repeat(255), 'a\u202eb']
  for (const [name, alert] of [
    [long, 'a'],
    [turned, 'a'],
    ['a', long],
    ['a', turned],
    ['', 'a'],
    ['a', ' '],
  ] as const)
    assert.equal((await create(name, alert)).code, 2)
  const number = '4916843719526087'
  assert.equal((await create(`n ${number}`, `${number}@shop.example`)).code, 0)
  const add = (email: string) => tollgate('staff', 'add', email, '--role', 'viewer', ...entity)
  for (const email of [`${long}@office.example`, `a${turned}@office.example`]) assert.equal((await add(email)).code, 2)
  assert.equal((await add(`${number}@office.example`)).code, 0)
  const files = join(folder, `${number}.csv`)
  writeFileSync(files, 'report,line,type,acquirer,reference,amount,currency,reason,date\n')
  assert.equal((await tollgate('chargebacks', 'import', files)).code, 0)
  const listed = await Promise.all([
    tollgate('endpoints', 'list', '--json'),
    tollgate('staff', 'list', '--json'),
    tollgate('audit', '--json'),
  ])
  const text = listed.map(({ stdout }) => stdout).join('\n')
  assert.ok(!text.includes(number))
  for (const shown of ['n 491684…6087', '491684…6087@shop.example', '491684…6087.csv', '491684...6087@office.example'])
    assert.ok(text.includes(shown), shown)
})

describe('staff', () => {
  const opened = async (url: string) => (await fetch(url, { redirect: 'manual' })).status
  const add = (...words: string[]) => tollgate('staff', 'add', ...words)

  it('is added with a link, which a reset replaces and a removal ends', async () => {
    const { stdout: first } = await add('ana@office.example', '--role', 'admin', '--entity', sandbox.divisionId)
    assert.equal(await opened(first.trim()), 200)
    assert.equal((await add('Ana@office.example', '--role', 'viewer', '--entity', sandbox.divisionId)).code, 1)
    const { stdout: second } = await tollgate('staff', 'reset', 'ana@office.example')
    assert.deepEqual([await opened(first.trim()), await opened(second.trim())], [410, 200])
    assert.equal((await tollgate('staff', 'remove', 'ana@office.example')).code, 0)
    assert.equal(await opened(second.trim()), 410)
    assert.equal((await tollgate('staff', 'remove', 'ana@office.example')).code, 1)
  })

  it('acts for entities that there are, but for no channel, in a role that there is', async () => {
    for (const [entity, code] of [
      ['0'.repeat(32), 1],
      [sandbox.entityId, 1],
      ['shop', 2],
    ] as const)
      assert.equal((await add('b@office.example', '--role', 'admin', '--entity', entity)).code, code)
    assert.match((await add('b@office.example', '--role', 'admn', '--entity', sandbox.divisionId)).stderr, /did you mean admin/)
  })

  it('enters a sandbox by the link that the start printed, and by another', async () => {
    const { stdout } = await tollgate('staff', 'enter')
    for (const url of [/http\S+\/office\/enter\/\S+/.exec(gateway.printed())![0], stdout.trim()])
      assert.deepEqual([await opened(url), await opened(url)], [303, 410])
  })
})

describe('a secret that is shown once', () => {
  /** Where nothing can be written. */
  const toNobody = (...words: string[]) => writtenTo('/dev/full', words)
  const writtenTo = async (place: string, words: readonly string[]): Promise<{ code: number; stderr: string }> => {
    const full = openSync(place, 'w')
    const child = spawn(join(project, 'bin/tollgate'), words, {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir },
      stdio: ['ignore', full, 'pipe'],
    })
    closeSync(full)
    let stderr = ''
    child.stderr!.on('data', (text: Buffer) => {
      stderr += text
    })
    const [code] = await once(child, 'close')
    return { code, stderr }
  }
  const entity = ['--entity', sandbox.divisionId]

  it('changes nothing when nobody could read it', { skip: existsSync('/dev/full') ? false : 'no /dev/full here' }, async () => {
    const { stdout } = await tollgate('staff', 'add', 'kept@office.example', '--role', 'admin', ...entity)
    const link = stdout.trim()
    const before = [await tollgate('staff', 'list', '--json'), await tollgate('list', '--json')].map(({ out }) => out)
    assert.deepEqual(await toNobody('staff', 'reset', 'kept@office.example'), {
      code: 1,
      stderr: 'The link could not be printed. Nothing was changed.\n',
    })
    assert.equal((await fetch(link, { redirect: 'manual' })).status, 200, 'the link of before still lets somebody in')
    assert.equal((await toNobody('staff', 'add', 'none@office.example', '--role', 'admin', ...entity)).code, 1)
    assert.equal((await toNobody('staff', 'enter')).code, 1)
    assert.equal((await toNobody('token', 'create', '--label', 'none', ...entity)).code, 1)
    // What Node opens for a process without an output.
    assert.equal((await writtenTo('/dev/null', ['token', 'create', '--label', 'none', ...entity])).code, 1)
    const after = [await tollgate('staff', 'list', '--json'), await tollgate('list', '--json')].map(({ out }) => out)
    assert.deepEqual(after, before)
  })
  it('is no other than all that is written: what is lost is no success', async () => {
    const lost = { code: 1, stderr: 'The output could not be written. There is no room left on the disk (ENOSPC).\n' }
    const merchant = ['--entity', sandbox.merchantId, '--from', '2026-01-01', '--to', '2026-01-02', '--csv']
    for (const words of [['list'], ['audit'], ['endpoints', 'list', '--json'], ['report', ...merchant], ['logs']])
      assert.deepEqual(await toNobody(...words), lost, words.join(' '))
    assert.deepEqual(await writtenTo('/dev/null', ['list']), { code: 0, stderr: '' })
  })
})

describe('each command that reads prints one document with the fields that it names', () => {
  // What there is to read: an endpoint with a delivery, a payment, a chargeback, a key.
  const words: Record<string, string[]> = {
    'chargebacks import': [join(folder, 'report.csv')],
    'returns import': [join(folder, 'itau.ret')],
    'transfers import': [join(folder, 'transfers.ret'), '--account', 'itau-demo'],
  }
  let paymentId: string
  before(async () => {
    const receiver = await startReceiver()
    const made = await tollgate('endpoints', 'create', '--entity', sandbox.merchantId, '--url', receiver.url)
    const endpoint = /endpoint +([0-9a-f]{32})/.exec(made.out)![1]!
    await tollgate('endpoints', 'activate', endpoint)
    paymentId = (await tollgate('trigger', 'payment.approved')).stdout.split(/ +/)[1]!
    while (receiver.received.length < 2) await new Promise(resolve => setTimeout(resolve, 50))
    await receiver.close()
    const today = new Date().toISOString().slice(0, 10)
    const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
    writeFileSync(join(folder, 'report.csv'), `${heading}\nr,1,CB,,${paymentId},92.00,EUR,,${today}\n`)
    writeFileSync(join(folder, 'stray.csv'), `${heading}\nr,2,CB,,${'0'.repeat(32)},92.00,EUR,,${today}\n`)
    await tollgate('chargebacks', 'import', join(folder, 'stray.csv')) // which opens a case
    await tollgate('staff', 'add', 'reader@office.example', '--role', 'viewer', '--entity', sandbox.merchantId)
    const noted = { number: '110000000011', occurrence: '02', occurredOn: today, face: 1 }
    writeFileSync(join(folder, 'itau.ret'), returnText(itau, 1, today, [noted]))
    writeFileSync(join(folder, 'transfers.ret'), noTransfers)
    words['audit payment'] = [paymentId]
    const cells = join(folder, 'cells.json')
    const gateways = [new URL(gateway.sandbox.baseUrl).host]
    writeFileSync(
      cells,
      JSON.stringify({ map: 'cells.map', cells: [{ name: 'one', environment: { DATA_DIR: dataDir }, gateways }] }),
    )
    words['cells map'] = ['--cells', cells]
    words['cells check'] = ['--cells', cells]
    words['cells restored'] = ['--cells', cells, '--cell', 'one']
    words.report = ['--entity', sandbox.merchantId, '--from', today, '--to', today]
    words['endpoints secret'] = [endpoint]
    words['notifications list'] = [endpoint]
    words['search find'] = [paymentId]
    words['notifications list --position'] = [endpoint, '--position', '1']
  })

  /** The fields of a document by the place where they stand; empty lists show none. */
  function fieldsIn(document: object): DocumentShape {
    const lists = Object.entries(document).filter(([, value]) => Array.isArray(value) && typeof value[0] === 'object')
    const own = Object.keys(document).filter(name => !lists.some(([list]) => list === name) && !isEmptyList(document, name))
    const names = (keys: string[]) => keys.sort().join(' ')
    return {
      ...(own.length > 0 && { '': names(own) }),
      ...Object.fromEntries(lists.map(([name, rows]) => [`${name}[]`, names(Object.keys((rows as object[])[0]!))])),
    }
  }
  const isEmptyList = (document: object, name: string) => String(Reflect.get(document, name)) === '' && name !== 'findings'
  const sorted = (shape: DocumentShape) =>
    Object.fromEntries(Object.entries(shape).map(([place, names]) => [place, names.split(' ').sort().join(' ')]))

  // Everything but what makes, changes or hands on.
  const others =
    /^(seed|cases close|revoke|token (create|rotate)|clock advance|endpoints (create|test|activate|rotate|delete|disable)|notifications replay|listen|trigger|acquirer-host|keys (add|prefer|rewrap|retire)|staff (add|reset|remove|enter)|reset|backup|restore|upgrade-database|archive (write|erase|check|show|bring-back|cancel)|search rebuild|slips (pay|skip|release)|acquirers (accept|release)|transfers (enter|end|release)|receipts again|schedules (add|end|again)|cells (proxy|reporting)|merchants (move|forget)|completion (bash|zsh))$/

  // Lines and reversals that nobody acknowledges are acquirerCommands.test.ts's to make, days of acquirers reconciliation.test.ts's, files of captures captures.test.ts's,
  // files to banks slipOrders.test.ts's, refunds of receipts transfers.test.ts's, files of receipts receiptFiles.test.ts's, archives archive.test.ts's.
  const mayBeEmpty = [
    'cells map',
    'cells restored',
    'doctor',
    'returns list',
    'transfers list',
    'transfers import',
    'receipts files',
    'merchants moves',
    'schedules list',
    'acquirers status',
    'acquirers reconcile',
    'acquirers captures',
    'archive list',
  ]

  for (const { path, command } of commands) {
    const name = path.join(' ')
    const shape = shapeOf(command)
    if (!shape && command.commands.length > 0) continue // it only leads to others
    it(name, async () => {
      if (!shape) return assert.match(name, others, `${name} has no --json`)
      const { code, stdout, stderr } = await tollgate(...path, ...(words[name] ?? []), '--json')
      assert.equal(code, name === 'cases list' ? 1 : 0, stderr) // what is open is a finding
      const documents = [fieldsIn(JSON.parse(stdout))]
      // Only a database that is followed has sources: reportingStandby.test.ts's to read.
      if (name === 'doctor') documents.push({ 'sources[]': 'secondsBehind source' })
      if (name === 'notifications list')
        documents.push(fieldsIn(JSON.parse((await tollgate(...path, ...words[`${name} --position`]!, '--json')).stdout)))
      if (mayBeEmpty.includes(name))
        assert.deepEqual(
          Object.keys(JSON.parse(stdout)),
          Object.entries(shape).flatMap(([place, names]) => (place === '' ? names.split(' ') : place.replace('[]', ''))),
        )
      else assert.deepEqual(Object.assign({}, ...documents), sorted(shape))
      const page = readFileSync(join(project, 'docs/reference/command-line.md'), 'utf8')
      for (const fields of Object.values(shape))
        assert.ok(page.includes(`\`${fields.replaceAll(' ', '`, `')}\``), `${name}: ${fields}`)
    })
  }

  it('a report adds up to its movements, as a text, a document and a file', async () => {
    const [document, text, sums, movements] = await Promise.all(
      [['--json'], [], ['--csv'], ['--csv', '--movements']].map(
        async more => (await tollgate('report', ...words.report!, ...more)).stdout,
      ),
    )
    const [one] = JSON.parse(document!).aggregations
    assert.match(
      text!,
      new RegExp(`${one.date} +${one.currency} +${one.count} +${one.matchedCount} +${one.credit} +${one.debit} +${one.amount}`),
    )
    assert.ok(sums!.includes(`${one.credit},${one.debit},${one.amount}\r\n`))
    const rows = movements!.trimEnd().split('\r\n')
    assert.match(rows[0]!, /^id,referencedId,/)
    assert.equal(rows.length - 1, Number(one.count))
    const together = rows.slice(1).reduce((sum, row) => sum + Math.round(Number(row.split(',')[6]) * 100), 0)
    assert.equal(together, Math.round(Number(one.amount) * 100))
  })

  it('times are of ISO 8601, and no secret is among tokens and endpoints', async () => {
    const { tokens } = JSON.parse((await tollgate('list', '--json')).stdout)
    assert.match(tokens[0].createdAt, /^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { endpoints } = JSON.parse((await tollgate('endpoints', 'list', '--json')).stdout)
    assert.match(endpoints[0].activatedAt, /Z$/)
    assert.doesNotMatch(JSON.stringify([tokens, endpoints]), /[0-9A-F]{64}|hash|sealed/)
  })

  it('what is found is in the document too, and the exit code says it', async () => {
    const { code, stdout } = await tollgate('audit', 'verify', '--expect', '1:00', '--json')
    assert.equal(code, 1)
    assert.deepEqual(JSON.parse(stdout).findings, ['The chain does not hold 1:00.'])
    const again = await tollgate('chargebacks', 'import', join(folder, 'report.csv'), '--json')
    assert.deepEqual([again.code, JSON.parse(again.stdout).known], [0, 1])
  })
})

it('files of banks are read by hand, and what became of them is told', async () => {
  const { baseUrl, entityId, accessToken } = gateway.sandbox
  const answer = await fetch(`${baseUrl}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${accessToken}` },
    body: new URLSearchParams({ ...boleto, entityId }),
  })
  const { acquirerTxId1: number } = ((await answer.json()) as { resultDetails: Record<string, string> }).resultDetails
  const theirs = `110${number}${banks.get('341')!.numberDigit(itau, number!)}`
  const paid = { number: theirs, occurrence: '06', occurredOn: '2026-01-02', face: 123_45, paid: 123_45 }
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const returned = returnText(itau, 4, '2026-01-03', [paid, { ...paid, number: '99999999' }])
  write('bank.ret', returned)
  write('cut.ret', returned.slice(0, -500))
  write('other.ret', returnText({ ...itau, account: '54321' }, 5, '2026-01-03', [paid]))
  const read = (name: string, ...words: string[]) => tollgate('returns', 'import', join(folder, name), ...words)
  const first = await read('bank.ret')
  assert.equal(first.code, 1)
  assert.match(
    first.stdout,
    /^bank\.ret is file 4 of itau-demo\.\nline 3 {2}recorded {2}RC [0-9a-f]{32}\nline 5 {2}refused {2}no slip of the account has this number\n/,
  )
  assert.match(first.stdout, /File 2 has not come\.\nFile 3 has not come\.\n1 recorded, 0 known already, 0 noted, 1 refused\.\n$/)
  assert.match((await read('bank.ret')).stdout, /, which was read before\.\n(.*\n){3}0 recorded, 1 known already/)
  const cut = await read('cut.ret', '--account', 'itau-demo')
  assert.deepEqual([cut.code, cut.stdout], [1, 'Nothing of cut.ret was read: its end is missing.\n'])
  assert.match((await read('cut.ret')).stderr, /^Say whose .*cut\.ret is: --account itau-demo or oxxo-demo\.\n$/)
  assert.match(
    (await read('other.ret', '--account', 'itau-demo')).stdout,
    /^Nothing of other\.ret was read: it is of another account\.\n$/,
  )
  const refused = JSON.parse((await tollgate('audit', '--json', '--action', 'fileImported')).stdout).rows.slice(-2)
  assert.deepEqual(
    refused.map((row: Record<'actorKind' | 'result', string> & { details: object }) => [row.actorKind, row.result, row.details]),
    [
      ['cut.ret', 'its end is missing'],
      ['other.ret', 'it is of another account'],
    ].map(([name, why]) => ['commandLine', 'refused', { what: 'return', of: 'itau-demo', name, why }]),
  )
  assert.match((await read('none.ret')).stderr, /none\.ret cannot be read/)
  assert.match(
    (await read('bank.ret', '--account', 'nobody')).stderr,
    /^There is no account nobody\. There are: itau-demo, oxxo-demo\.\n$/,
  )
  assert.match((await read('.', '--folder')).stderr, /^--folder needs --account/)
  assert.match((await tollgate('returns', 'list')).stdout, /itau-demo +bank\.ret +4 +2026-01-03 +2/)
})

describe('slips pay', () => {
  it('makes a receipt of what is said, each time one more; what is no slip is told', async () => {
    const { baseUrl, accessToken } = gateway.sandbox
    const headers = { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/x-www-form-urlencoded' }
    const ask = async (path: string, fields?: Record<string, string>) =>
      (await fetch(baseUrl + path, { headers, ...(fields && { method: 'POST', body: new URLSearchParams(fields) }) })).json()
    const { id } = (await ask('/v1/payments', oxxo)) as Body
    const whole = await tollgate('slips', 'pay', id)
    assert.match(whole.stdout, new RegExp(`^RC [0-9a-f]{32} of ${id}: 123.45 MXN\n$`))
    const again = await tollgate('slips', 'pay', id, '--amount', '100.00', '--on', '2020-02-29')
    const receipt = (await ask(`/v1/payments/${again.stdout.split(' ')[1]}?entityId=${sandbox.entityId}`)) as Body
    assert.deepEqual(
      [receipt.amount, receipt.resultDetails.DUPLICATE, receipt.resultDetails.paidOn],
      ['100.00', 'true', '2020-02-29'],
    )
    assert.match(
      (await tollgate('slips', 'pay', '0'.repeat(32))).stderr,
      /^There is no slip 0+: it is named by the id of its payment\.\n$/,
    )
    assert.deepEqual((await tollgate('slips', 'pay', id, '--amount', '0.00')).code, 2)
    assert.match(
      (await tollgate('slips', 'pay', id, '--on', '2023-02-29')).stderr,
      /^--on must be a day, for example 2026-01-31\.\n$/,
    )
    assert.match((await tollgate('slips', 'pay', id, '--on', '2020-02-29T23:00')).stderr, /^--on must be a day, /)
  })
})

describe('slips skip', () => {
  it('lets an account go on behind numbers that a backup does not know, and the audit tells of it', async () => {
    const { baseUrl, accessToken } = gateway.sandbox
    const issue = async () => {
      const headers = { Authorization: `Bearer ${accessToken}`, 'Content-Type': 'application/x-www-form-urlencoded' }
      const answer = await fetch(`${baseUrl}/v1/payments`, { headers, method: 'POST', body: new URLSearchParams(oxxo) })
      const { resultDetails } = (await answer.json()) as Body
      return Number(resultDetails.acquirerTxId1.slice(0, -1)) // the last digit checks the others
    }
    const before = await issue()
    const skipped = await tollgate('slips', 'skip', 'oxxo-demo', '5000')
    assert.deepEqual([skipped.code, skipped.stdout], [0, `oxxo-demo goes on behind ${before + 5000}.\n`])
    assert.equal(await issue(), before + 5001)
    const { rows } = JSON.parse((await tollgate('audit', '--json')).stdout)
    const told = rows.find(({ action }: { action: string }) => action === 'slipNumbersSkipped')
    assert.deepEqual([told.subject, told.details], ['oxxo-demo', { first: before + 1, count: 5000 }])
    assert.match((await tollgate('slips', 'skip', 'nobody', '1')).stderr, /^SLIPS_FILE has no account nobody: it has .*oxxo-demo/)
    for (const wrong of ['0', '-1', 'x', '1000001']) assert.equal((await tollgate('slips', 'skip', 'oxxo-demo', wrong)).code, 2)
  })

  it('of an account with few numbers passes over a tenth at most', async () => {
    const file = join(folder, 'short.json')
    const place = { street: 'Rua Um 1', city: 'Santos', state: 'SP', postcode: '01310100' }
    const short = {
      ...{
        name: 'short',
        brand: 'SHORT',
        bank: '001',
        modes: ['internal'],
        beneficiary: { name: 'Loja', taxId: '11222333000181', ...place },
      },
      ...{ agency: '4042', account: '00061900', accountDigit: '7', wallet: '18', agreement: '123879' },
    }
    writeFileSync(file, JSON.stringify({ banks: [short], chains: [] }), { mode: 0o600 })
    const skip = (count: string) => commandHost.runIn({ SLIPS_FILE: file }, 'slips', 'skip', 'short', count)
    const { code, stderr } = await skip('10001')
    assert.deepEqual(
      [code, stderr],
      [1, 'short has few numbers: at most 10000 are passed over at a time. To pass over more, give the command again.\n'],
    )
    assert.equal((await skip('10000')).stdout, 'short goes on behind 10000.\n')
  })
})

describe('completion', () => {
  const scripts: Record<string, string> = {}
  const scriptOf = async (shell: string) => (scripts[shell] ??= (await tollgate('completion', shell)).stdout)
  /** What bash offers for a line that ends at the cursor. */
  async function offered(line: string): Promise<string[]> {
    const words = line.split(' ')
    const program = `${await scriptOf('bash')}
COMP_WORDS=(${words.map(word => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_tollgate 2>/dev/null; printf '%s\\n' "\${COMPREPLY[@]}"; complete -p tollgate >&2`
    const { status, stdout, stderr } = spawnSync('bash', ['--norc', '--noprofile', '-u', '-c', program], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    assert.match(stderr, /complete -F _tollgate tollgate/)
    return stdout
      .trim()
      .split('\n')
      .filter(word => word !== '')
  }

  it('bash offers every command, option and word that there is', async () => {
    assert.deepEqual(
      (await offered('tollgate ')).sort(),
      makeProgram()
        .commands.map(one => one.name())
        .sort(),
    )
    for (const [line, words] of [
      ['tollgate no', ['notifications']],
      ['tollgate notifications ', ['check', 'list', 'replay']],
      ['tollgate notifications li', ['list']],
      ['tollgate notifications list --st', ['--state']],
      ['tollgate notifications list ID --state a', ['acknowledged']],
      ['tollgate audit --action clock', ['clockMoved']],
      ['tollgate audit --entity ', []],
      ['tollgate audit --entity 5a11 ver', ['verify']],
      ['tollgate trigger ref', ['refund']],
      ['tollgate reset --', ['--yes', '--keys', '--help']],
      ['tollgate completion ', ['bash', 'zsh']],
    ] as const)
      assert.deepEqual(await offered(line), words, line)
    for (const { path, command } of commands.filter(({ command }) => command.commands.length === 0))
      for (const { long } of command.options)
        assert.deepEqual(await offered(`tollgate ${path.join(' ')} ${long}`).then(all => all.includes(long!)), true)
  })

  it('zsh takes its script', { skip: spawnSync('zsh', ['--version']).error && 'there is no zsh' }, async () => {
    const { status, stderr } = spawnSync('zsh', [
      '-f',
      '-c',
      `autoload -U compinit && compinit -D -u\n${await scriptOf('zsh')}\nwhence -w _tollgate`,
    ])
    assert.equal(status, 0, String(stderr))
  })
})
