// Which database is that of reports, and which cell's a database is that it follows: whatever a file of cells says, by slip of the pen, and wherever the command was
// ended. What is wrong is told by name before anything is made, and what nobody uses is named with what drops it.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type pg from 'pg'
import { beginAudit } from '../src/audit/chain.ts'
import { inTransaction, makePool } from '../src/platform/database/connect.ts'
import { readSources } from '../src/platform/database/following.ts'
import { keepMode } from '../src/platform/database/installation.ts'
import { published, takingText } from '../src/start/reporting/published.ts'
import { forgetSource, prepareTables, subscriberRefusals } from '../src/start/reporting/subscribe.ts'
import { refuseReporting } from '../src/start/reporting/whose.ts'
import { keepKeys } from '../src/vault/keys.ts'
import { withPool } from './support/database.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type PostgresServer, type PostgresServers, postgresServers } from './support/postgres.ts'
import { type CommandRun, manyCommands } from './support/process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-reporting-'))
const file = join(folder, 'cells.json')
const replicator = 'tollgate_replicator'
let servers: PostgresServers
/** Has the cells one, two and three in the databases k1, k2 and k3. */
let cells: PostgresServer
/** Has the reporting database, and a k3 of its own. */
let other: PostgresServer
let gateway: TestGateway
/** As owner in k1, k2 and k3. */
let pools: Record<'k1' | 'k2' | 'k3', pg.Pool>
/** As superuser in the reporting database. */
let there: pg.Pool
let commands: ReturnType<typeof manyCommands>

/** A cell of a file: `from`, where it replicates from, unless that is its database. */
type Named = readonly [
  name: string,
  database: string,
  from?: string | undefined,
  gateways?: readonly string[] | undefined,
  more?: object,
]
const write = (...named: readonly Named[]): void => {
  const all = named.map(([name, database, from = cells.urlOf(database, replicator), gateways = [`${name}.invalid:1`], more]) => ({
    name,
    environment: { DATABASE_URL: cells.urlOf(database), REPLICATION_URL: from, ...more },
    gateways,
  }))
  writeFileSync(file, JSON.stringify({ map: 'cells.map', cells: all }), { mode: 0o600 })
}
const command = (...words: string[]): Promise<CommandRun> => commands.run('cells', 'reporting', '--cells', file, ...words)
const follow = async (...named: readonly Named[]): Promise<CommandRun> => {
  write(...named)
  return command()
}
const right: readonly Named[] = [
  ['one', 'k1'],
  ['two', 'k2'],
]
/** All that a refusal must not change: slots with their databases, subscriptions with what they connect to, names of databases and publications. */
const made = async () => {
  const { rows: slots } = await cells.pool.query(
    `select slot_name || ' ' || database as slot from pg_replication_slots where slot_name like 'tollgate%' order by 1`,
  )
  const { rows: subscriptions } = await there.query(
    `select subname || ' ' || subconninfo as subscription from pg_subscription order by 1`,
  )
  const names = await Promise.all(
    Object.values(pools).map(async pool => [
      (await readSources(pool)).map(({ source, id }) => `${source} ${id}`).join(),
      (await pool.query('select pubname from pg_publication')).rowCount,
    ]),
  )
  return { slots: slots.map(({ slot }) => slot), subscriptions: subscriptions.map(one => one.subscription), names }
}
const slots = async () => (await made()).slots
/** Refused by name, and nothing is made. */
const refused = async (named: readonly Named[], ...sentences: RegExp[]): Promise<void> => {
  const before = await made()
  const { code, out, stderr } = await follow(...named)
  assert.equal(code, 1, out)
  for (const sentence of sentences) assert.match(stderr, sentence)
  assert.deepEqual(await made(), before)
}
const done = ({ code, out, stdout }: CommandRun): string => {
  assert.equal(code, 0, out)
  return stdout
}
const caughtUp = () =>
  eventually(async () => {
    const { rows } = await there.query(`select from pg_subscription_rel where srsubstate <> 'r'`)
    return rows.length === 0
  }, 'all is copied')

