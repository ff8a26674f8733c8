// The map that the proxy routes by, made of what the cells say: who is where, what spans cells, and what holds while a cell is silent.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { merchantTail, shortTail } from '../src/merchants/merchantTail.ts'
import { type CellContents, cellMapOf, readMap, tellProxy } from '../src/start/cellMap.ts'

const id = (text: string) => text.padEnd(32, '0')
const [psp, north, south] = [id('a1'), id('d1'), id('d2')]
const hash = (sign: string) => sign.repeat(64)
const row = (
  kind: 'psp' | 'division' | 'merchant' | 'channel',
  own: string,
  parentId: string | null,
  merchantId: string | null,
) => ({
  ...{ id: own, kind, parentId, merchantId, name: own, settings: {} },
})
const merchantOf = (own: string, division: string) => [
  row('merchant', id(`e${own}`), division, id(`e${own}`)),
  row('channel', id(`c${own}`), id(`e${own}`), id(`e${own}`)),
]
const groups = [row('psp', psp, null, null), row('division', north, psp, null), row('division', south, psp, null)]
const cell = (entities: CellContents['entities'], ...tokens: CellContents['tokens']): CellContents => ({
  entities: [...groups, ...entities],
  tokens,
  alike: { mode: 'live', keys: '', schema: '' },
})
const token = (sign: string, ...entities: string[]) => ({ routeHash: hash(sign), merchantId: null, entities })
const ownToken = (sign: string, merchantId: string) => ({ routeHash: hash(sign), merchantId, entities: [merchantId] })
const keysOf = (own: string) => [id(`e${own}`), id(`c${own}`), merchantTail(id(`e${own}`)), shortTail(id(`e${own}`))]
const cells = (given: readonly (readonly [name: string, one: CellContents | string])[]) => new Map(given)
const everyKey = (cells: Record<string, readonly string[]>) =>
  new Map(Object.entries(cells).flatMap(([name, own]) => own.flatMap(one => keysOf(one).map(key => [key, name] as const))))

const one = cell(
  [...merchantOf('1', north), ...merchantOf('2', south)],
  token('a', id('e1')),
  token('b', psp),
  token('c', id('c2'), id('e3')),
)
const two = cell(merchantOf('3', south), token('b', psp), token('c', id('c2'), id('e3')), token('d', south), {
  routeHash: null,
  merchantId: null,
  entities: [id('e3')],
})
const whole = cellMapOf(
  cells([
    ['one', one],
    ['two', two],
  ]),
)

