// The cells file: every mistake is told with its field and its rule, and a cell never works on the database of whoever runs the command.

import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { cellOfName, environmentOf, readCells } from '../src/start/cells.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-cells-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const path = join(folder, 'cells.json')

const one = { name: 'one', environment: { DATABASE_URL: 'postgres://db1/tollgate' }, gateways: ['10.0.0.1:8080'] }
const two = { name: 'two', environment: { DATA_DIR: '/var/lib/two' }, gateways: ['10.0.0.2:8080', '[fd00::2]:8080'] }
const whole = { map: 'cells.map', reload: ['systemctl', 'reload', 'haproxy'], cells: [one, two] }

function readingOf(given: unknown, environment = {}, mode = 0o600) {
  writeFileSync(path, JSON.stringify(given))
  chmodSync(path, mode)
  return () => readCells(path, environment)
}
const refused = (given: unknown, rule: string) =>
  assert.throws(readingOf(given), { message: `The cells file ${path}: ${rule}.` }, rule)

describe('the cells file', () => {
  it('is read, its map beside it', () => {
    assert.deepEqual(readingOf(whole)(), { ...whole, map: join(folder, 'cells.map') })
    assert.equal(readingOf({ ...whole, map: '/etc/haproxy/cells.map' })().map, '/etc/haproxy/cells.map')
    const { reload: _, ...quiet } = whole
    assert.equal('reload' in readingOf(quiet)(), false)
  })

  it('is a file: a device or a pipe, which may never end, is not waited for', () => {
    for (const given of ['/dev/zero', folder])
      assert.throws(() => readCells(given, {}), { message: `The cells file ${given} is no file.` })
    assert.throws(() => readCells(join(folder, 'none'), {}), /none cannot be read\.$/)
  })

  it('tells each mistake with its field', () => {
    refused({ ...whole, map: '' }, 'map must not be empty')
    refused({ ...whole, reload: [] }, 'reload must hold at least one')
    refused({ ...whole, reload: 'systemctl reload haproxy' }, 'reload must be a list')
    refused({ ...whole, cells: [] }, 'cells must hold at least one')
    for (const name of ['One', 'o'.repeat(33), '', '-one', 'o/e'])
      refused({ ...whole, cells: [{ ...one, name }] }, 'cells[0].name must be 1 to 32 lower-case letters, digits and hyphens')
    for (const gateway of ['10.0.0.1', 'http://10.0.0.1:80', '10.0.0.1:0', 'a b:80'])
      refused({ ...whole, cells: [{ ...one, gateways: [gateway] }] }, 'cells[0].gateways[0] must be host:port')
    refused(
      { ...whole, cells: [{ ...one, environment: { database: 'x' } }] },
      'cells[0].environment.database must be the name of a setting',
    )
    refused(
      { ...whole, cells: [{ ...one, environment: { WORKERS: '2' } }] },
      'cells[0].environment must name the database of the cell: DATABASE_URL, or DATA_DIR of an embedded one',
    )
    refused({ ...whole, cells: [one, { ...two, name: 'one' }] }, 'cells holds a name twice')
    refused({ ...whole, cells: [one, { ...two, environment: one.environment }] }, 'cells holds a database twice')
    refused({ ...whole, cells: [one, { ...two, gateways: one.gateways }] }, 'cells holds a gateway twice')
  })

  it('is refused in live mode when others may read it, or put another in its place', () => {
    const live = { ...whole, cells: [one, { ...two, environment: { ...two.environment, MODE: 'live' } }] }
    assert.throws(
      readingOf(live, {}, 0o640),
      /^Error: MODE=live: --cells names .*, which others may read: set its mode to 0600\.$/,
    )
    assert.throws(readingOf(whole, { MODE: 'live' }, 0o604), /which others may read/)
    assert.equal(readingOf(live)().cells.length, 2)
    chmodSync(folder, 0o777)
    try {
      assert.throws(readingOf(live), /which others may replace, who may write to the folder/)
    } finally {
      chmodSync(folder, 0o700)
    }
    assert.equal(readingOf(whole, {}, 0o644)().cells.length, 2)
    // The file itself does not say in which mode it is looked at, and in none may others choose what is run.
    const sandboxed = { ...whole, cells: [{ ...one, environment: { ...one.environment, MODE: 'sandbox' } }] }
    assert.throws(readingOf(sandboxed, { MODE: 'live' }, 0o640), /^Error: MODE=live: --cells names .*, which others may read/)
    assert.throws(readingOf(sandboxed, {}, 0o666), /^Error: --cells names .*, which others may change/)
  })

  it('gives each cell its settings, and never the database of whoever asks', () => {
    const around = { DATABASE_URL: 'postgres://mine/tollgate', MODE: 'sandbox', WORKERS: '4' }
    assert.deepEqual(environmentOf(two, around), { ...around, DATABASE_URL: '', DATA_DIR: '/var/lib/two' })
    assert.equal(environmentOf(one, around).DATABASE_URL, 'postgres://db1/tollgate')
  })

  it('names the cells there are to who asks for another', () => {
    const cells = readingOf(whole)()
    assert.equal(cellOfName(cells, 'two').name, 'two')
    assert.throws(() => cellOfName(cells, 'three'), { message: 'There is no cell three: the file names one, two.' })
  })
})
