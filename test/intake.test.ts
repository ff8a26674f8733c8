// Returns that banks and store chains lay down on a server: what is there afterwards, and what was booked, whatever the server and our own process do.

import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { BlockList } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { Attributes } from 'ssh2'
import { aboutFile, importBankFile, refuseFile } from '../src/clearing/intake/bankFile.ts'
import { type IntakeParts, pollReturns } from '../src/clearing/intake/poll.ts'
import { nobody } from '../src/payments/cases/cases.ts'
import { closeSettled, hasOpenCase } from '../src/payments/cases/store.ts'
import { clockWith } from '../src/platform/clock.ts'
import type { Database } from '../src/platform/database/connect.ts'
import { ServedElsewhere } from '../src/platform/database/elsewhere.ts'
import { type OpenSftp, sftpOpener } from '../src/platform/sftp/open.ts'
import { type Sftp, SftpError } from '../src/platform/sftp/sftp.ts'
import { returnText } from '../src/sandbox/slipBank/returnText.ts'
import { refusing } from './support/dying.ts'
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
  server.odd.clear()
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
const casesOf = async (name: string): Promise<string[]> =>
  (await desk.cases('returnFile')).filter(({ subject }) => subject === `brasil-1 ${name}`).map(({ details }) => `${details.why}`)
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

  it('that take the name of one that is being read are read at the next look', async () => {
    const [one, two] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    lay('RETORNO.RET', returnOf(one))
    server.odd.set('RENAME', (channel, id) => {
      server.odd.delete('RENAME')
      lay('RETORNO.RET', returnOf(two))
      renameSync(join(out, 'RETORNO.RET'), join(out, 'done/RETORNO.RET'))
      channel.status(id, 0)
    })
    await look()
    assert.deepEqual([there(), done(), await paid(one), await paid(two)], [['RETORNO.RET', 'done'], [], 1, 0])
    await look()
    assert.deepEqual([there(), done(), await paid(two)], [['done'], ['RETORNO.RET'], 1])
  })

  it('that take the name of one that is being read, and cannot come back, are a case', async () => {
    const [one, two] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    lay('TWICE.RET', returnOf(one))
    server.odd.set('RENAME', (channel, id) => {
      server.odd.delete('RENAME')
      writeFileSync(join(out, 'done/TWICE.RET'), `${returnOf(two)}more`, 'latin1')
      channel.status(id, 0)
    })
    await look()
    assert.deepEqual(await casesOf('TWICE.RET'), [
      'all that it says is stored, and it cannot be moved: another file has taken its name, and lies unread in /out/done/TWICE.RET',
    ])
    rmSync(join(out, 'done/TWICE.RET'))
    await look()
    assert.deepEqual([there(), await casesOf('TWICE.RET')], [['done'], []])
  })

  it('that a server says it has moved, and has not, are a case until it does', async () => {
    const slip = await desk.issue('brasil-1')
    lay('same.ret', returnOf(slip))
    server.odd.set('RENAME', (channel, id) => channel.status(id, 0))
    await look()
    const why = 'all that it says is stored, and it cannot be moved: the server says that it has moved it, and it is still there'
    assert.deepEqual([await paid(slip), await casesOf('same.ret')], [1, [why]])
    server.odd.clear()
    await look()
    assert.deepEqual([done(), await casesOf('same.ret')], [['same.ret'], []])
  })

  it('that somebody takes away out of `done` at once, or that nobody may read there, are moved', async () => {
    for (const after of [() => rmSync(join(out, 'done/gone.ret')), () => server.denied.add('gone.ret')]) {
      lay('gone.ret', returnOf(await desk.issue('brasil-1')))
      server.odd.set('RENAME', (channel, id) => {
        renameSync(join(out, 'gone.ret'), join(out, 'done/gone.ret'))
        after()
        channel.status(id, 0)
      })
      await look()
      assert.deepEqual([there(), await casesOf('gone.ret'), details.left], [['done'], [], {}])
    }
    server.denied.clear()
  })

  it('that have another time at each look are told of as others are, and read when they are whole', async () => {
    const slip = await desk.issue('brasil-1')
    const whole = returnOf(slip)
    lay('half.ret', whole.slice(0, 700).padEnd(whole.length, '\n'))
    lay('denied.ret', whole)
    server.denied.add('denied.ret')
    const told = async () => (await desk.cases('returnFile')).filter(one => one.details.file === 'half.ret')
    let seconds = 1e9
    const later = async () => {
      seconds += 600
      for (const name of ['half.ret', 'denied.ret'])
        if (existsSync(join(out, name))) utimesSync(join(out, name), seconds, seconds)
      await look()
    }
    for (let looks = 0; looks < 5; looks++) await later()
    assert.deepEqual([await told(), await desk.cases('returnServer')], [[], []])
    for (let looks = 0; looks < 3; looks++) await later()
    const [broken, ...others] = await told()
    assert.deepEqual([broken?.details.why, others], ['its end is missing', []])
    assert.match(String((await desk.cases('returnServer'))[0]?.details.why), /^it does not give 1 of its files, denied\.ret/)
    server.denied.clear()
    lay('half.ret', whole)
    for (let looks = 0; looks < 2; looks++) await later()
    assert.deepEqual([there(), await paid(slip), await desk.cases('returnServer')], [['done'], 1, []])
    const about = { merchantId: nobody, kind: 'returnFile', subject: broken!.subject } as const
    await closeSettled(desk.parts.database.work, about, Date.now(), 'test', 'over')
  })

  it('that a server lists without their type, or without permissions, are read; a folder among them is not', async () => {
    for (const [at, mode] of [0o600, undefined].entries()) {
      const slip = await desk.issue('brasil-1')
      lay(`bare${at}.ret`, returnOf(slip))
      const { length } = readFileSync(join(out, `bare${at}.ret`))
      const entry = (filename: string, line: string, more: object = {}) => ({
        filename,
        longname: `${line} 1 0 0 1 Jan 1 00:00 ${filename}`,
        attrs: { mode, uid: 0, gid: 0, size: length, atime: 0, mtime: 0, ...more } as Attributes,
      })
      let isOver = false
      server.odd.set('READDIR', (channel, id) => {
        if (isOver) return channel.status(id, 1)
        isOver = true
        channel.name(id, [
          entry(`bare${at}.ret`, '-rw-------'),
          entry('old', 'drwx------'),
          entry('real', '', { mode: 0o040700 }),
        ])
      })
      await look()
      assert.equal(await paid(slip), 1)
      assert.deepEqual([details.left, done().at(-1)], [{}, `bare${at}.ret`])
    }
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

  it('with a card number and a CVV in their names are kept and told without them, and known again all the same', async () => {
    const number = '4539578763621486'
    const names = [`paid ${number} cvv 942.ret`, `cut ${number} cvv 942.ret`, `cut ${number} cvv 943.ret`]
    const slip = await desk.issue('brasil-1')
    lay(names[0]!, returnOf(slip))
    for (const [at, name] of names.slice(1).entries()) lay(name, returnOf(slip).slice(0, 600 + at))
    logged.length = 0
    for (let looks = 0; looks < 4; looks++) await look()
    assert.equal(await paid(slip), 1)
    assert.deepEqual(there(), [...names.slice(1), 'done'])
    for (const name of names.slice(1)) assert.equal(asked(`open /out/${name}`), 2, 'each of the two is told of once')
    const { rows } = await desk.parts.database.work.query(
      'select name from return_files union all select name from clearing_files',
    )
    const kept = JSON.stringify([rows, await desk.cases('returnFile'), details, logged])
    assert.ok(kept.includes('paid 453957…1486 cvv ….ret') && kept.includes('cut 453957…1486 cvv ….ret'), kept)
    assert.doesNotMatch(kept, /4539578763621486|\b94[23]\b/)
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

  it('that the server gives to nobody, however many, keep no other out, and somebody is told once they stay so', async () => {
    for (let at = 0; at < 500; at++) {
      lay(`A${at}.ret`, 'x')
      server.denied.add(`A${at}.ret`)
    }
    await look()
    assert.deepEqual(await desk.cases('returnServer'), [])
    const slip = await desk.issue('brasil-1')
    lay('Z.ret', returnOf(slip))
    await look()
    assert.equal(await paid(slip), 1)
    const [told] = await desk.cases('returnServer')
    assert.equal(told!.details.why, 'it does not give 499 of its files, A0.ret first')
    server.denied.clear()
    for (let at = 0; at < 500; at++) rmSync(join(out, `A${at}.ret`))
    await look()
    assert.deepEqual(await desk.cases('returnServer'), [])
  })

  it('keep no other’s work waiting while their names are looked through, however many and long these are', async () => {
    const files = Array.from({ length: 500 }, (_, at) => ({
      name: `${at}${' 4 5 7 1'.repeat(30)}`,
      bytes: 1,
      modifiedAt: 1,
    }))
    let turns = 0
    let isListed = false
    let before: number | undefined
    const count = () => {
      if (isListed) turns++
      if (before === undefined) setImmediate(count)
    }
    count()
    const hostile = {
      list: async () => {
        isListed = true
        return { files, isCut: false }
      },
      read: async () => {
        before ??= turns
        throw new SftpError('nobody reads it', 'lost')
      },
    }
    await look(partsWith({}, (_, work) => work(hostile as unknown as Sftp)))
    assert.ok(before! >= files.length, `${before}`)
    await look()
  })

  it('of a folder that holds too many are read as far as they are seen, and somebody is told', async () => {
    server.lies.add('endlessList')
    await look()
    server.lies.clear()
    const [told] = await desk.cases('returnServer')
    assert.match(String(told!.details.why), /^its folder holds more than 10000 files, of which the others are not seen/)
    await look()
    assert.deepEqual(await desk.cases('returnServer'), [])
  })

  it('are not looked at again because the line was cut behind them', async () => {
    lay('a.ret', 'statement\n')
    lay('c.ret', returnOf(await desk.issue('brasil-1')))
    server.faults.set('rename', 'cut')
    for (let looks = 0; looks < 4; looks++) await look()
    assert.equal(asked('open /out/a.ret'), 2, 'as one that may be half written, and as one that stays so')
    assert.deepEqual([there(), done()], [['a.ret', 'done'], ['c.ret']])
  })

  it('of what is refused nothing is kept: a bank could fill the database; what is read then is kept', async () => {
    const slip = await desk.issue('brasil-1')
    const whole = returnOf(slip)
    const kept = async () =>
      (
        await desk.gateway.pool.query<{ refused: boolean; bytes: number | null }>(
          `select refused is not null as refused, length(sealed) > 0 as bytes from return_files where name = 'r.ret' order by received_at`,
        )
      ).rows.map(({ refused, bytes }) => [refused, bytes])
    lay('r.ret', `${whole}nonsense`)
    await look()
    await look()
    assert.deepEqual(await kept(), [[true, null]])
    lay('r.ret', whole)
    await look()
    assert.deepEqual(
      [await kept(), await paid(slip)],
      [
        [
          [true, null],
          [false, true],
        ],
        1,
      ],
    )
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

  it('of which one throws at every look keep coming: it is a case, comes last, and is read when it can be', async () => {
    const [one, other] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    lay('a.ret', returnOf(one))
    lay('b.ret', returnOf(other))
    const failing = (error: Error) => ({ ...parts, database: refusing(parts.database, 'a.ret', error) })
    for (let looks = 0; looks < 3; looks++) await look(failing(new Error('nobody thought \0of it')))
    assert.deepEqual([await paid(one), await paid(other), there()], [0, 1, ['a.ret', 'done']])
    assert.deepEqual(await casesOf('a.ret'), ['it could not be read: nobody thought \ufffdof it'])
    await assert.rejects(look(failing(new Error('Connection terminated'))), /Connection terminated/)
    await assert.rejects(look(failing(new ServedElsewhere('held'))), /held/)
    await look()
    assert.deepEqual([await paid(one), there(), await casesOf('a.ret')], [1, ['done'], []])
  })

  it('of which one has letters for its amount are read behind it', async () => {
    const [one, other] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    lay('a.ret', returnOf(one).replace(/^(.{13}T.{76})./m, '$1X'))
    lay('b.ret', returnOf(other))
    for (let looks = 0; looks < 3; looks++) await look()
    assert.deepEqual([await paid(one), await paid(other), there()], [0, 1, ['a.ret', 'done']])
    assert.ok(
      (await desk.cases('returnFile')).some(({ details }) => details.file === 'a.ret' && /sum of titles/.test(`${details.why}`)),
    )
  })

  it('of which the server hangs up at some keep coming, and each of those has its turn again', async () => {
    const slips = await Promise.all(['a', 'b', 'c', 'd'].map(() => desk.issue('brasil-1')))
    for (const [at, name] of ['a.ret', 'b.ret', 'c.ret', 'd.ret'].entries()) lay(name, returnOf(slips[at]!))
    let broken = /\/[ac]\.ret$/
    const hangingUp: OpenSftp = (place, work) =>
      parts.sftp(place, server =>
        work({
          ...server,
          read: (path, most) => (broken.test(path) ? Promise.reject(new SftpError('hung up', 'lost')) : server.read(path, most)),
        }),
      )
    const own = partsWith({}, hangingUp)
    for (let looks = 0; looks < 3; looks++) await look(own)
    assert.deepEqual(await Promise.all(slips.map(paid)), [0, 1, 0, 1])
    broken = /\/a\.ret$/
    for (let looks = 0; looks < 3; looks++) await look(own)
    assert.deepEqual(await Promise.all(slips.map(paid)), [0, 1, 1, 1], 'the first of two keeps the second out')
    assert.equal((await desk.cases('returnServer'))[0]?.details.why, 'a.ret: hung up')
    await look()
    assert.deepEqual([await paid(slips[0]!), there(), await desk.cases('returnServer')], [1, ['done'], []])
  })

  it('with the same bytes and name for the third time stay, say nothing new, and keep no other out', async () => {
    const [one, other] = [await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    const text = returnOf(one)
    for (let times = 0; times < 3; times++) {
      lay('a.ret', text)
      await look()
    }
    lay('b.ret', returnOf(other))
    server.asked.length = 0
    for (let looks = 0; looks < 3; looks++) await look()
    assert.deepEqual([await paid(one), await paid(other)], [1, 1])
    assert.deepEqual([there(), done().length, await casesOf('a.ret')], [['a.ret', 'done'], 3, []])
    assert.equal(asked('open /out/a.ret'), 0)
  })

  it('that the server does not move are stored, cases, and moved when it does', async () => {
    const slips = [await desk.issue('brasil-1'), await desk.issue('brasil-1'), await desk.issue('brasil-1')]
    for (const [at, slip] of slips.entries()) lay(`${at}.ret`, returnOf(slip))
    rmSync(join(out, 'done'), { recursive: true })
    await look()
    assert.deepEqual(
      [await Promise.all(slips.map(paid)), there()],
      [
        [1, 1, 1],
        ['0.ret', '1.ret', '2.ret'],
      ],
    )
    assert.match((await casesOf('1.ret'))[0]!, /^all that it says is stored, and it cannot be moved: moving /)
    server.asked.length = 0
    for (let looks = 0; looks < 3; looks++) await look()
    for (const at of [0, 1, 2]) assert.equal(asked(`open /out/${at}.ret`), 1, 'one a look, in turns')
    mkdirSync(join(out, 'done'))
    await look()
    assert.deepEqual([there(), done()], [['done'], ['0.ret', '1.ret', '2.ret']])
    assert.deepEqual(await casesOf('1.ret'), [])
    assert.deepEqual(await Promise.all(slips.map(paid)), [1, 1, 1])
  })

  it('are read once when two processes look at the same time', async () => {
    const slip = await desk.issue('brasil-1')
    lay('a.ret', returnOf(slip))
    await Promise.allSettled([look(), look(), look()])
    await look()
    assert.deepEqual([await paid(slip), done()], [1, ['a.ret']])
  })
})

describe('what a file is called and refused with', () => {
  it('is a case of its own where another is shown alike', async () => {
    const account = desk.accounts.get('brasil-1')!
    const names = ['4012-1008-20261127.ret', '4012-1016-20261127.ret']
    for (const name of names) await refuseFile(parts, account, name, 'it is too long')
    const alike = async () => (await desk.cases('returnFile')).filter(({ subject }) => subject.includes('401210…1127'))
    assert.equal((await alike()).length, 2)
    await closeSettled(desk.gateway.pool, aboutFile(parts, account, names[1]!), Date.now(), 'gateway', 'it was read')
    assert.equal((await alike()).length, 1)
  })

  it('may hold what no database can say: it is one case, and closes', async () => {
    const [name, account] = ['x\0\ud800.ret', parts.slipAccounts.get('brasil-1')!]
    for (let times = 0; times < 2; times++) await importBankFile(parts, account, name, Buffer.from(`x\0${'y'.repeat(600)}`))
    for (let times = 0; times < 2; times++) await refuseFile(parts, account, name, 'no \0 words')
    assert.deepEqual(await casesOf('x\ufffd\ufffd.ret'), ['no \ufffd words'])
    const { rows } = await desk.gateway.pool.query(`select name from return_files where name like 'x_%'`)
    assert.deepEqual(rows, [{ name: 'x\ufffd\ufffd.ret' }])
    const about = aboutFile(desk.parts, account, name)
    assert.ok(await hasOpenCase(desk.gateway.pool, about.merchantId, about.kind, about.subject))
    await closeSettled(desk.gateway.pool, about, 0, 'gateway', 'over')
    assert.deepEqual(await casesOf('x\ufffd\ufffd.ret'), [])
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

  it('that answers what was not asked five times is a case', async () => {
    for (const question of ['OPENDIR', 'READDIR', 'OPEN', 'FSTAT'] as const) {
      lay('a.ret', returnOf(await desk.issue('brasil-1')))
      server.odd.set(question, (channel, id) => channel.status(id, 0))
      for (let looks = 0; looks < 5; looks++) {
        assert.equal((await desk.cases('returnServer')).length, 0, `${question} ${looks}`)
        await look()
        assert.equal(details.failures, looks + 1)
      }
      const [told] = await desk.cases('returnServer')
      assert.match(String(told!.details.why), /: the server answers another question$/)
      assert.deepEqual([there(), details.failures], [['a.ret', 'done'], 5])
      server.odd.clear()
      await look()
      assert.deepEqual([await desk.cases('returnServer'), there(), details.failures], [[], ['done'], 0])
    }
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
