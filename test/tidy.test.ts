// Keeps the house: who may import whom, where SQL and result codes may stand, what is generated is current, and what every table needs.
// Comments are no code: they are taken out before a file is searched.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type pg from 'pg'
import { generated, stale } from '../scripts/generate/generated.ts'
import { schemaText } from '../scripts/generate/schema.ts'
import { mayImport } from '../scripts/rooms.ts'
import { refusalNames } from '../src/contract/results/results.ts'
import { makeDatabase, type TestDatabase, testPool, withPool } from './support/database.ts'

const project = fileURLToPath(new URL('..', import.meta.url))

type Source = { readonly path: string; readonly text: string; readonly code: string }

const sourcesIn = (folder: string, ends = /\.(ts|mjs)$/): Source[] =>
  readdirSync(project + folder, { recursive: true, encoding: 'utf8' })
    .filter(name => ends.test(name))
    .sort()
    .map(name => {
      const path = `${folder}/${name}`
      const text = readFileSync(project + path, 'utf8')
      return { path, text, code: text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{])\/\/.*$/gm, '$1') }
    })

const sources = sourcesIn('src')
const everything = [...sources, ...sourcesIn('test'), ...sourcesIn('scripts')]

// Where SQL may stand: the stores, the runner of migrations and what opens the database.
const sqlPlaces = /\/(store|cardStore)(\.ts$|\/)|^src\/(platform\/(database|due)|start)\//
const sql = /(['"`])\s*(select|insert into|update|delete from|with|create|alter|drop|truncate|listen|copy) [^'"`]/

// Tables of the whole platform; all others belong to a merchant.
const platformTables = [
  'access_tokens',
  'answered_challenges',
  'archives',
  'audit',
  'audit_head',
  'beats',
  'capture_files',
  'claimed_transactions',
  'clearing_files',
  'clearing_lines',
  'credentials',
  'day_totals',
  'due_work',
  'entities',
  'exports',
  'file_pieces',
  'form_scripts',
  'installation',
  'key_checks',
  'known_places',
  'log_in_failures',
  'migrations',
  'passkeys',
  'recovery_codes',
  'saved_filters',
  'settled_days',
  'sign_in_attempts',
  'slip_numbers',
  'staff',
  'staff_links',
  'staff_sessions',
  'sweeps',
  'terminals',
  'trace_numbers',
  'transfer_files',
]

// Their owner is a merchant, or an entity above or below whose merchants share what it has (decisions, 51) or are reported together.
const ownedTables = ['owed_files', 'registrations', 'report_schedules', 'reporting_sources', 'risk_entries']

const place = (path: string) => path.replace(/^src\//, '').replace(/(\/|\.ts$).*/, '')

function importsOf({ path, text }: Source): string[] {
  return [...text.matchAll(/^(?:import|export) [^'"]*?from '(\.[^']+)'/gm)].map(([, to]) =>
    new URL(to!, `file:///${path}`).pathname.slice(1),
  )
}

describe('imports', () => {
  for (const source of sources) {
    const from = place(source.path)
    test(source.path, () => {
      assert.ok(from in mayImport, `who may ${from} import? Write its row in scripts/rooms.ts.`)
      const allowed = new Set([from, ...mayImport[from]!.split(' ')])
      for (const to of importsOf(source)) {
        assert.ok(to.startsWith('src/'), `${to} is no part of the product`)
        assert.ok(allowed.has(place(to)), `${from} may not import ${to}`)
      }
    })
  }

  const edges = new Map<string, Set<string>>()
  for (const source of sources) {
    const from = place(source.path)
    for (const to of importsOf(source).map(place)) if (to !== from) edges.set(from, (edges.get(from) ?? new Set()).add(to))
  }

  test('every permission is used', () => {
    const unused = Object.entries(mayImport).flatMap(([from, others]) =>
      others
        .split(' ')
        .filter(to => to !== '' && !edges.get(from)?.has(to))
        .map(to => `${from} → ${to}`),
    )
    assert.deepEqual(unused, [])
  })

  test('only downwards: the rooms form no circle, types included', () => {
    const circle = (at: string, way: readonly string[]): string[] | undefined =>
      way.includes(at)
        ? [...way.slice(way.indexOf(at)), at]
        : [...(edges.get(at) ?? [])].map(next => circle(next, [...way, at])).find(found => found !== undefined)
    for (const room of edges.keys()) assert.equal(circle(room, []), undefined)
  })

  test('contract and simulators are pure: no packages, and of Node nothing', () => {
    const pure = sources.filter(({ path }) =>
      /^src\/(contract\/|sandbox\/(bank|threeDSecure|wallet)\/|sandbox\/(test)?[cC]ards)/.test(path),
    )
    for (const { path, text } of pure) {
      assert.ok(!/from '[^.]/.test(text), `${path} imports a package`)
      if (path.startsWith('src/contract/')) assert.ok(!/\b(Date\.now|Math\.random|process\.)/.test(text), path)
    }
  })

  test('connectors know no database, but for the leases of terminals', () => {
    const found = sources.filter(
      ({ path, text }) =>
        path.startsWith('src/connectors/') &&
        !path.startsWith('src/connectors/cards/terminals/') &&
        /platform\/database\//.test(text),
    )
    assert.deepEqual(
      found.map(({ path }) => path),
      [],
    )
  })
})

test('SQL stands in stores', () => {
  const found = sources.filter(({ path, code }) => !sqlPlaces.test(path) && sql.test(code)).map(({ path }) => path)
  assert.deepEqual(found, [])
})

test('nobody but the vault touches sealed cards', () => {
  const found = sources.filter(({ path, code }) => !path.startsWith('src/vault/') && /sealed_cards/.test(code))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('no statement asks the server for the time, but the one that compares the clocks', () => {
  const found = sources.filter(
    ({ path, code }) =>
      path !== 'src/platform/database/clocks.ts' &&
      /(?<![.\w])now\(\)|\b(current_timestamp|current_date|clock_timestamp|statement_timestamp)\b/.test(code),
  )
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

// The whole run shares a server, but for the standby's test.
test('what a test asks about connections and locks names a database', () => {
  const asks = (code: string) => [...code.matchAll(/`[^`]*pg_(?:locks|stat_activity)[^`]*`/g)].map(([words]) => words)
  const shared = everything.filter(({ path }) => path.startsWith('test/') && path !== 'test/reportingStandby.test.ts')
  const found = shared.flatMap(({ path, code }) => asks(code).map(words => ({ path, words })))
  assert.ok(found.length > 5)
  assert.deepEqual(
    found.filter(({ words }) => !/datname/.test(words)),
    [],
  )
})

test('only the clock waits and measures', () => {
  const time = /(?<![.\w])(setTimeout|setInterval)\(|timers\/promises|performance\.now|AbortSignal\.timeout|process\.hrtime/
  const found = sources.filter(
    // What a browser runs stands in a text, or in modules of its own.
    ({ path, code }) =>
      !/^src\/(platform\/clock\.ts|pages\/(shopper\/views\.ts|(form|office|developers)\/browser\/.*))$/.test(path) &&
      time.test(code),
  )
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('the machine is asked for time and chance in one place', () => {
  const allowed = /^src\/platform\/clock\.ts$/
  const found = sources.filter(({ path, code }) => !allowed.test(path) && /Date\.now\(|new Date\(\)|Math\.random\(/.test(code))
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

// Links and pipes of the server's user may stand wherever that user writes.
test('files of the database server and of backups are opened through what guards them', () => {
  const rooms = /^src\/platform\/database\/((embedded|backup|upgrade)\/|(embedded|find)\.ts$)/
  const opening =
    /\b(?:readFile|writeFile|appendFile|copyFile|open|truncate|chmod|chown|createReadStream|createWriteStream|readPlainFile|readLongFile)(?:Sync)?\(([^)]*)/g
  // Of the program, of the system, new in a folder of ours, and folders themselves.
  const unguarded = [
    "'/etc/passwd', 'utf8'",
    "join(root, 'package.json'",
    "list, 'utf8'",
    `\`/proc/\${pid}/cmdline\`, 'utf8'`,
    "path, text, { flag: 'wx', mode: 0o600, flush: true }",
    "to, 'wx', 0o600",
    'folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW',
    'folder, statSync(folder',
    'draft, account.uid, account.gid',
    'path, account.uid, account.gid',
  ]
  const found = sources
    .filter(({ path }) => rooms.test(path) && path !== 'src/platform/database/embedded/ownFile.ts')
    .flatMap(({ path, code }) =>
      [...code.matchAll(opening)].map(([, given]) => ({ path, given: given!.replace(/\s+/g, ' ').trim() })),
    )
  assert.deepEqual(
    found.filter(({ given }) => !unguarded.includes(given)),
    [],
  )
  assert.deepEqual(
    unguarded.filter(text => !found.some(({ given }) => given === text)),
    [],
  )
})

test('a program that we start has what it needs of our surroundings, and no secret in them', () => {
  const starting = sources.filter(({ code }) => code.includes("'node:child_process'"))
  const own = ['src/cli/overCells.ts'] // the gateway itself, with its settings
  const surrounded = starting.filter(
    ({ path, code }) => !own.includes(path) && !/childEnvironment\(\)|account\.options/.test(code),
  )
  assert.deepEqual(
    surrounded.map(({ path }) => path),
    [],
  )
  assert.ok(starting.length > own.length)
})

test('result codes stand in contract/results, elsewhere results have names', () => {
  const found = sources.filter(
    ({ path, code }) => !path.startsWith('src/contract/results/') && /(?<![\d.])\d{3}\.\d{3}\.\d{3}(?!\.?\d)/.test(code),
  )
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('every refusal is used', () => {
  const code = sources.filter(({ path }) => !path.startsWith('src/contract/results/')).map(one => one.code)
  const unused = refusalNames.filter(name => !code.some(text => text.includes(`'${name}'`) || text.includes(`results.${name}`)))
  assert.deepEqual(unused, [])
})

test('every file says what it is', () => {
  const silent = everything.filter(({ text }) => !/^(#!.*\n)?\/\//.test(text)).map(({ path }) => path)
  assert.deepEqual(silent, [])
})

test('no type has the name of another, and nothing that is given away has that of something else', () => {
  const given = /^export (?:declare )?(?:async )?(?:const|function\*?|class) (\w+)/gm
  const types = /^(?:export )?(?:type|interface|class) (\w+)/gm
  for (const pattern of [given, types]) {
    const places = new Map<string, string[]>()
    for (const { path, code } of sources)
      for (const name of new Set([...code.matchAll(pattern)].map(([, name]) => name!)))
        places.set(name, [...(places.get(name) ?? []), path])
    assert.deepEqual(
      [...places].filter(([, paths]) => paths.length > 1),
      [],
    )
  }
})

test('nothing is left for later', () => {
  const mark = new RegExp(['FIX' + 'ME', 'TO' + 'DO', 'XX' + 'X'].map(word => `\\b${word}\\b`).join('|'))
  const found = [...everything, ...sourcesIn('migrations', /\.sql$/), ...sourcesIn('docs', /\.md$/)].filter(({ text }) =>
    mark.test(text),
  )
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

test('no folder or file is called by what it is not', () => {
  const vague = /(^|\/)(utils?|helpers?|managers?|services?|handlers?|common|shared|misc)(\.ts)?(\/|$)/
  const found = everything.filter(({ path }) => vague.test(path) && path !== 'src/contract/parameters/common.ts')
  assert.deepEqual(
    found.map(({ path }) => path),
    [],
  )
})

describe('the database', () => {
  let database: TestDatabase
  let pool: pg.Pool
  before(async () => {
    database = await makeDatabase()
    pool = testPool(database.connection, 2)
  })
  after(async () => {
    await pool.end()
    await database.drop()
  })

  test('generated files are current: npm run generate', async () => {
    assert.deepEqual(stale(await generated(pool)), [])
  })

  test('schema.sql makes the schema that it was written from', async () => {
    const empty = await makeDatabase()
    await withPool(empty.connection, async again => {
      await again.query('drop schema public cascade; create schema public')
      await again.query(readFileSync(`${project}migrations/schema.sql`, 'utf8'))
      assert.equal(await schemaText(again), await schemaText(pool))
    }).finally(() => empty.drop())
  })

  test("a merchant's table has merchant_id first in its primary key", async () => {
    const { rows } = await pool.query<{ name: string; first: string | null }>(
      `select c.relname as name, (select a.attname from pg_index i join pg_attribute a on a.attrelid = c.oid and a.attnum = i.indkey[0]
                                   where i.indrelid = c.oid and i.indisprimary) as first
         from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by c.relname`,
    )
    const others = rows.filter(({ first }) => first !== 'merchant_id').map(({ name }) => name)
    assert.deepEqual(others, [...platformTables, ...ownedTables].sort())
  })

  test('money is whole hundredths: no column is a float or a decimal', async () => {
    const { rows } = await pool.query(
      `select table_name, column_name from information_schema.columns
        where table_schema = 'public' and data_type in ('real', 'double precision', 'numeric', 'money')`,
    )
    assert.deepEqual(rows, [])
  })
})
