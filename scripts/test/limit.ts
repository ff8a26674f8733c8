// Loaded into each process of tests. One that does not end by itself, because a hook failed and left something open, fails; without this the run would wait for it
// for ever: the runner's own limit is for tests, not for what is left when they have ended.

import { basename } from 'node:path'

const minutes = 15
if (process.env.NODE_TEST_CONTEXT !== undefined)
  setTimeout(() => {
    process.stderr.write(
      `${basename(process.argv[1] ?? '')} has not ended within ${minutes} minutes: something of it is left open\n`,
    )
    process.exit(1)
  }, minutes * 60_000).unref()
