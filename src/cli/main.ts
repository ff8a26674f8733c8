// Runs one command. Exit codes: 0 fine, 1 it failed or found something, 2 it was used wrongly.

import { CommanderError } from 'commander'
import { outliveReaders, refuseInspector } from '../platform/errors.ts'
import { watchOutput } from './output.ts'
import { makeProgram } from './program.ts'

outliveReaders()
watchOutput()
refuseInspector()
try {
  await makeProgram().parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  if (error.exitCode !== 0) process.exitCode = 2 // the sentence, or the help, is written already
}
