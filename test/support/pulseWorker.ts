// A process that does nothing but answer whether it hears.

import { answerPulse } from '../../src/start/workerPulse.ts'

answerPulse()
process.send!('ready')
