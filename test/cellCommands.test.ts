// Commands over all cells, as people run them: each in every cell, added up; a seed to where its merchants are; a file of chargebacks line by line to where its
// payments are; and a cell that does not answer keeps nobody waiting.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { divisionId, pspId, seedOf, shopOf } from '../scripts/cells/shops.ts'
import { startCells, type TestCells, withoutHaproxy } from './support/cells.ts'
import { databaseUrl } from './support/database.ts'
import { eventually, visa } from './support/gateway.ts'
import { commandLine, project } from './support/process.ts'
import { wireTo } from './support/wire.ts'

let cells: TestCells
let mute: Server
/** The three cells, and two that do not answer: nobody listens, and somebody who says nothing. */
let broken: string
const place = (name: string) => join(dirname(cells.file), name)
/** A command that may be killed. */
const start = (...words: string[]) =>
  spawn(process.execPath, [join(project, 'src/cli/main.ts'), ...words], { env: { PATH: process.env.PATH }, stdio: 'ignore' })
const tollgate = (...words: string[]) => commandLine({}, ...words)
const json = async (...words: string[]) => {
  const { stdout, stderr, code } = await tollgate(...words, '--json')
  assert.ok(stdout.startsWith('{'), stdout + stderr)
  return { code, ...JSON.parse(stdout) }
}

/** The ids of payments by the number of their shop. */
async function pay(number: number, amount = '92.00'): Promise<string> {
  const { channelId, token } = shopOf(number)
  const answer = await fetch(`${cells.url}/v1/payments`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: new URLSearchParams({ entityId: channelId, paymentType: 'DB', amount, currency: 'EUR', ...visa }),
  })
  const { id, result } = (await answer.json()) as { id: string; result: { code: string } }
  assert.equal(answer.status, 200, JSON.stringify(result))
  return id
}
const countOf = async (cell: string, sql: string): Promise<number> =>
  Number((await cells.gateways[cell]!.pool.query(sql)).rows[0]!.count)

