// Files of others that are long, or long nonsense: none takes a gateway's memory, and none keeps payments waiting while it is read.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, truncateSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type CaptureRules, readAcknowledgement } from '../src/clearing/captures/captureFile.ts'
import { chargebackReports } from '../src/clearing/chargebacks/chargebacks.ts'
import { readReport } from '../src/clearing/chargebacks/report.ts'
import { cnab240 } from '../src/clearing/cnab/cnab240.ts'
import { writeRecord } from '../src/clearing/cnab/layout.ts'
import { importFile } from '../src/clearing/import.ts'
import { readSettlement } from '../src/clearing/reconciliation/settlementFile.ts'
import { importFolder } from '../src/clearing/returns/folder.ts'
import { importReturn, returnsOf } from '../src/clearing/returns/importReturn.ts'
import { fixedRows, returnBytesMost } from '../src/clearing/returns/rows.ts'
import { rowsMost } from '../src/clearing/rows.ts'
import { inTurns, type Steps, sealFile } from '../src/clearing/steps.ts'
import { exampleDialect } from '../src/connectors/cards/iso8583/dialects.ts'
import { systemRandom } from '../src/platform/clock.ts'
import { unseal } from '../src/vault/seal.ts'
import { testKeys } from './support/gateway.ts'
import { openDesk, type SlipDesk } from './support/slipDesk.ts'

let desk: SlipDesk
before(async () => {
  desk = await openDesk()
})
after(() => desk.stop())

const source = (path: string): string => JSON.stringify(fileURLToPath(new URL(`../src/${path}`, import.meta.url)))

/** A process with so little memory for what it makes says what it thinks of a file, which is made there. */
function inLittleMemory(making: string, reading: string): string {
  const { stdout, stderr, status, signal } = spawnSync(
    process.execPath,
    [
      ...['--max-old-space-size=64', '--max-semi-space-size=16', '--input-type=module', '-e'],
      `const { readSlipsFile } = await import(${source('connectors/slips/accounts.ts')})
       const { isWhole } = await import(${source('clearing/intake/bankFile.ts')})
       const { readAcknowledgement } = await import(${source('clearing/captures/captureFile.ts')})
       const { readReport } = await import(${source('clearing/chargebacks/report.ts')})
       const { inTurns } = await import(${source('clearing/steps.ts')})
       const accounts = readSlipsFile(${JSON.stringify(slips)}, 'test')
       const from = (text, bytes) => { const all = Buffer.alloc(bytes, 10); all.write(text, 'latin1'); all[bytes - 1] = 120; return all }
       const file = ${making}
       process.stdout.write(String(${reading}))`,
    ],
    { encoding: 'utf8', timeout: 120_000 },
  )
  assert.equal(status, 0, `${signal} ${stderr.slice(0, 500)}`)
  return stdout
}

const one = { bank: '341', modes: ['external'], agency: '0057', account: '12345', accountDigit: '7', wallet: '110' }
const beneficiary = { name: 'Loja', taxId: '11222333000181', street: 'Rua', city: 'São Paulo', state: 'SP', postcode: '01310100' }
const slips = JSON.stringify({
  banks: [
    { ...one, name: 'wide', brand: 'WIDE', beneficiary, returns: { layout: 'cnab240' } },
    { ...one, name: 'wider', brand: 'WIDER', beneficiary, returns: { layout: 'cnab400' } },
  ],
  chains: [{ name: 'chain', brand: 'CHAIN', modes: ['external'], prefix: '20', agreement: 'TOLL' }],
})

const mega = 2 ** 20

describe('a file of rows that hold nothing is refused', () => {
  const files: Readonly<Record<string, [account: string, text: string]>> = {
    'of transfers': ['wide', '34100000\n34100011C20\n'],
    'of CNAB 240': ['wide', '34100000\n'],
    'of CNAB 400': ['wider', '02RETORNO\n'],
    'of a store chain': ['chain', 'H\n'],
  }
  for (const [what, [account, text]] of Object.entries(files))
    it(what, () => {
      const making = `from(${JSON.stringify(text)}, ${40 * mega})`
      assert.equal(inLittleMemory(making, `await isWhole(accounts.get('${account}'), file)`), 'false')
    })

  it('of transfers, with a heading that is right', () => {
    const heading = writeRecord(cnab240.fileHeader, { bank: '341', direction: '2', agency: '57', account: '12345' })
    const making = `from(${JSON.stringify(`${heading}\n34100011C20\n`)}, ${40 * mega})`
    assert.equal(inLittleMemory(making, `await isWhole(accounts.get('wide'), file)`), 'false')
  })

  it('of more rows than a long file would have if they were whole', () => {
    const count = (rows: number) => [...fixedRows(Buffer.from('x\n'.repeat(rows)), 400)].length
    const most = Math.floor(returnBytesMost / 400)
    assert.equal(count(most), most)
    assert.throws(() => count(most + 1), /more lines/)
    assert.throws(() => [...fixedRows(Buffer.from('x\n\nx'), 400)], /line 2 is empty/)
  })

  it('of an acquirer that acknowledges captures, or reports chargebacks', () => {
    const acknowledged = `(await inTurns(readAcknowledgement(String(file), '1', { separator: ';' }))).broken`
    const heading = JSON.stringify('ACKNOWLEDGEMENT;1;1\n')
    assert.match(inLittleMemory(`from(${heading}, ${4 * mega})`, acknowledged), /more than 500000 lines/)
    assert.match(inLittleMemory(`from(${heading}, ${rowsMost})`, acknowledged), /its end is missing/)
    assert.match(
      inLittleMemory(
        `from('report\\n', ${4 * mega})`,
        `(await inTurns(readReport(String(file)))).map(({ malformed }) => malformed)`,
      ),
      /more than 500000 lines/,
    )
  })
})

