// What the way over ISO 8583 costs: payments a second and latency with testMode=EXTERNAL beside INTERNAL, the host answering at once and after 300 ms.
// `npm run bench:external`. The gateway runs in this process, on a throw-away PostgreSQL without fsync; the figures compare ways, not machines.

import { startTestServer } from '../test/support/database.ts'
import { testGateway } from '../test/support/gateway.ts'
import { acquirersFile, testHost } from '../test/support/host.ts'

const server = await startTestServer()
process.env.TEST_SERVER = JSON.stringify(server.connection)
const payments = Number(process.argv[2] ?? 3000)

async function measure(name: string, delay: number, testMode: string, together: number, count: number): Promise<void> {
  const host = await testHost({ delay })
  const file = acquirersFile({ north: [host.port] })
  const gateway = await testGateway({ environment: { ACQUIRERS_FILE: file.path } })
  try {
    await gateway.pay({ testMode })
    const times: number[] = []
    let left = count
    let failed = 0
    const began = performance.now()
    const payer = async () => {
      while (left-- > 0) {
        const sent = performance.now()
        const { status } = await gateway.pay({ testMode, paymentType: 'PA' })
        times.push(performance.now() - sent)
        if (status !== 200) failed++
      }
    }
    await Promise.all(Array.from({ length: together }, payer))
    const seconds = (performance.now() - began) / 1000
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor(times.length * share)]!.toFixed(1)
    process.stdout.write(
      `${name.padEnd(40)} ${String(together).padStart(5)} at once  ${Math.round(count / seconds)} payments/s  p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  failed ${failed}\n`,
    )
  } finally {
    await gateway.stop()
    await host.stop()
    file.remove()
  }
}

try {
  await measure('INTERNAL', 0, 'INTERNAL', 1, payments / 10)
  await measure('EXTERNAL, host answers at once', 0, 'EXTERNAL', 1, payments / 10)
  await measure('INTERNAL', 0, 'INTERNAL', 64, payments)
  await measure('EXTERNAL, host answers at once', 0, 'EXTERNAL', 64, payments)
  await measure('EXTERNAL, host answers after 300 ms', 300, 'EXTERNAL', 1000, payments)
} finally {
  await server.stop()
}