describe('the map', () => {
  it('has each merchant by its ids and tails, groups that are in one cell, and tokens that act in one', () => {
    const expected = everyKey({ one: ['1', '2'], two: ['3'] })
      .set(north, 'one')
      .set(hash('a'), 'one')
    assert.deepEqual(whole, { lines: expected, wrong: [] })
  })

  it('a cell that is forgotten, or misspelt, where cells are named keeps all its lines, and is named', () => {
    const sentence = /^The map leads to two, which the cells file does not name: .* --without two/
    for (const named of [[['one', one] as const], [['one', one] as const, ['twoo', two] as const]]) {
      const { lines, wrong } = cellMapOf(cells(named), whole.lines)
      assert.deepEqual(lines, whole.lines)
      assert.equal(wrong.length, 1)
      assert.match(wrong[0]!, sentence)
    }
  })

  it('a token that acts for one merchant alone goes where he goes, and comes with one who is new, while a cell is forgotten or silent', () => {
    const shared = token('c', id('e1'), id('e3'))
    const from = cell([...merchantOf('1', north), ...merchantOf('2', south)], ownToken('a', id('e1')), shared)
    const to = cell(merchantOf('4', south))
    const other = cell(merchantOf('3', south), shared)
    const all = Object.entries({ from, to, other })
    const { lines: before } = cellMapOf(cells(all))
    assert.deepEqual([before.get(hash('a')), before.get(hash('c'))], ['from', undefined])
    const left = cell(merchantOf('2', south), shared)
    const arrived = cell(
      [...merchantOf('4', south), ...merchantOf('1', north), ...merchantOf('5', south)],
      ...[ownToken('a', id('e1')), ownToken('d', id('e5')), shared],
    )
    const named: [string, CellContents][] = [
      ['from', left],
      ['to', arrived],
    ]
    for (const surveyed of [named, [...named, ['other', 'gone'] as const]]) {
      const { lines } = cellMapOf(cells(surveyed), before)
      for (const key of [...keysOf('1'), hash('a'), ...keysOf('5'), hash('d')]) assert.equal(lines.get(key), 'to', key)
      assert.equal(lines.get(hash('c')), undefined)
      for (const key of keysOf('3')) assert.equal(lines.get(key), 'other')
    }
  })

  it('has no token of which each cell knows another part', () => {
    const [first, second] = [
      cell(merchantOf('1', north), token('a', id('e1'))),
      cell(merchantOf('3', south), token('a', id('e3'))),
    ]
    for (const given of [
      { first, second },
      { second, first },
    ])
      assert.equal(cellMapOf(cells(Object.entries(given))).lines.get(hash('a')), undefined)
  })

  it('names who is in two cells, whose lines stay as they were, and has the lines of all others', () => {
    const surveyed = cells([
      ['one', one],
      ['two', cell([...merchantOf('3', south), ...merchantOf('1', north), ...merchantOf('4', south)])],
    ])
    const wrong = [id('e1'), id('c1')].map(own => `${own} is in several cells: one, two.`)
    const first = cellMapOf(surveyed)
    assert.deepEqual(first.wrong, wrong)
    for (const key of keysOf('1')) assert.equal(first.lines.get(key), undefined)
    const after = cellMapOf(surveyed, whole.lines)
    assert.deepEqual(after.wrong, wrong)
    for (const [own, home] of [
      ['1', 'one'],
      ['2', 'one'],
      ['3', 'two'],
      ['4', 'two'],
    ] as const)
      for (const key of keysOf(own)) assert.equal(after.lines.get(key), home)
    assert.equal(after.lines.get(hash('a')), 'one')
  })

  it('keeps the lines of a cell that is silent', () => {
    assert.deepEqual(
      cellMapOf(
        cells([
          ['one', 'gone'],
          ['two', two],
        ]),
        whole.lines,
      ),
      whole,
    )
    assert.deepEqual(
      cellMapOf(
        cells([
          ['one', 'gone'],
          ['two', 'gone'],
        ]),
        whole.lines,
      ),
      whole,
    )
  })

  it('and gives them to the cell that took its merchant over', () => {
    const { lines, wrong } = cellMapOf(
      cells([
        ['one', 'gone'],
        ['two', cell([...merchantOf('3', south), ...merchantOf('2', south)])],
      ]),
      whole.lines,
    )
    assert.deepEqual(wrong, [])
    for (const key of keysOf('2')) assert.equal(lines.get(key), 'two')
    for (const key of keysOf('1')) assert.equal(lines.get(key), 'one')
  })

  it('knows new merchants while a cell is silent, but not whether groups and tokens are in one cell', () => {
    const more = cell([...merchantOf('3', south), ...merchantOf('4', south)], token('e', south), token('f', id('e4')))
    const { lines } = cellMapOf(
      cells([
        ['one', 'gone'],
        ['two', more],
      ]),
      whole.lines,
    )
    for (const key of keysOf('4')) assert.equal(lines.get(key), 'two')
    assert.deepEqual([lines.get(south), lines.get(hash('e')), lines.get(hash('f'))], [undefined, undefined, undefined])
  })

  it('keeps the line of a merchant whose old cell was asked after its move, and whose new one before', () => {
    const left = { ...cell(merchantOf('1', north)), passing: merchantOf('2', south) }
    const { lines } = cellMapOf(
      cells([
        ['one', left],
        ['two', { ...two, passing: merchantOf('2', south) }],
      ]),
      whole.lines,
    )
    for (const key of keysOf('2')) assert.equal(lines.get(key), 'one')
    const arrived = cell([...merchantOf('3', south), ...merchantOf('2', south)])
    const after = cellMapOf(
      cells([
        ['one', left],
        ['two', arrived],
      ]),
      whole.lines,
    )
    for (const key of keysOf('2')) assert.equal(after.lines.get(key), 'two')
    assert.deepEqual(after.wrong, [])
  })

  it('forgets who is in no cell any more', () => {
    const { lines } = cellMapOf(
      cells([
        ['one', cell(merchantOf('1', north))],
        ['two', two],
      ]),
      whole.lines,
    )
    for (const key of keysOf('2')) assert.equal(lines.get(key), undefined)
    assert.equal(lines.get(south), 'two')
  })
})

it('a map whose lines end as an editor of another system ends them is the same map', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-map-'))
  const path = join(folder, 'cells.map')
  try {
    for (const end of ['\n', '\r\n']) {
      writeFileSync(path, ['# Written by `tollgate cells map`', `${id('e1')} one`, `${id('e3')} two`, ''].join(end))
      assert.deepEqual([...readMap(path)], [[id('e1'), 'one'] as const, [id('e3'), 'two'] as const])
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

it('who has the proxy read the map knows where programs are, and none of our secrets', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-map-'))
  process.env.SEAL_KEY = 'a secret of our own'
  try {
    const told = join(folder, 'told')
    tellProxy('cells.map', ['sh', '-c', 'env > "$0"', told])
    const names = new Set([...readFileSync(told, 'utf8').matchAll(/^(\w+)=/gm)].map(([, name]) => name))
    for (const ofShell of ['PWD', 'OLDPWD', 'SHLVL', '_']) names.delete(ofShell)
    assert.deepEqual([...names].sort(), ['HOME', 'LC_ALL', 'PATH', 'TZ'])
  } finally {
    delete process.env.SEAL_KEY
    rmSync(folder, { recursive: true })
  }
})
