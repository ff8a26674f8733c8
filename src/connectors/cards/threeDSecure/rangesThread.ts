// The thread that reads a long list of card ranges (see readRanges): it is given the text, and answers with what was in it.

import { parentPort, workerData } from 'node:worker_threads'
import { readCardRanges } from './cardRanges.ts'

parentPort!.postMessage(readCardRanges(workerData))
