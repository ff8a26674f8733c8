// Random faults between the gateway and an acquirer's host: `npm run simulate -- 10000 [seed] [hostile]`. A failed run prints its seed; the same seed tells the same stories.

import { simulate } from '../test/simulation/acquirer.ts'
import { startTestServer } from '../test/support/database.ts'

const stories = Number(process.argv[2] ?? 1000)
const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 31))
const hostile = process.argv[4] === 'hostile'
process.stdout.write(`seed ${seed}\n`)
const server = await startTestServer()
process.env.TEST_SERVER = JSON.stringify(server.connection)
try {
  const report = await simulate(stories, seed, 60, text => process.stdout.write(`${text}\n`), hostile)
  process.stdout.write(
    `${JSON.stringify({ ...report, milliseconds: Math.round(report.milliseconds) }, null, 2)}\nThe books of host and gateway agree.\n`,
  )
} catch (error) {
  process.stderr.write(`seed ${seed}: ${(error as Error).stack}\n`)
  process.exitCode = 1
} finally {
  await server.stop()
}