const account = () => desk.accounts.get('itau-1')!

const timeOf = (work: () => void): number => {
  const begun = performance.now()
  work()
  return performance.now() - begun
}

/** Nobody waits for longer than a third of the time that it would take at once. */
async function leavesTurns(atOnce: number, work: () => Promise<void>): Promise<void> {
  let [longest, last, isOver] = [0, performance.now(), false]
  const look = () => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
    if (!isOver) setImmediate(look)
  }
  look()
  await work()
  look()
  isOver = true
  assert.ok(longest < atOnce / 3, `others waited for ${Math.round((100 * longest) / atOnce)} % of the time that it takes at once`)
}

it('what a long file costs is paid in pieces, and it is kept as it came', async () => {
  const bytes = randomBytes(24 * mega)
  const atOnce = timeOf(() => {
    createHash('sha256').update(bytes).digest()
    gzipSync(bytes)
  })
  let sealed: Buffer | undefined
  await leavesTurns(atOnce, async () => {
    const report = await importReturn(desk.parts, returnsOf(account()), 'noise', bytes, () => {})
    assert.ok('broken' in report)
    sealed = await sealFile(testKeys, systemRandom, 'somewhere', bytes)
  })
  const { rows } = await desk.gateway.pool.query<{ hash: Buffer }>(`select hash from return_files where name = 'noise'`)
  assert.deepEqual(rows[0]!.hash, createHash('sha256').update(bytes).digest())
  assert.ok(gunzipSync(Buffer.from(unseal(testKeys, 'somewhere', sealed!), 'base64')).equals(bytes))
})

describe('a long file of an acquirer is read in turns', () => {
  const readAtOnce = (steps: Steps<unknown>) => timeOf(() => [...steps])

  it('a report of chargebacks, of lines that are right and of lines that are none', async () => {
    const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date\n'
    const right = (at: number) => `n-1-2-3,${at},CB,,${String(at).padStart(32, '0')},1.00,EUR,1.1.1.1.1,2031-03-04\n`
    const text = heading + 'nothing\n'.repeat(200_000) + Array.from({ length: 20_000 }, (_, at) => right(at + 1)).join('')
    const died = () => {
      throw new Error('died')
    }
    await leavesTurns(readAtOnce(readReport(text)), () =>
      assert.rejects(importFile(desk.parts, chargebackReports, 'long', text, died), /died/),
    )
    const { rows } = await desk.gateway.pool.query(`select lines from clearing_files where name = 'long'`)
    assert.deepEqual(rows, [{ lines: 220_000 }])
    assert.deepEqual(
      (await desk.cases('clearingLine')).map(({ details }) => [details.line, details.unreadable]),
      [[2, 200_000]],
    )
  })

  const count = 60_000
  const linesOf = (line: (at: number) => string) => Array.from({ length: count }, (_, at) => `${line(at + 1)}\n`).join('')

  it('an acknowledgement of captures', async () => {
    const text = `ACKNOWLEDGEMENT;1;1\n${linesOf(at => `ACCEPTED;${at};000001;${at};00 00 00 00`)}TOTAL;${count}\n`
    const read = () => readAcknowledgement(text, '1', { separator: ';' } as CaptureRules)
    await leavesTurns(readAtOnce(read()), async () => {
      const whole = await inTurns(read())
      assert.ok('lines' in whole && whole.lines.length === count)
    })
  })

  it('a settlement file', async () => {
    const heading = 'DATE,ACQUIRER,TERMINAL,STAN,RRN,TYPE,AMOUNT,CURRENCY\n'
    const text = `${heading}${linesOf(at => `2031-03-04,423930,T1,${at},${at},D,100,EUR`)}TOTAL,${count},${count * 100}\n`
    const read = () => readSettlement(text, exampleDialect('1987').settlementFile!, '423930')
    await leavesTurns(readAtOnce(read()), async () => {
      const whole = await inTurns(read())
      assert.ok('lines' in whole && whole.lines.length === count)
    })
  })
})

it('a file in a folder that is longer than any bank sends is refused by its size', async () => {
  const folder = join(desk.folder, 'long')
  mkdirSync(folder)
  const path = join(folder, '1.ret')
  writeFileSync(path, '')
  truncateSync(path, returnBytesMost + 1)
  const at = Date.now() / 1000 - 60
  utimesSync(path, at, at)
  const [file] = await importFolder(desk.parts, account(), folder)
  assert.ok(file && 'broken' in file.report)
  assert.match(file.report.broken, new RegExp(`it has ${returnBytesMost + 1} bytes, more than`))
  assert.equal((await desk.gateway.pool.query(`select from return_files where name = '1.ret'`)).rowCount, 0, 'it was read')
  assert.ok(existsSync(join(folder, 'refused', '1.ret')))
  assert.equal((await desk.cases('returnFile')).filter(({ details }) => details.file === '1.ret').length, 1)
})
