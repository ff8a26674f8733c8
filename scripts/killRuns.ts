// Shoots a whole gateway with SIGKILL while payments are under way, again and again, and compares its books with the host's: `node scripts/killRuns.ts 20 [seed]`.

import { killRuns } from '../test/simulation/killRuns.ts'

const runs = Number(process.argv[2] ?? 20)
const seed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 31))
process.stdout.write(`seed ${seed}\n`)
process.stdout.write(`${JSON.stringify(await killRuns(runs, seed))}\nThe books of host and gateway agree.\n`)
