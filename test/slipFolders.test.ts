// Returns that are put into a folder.

import assert from 'node:assert/strict'
import fs, {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { after, before, it, mock } from 'node:test'
import { putFile } from '../src/clearing/putFile.ts'
import { type FolderFile, importFolder } from '../src/clearing/returns/folder.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { returnText } from '../src/sandbox/slipBank/returnText.ts'
import { returnFaults } from '../src/sandbox/slipBank/slipBank.ts'
import { dyingAfter, refusing } from './support/dying.ts'
import { type IssuedSlip, openDesk, places, type SlipDesk } from './support/slipDesk.ts'

let desk: SlipDesk
before(async () => {
  desk = await openDesk()
})
after(() => desk.stop())

const day = '2026-12-02'
const paid = ({ number }: IssuedSlip) => ({ number, occurrence: '06', occurredOn: '2020-01-02', face: 123_45, paid: 123_45 })
const text = (number: number, ...slips: IssuedSlip[]) => returnText(places['itau-1'], number, day, slips.map(paid))

function folderOf(name: string, files: Readonly<Record<string, string>>, secondsOld = 60): string {
  const folder = join(desk.folder, name)
  mkdirSync(folder, { recursive: true })
  for (const [file, content] of Object.entries(files)) {
    writeFileSync(join(folder, file), content)
    const at = Date.now() / 1000 - secondsOld
    utimesSync(join(folder, file), at, at)
  }
  return folder
}
const read = (folder: string, parts = desk.parts) => importFolder(parts, desk.accounts.get('itau-1')!, folder)
const names = (folder: string, below = '') => (existsSync(join(folder, below)) ? readdirSync(join(folder, below)).sort() : [])

it('a folder is read in the order of names, and what was read is moved aside', async () => {
  const [one, other] = [await desk.issue('itau-1'), await desk.issue('itau-1')]
  const folder = folderOf('in', {
    '2.ret': text(2, other),
    '1.ret': text(1, one),
    '3.ret': returnFaults.cut(text(3, other)),
    '4.ret.tmp': text(4, other),
    '.5.ret': text(5, other),
  })
  symlinkSync('/etc/passwd', join(folder, 'link.ret'))
  const files = await read(folder)
  assert.deepEqual(
    files.map(({ name, report }) => [name, 'broken' in report]),
    [
      ['1.ret', false],
      ['2.ret', false],
      ['3.ret', true],
    ],
  )
  assert.deepEqual(
    files.map(({ report }) => ('broken' in report ? [] : report.missing)),
    [[], [], []],
  )
  assert.deepEqual(
    [names(folder), names(folder, 'done'), names(folder, 'refused')],
    [['.5.ret', '4.ret.tmp', 'done', 'link.ret', 'refused'], ['1.ret', '2.ret'], ['3.ret']],
  )
  for (const slip of [one, other]) assert.equal((await desk.receipts(slip)).length, 1)
  // The next day has a file of the same name.
  folderOf('in', { '1.ret': text(6, await desk.issue('itau-1')) })
  assert.equal((await read(folder)).length, 1)
  assert.deepEqual(names(folder, 'done'), ['1.ret', '1.ret.2', '2.ret'])
})

it('a file is moved through no link of another user', {
  skip: process.getuid?.() !== 0 && 'only root has links of others',
}, async () => {
  const folder = folderOf('linked', { 'a.ret': text(9, await desk.issue('itau-1')) })
  const elsewhere = folderOf('elsewhere', {})
  symlinkSync(elsewhere, join(folder, 'done'))
  lchownSync(join(folder, 'done'), 5, 5)
  const [{ report }] = (await read(folder)) as [FolderFile]
  assert.match('broken' in report ? report.broken : '', /it cannot be moved: .*linked\/done is a link of another user/)
  assert.deepEqual([names(folder), names(elsewhere)], [['a.ret', 'done'], []])
  lchownSync(join(folder, 'done'), 0, 0)
  await read(folder)
  assert.deepEqual(names(elsewhere), ['a.ret'])
})

/** Does something right after the file system was asked about a path, before whoever asked goes on. */
function rightAfter(ask: 'lstatSync' | 'openSync', path: string, happens: () => void): Disposable {
  const original = fs[ask] as (...given: unknown[]) => unknown
  let isOver = false
  const asked = mock.method(fs, ask, (...given: unknown[]) => {
    const answer = original(...given)
    if (String(given[0]) === path && !isOver) {
      isOver = true
      happens()
    }
    return answer
  })
  syncBuiltinESMExports()
  return {
    [Symbol.dispose]() {
      asked.mock.restore()
      syncBuiltinESMExports()
      assert.ok(isOver, 'nobody asked')
    },
  }
}

it('a link that takes the place of a file between the look and the reading is not followed', async () => {
  const slip = await desk.issue('itau-1')
  const secret = join(folderOf('secrets', { 'other.ret': text(11, slip) }), 'other.ret')
  const folder = folderOf('swapped', { 'a.ret': 'anything' })
  const path = join(folder, 'a.ret')
  {
    using _ = rightAfter('lstatSync', path, () => {
      unlinkSync(path)
      symlinkSync(secret, path)
    })
    const [{ report }] = (await read(folder)) as [FolderFile]
    assert.match('broken' in report ? report.broken : '', /^it could not be read: ELOOP/)
  }
  assert.equal((await desk.receipts(slip)).length, 0)
})

for (const [how, replace] of [
  [
    'is renamed to its name',
    (path: string, next: string) => {
      writeFileSync(`${path}.tmp`, next)
      renameSync(`${path}.tmp`, path)
    },
  ],
  ['is written over it', (path: string, next: string) => writeFileSync(path, next)],
] as const)
  it(`a file that ${how} while it is read is read at the next look`, async () => {
    const [one, other] = [await desk.issue('itau-1'), await desk.issue('itau-1')]
    const number = how.startsWith('is renamed') ? 31 : 33
    const folder = folderOf(how, { 'RETORNO.RET': text(number, one) })
    const path = join(folder, 'RETORNO.RET')
    {
      using _ = rightAfter('openSync', path, () => replace(path, text(number + 1, other)))
      await read(folder)
    }
    assert.deepEqual([names(folder), names(folder, 'done')], [['RETORNO.RET', 'done'], []])
    utimesSync(path, 1, 1)
    await read(folder)
    assert.deepEqual([names(folder), names(folder, 'done')], [['done'], ['RETORNO.RET']])
    assert.equal((await desk.receipts(other)).length, 1)
  })

for (const ask of ['lstatSync', 'openSync'] as const)
  it(`a link that takes the place of the folder aside after ${ask} gets nothing`, async () => {
    const folder = folderOf(`aside-${ask}`, { 'a.ret': 'anything' })
    const elsewhere = folderOf(`elsewhere-${ask}`, {})
    const aside = join(folder, 'refused')
    mkdirSync(aside)
    {
      using _ = rightAfter(ask, aside, () => {
        renameSync(aside, join(folder, 'away'))
        symlinkSync(elsewhere, aside)
      })
      await read(folder).catch((error: Error) => assert.match(error.message, /ELOOP|ENOTDIR/))
    }
    assert.deepEqual(names(elsewhere), [])
    assert.deepEqual([...names(folder), ...names(folder, 'away')].filter(name => name === 'a.ret').length, 1)
  })

it('of a folder that others may change no link is followed, whoever made it', async () => {
  const folder = folderOf('open', { 'a.ret': 'anything' })
  const elsewhere = folderOf('elsewhere-open', {})
  symlinkSync(elsewhere, join(folder, 'refused'))
  chmodSync(folder, 0o777)
  const [{ report }] = (await read(folder)) as [FolderFile]
  assert.match('broken' in report ? report.broken : '', /open\/refused is a link that others may replace/)
  assert.deepEqual([names(folder), names(elsewhere)], [['a.ret', 'refused'], []])
})

it('a file that throws keeps none behind it out, and is a case once; that our database is away is none', async () => {
  const slip = await desk.issue('itau-1')
  const folder = folderOf('poisoned', { 'a21.ret': text(21, await desk.issue('itau-1')), 'b.ret': text(22, slip) })
  const failing = (error: Error) => ({ ...desk.parts, database: refusing(desk.parts.database, 'a21.ret', error) })
  for (let times = 0; times < 2; times++) await read(folder, failing(new Error('nobody thought of it')))
  assert.deepEqual([names(folder), names(folder, 'done')], [['a21.ret', 'done'], ['b.ret']])
  assert.equal((await desk.receipts(slip)).length, 1)
  const told = async () => (await desk.cases('returnFile')).filter(({ subject }) => subject === 'itau-1 a21.ret')
  assert.deepEqual(
    (await told()).map(({ details }) => details.why),
    ['it could not be read: nobody thought of it'],
  )
  await assert.rejects(read(folder, failing(new Error('Connection terminated'))), /Connection terminated/)
  await read(folder)
  assert.deepEqual(names(folder), ['done'])
})

it('what is put for others is compared with no link', () => {
  const folder = folderOf('out', { 'real.txt': 'ours' })
  const put = (name: string) => putFile({ clock: systemClock, random: systemRandom }, folder, name, 'ours')
  put('real.txt')
  symlinkSync(join(folder, 'real.txt'), join(folder, 'link.txt'))
  assert.throws(() => put('link.txt'), /ELOOP/)
})

it('what is put for others takes away the parts that somebody left who died, and those of no other file', () => {
  const id = '0'.repeat(32)
  const others = [`.b.txt.${id}.tmp`, '.a.txt.tmp', `a.txt.${id}.tmp`, `.a.txt.${id}.txt`, `.a.txt.${id}0.tmp`]
  const left = [`.a.txt.${id}.tmp`, `.a.txt.${id}`, ...others]
  const folder = folderOf('left', Object.fromEntries(left.map(name => [name, 'half'])))
  putFile({ clock: systemClock, random: systemRandom }, folder, 'a.txt', 'ours')
  assert.deepEqual(names(folder), ['a.txt', ...others].sort())
  assert.equal(readFileSync(join(folder, 'a.txt'), 'utf8'), 'ours')
})

it('a file that is written still is left until it is at rest', async () => {
  const folder = folderOf('busy', { 'new.ret': text(7, await desk.issue('itau-1')) }, 1)
  assert.deepEqual(await read(folder), [])
  folderOf('busy', {}, 60)
  utimesSync(join(folder, 'new.ret'), 1, 1)
  assert.equal((await read(folder)).length, 1)
})

it('a file whose name is no UTF-8 is read, and gets the name that Latin-1 makes of it', async () => {
  const [one, other] = [await desk.issue('itau-1'), await desk.issue('itau-1')]
  const folder = folderOf('latin', { 'RETORNO_SÃO.RET': text(41, one) })
  const latin = (name: string) => Buffer.concat([Buffer.from(`${folder}/`), Buffer.from(name, 'latin1')])
  writeFileSync(latin('RETORNO_SÃO.RET'), text(42, other))
  writeFileSync(latin('SÃO.tmp'), 'half')
  for (const name of ['RETORNO_SÃO.RET', 'SÃO.tmp']) utimesSync(latin(name), 1, 1)
  assert.equal((await read(folder)).length, 2)
  assert.deepEqual(names(folder, 'done'), ['RETORNO_SÃO.RET', 'RETORNO_SÃO.RET.2'])
  assert.deepEqual(readdirSync(folder, 'latin1').sort(), ['SÃO.tmp', 'done'])
  for (const slip of [one, other]) assert.equal((await desk.receipts(slip)).length, 1)
})

it('a file whose time is ahead is read when it is at rest; with a clock that is ahead it is a case', async () => {
  const slip = await desk.issue('itau-1')
  const folder = folderOf('ahead', { 'a.ret': text(44, slip) })
  utimesSync(join(folder, 'a.ret'), 4e9, 4e9)
  const at = (milliseconds: number) => ({ ...desk.parts, clock: { ...desk.parts.clock, real: () => Date.now() + milliseconds } })
  assert.deepEqual(await read(folder), [])
  for (let looks = 0; looks < 2; looks++) {
    const [{ report }] = (await read(folder, at(-3_600_000))) as [FolderFile]
    assert.match('broken' in report ? report.broken : '', /^its time is ahead of the clock of the gateway/)
  }
  assert.equal((await desk.cases('returnFile')).filter(({ subject }) => subject === 'itau-1 a.ret').length, 1)
  await read(folder, at(20_000))
  assert.deepEqual([names(folder), (await desk.receipts(slip)).length], [['done'], 1])
})

it('a file is moved only when all of it is in the books', async () => {
  const slips = [await desk.issue('itau-1'), await desk.issue('itau-1')]
  const folder = folderOf('dying', { 'a.ret': text(8, ...slips) })
  let deaths = 0
  for (let statements = 0; ; statements += 5) {
    const done = await read(folder, { ...desk.parts, database: dyingAfter(desk.parts.database, statements) }).catch(
      (error: Error) => error.message,
    )
    if (done !== 'died') break
    deaths++
    assert.deepEqual(names(folder), ['a.ret'])
  }
  assert.ok(deaths > 3, String(deaths))
  assert.deepEqual([names(folder), names(folder, 'done')], [['done'], ['a.ret']])
  for (const slip of slips) assert.equal((await desk.receipts(slip)).length, 1)
})
