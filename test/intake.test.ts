// Returns that banks and store chains lay down on a server: what is there afterwards, and what was booked, whatever the server and our own process do.

import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type IntakeParts, pollReturns } from '../src/clearing/intake/poll.ts'
import { clockWith } from '../src/platform/clock.ts'
import type { Database } from '../src/platform/database/connect.ts'
import { type OpenSftp, sftpOpener } from '../src/platform/sftp/open.ts'
import { returnText } from '../src/sandbox/slipBank/returnText.ts'
import { keyPair, type SftpTestServer, startSftpServer } from './support/sftpServer.ts'
import { type IssuedSlip, openDesk, places, type SlipDesk } from './support/slipDesk.ts'

const ours = keyPair()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-intake-'))
const out = join(folder, 'out')
let desk: SlipDesk
let server: SftpTestServer
let parts: IntakeParts
let details: Record<string, unknown>
before(async () => {
  server = await startSftpServer(folder, ours.public)
  desk = await openDesk()
  parts = partsWith({})
})
after(async () => {
  await desk.stop()
  await server.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(() => {
  rmSync(out, { recursive: true, force: true })
  mkdirSync(join(out, 'done'), { recursive: true })
  server.faults.clear()
  server.asked.length = 0
  details = { account: 'brasil-1' }
})

const logged: string[] = []
function partsWith(
  more: object,
  sftp: OpenSftp = sftpOpener(
    clockWith(() => Date.now()),
    ours.private,
    noEgress,
    async () => [],
  ),
): IntakeParts {
  const account = desk.accounts.get('brasil-1')!
  const place = {
    host: '127.0.0.1',
    port: server.port,
    user: 'us',
    hostKey: server.hostKey,
    folder: '/out',
    done: 'done',
    everyMinutes: 10,
    ...more,
  }
  const slipAccounts = new Map([['brasil-1', { ...account, returns: { ...account.returns, sftp: place } }]])
  return {
    ...desk.parts,
    slipAccounts,
    sftp,
    log: { warn: ({ why }: { why: string }) => logged.push(why), info() {} },
  } as unknown as IntakeParts
}
const noEgress = { allow: new BlockList(), httpsOnly: false, standardPortsOnly: false }

/** As due work does it, again and again with what the last look has left. */
async function look(own = parts): Promise<void> {
  const ended = await pollReturns(own, { details } as never)
  assert.ok(ended !== 'done')
  details = { ...details, ...ended.details }
}
const there = () => readdirSync(out).sort()
const done = () => readdirSync(join(out, 'done')).sort()
const asked = (operation: string) => server.asked.filter(one => one.startsWith(operation)).length

let number = 0
/** A return in which slips are paid. */
const returnOf = (...slips: readonly IssuedSlip[]): string =>
  returnText(
    places['brasil-1'],
    ++number,
    '2026-11-23',
    slips.map(one => ({
      number: places['brasil-1'].agreement + one.number,
      occurrence: '06',
      occurredOn: '2026-11-20',
      creditedOn: '2026-11-23',
      face: 12345,
      paid: 12345,
    })),
  )
const lay = (name: string, text: string) => writeFileSync(join(out, name), text, 'latin1')
const paid = async (slip: IssuedSlip): Promise<number> => (await desk.receipts(slip)).length

describe('returns on a server', () => {
  it('are read in the order of their names, and moved when all that they say is stored', async () => {
    const [one, two] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    lay('1.ret', returnOf(one))
    lay('2.ret', returnOf(two))
    await look()
    assert.deepEqual([there(), done()], [['done'], ['1.ret', '2.ret']])
    assert.deepEqual([await paid(one), await paid(two)], [1, 1])
    await look()
    assert.deepEqual([await paid(one), await paid(two)], [1, 1])
  })

  it('stay until they are stored: a process that dies in between finds them again and counts them once', async () => {
    const slip = await desk.issue('brasil-1')
    lay('a.ret', returnOf(slip))
    const { work } = parts.database
    let statements = 0
    const dying = new Proxy(work, {
      get(target, name) {
        const value = Reflect.get(target, name)
        if (name !== 'query') return typeof value === 'function' ? value.bind(target) : value
        return (...given: unknown[]) => (++statements > 6 ? Promise.reject(new Error('died')) : value.apply(target, given))
      },
    })
    await assert.rejects(look({ ...parts, database: { ...parts.database, work: dying } as Database }), /died/)
    assert.deepEqual([there(), done()], [['a.ret', 'done'], []])
    server.faults.set('rename', 'cut')
    await look()
    assert.deepEqual(there(), ['a.ret', 'done'])
    assert.equal(await paid(slip), 1)
    await look()
    assert.deepEqual([there(), done()], [['done'], ['a.ret']])
    assert.equal(await paid(slip), 1)
  })

  it('that are half written wait for their other half; what stays broken is told of once, and left', async () => {
    const slip = await desk.issue('brasil-1')
    const whole = returnOf(slip)
    lay('half.ret', whole.slice(0, 600))
    await look()
    assert.equal((await desk.cases('returnFile')).length, 0)
    lay('half.ret', whole)
    await look()
    assert.deepEqual([done(), await paid(slip)], [['half.ret'], 1])
    lay('broken.ret', whole.slice(0, 600))
    for (let looks = 0; looks < 4; looks++) await look()
    assert.equal((await desk.cases('returnFile')).length, 1)
    assert.deepEqual(there(), ['broken.ret', 'done'])
    assert.equal(asked('open /out/broken.ret'), 2, 'it is not fetched again and again')
    lay('broken.ret', returnOf(await desk.issue('brasil-1')))
    await look()
    assert.deepEqual(done(), ['broken.ret', 'half.ret'])
  })

  it('that stay there, however many, keep no other out', async () => {
    for (let at = 0; at < 500; at++) lay(`EXTRATO${at}.txt`, `statement ${at}\n`)
    const slip = await desk.issue('brasil-1')
    lay('RET1.ret', returnOf(slip))
    for (let looks = 0; looks < 3; looks++) await look()
    assert.equal(await paid(slip), 1)
    for (let at = 0; at < 500; at++) rmSync(join(out, `EXTRATO${at}.txt`))
    rmSync(join(out, 'done/RET1.ret'))
    await look()
  })

  it('with a name that was there before are moved beside that one', async () => {
    for (const slip of [await desk.issue('brasil-1'), await desk.issue('brasil-1')]) {
      lay('same.ret', returnOf(slip))
      await look()
      assert.equal(await paid(slip), 1)
    }
    assert.equal(done().length, 2)
    assert.deepEqual(there(), ['done'])
  })

  it('are read once when two processes look at the same time', async () => {
    const slip = await desk.issue('brasil-1')
    lay('a.ret', returnOf(slip))
    await Promise.allSettled([look(), look(), look()])
    await look()
    assert.deepEqual([await paid(slip), done()], [1, ['a.ret']])
  })
})

describe('a server', () => {
  it('with another key is told nothing, and somebody is told at once; when it is itself again the case closes', async () => {
    lay('a.ret', returnOf(await desk.issue('brasil-1')))
    await look(partsWith({ hostKey: keyPair().public.trim().split(' ').slice(0, 2).join(' ') }))
    assert.deepEqual([server.asked.length, there()], [0, ['a.ret', 'done']])
    assert.deepEqual(
      (await desk.cases('returnServer')).map(one => [one.subject, one.details.why]),
      [['brasil-1', 'the server shows another host key than the one that is known']],
    )
    await look()
    assert.deepEqual([await desk.cases('returnServer'), done()], [[], ['a.ret']])
  })

  it('that cannot be reached five times is a case', async () => {
    const away = partsWith({ port: 1 })
    for (let looks = 0; looks < 4; looks++) await look(away)
    assert.equal((await desk.cases('returnServer')).length, 0)
    await look(away)
    assert.equal((await desk.cases('returnServer')).length, 1)
    await look()
    assert.equal((await desk.cases('returnServer')).length, 0)
  })

  it('that cuts the line has lost nothing of ours', async () => {
    const slip = await desk.issue('brasil-1')
    lay('a.ret', returnOf(slip))
    for (const operation of ['list', 'open', 'read', 'close'] as const) {
      server.faults.set(operation, 'cut')
      await look()
      assert.deepEqual(there(), ['a.ret', 'done'], operation)
    }
    await look()
    assert.deepEqual([await paid(slip), done()], [1, ['a.ret']])
  })

  it('that lays down a file longer than any is not waited for', async () => {
    const slip = await desk.issue('brasil-1')
    lay('b.ret', returnOf(slip))
    server.claimed.set('a.ret', 2 ** 40)
    lay('a.ret', 'x')
    await look()
    await look()
    server.claimed.clear()
    assert.equal(asked('open /out/a.ret'), 0)
    assert.deepEqual([await paid(slip), existsSync(join(out, 'a.ret'))], [1, true])
    assert.equal((await desk.cases('returnFile')).filter(one => one.subject === 'brasil-1 a.ret').length, 1)
  })
})
