// What is packaged for Prometheus and Grafana: it asks for figures that the gateway serves, with the labels that they have, and every alert has its line in the
// documents. promtool tries the rules where it is there.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { hasPromtool, wrongRules } from '../scripts/watching/check.ts'
import { dashboardExpressions, namesIn, rules } from '../scripts/watching/expressions.ts'
import { databaseUrl, makeDatabase } from './support/database.ts'
import { addEndpoint } from './support/endpoints.ts'
import { eventually, type TestGateway, testGateway } from './support/gateway.ts'
import { acquirersFile, testHost } from './support/host.ts'
import { startReceiver } from './support/receiver.ts'

/** What is served only by a process that holds workers, or an archive, and only when it happens. test/metrics.test.ts and test/walArchive.test.ts see them. */
const elsewhere = new Map([
  ['tollgate_wal_behind', []],
  ['tollgate_workers', ['instance']],
  ['tollgate_workers_ended_total', ['instance', 'with']],
  ['tollgate_metrics_left_out_total', ['instance', 'source']],
])
/** Labels that Prometheus adds, and those that recording rules leave. */
const scraped = ['job', 'instance']

describe('the dashboard and the rules', () => {
  let gateway: TestGateway
  /** By name, with the labels of what is served under it. */
  let served: Map<string, Set<string>>
  before(async () => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await new Promise(ready => server.once('listening', ready))
    const { port } = server.address() as AddressInfo
    await new Promise(done => server.close(done))
    const host = await testHost()
    const receiver = await startReceiver()
    const file = acquirersFile({ north: [host.port] })
    const database = await makeDatabase()
    gateway = await testGateway({
      database,
      environment: {
        REPORTING_DATABASE_URL: databaseUrl(database.connection), // a database is its own follower, the fastest there is
        ...{ METRICS_PORT: String(port), ACQUIRERS_FILE: file.path, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' },
        ...{ SMTP_URL: 'smtp://127.0.0.1:9', ALERT_TO: 'ops@shop.example', ALERT_FROM: 'tollgate@shop.example' },
      },
    })
    await addEndpoint(gateway.pool, { url: receiver.url })
    receiver.answer = () => 500
    await gateway.pay({ testMode: 'EXTERNAL' })
    const text = await eventually(async () => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      return /^tollgate_notification_attempts_total\{ended="failed"\} 1$/m.test(text) && text
    }, 'a delivery has failed')
    served = new Map()
    for (const [, name, labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
      const of = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label!)
      served.set(name!, new Set([...(served.get(name!) ?? []), ...of]))
    }
    await receiver.close()
    await host.stop()
    file.remove()
  })
  after(() => gateway.stop())

  const recorded = new Set(
    rules()
      .filter(({ kind }) => kind === 'record')
      .map(({ name }) => name),
  )
  const asked = [...dashboardExpressions(), ...rules().map(({ name, expression }) => [name, expression] as const)]

  it('ask for figures that are served with data, by labels that they have', () => {
    assert.ok(asked.length > 60, `only ${asked.length} were read`)
    const wrong = asked.flatMap(([title, expression]) => {
      const names = namesIn(expression).filter(name => !name.includes(':'))
      const labels = new Set([...scraped, 'le', ...names.flatMap(name => [...(served.get(name) ?? elsewhere.get(name) ?? [])])])
      const unknown = names.filter(name => !served.has(name) && !elsewhere.has(name))
      const used = [...expression.matchAll(/(?:by \(([\w, ]+)\))|(?:[{,](\w+)[!=]~?")/g)].flatMap(([, by, one]) =>
        by ? by.split(', ') : [one!],
      )
      const strange = expression.includes('tollgate:') ? [] : used.filter(label => !labels.has(label))
      return [...unknown, ...strange].map(one => `${title}: ${one}`)
    })
    assert.deepEqual(wrong, [])
  })

  it('ask for recorded sums that there are, and none is recorded for nobody', () => {
    const used = new Set(asked.flatMap(([, expression]) => namesIn(expression)).filter(name => name.includes(':')))
    assert.deepEqual(
      [...used].filter(name => !recorded.has(name)),
      [],
    )
    assert.deepEqual(
      [...recorded].filter(name => !used.has(name)),
      [],
    )
  })

  it('show every figure of ours', () => {
    const used = new Set(
      asked.flatMap(([, expression]) => namesIn(expression)).map(name => name.replace(/_(bucket|sum|count)$/, '')),
    )
    const names = new Set([...served.keys()].map(name => name.replace(/_(bucket|sum|count)$/, '')))
    assert.deepEqual(
      [...names].filter(name => name.startsWith('tollgate_') && !used.has(name)),
      [],
    )
  })
})

it('every alert has a line in the documents, and every line an alert', () => {
  const page = readFileSync(new URL('../docs/operating-watching.md', import.meta.url), 'utf8')
  const told = [...page.matchAll(/^\| `(Tollgate\w+)` \|/gm)].map(([, name]) => name)
  const alerts = rules().filter(({ kind }) => kind === 'alert')
  assert.deepEqual(
    told,
    alerts.map(({ name }) => name),
  )
})

it('every figure of ours has a line in the documents', () => {
  const page = readFileSync(new URL('../docs/operating-watching.md', import.meta.url), 'utf8')
  const names = [
    ...new Set(
      [...dashboardExpressions(), ...rules().map(rule => [rule.name, rule.expression] as const)].flatMap(([, expression]) =>
        namesIn(expression),
      ),
    ),
  ]
  const untold = names
    .map(name => name.replace(/_(bucket|sum|count)$/, ''))
    .filter(name => name.startsWith('tollgate_') && !page.includes(`\`${name}`))
  assert.deepEqual(untold, [])
})

it('promtool takes the configuration and the rules, and the alerts come when they should', {
  skip: !hasPromtool && 'promtool is not here',
}, () => {
  assert.deepEqual(wrongRules(), [])
})