describe('over three cells', { skip: withoutHaproxy }, () => {
  before(async () => {
    cells = await startCells({ one: [1], two: [2], three: [3] })
    for (const [at, number] of [1, 2, 2, 3, 3, 3].entries()) await pay(number, `${at + 1}.00`)
    mute = createServer(() => {}).listen(0, '127.0.0.1')
    await new Promise(resolve => mute.once('listening', resolve))
    const { port } = mute.address() as { port: number }
    const given = JSON.parse(readFileSync(cells.file, 'utf8'))
    const [{ environment }] = given.cells
    const dead = (name: string, port: number) => ({
      ...{
        name,
        environment: { ...environment, DATABASE_URL: `postgres://127.0.0.1:${port}/none` },
        gateways: [`127.0.0.1:${port}`],
      },
    })
    broken = place('broken.json')
    writeFileSync(broken, JSON.stringify({ ...given, cells: [...given.cells, dead('gone', 9), dead('mute', port)] }))
  })
  after(async () => {
    mute?.close()
    await cells?.stop()
  })

  it('doctor and the check of notifications say what each cell says, and the sums', async () => {
    const text = await tollgate('doctor', '--cells', cells.file)
    assert.equal(text.code, 0, text.out)
    assert.match(
      text.stdout,
      /^one:\n1 payments in 1 chains, 1 journal lines\.\nThe books agree with the operations\.\n\ntwo:\n2 payments/,
    )
    assert.match(text.stdout, /\nAll cells: payments 6, chains 6, lines 6, findings 0(, sources 0)?\.\n$/)
    const { code, payments, lines, findings, cells: ended } = await json('doctor', '--cells', cells.file)
    assert.deepEqual([code, payments, lines, findings], [0, 6, 6, []])
    assert.deepEqual(
      ended,
      ['one', 'two', 'three'].map(cell => ({ cell, code: 0 })),
    )
    const check = await json('notifications', 'check', `--cells=${cells.file}`)
    assert.deepEqual([check.code, check.balanced, check.endpoints], [0, true, []])
  })

  it('the exit code is the worst, and a finding of one cell is told with its name', async () => {
    await cells.gateways.two!.pool.query(
      `delete from answers where payment_id = (select max(payment_id::text)::uuid from answers)`,
    )
    const { code, findings } = await json('doctor', '--cells', cells.file)
    assert.equal(code, 1)
    assert.ok(findings.length > 0 && findings.every((one: string) => one.startsWith('two: ')), findings.join('\n'))
    const wrong = await tollgate('search', 'find', '--limit', '0', 'x', '--cells', cells.file)
    assert.equal(wrong.code, 2, wrong.out)
  })

  it('rows of lists name their cell; an entity is looked for where it is', async () => {
    const { entities } = await json('list', '--cells', cells.file)
    const of = (id: string) => entities.filter((one: { id: string }) => one.id === id).map(({ cell }: { cell: string }) => cell)
    assert.deepEqual(of(shopOf(2).channelId), ['two'])
    assert.deepEqual(of(pspId), ['one', 'two', 'three'])
    await eventually(
      async () => (await json('search', 'find', 'EUR', '--cells', cells.file)).payments.length === 6,
      'all are searchable',
    )
    const found = await json('search', 'find', '3.00', '--cells', cells.file)
    assert.deepEqual(
      found.payments.map(({ cell, amount }: { cell: string; amount: string }) => [cell, amount]),
      [['two', '3.00']],
    )
    const report = await json(
      'report',
      '--entity',
      shopOf(3).merchantId,
      '--from',
      '2026-01-01',
      '--to',
      '2026-01-02',
      '--cells',
      cells.file,
    )
    assert.deepEqual(report.cells, [{ cell: 'three', code: 0 }])
  })

  it('cells that do not answer are named within seconds, and the others are told of', async () => {
    const began = Date.now()
    const {
      code,
      payments,
      cells: ended,
    } = await json('audit', 'verify', '--cells', broken).then(async () => json('doctor', '--cells', broken))
    assert.ok(Date.now() - began < 50_000, `${Date.now() - began} ms`)
    assert.deepEqual([code, payments], [1, 6])
    const by = Object.fromEntries(ended.map(({ cell, ...one }: { cell: string }) => [cell, one]))
    assert.match(by.gone.why, /^The cell gone does not answer: connect ECONNREFUSED/)
    assert.match(by.mute.why, /^The cell mute does not answer: .*timeout/)
    assert.equal(by.three.code, 0)
    const map = await tollgate('cells', 'map', '--cells', broken)
    assert.equal(map.code, 1)
    assert.match(map.stdout, /The cell gone does not answer/)
    assert.match(map.stdout, /stands as it should/)
    const check = await json('cells', 'check', '--cells', broken)
    assert.deepEqual([check.code, check.findings.length], [1, 2])
    assert.deepEqual((await json('cells', 'check', '--cells', cells.file)).findings, [])
  })

  it('a cell that falls silent while a command is at work in it is named too', async () => {
    const wire = await wireTo(cells.gateways.three!.connection)
    try {
      const given = JSON.parse(readFileSync(cells.file, 'utf8'))
      given.cells[2].environment.DATABASE_URL = databaseUrl(wire.connection)
      const file = place('falling.json')
      writeFileSync(file, JSON.stringify(given))
      const asking = json('doctor', '--cells', file)
      await eventually(async () => wire.made() > 1, 'the command has reached it, and not only whoever asked before')
      wire.silence()
      const { code, cells: ended } = await asking
      assert.equal(code, 1)
      assert.deepEqual(
        ended.slice(0, 2),
        ['one', 'two'].map(cell => ({ cell, code: cell === 'two' ? 1 : 0 })),
      ) // two was harmed above
      assert.match(ended[2].why, /The cell three does not answer|timeout|timed out/)
    } finally {
      await wire.close()
    }
  })

  it('a seed goes to where its merchants are; a new one where --cell says', async () => {
    const [channel] = [shopOf(2).channelId]
    const seed = seedOf([1, 2, 30])
    const file = place('seed.json')
    const renamed = JSON.stringify(seed).replace('"Channel 2"', '"Second"').replace('"Shops"', '"All shops"')
    writeFileSync(file, renamed)
    const nowhere = await tollgate('seed', file, '--cells', cells.file)
    assert.deepEqual(
      [nowhere.code, nowhere.out],
      [1, `The merchant ${shopOf(30).merchantId} is in no cell: name one with --cell.\n`],
    )
    assert.match(
      (await tollgate('seed', file, '--cells', cells.file, '--cell', 'four')).out,
      /^There is no cell four: the file names one, two, three\.$/m,
    )
    const seeded = await tollgate('seed', file, '--cells', cells.file, '--cell', 'three')
    assert.equal(seeded.code, 0, seeded.out)
    const { entities, tokens } = await json('list', '--cells', cells.file)
    const of = (id: string) => entities.filter((one: { id: string }) => one.id === id)
    assert.deepEqual(
      of(channel).map(({ cell, name }: { cell: string; name: string }) => [cell, name]),
      [['two', 'Second']],
    )
    assert.deepEqual(
      of(shopOf(30).merchantId).map(({ cell }: { cell: string }) => cell),
      ['three'],
    )
    assert.deepEqual(
      of(divisionId).map(({ name }: { name: string }) => name),
      ['All shops', 'All shops', 'All shops'],
    )
    const labelled = (label: string) =>
      tokens.filter((one: { label: string }) => one.label === label).map(({ cell }: { cell: string }) => cell)
    assert.deepEqual([labelled('all'), labelled('30'), labelled('2')], [['one', 'two', 'three'], ['three'], ['two']])
    await eventually(
      async () =>
        pay(30).then(
          () => true,
          () => false,
        ),
      'the map is written with it',
      20,
    )
    const again = await tollgate('seed', file, '--cells', broken)
    assert.equal(again.code, 1)
    assert.match(again.out, /two: 4 entities[\s\S]*The cell gone does not answer/)
  })

  it('a seed goes to the cell that serves a merchant, whatever an older map says', async () => {
    const given = JSON.parse(readFileSync(cells.file, 'utf8'))
    const [shop] = seedOf([1]).divisions as unknown as [{ merchants: [{ id: string; name: string }] }]
    const [{ id }] = shop.merchants
    const map = place('older.map')
    const file = place('renamed.json')
    const seeding = async (name: string, cellsOf: object[]) => {
      const seed = place('older.json')
      writeFileSync(seed, JSON.stringify(seedOf([1])).replace('"Shop 1"', JSON.stringify(name)))
      assert.ok(readFileSync(seed, 'utf8').includes(name))
      writeFileSync(file, JSON.stringify({ ...given, map, reload: undefined, cells: cellsOf }), { mode: 0o600 })
      return tollgate('seed', seed, '--cells', file)
    }
    const nameIn = async (cell: string) =>
      (await cells.gateways[cell]!.pool.query('select name from entities where id = $1', [id])).rows.map(({ name }) => name)
    const [first, ...others] = given.cells
    // A cell that has another name by now, and one that had the merchant before.
    for (const [line, name] of [
      ['before', 'Renamed'],
      ['two', 'Moved'],
    ] as const) {
      writeFileSync(map, readFileSync(cells.given.map, 'utf8').replaceAll(/ one$/gm, ` ${line}`))
      const seeded = await seeding(name, [{ ...first, name: 'uno' }, ...others])
      assert.equal(seeded.code, line === 'before' ? 1 : 0, seeded.out)
      assert.deepEqual([await nameIn('one'), await nameIn('two')], [[name], []])
      if (line === 'before') {
        assert.match(seeded.out, /The map leads to before, which the cells file does not name: /)
        assert.equal((await tollgate('cells', 'map', '--cells', file, '--without', line)).code, 0)
      }
      assert.match(readFileSync(map, 'utf8'), new RegExp(`^${id} uno$`, 'm'))
    }
    // A cell that does not answer may have it.
    writeFileSync(map, readFileSync(cells.given.map, 'utf8').replaceAll(/ one$/gm, ' two'))
    const [second, third] = others
    const environment = { ...second.environment, DATABASE_URL: 'postgres://127.0.0.1:9/none' }
    const unknown = await seeding('Unknown', [first, { ...second, environment }, third])
    assert.deepEqual([unknown.code, await nameIn('one')], [1, ['Moved']])
    // What nobody says that answers is not written into no cell.
    const away = { ...first, name: 'away', environment: { ...first.environment, DATABASE_URL: 'postgres://127.0.0.1:9/none' } }
    writeFileSync(map, readFileSync(cells.given.map, 'utf8'))
    const unnamed = await seeding('Nowhere', [away, ...others])
    assert.equal(unnamed.code, 1)
    assert.match(unnamed.out, new RegExp(`The merchant ${id} is in one by the map, and the cells file names no such cell\\.`))
    assert.deepEqual(await nameIn('one'), ['Moved'])
    // A cell that was put back to before the merchant came has nothing of it, and what it had here before is no reason to make it anew.
    // Without a step: its gateway would take the row's end for a database that was put back.
    await cells.gateways.one!.pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
      [id],
    )
    writeFileSync(map, readFileSync(cells.given.map, 'utf8').replaceAll(/ one$/gm, ' two'))
    const lost = await seeding('Anew', given.cells)
    assert.equal(lost.code, 1)
    assert.match(lost.out, new RegExp(`The merchant ${id} is in two by the map, which does not have it: `))
    assert.deepEqual([await nameIn('one'), await nameIn('two')], [['Moved'], []])
    await cells.gateways.one!.pool.query('delete from merchant_moves where merchant_id = $1', [id])
    writeFileSync(map, readFileSync(cells.given.map, 'utf8'))
    await seeding('Shop 1', given.cells)
  })

  it('an id of one cell is given to no other by a seed, and one that is keeps nobody else from the map', async () => {
    const [of1, of2] = [shopOf(1), shopOf(2)]
    const { psp, divisions } = seedOf([3])
    const [{ merchants, ...division }] = divisions as unknown as [{ merchants: { id: string; name: string }[] }]
    const file = place('taken.json')
    const seeding = async (merchant: object, cellsFile = cells.file, ...words: string[]) => {
      writeFileSync(
        file,
        JSON.stringify({ psp: { ...psp, name: 'Changed' }, divisions: [{ ...division, merchants: [merchant] }] }),
      )
      return tollgate('seed', file, '--cells', cellsFile, ...words)
    }
    const [third] = merchants as [{ id: string; name: string }]
    const fresh = { id: shopOf(31).merchantId, name: 'New' }
    const taken = (kind: string, id: string, by: string) =>
      `${kind} ${id}: the id is taken by another ${by}; an entity does not move.\n`
    const channels = [{ id: of2.channelId, name: 'copied' }]
    for (const [merchant, ...words] of [[{ ...third, channels }], [{ ...fresh, channels }, '--cell', 'one']] as const) {
      const refused = await seeding(merchant, cells.file, ...words)
      assert.deepEqual([refused.code, refused.out], [1, `two: ${taken('channel', of2.channelId, 'channel')}`])
    }
    const merchant = await seeding({ ...fresh, id: of1.channelId }, cells.file, '--cell', 'two')
    assert.deepEqual([merchant.code, merchant.out], [1, `one: ${taken('merchant', of1.channelId, 'channel')}`])
    const twice = await seeding({ ...fresh, channels: [{ id: fresh.id, name: 'x' }] }, cells.file, '--cell', 'one')
    assert.match(twice.out, /the id stands twice in the file/)

    const given = JSON.parse(readFileSync(cells.file, 'utf8'))
    given.cells[1].environment.DATABASE_URL = 'postgres://127.0.0.1:9/none'
    const silent = place('silent.json')
    writeFileSync(silent, JSON.stringify(given))
    const known = await seeding({ ...third, channels }, silent)
    assert.equal(known.code, 1)
    assert.match(known.out, new RegExp(`^two: channel ${of2.channelId}: the id is taken there; an entity does not move\\.$`, 'm'))
    const unknown = await seeding({ ...third, channels: [{ id: shopOf(99).channelId, name: 'new' }] }, silent)
    assert.match(unknown.out, new RegExp(`The channel ${shopOf(99).channelId} may be in a cell that does not answer`))
    const { entities } = await json('list', '--cells', cells.file)
    assert.deepEqual(
      entities.filter(({ name }: { name: string }) => ['Changed', 'copied', 'New', 'new'].includes(name)),
      [],
    )

    // As an installation may have it that was seeded before.
    const { pool } = cells.gateways.three!
    await pool.query(
      `insert into entities (id, kind, parent_id, merchant_id, name, settings, changed_at)
        select $1, 'channel', id, id, 'copied', '{}', changed_at from entities where id = $2`,
      [of2.channelId, third.id],
    )
    try {
      const before = readFileSync(cells.given.map, 'utf8')
      writeFileSync(cells.given.map, before.replace(`${of1.channelId} one\n`, ''))
      const map = await tollgate('cells', 'map', '--cells', cells.file)
      assert.equal(map.code, 1, map.out)
      assert.match(map.out, new RegExp(`^${of2.channelId} is in several cells: two, three\\.$`, 'm'))
      assert.equal(readFileSync(cells.given.map, 'utf8'), before)
    } finally {
      await pool.query(`delete from entities where name = 'copied'`)
    }
    // A database of the other mode is none of these, and nothing is read in it.
    await pool.query(`update installation set mode = 'live'`)
    try {
      const { code, out } = await tollgate('cells', 'map', '--cells', cells.file)
      assert.equal(code, 1, out)
      assert.match(out, /^The cell three does not answer: This database belongs to live mode/m)
    } finally {
      await pool.query(`update installation set mode = 'sandbox'`)
    }
    const again = await tollgate('cells', 'map', '--cells', cells.file)
    assert.equal(again.code, 0, again.out)
    // What somebody has put beside the map is not followed, and cells that say nothing make none.
    const whole = readFileSync(cells.given.map, 'utf8')
    const victim = place('victim')
    writeFileSync(victim, 'as it was')
    symlinkSync(victim, `${cells.given.map}.unread`)
    writeFileSync(cells.given.map, whole.replace(`${of1.channelId} one\n`, ''))
    assert.equal((await tollgate('cells', 'map', '--cells', cells.file)).code, 0)
    assert.deepEqual([readFileSync(victim, 'utf8'), readFileSync(cells.given.map, 'utf8')], ['as it was', whole])
    const allSilent = place('all-silent.json')
    const dead = JSON.parse(readFileSync(cells.file, 'utf8'))
    for (const [at, cell] of dead.cells.entries()) cell.environment.DATABASE_URL = `postgres://127.0.0.1:9/none${at}`
    writeFileSync(allSilent, JSON.stringify({ ...dead, map: place('no.map') }), { mode: 0o600 })
    assert.equal((await tollgate('cells', 'map', '--cells', allSilent)).code, 1)
    assert.ok(!existsSync(place('no.map')))
  })

  it('the map takes the place of nothing but a map, and leads to a cell that a file has forgotten until it is said to be gone', async () => {
    const file = place('other-map.json')
    const { cells: all, ...rest } = JSON.parse(readFileSync(cells.file, 'utf8'))
    const put = (map: string, named: readonly unknown[]) =>
      writeFileSync(file, JSON.stringify({ ...rest, map, cells: named }), { mode: 0o600 })
    for (const content of [`${'0a'.repeat(32)}\n`, '{"cells": []}', 'global\n']) {
      writeFileSync(place('seal.key'), content, { mode: 0o600 })
      put('seal.key', all)
      for (const word of ['map', 'check']) {
        const { code, out } = await tollgate('cells', word, '--cells', file)
        assert.deepEqual([code, readFileSync(place('seal.key'), 'utf8')], [1, content], word)
        assert.match(out, /^The cells file names .*seal\.key as the map, which is none: .*\n$/)
      }
    }
    put('.', all)
    const onFolder = await tollgate('cells', 'map', '--cells', file)
    assert.deepEqual([onFolder.code, onFolder.out], [1, `The cells file names ${dirname(file)} as the map, which is no file.\n`])
    writeFileSync(place('empty.map'), '')
    put('empty.map', all)
    assert.equal(
      (await tollgate('cells', 'map', '--cells', file)).code,
      0,
      'an empty file, as one is made for a proxy that needs one',
    )
    const whole = readFileSync(place('empty.map'), 'utf8')
    assert.match(whole, / three$/m)

    put('empty.map', all.slice(0, 2))
    const forgotten = await tollgate('cells', 'map', '--cells', file)
    assert.deepEqual([forgotten.code, readFileSync(place('empty.map'), 'utf8')], [1, whole], forgotten.out)
    assert.match(forgotten.out, /^The map leads to three, which the cells file does not name/m)
    assert.match((await tollgate('cells', 'check', '--cells', file)).out, /^The map leads to three/m)
    const misspelt = await tollgate('cells', 'map', '--cells', file, '--without', 'theree')
    assert.match(misspelt.out, /empty\.map had no line of theree: there was nothing to take out\.$/m)
    assert.deepEqual((await json('cells', 'map', '--cells', file, '--without', 'theree')).absent, ['theree'])
    const without = await tollgate('cells', 'map', '--cells', file, '--without', 'three')
    assert.equal(without.code, 0)
    assert.doesNotMatch(without.out, /had no line/)
    assert.doesNotMatch(readFileSync(place('empty.map'), 'utf8'), / three$/m)
    const named = await tollgate('cells', 'map', '--cells', file, '--without', 'two')
    assert.deepEqual([named.code, named.out], [1, `${file} names two: take it out there first. Nothing was changed.\n`])
  })

  it('a token is revoked in every cell, whatever its id is there; a cell that does not answer is named', async () => {
    const label = 'of all, to be revoked'
    const token = 'Rv4rTz9KcXe2VbLyQhNu8GpJs6DfAo3Zk'
    const { psp } = seedOf([])
    writeFileSync(place('revoked.json'), JSON.stringify({ psp, tokens: [{ label, token, entities: [pspId] }] }))
    await tollgate('seed', place('revoked.json'), '--cells', cells.file)
    const valid = async (): Promise<{ cell: string; id: string }[]> =>
      (await json('list', '--cells', cells.file)).tokens.filter(
        (one: { label: string; revokedAt: string | null }) => one.label === label && one.revokedAt === null,
      )
    const [, second] = await valid()
    assert.equal(new Set((await valid()).map(({ id }) => id)).size, 3, 'the seed gave it an id in each cell')
    const pays = async (number: number) => {
      const answer = await fetch(`${cells.url}/v1/payments`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
        body: new URLSearchParams({
          entityId: shopOf(number).channelId,
          paymentType: 'DB',
          amount: '1.00',
          currency: 'EUR',
          ...visa,
        }),
      })
      return answer.status
    }
    for (const number of [1, 2, 3]) await eventually(async () => (await pays(number)) === 200, 'it is known')
    const revoked = await tollgate('revoke', second!.id, '--cells', broken)
    assert.equal(revoked.code, 1)
    assert.match(revoked.stdout, /^one: Token \w+ is revoked\.\ntwo: Token \w+ is revoked\.\nthree: Token \w+ is revoked\.\n$/)
    assert.match(revoked.stderr, /The cell gone does not answer: .*[\s\S]*The cell mute does not answer: /)
    assert.deepEqual(await valid(), [])
    for (const number of [1, 2, 3]) await eventually(async () => (await pays(number)) === 403, 'it is refused')
    const again = await tollgate('revoke', second!.id, '--cells', cells.file)
    assert.deepEqual([again.code, again.stdout.match(/was revoked before/g)?.length], [0, 3], again.out)
    const unknown = await tollgate('revoke', 'f'.repeat(32), '--cells', cells.file)
    assert.deepEqual([unknown.code, unknown.out], [1, `No cell that answers has a token ${'f'.repeat(32)}.\n`])
  })

  it('a token that a seed which was killed has left in one of its cells alone is named by the check, and the seed given again mends it', async () => {
    const token = 'Hs7wQm2LpZx9NcTrKbVy4GdJf6EuAo8Wi'
    const { psp } = seedOf([])
    const entities = [shopOf(1).merchantId, shopOf(2).channelId]
    writeFileSync(place('lacking.json'), JSON.stringify({ psp, tokens: [{ label: 'left in one', token, entities }] }))
    const seeded = () => tollgate('seed', place('lacking.json'), '--cells', cells.file)
    const check = async () => (await tollgate('cells', 'check', '--cells', cells.file)).out
    assert.equal((await seeded()).code, 0)
    assert.doesNotMatch(await check(), /\(left in one\)/)
    const { pool } = cells.gateways.two!
    await pool.query(`delete from access_tokens where label = 'left in one'`)
    assert.match(
      await check(),
      /^The token \w+ \(left in one\) acts for a merchant of two, which does not have it: seed it over all\.$/m,
    )
    assert.equal((await seeded()).code, 0)
    assert.doesNotMatch(await check(), /\(left in one\)/)
    assert.equal(
      (
        await tollgate(
          'revoke',
          (await json('list', '--cells', cells.file)).tokens.find((one: { label: string }) => one.label === 'left in one').id,
          '--cells',
          cells.file,
        )
      ).code,
      0,
    )
  })

  it('a token that one of its cells has hashed anew since the lookup key changed is the same to the check, by what the proxy knows it by or by its id', async () => {
    const { psp } = seedOf([])
    const entities = [shopOf(1).merchantId, shopOf(2).channelId]
    const token = 'Lk3vQm9TpZx2NcUrKbWy7GdJf5EuAo4Hi'
    writeFileSync(place('hashed.json'), JSON.stringify({ psp, tokens: [{ label: 'hashed anew', token, entities }] }))
    assert.equal((await tollgate('seed', place('hashed.json'), '--cells', cells.file)).code, 0)
    const check = async () => (await tollgate('cells', 'check', '--cells', cells.file)).out
    const [first, second] = [cells.gateways.one!.pool, cells.gateways.two!.pool]
    const own = `where label = 'hashed anew'`
    await second.query(`update access_tokens set token_hash = sha256(token_hash) ${own}`)
    assert.doesNotMatch(await check(), /\(hashed anew\)/)
    await second.query(`update access_tokens set revoked_at = now() ${own}`)
    assert.match(await check(), /^The token \w+ \(hashed anew\) is valid in one, ended in two: /m)
    await second.query(`update access_tokens set revoked_at = null, entities = entities[1:1] ${own}`)
    assert.match(await check(), /^The token \w+ \(hashed anew\) does not act for the same in one, two: /m)
    // As a move brings one of before proxies asked for it.
    const { rows } = await first.query(`update access_tokens set route_hash = null ${own} returning id, entities`)
    await second.query(`update access_tokens set route_hash = null, id = $1, entities = $2 ${own}`, [
      rows[0].id,
      rows[0].entities,
    ])
    assert.doesNotMatch(await check(), /\(hashed anew\)/)
    await second.query(`update access_tokens set id = gen_random_uuid() ${own}`)
    assert.match(await check(), /\(hashed anew\) acts for a merchant of two, which does not have it/)
    for (const pool of [first, second]) await pool.query(`delete from access_tokens ${own}`)
  })

  it('a token of several cells that is revoked in one is told of, there and by the check; it is made and followed in none alone', async () => {
    const label = 'of two'
    const entities = [1, 2].map(number => shopOf(number).merchantId)
    const { psp } = seedOf([])
    const token = 'Sp7anTz9KcXe2VbLyQhNu8GpJs6DfAo3Zk'
    writeFileSync(place('two.json'), JSON.stringify({ psp, tokens: [{ label, token, entities }] }))
    assert.equal((await tollgate('seed', place('two.json'), '--cells', cells.file)).code, 0)
    assert.deepEqual((await json('cells', 'check', '--cells', cells.file)).findings, [])
    const { environment } = JSON.parse(readFileSync(cells.file, 'utf8')).cells[0]
    const inOne = (...words: string[]) => commandLine(environment, ...words)
    const { id } = JSON.parse((await inOne('list', '--json')).stdout).tokens.find((one: { label: string }) => one.label === label)
    const followed = await inOne('token', 'rotate', id)
    assert.equal(followed.code, 1)
    assert.match(followed.out, new RegExp(`^Other cells may have the token ${id}, .*tollgate revoke ${id} --cells FILE`))
    const made = await inOne('token', 'create', '--entity', pspId)
    assert.deepEqual([made.code, made.stdout], [1, ''])
    assert.match(made.stderr, /would be in this cell alone: seed it/)
    assert.equal((await inOne('token', 'create', '--entity', shopOf(1).channelId, '--output', place('own'))).code, 0)

    const revoked = await inOne('revoke', id)
    assert.equal(revoked.code, 0)
    assert.match(revoked.stdout, new RegExp(`is revoked\\.\nOther cells may have it: \`tollgate revoke ${id} --cells FILE\``))
    const checked = await json('cells', 'check', '--cells', cells.file)
    assert.equal(checked.code, 1)
    assert.equal(
      checked.findings[0],
      `The token ${id} (${label}) is ended in one, valid in two: \`tollgate revoke ${id} --cells FILE\` ends it in all.`,
    )
    await cells.gateways.two!.pool.query('update access_tokens set entities = entities[1:1] where label = $1', [label])
    assert.match(
      (await json('cells', 'check', '--cells', cells.file)).findings[1],
      /does not act for the same in one, two: seed it over all/,
    )
    assert.equal((await tollgate('revoke', id, '--cells', cells.file)).code, 0)
    assert.equal((await tollgate('cells', 'map', '--cells', cells.file)).code, 0) // the channel has a token of its own
    assert.deepEqual((await json('cells', 'check', '--cells', cells.file)).findings, [])
  })

  it('each line of a file of chargebacks is recorded once, in the cell of its payment, and one that no cell knows is told once', async () => {
    const [first, third] = [await pay(1, '10.00'), await pay(3, '30.00')]
    const file = place('chargebacks.csv')
    const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
    const line = (number: number, reference: string, amount: string) => `R-1,${number},CB,,${reference},${amount},EUR,,2026-01-02`
    writeFileSync(
      file,
      [heading, line(1, first, '10.00'), line(2, third, '30.00'), line(3, 'ab'.repeat(16), '1.00'), 'nonsense', ''].join('\n'),
    )
    const imported = await json('chargebacks', 'import', file, '--cells', cells.file)
    assert.deepEqual([imported.code, imported.recorded, imported.known, imported.refused], [1, 2, 0, 2], JSON.stringify(imported))
    assert.deepEqual(
      imported.lines.map(({ line, outcome }: { line: number; outcome: string }) => [line, outcome]),
      [
        [2, 'recorded'],
        [3, 'recorded'],
        [4, 'refused'],
        [5, 'refused'],
      ],
    )
    assert.equal(imported.lines[2].text, 'there is no such payment')
    const chargebacks = `select count(*) from payments where payment_type = 'CB'`
    assert.deepEqual(
      [await countOf('one', chargebacks), await countOf('two', chargebacks), await countOf('three', chargebacks)],
      [1, 0, 1],
    )
    assert.equal(await countOf('two', 'select count(*) from operator_cases'), 0)
    const again = await json('chargebacks', 'import', file, '--cells', broken)
    assert.deepEqual([again.recorded, again.known, again.refused], [0, 2, 2])
    assert.match(again.lines[2].text, /^there is no such payment, and gone, mute does not answer$/)
    assert.deepEqual([await countOf('one', chargebacks), await countOf('three', chargebacks)], [1, 1])
  })

  it('an import that is killed between two cells goes on where it stopped: no line is lost, none counted twice', async () => {
    const [first, third] = [await pay(1, '11.00'), await pay(3, '33.00')]
    const file = place('killed.csv')
    const line = (number: number, reference: string, amount: string) => `R-3,${number},CB,,${reference},${amount},EUR,,2026-01-02`
    const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
    writeFileSync(file, [heading, line(1, first, '11.00'), line(2, third, '33.00'), ''].join('\n'))
    const back = async (cell: string) =>
      countOf(cell, `select count(*) from payments where payment_type = 'CB' and amount in (1100, 3300)`)
    const held = await cells.gateways.three!.pool.connect()
    try {
      await held.query('begin')
      await held.query('lock table payments in share row exclusive mode')
      const killed = start('chargebacks', 'import', file, '--cells', cells.file)
      await eventually(async () => (await back('one')) === 1, 'the first cell has its line')
      killed.kill('SIGKILL')
      await once(killed, 'close')
    } finally {
      await held.query('rollback')
      held.release()
    }
    const again = await json('chargebacks', 'import', file, '--cells', cells.file)
    assert.deepEqual([again.code, again.recorded + again.known, again.refused], [0, 2, 0], JSON.stringify(again))
    assert.ok(again.known >= 1)
    assert.deepEqual([await back('one'), await back('two'), await back('three')], [1, 0, 1])
    const { findings } = await json('doctor', '--cells', cells.file)
    assert.ok(
      findings.every((one: string) => one.startsWith('two: ')),
      findings.join('\n'),
    ) // which was harmed above
  })

  it('the map is written by one after the other, is whole at every moment, and waits for nobody who was killed', async () => {
    const { map } = cells.given
    const whole = readFileSync(map, 'utf8')
    const killed = start('cells', 'map', '--cells', broken) // it waits for the mute cell, and holds the map meanwhile
    await eventually(async () => existsSync(`${map}.lock`), 'it has the map')
    killed.kill('SIGKILL')
    await once(killed, 'close')
    rmSync(map)
    writeFileSync(`${map}.part`, 'left by one who was killed')
    const seen = new Set<string>()
    let isWriting = true
    const writing = Promise.all(Array.from({ length: 3 }, () => tollgate('cells', 'map', '--cells', cells.file)))
    const looking = (async () => {
      for (; isWriting; await setImmediate()) if (existsSync(map)) seen.add(readFileSync(map, 'utf8'))
    })()
    const told = await writing
    isWriting = false
    await looking
    assert.deepEqual(
      told.map(({ code }) => code),
      [0, 0, 0],
      told.map(({ out }) => out).join('\n'),
    )
    assert.equal(told.filter(({ stdout }) => stdout.includes('is written')).length, 1)
    assert.deepEqual([...seen], [whole])
    assert.deepEqual(
      readdirSync(dirname(map)).filter(name => /\.(lock|part|unread|next)/.test(name)),
      [],
    )
  })

  it("a reference that payments of two cells have is nobody's; while a cell is silent no reference is anybody's", async () => {
    const withReference = async (cell: string, number: number, reference: string) => {
      const known = `,"acquirer":"north","hostReference":"${reference}"}`
      const { pool } = cells.gateways[cell]!
      await pool.query('update answers set reply = left(reply, length(reply) - 1) || $2 where payment_id = $1', [
        await pay(number),
        known,
      ])
    }
    await withReference('one', 1, 'H77')
    await withReference('three', 3, 'H77')
    await withReference('one', 1, 'H78')
    const file = place('references.csv')
    const line = (number: number, reference: string) => `R-2,${number},CB,north,${reference},1.00,EUR,,2026-01-02`
    writeFileSync(
      file,
      ['report,line,type,acquirer,reference,amount,currency,reason,date', line(1, 'H77'), line(2, 'H78'), ''].join('\n'),
    )
    const texts = async (cellsFile: string) => {
      const { lines } = await json('chargebacks', 'import', file, '--cells', cellsFile)
      return lines.map(({ outcome, text }: { outcome: string; text: string }) => (outcome === 'recorded' ? outcome : text))
    }
    const several = 'several payments have this reference: name the payment by its id'
    assert.deepEqual(await texts(broken), [several, 'it is not known whose it is, and gone, mute does not answer'])
    assert.deepEqual(await texts(cells.file), [several, 'recorded'])
    // In one cell alone, the merchant of one of them has left.
    await withReference('three', 3, 'H79')
    await withReference('three', 30, 'H79')
    await withReference('three', 30, 'H80')
    const { pool } = cells.gateways.three!
    const isAway = `merchant_id = '${shopOf(30).merchantId}'`
    await pool.query(
      `insert into merchant_moves (merchant_id, direction, state, here, other, run, changed_at) values ($1, 'leaving', 'moved', false, 'two', 1, now())`,
      [shopOf(30).merchantId],
    )
    try {
      writeFileSync(
        file,
        ['report,line,type,acquirer,reference,amount,currency,reason,date', line(3, 'H79'), line(4, 'H80'), ''].join('\n'),
      )
      const { environment } = JSON.parse(readFileSync(cells.file, 'utf8')).cells[2]
      const told = await commandLine(environment, 'chargebacks', 'import', file)
      assert.match(told.out, /several payments have this reference[\s\S]*there is no such payment/)
      assert.equal((await pool.query(`select from payments where payment_type = 'CB' and ${isAway}`)).rowCount, 0)
    } finally {
      await pool.query(`delete from merchant_moves where ${isAway}`)
    }
  })
})
