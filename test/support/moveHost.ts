// Moves a merchant in a process of its own, which is killed when a step is done: `source target merchant step`, the ends as JSON of their connections.

import { moveMerchant } from '../../src/start/moves/move.ts'
import { sideOf } from './movingCells.ts'

const [source, target, merchantId, last] = process.argv.slice(2) as [string, string, string, string]
await moveMerchant({
  source: sideOf('one', JSON.parse(source)),
  target: sideOf('two', JSON.parse(target)),
  merchantId,
  patienceSeconds: 10,
  refusalSeconds: 60,
  tell: step => void (step === last && process.kill(process.pid, 'SIGKILL')),
  flip: async () => {},
})
process.exit(0)