before(async () => {
  servers = postgresServers()
  cells = await servers.server(['synchronous_commit=local'])
  other = await servers.server()
  for (const { pool } of [cells, other]) await pool.query(`create role ${replicator} login replication`)
  await other.pool.query('create role tollgate_reader login')
  await other.makeEmpty('reporting')
  await other.make('k3')
  there = makePool({ connectionString: other.urlOf('reporting') }, 2, () => {})
  commands = manyCommands({
    SEAL_KEY: '01'.repeat(32),
    LOOKUP_KEY: '02'.repeat(32),
    REPORTING_DATABASE_URL: other.urlOf('reporting'),
    DATA_DIR: folder,
  })
  const poolOf = async (name: string) => {
    const pool = makePool((await cells.make(name)).connection, 2, () => {})
    await inTransaction(pool, async db => {
      await keepKeys(db, testKeys, Date.now())
      await beginAudit(db, testKeys)
      await keepMode(db, 'sandbox', Date.now())
    })
    return pool
  }
  pools = { k1: await poolOf('k1'), k2: await poolOf('k2'), k3: await poolOf('k3') }
  gateway = await testGateway({ database: { connection: { connectionString: cells.urlOf('k1') }, drop: async () => {} } })
})
after(async () => {
  commands?.stop()
  await gateway?.stop()
  await Promise.all([there, ...Object.values(pools ?? {})].map(pool => pool?.end()))
  await servers?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('whose a database is', () => {
  it('is known at whatever step the command was ended', async () => {
    const { connection } = await other.make('steps')
    await withPool(connection, async db => {
      const isGateways = async () => (await subscriberRefusals(db, 1)).some(one => one.startsWith('A gateway has used'))
      await refuseReporting(db) // it is nobody's yet
      assert.equal(await isGateways(), false)
      const [take, ...others] = takingText('public', published[0]!)
      await db.query(take!)
      await refuseReporting(db)
      const steps = {
        'the first trigger': () => db.query(others[0]!),
        'the tables': () => prepareTables(db),
        'the mode': () => keepMode(db, 'sandbox', Date.now()),
        'a cell': () => db.query(`insert into reporting_sources values ('one', now())`),
        'the end of the last cell': () => forgetSource(db, 'one'),
      }
      for (const [step, go] of Object.entries(steps)) {
        await go()
        const names = step === 'a cell' ? 'one' : 'none at present'
        await assert.rejects(refuseReporting(db), new RegExp(`follows others for reports \\(${names}\\)`), step)
        assert.equal(await isGateways(), false, step)
      }
    })
    for (const pool of Object.values(pools)) {
      await refuseReporting(pool)
      assert.match((await subscriberRefusals(pool, 1)).join('\n'), /^A gateway has used this database/m)
    }
  })

  it('a database that nobody has prepared follows nobody, which is said', async () => {
    write(...right)
    const { code, stderr } = await command('--end', 'one')
    assert.deepEqual([code, stderr], [1, 'The reporting database does not follow one.\n'])
  })
})

describe('before anything is made', () => {
  it('a database that is named for two cells is refused for both', async () => {
    const again = { DATABASE_URL: cells.urlOf('k2').replace('postgres@', 'postgres:any@') }
    const before = await made()
    const { code, stderr } = await follow(['two', 'k2'], ['twoo', 'k2', undefined, undefined, again])
    assert.equal(code, 1)
    assert.match(stderr, /^two: It is left as it is: the file names its database for twoo too\.$/m)
    assert.match(stderr, /^twoo: It is left as it is: the file names its database for two too\.$/m)
    assert.deepEqual(await made(), before)
  })

  it('names that are swapped are found out by gateways', async () => {
    const gateways = [new URL(gateway.baseUrl).host]
    await refused(
      [['one', 'k2', undefined, gateways]],
      new RegExp(`^one: It is left as it is: its gateway ${gateways[0]} works on another database than the file names\\.$`, 'm'),
    )
  })

  it('a REPLICATION_URL of another database is refused, of the same server and of another one', async () => {
    const sentence = /^three: REPLICATION_URL names another database than DATABASE_URL/m
    await refused([['three', 'k3', cells.urlOf('k1', replicator)]], sentence)
    await refused([['three', 'k3', other.urlOf('k3', replicator)]], sentence)
    assert.deepEqual(await slots(), [])
  })

  it('a slot of the same name in another database of the server is seen, and named', async () => {
    await pools.k1.query(`select pg_create_logical_replication_slot('tollgate_reporting_three', 'pgoutput')`)
    await refused(
      [['three', 'k3']],
      /^three: Its server has a slot tollgate_reporting_three already, of the database k1: .* drop it there: select pg_drop_replication_slot\('tollgate_reporting_three'\)\.$/m,
    )
    await pools.k1.query(`select pg_drop_replication_slot('tollgate_reporting_three')`)
    assert.match(done(await follow(['three', 'k3'])), /^three is copied\.$/m)
    await caughtUp()
    done(await command('--end', 'three'))
    assert.deepEqual(await slots(), [])
  })
})

describe('cells that are followed', () => {
  it('are followed by a database whose last cell was ended, and no gateway takes that', async () => {
    const { code, out } = await commands.runIn({ DATABASE_URL: other.urlOf('reporting'), MODE: 'sandbox' }, 'doctor')
    assert.equal(code, 1)
    assert.match(out, /follows others for reports \(none at present\) and takes no payments/)
    const paid = await gateway.pay()
    assert.match(done(await follow(...right)), /^one is copied\.\ntwo is copied\.$/m)
    await caughtUp()
    const { rowCount } = await there.query('select from payments where id = $1', [paid.body.id])
    assert.equal(rowCount, 1)
  })

  it('are not followed twice under another name, nor one under the name of the other', async () => {
    const misspelt: readonly Named[] = [
      ['one', 'k1'],
      ['twoo', 'k2'],
    ]
    const swapped: readonly Named[] = [
      ['one', 'k2'],
      ['two', 'k1'],
    ]
    const isTwo = /^\w+: Its database is followed as two already \(it has the slot tollgate_reporting_two\): call it two/m
    const isOne = /^two: Its database is followed as one already \(it has the slot tollgate_reporting_one\): call it one/m
    const forgotten =
      /^The reporting database follows two, which the cells file does not name: name it there, or end that with --end two\.$/m
    await refused(misspelt, isTwo, forgotten)
    await refused(swapped, isTwo, isOne)
    // Between two tries of a subscription nobody uses its slot.
    await there.query('alter subscription tollgate_reporting_two disable')
    await eventually(async () => {
      const { rows } = await cells.pool.query(
        `select active from pg_replication_slots where slot_name = 'tollgate_reporting_two'`,
      )
      return rows[0].active === false
    }, 'nobody uses it')
    await refused(misspelt, isTwo, forgotten)
    const { stdout } = await follow(...right)
    assert.match(stdout, /^one follows\.\ntwo follows\.$/m)
  })

  it('are left to the reporting database that follows them, by following and by ending', async () => {
    await other.makeEmpty('second')
    write(...right)
    const before = await made()
    const second = (...words: string[]) =>
      commands.runIn({ REPORTING_DATABASE_URL: other.urlOf('second') }, 'cells', 'reporting', '--cells', file, ...words)
    const followed = await second()
    assert.equal(followed.code, 1)
    for (const name of ['one', 'two'])
      assert.match(followed.stderr, new RegExp(`^${name}: Another reporting database follows the cell ${name}`, 'm'))
    const ended = await second('--end', 'one')
    assert.deepEqual(
      [ended.code, ended.stderr],
      [1, 'The reporting database does not follow one.\none: Another reporting database follows it.\n'],
    )
    assert.deepEqual(await made(), before)
  })

  it('that the file has forgotten are named, and sums that they alone have stay', async () => {
    // A merchant whom the other cell knows too: he has moved.
    const archive = '0'.repeat(31).concat('a')
    await pools.k2.query(`insert into archives (id, name, before, began_at) values ($1, 'test', now(), now())`, [archive])
    await pools.k2.query(`insert into closing_sums values ($1, $2, $2, now(), 'LIVE', 'EUR', '', '', 'DB', 1, 1, 100)`, [
      sandbox.merchantId,
      archive,
    ])
    const sums = async () => (await there.query('select from closing_sums')).rowCount
    await eventually(async () => (await sums()) === 1, 'the sum is there')
    const { code, stdout, stderr } = await follow(['one', 'k1'])
    assert.deepEqual([code, /^one follows\.$/m.test(stdout)], [1, true])
    assert.match(stderr, /^The reporting database follows two, which the cells file does not name/m)
    assert.equal(await sums(), 1)
    await pools.k2.query('delete from closing_sums')
    done(await follow(...right))
    assert.equal(await sums(), 0, 'what no cell has any more goes when all are named')
  })

  it('have no slot that nobody uses without a word', async () => {
    await pools.k2.query(`select pg_create_logical_replication_slot('tollgate_reporting_twoo', 'pgoutput')`)
    const { code, stdout, stderr } = await follow(...right)
    assert.equal(code, 1)
    assert.match(stdout, /^two follows\.$/m)
    const [, statement] = /^two: Nobody uses the slot tollgate_reporting_twoo .* Drop it in k2: (.*)\.$/m.exec(stderr)!
    await pools.k2.query(statement!)
    assert.equal((await follow(...right)).stderr, '')
    assert.deepEqual(await slots(), ['tollgate_reporting_one k1', 'tollgate_reporting_two k2'])
  })
})

describe('the end of a cell', () => {
  it('that the file does not name says which slot stays, and drops it when the file names its cell', async () => {
    write(['one', 'k1'])
    const { code, out } = await command('--end', 'two')
    assert.equal(code, 1)
    assert.match(out, /^two is followed no longer; what was copied of it stays\.$/m)
    assert.match(out, /drop there what it keeps: select pg_drop_replication_slot\('tollgate_reporting_two'\)\.$/m)
    assert.deepEqual(await slots(), ['tollgate_reporting_one k1', 'tollgate_reporting_two k2'])
    write(...right)
    assert.equal(done(await command('--end', 'two')), 'Its slot tollgate_reporting_two in two is dropped.\n')
    assert.deepEqual(await slots(), ['tollgate_reporting_one k1'])
    const again = await command('--end', 'two')
    assert.deepEqual([again.code, again.stderr], [1, 'The reporting database does not follow two.\n'])
  })

  it('finds its slot in the cell that has another name now, and no other slot', async () => {
    done(await follow(...right))
    await caughtUp()
    write(['uno', 'k1'], ['two', 'k2'])
    assert.equal(
      done(await command('--end', 'one')),
      'one is followed no longer; what was copied of it stays.\nIts slot tollgate_reporting_one in uno is dropped.\n',
    )
    assert.deepEqual(await slots(), ['tollgate_reporting_two k2'])
    assert.match(done(await command()), /^uno is copied\.\ntwo follows\.$/m)
    await caughtUp()
    assert.deepEqual(
      (await readSources(pools.k1)).map(({ source }) => source),
      ['uno'],
    )
  })

  it('drops the slot of no cell whose name differs where its own has a hyphen', async () => {
    await pools.k2.query(`select pg_create_logical_replication_slot('tollgate_reporting_axb', 'pgoutput')`)
    await pools.k2.query(`select pg_create_logical_replication_slot('tollgate_reporting_a_b', 'pgoutput')`)
    done(await command('--end', 'a-b'))
    assert.ok((await slots()).includes('tollgate_reporting_axb k2'))
    assert.ok(!(await slots()).includes('tollgate_reporting_a_b k2'))
    done(await command('--end', 'axb'))
  })
})
