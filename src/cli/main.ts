// Runs one command. Exit codes: 0 fine, 1 it failed or found something, 2 it was used wrongly.

import { keepCompiled } from '../platform/cacheFolder.ts'

keepCompiled()
const [{ CommanderError }, { outliveReaders, refuseInspector }, { watchOutput }, { makeProgram }] = await Promise.all([
  import('commander'),
  import('../platform/errors.ts'),
  import('./output.ts'),
  import('./program.ts'),
])
outliveReaders()
watchOutput()
refuseInspector()
try {
  await makeProgram().parseAsync()
} catch (error) {
  if (!(error instanceof CommanderError)) throw error
  if (error.exitCode !== 0) process.exitCode = 2 // the sentence, or the help, is written already
}
