// Checks what is packaged for Prometheus and Grafana, as far as their programs are here: the rules by promtool; and with prometheus, a gateway and some
// payments, whether each panel of the dashboard has an answer. Debian has both in the package prometheus.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../test/support/freePort.ts'
import { hasPromtool, wrongRules } from './watching/check.ts'
import { dashboardExpressions, packaged } from './watching/expressions.ts'

const card = {
  ...{ paymentBrand: 'VISA', 'card.number': '4200000000000000', 'card.holder': 'Jane Jones', 'card.cvv': '123' },
  ...{ 'card.expiryMonth': '05', 'card.expiryYear': '2034' },
}
const mailNowhere = { SMTP_URL: 'smtp://127.0.0.1:9', ALERT_TO: 'ops@shop.example', ALERT_FROM: 'tollgate@shop.example' }

const say = (text: string) => process.stdout.write(`${text}\n`)

if (!hasPromtool) {
  say('promtool is not here: install the package prometheus.')
  process.exit(1)
}
const wrong = wrongRules()
say(wrong.length === 0 ? 'The configuration and the rules are right.' : wrong.join('\n'))
const empty = spawnSync('prometheus', ['--version']).status === 0 ? await askPanels() : undefined
if (empty === undefined) say('prometheus is not here: the panels were not asked.')
process.exitCode = wrong.length > 0 || (empty?.length ?? 0) > 0 ? 1 : 0

/** The panels to which Prometheus has no answer. What never happened in this sandbox has none and is said. */
async function askPanels(): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-watching-'))
  const [port, metricsPort, prometheusPort] = await Promise.all([freePort(), freePort(), freePort()])
  const children: ChildProcess[] = []
  const start = (program: string, words: readonly string[], env: NodeJS.ProcessEnv = process.env) => {
    const child = spawn(program, words, { env, stdio: 'ignore', cwd: fileURLToPath(new URL('..', import.meta.url)) })
    children.push(child)
  }
  const data = join(folder, 'data')
  const settings = { PORT: String(port), METRICS_PORT: String(metricsPort), WORKERS: '2', DATA_DIR: data, DEMO_SHOP_PORT: 'off' }
  const collector = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', ...mailNowhere }
  start(process.execPath, ['--disable-sigusr1', 'src/main.ts'], {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    ...settings,
    ...collector,
  })
  const config = readFileSync(packaged('prometheus/prometheus.yml'), 'utf8')
    .replaceAll('15s', '1s')
    .replace('gateway:9464', `127.0.0.1:${metricsPort}`)
    .replace('rules.yml', fileURLToPath(packaged('prometheus/rules.yml')))
  writeFileSync(join(folder, 'prometheus.yml'), config)
  const place = [`--config.file=${join(folder, 'prometheus.yml')}`, `--storage.tsdb.path=${join(folder, 'tsdb')}`]
  start('prometheus', [...place, `--web.listen-address=127.0.0.1:${prometheusPort}`])
  try {
    const base = `http://127.0.0.1:${port}`
    await until(async () => (await fetch(`${base}/health/ready`)).ok, 'the gateway is ready')
    // A worker may be ready before the first process has written it.
    await until(async () => existsSync(join(data, 'sandbox.json')), 'the credentials are written')
    const { entityId, accessToken } = JSON.parse(readFileSync(join(data, 'sandbox.json'), 'utf8'))
    const pay = (testMode: string) =>
      fetch(`${base}/v1/payments`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${accessToken}` },
        body: new URLSearchParams({ entityId, testMode, paymentType: 'DB', amount: '92.00', currency: 'EUR', ...card }),
      }).then(answer => answer.text())
    const ask = async (expression: string): Promise<unknown[]> => {
      const answer = await fetch(`http://127.0.0.1:${prometheusPort}/api/v1/query?${new URLSearchParams({ query: expression })}`)
      const { status, data, error } = (await answer.json()) as { status: string; data: { result: unknown[] }; error?: string }
      if (status !== 'success') throw new Error(`${expression}: ${error}`)
      return data.result
    }
    for (let second = 0; second < 20; second++) {
      await Promise.all(['INTERNAL', 'EXTERNAL'].map(pay))
      await sleep(1000)
    }
    await until(async () => (await ask('tollgate:http_request_seconds:p99_5m')).length > 0, 'the rules have recorded')
    const empty: string[] = []
    for (const [title, expression] of dashboardExpressions())
      if ((await ask(expression)).length === 0) empty.push(`${title}: ${expression}`)
    const panels = dashboardExpressions().length
    say(`${panels - empty.length} of ${panels} expressions of the dashboard have an answer after 40 payments in 20 seconds.`)
    for (const one of empty) say(`  none: ${one}`)
    const firing = await ask('ALERTS{alertstate="firing"}')
    say(`${firing.length} alerts fire.`)
    return empty.filter(one => !one.includes('_ended_total') && !one.includes('left_out'))
  } finally {
    for (const child of children) child.kill('SIGTERM')
    await Promise.all(children.map(child => new Promise(done => (child.exitCode === null ? child.once('exit', done) : done(0)))))
    rmSync(folder, { recursive: true, force: true })
  }
}

async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 60; tries++) {
    if (await holds().catch(() => false)) return
    await sleep(1000)
  }
  throw new Error(`never happened: ${what}`)
}
