// Loaded into a process of the bench before all else, by `--import` with the folder in its address. SIGWINCH, which means nothing to a gateway, begins a profile
// of the processor's time, the next one ends it and writes it into the folder, under the id of the process.

import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'

const folder = new URL(import.meta.url).searchParams.get('folder')!
let running: Session | undefined

process.on('SIGWINCH', () => {
  if (running) end(running)
  else running = begin()
})

function begin(): Session {
  const session = new Session()
  session.connect()
  session.post('Profiler.enable')
  session.post('Profiler.start')
  return session
}

function end(session: Session): void {
  running = undefined
  session.post('Profiler.stop', (error, { profile }) => {
    if (error) throw error
    const file = join(folder, `${process.pid}.cpuprofile`)
    writeFileSync(`${file}.part`, JSON.stringify(profile))
    renameSync(`${file}.part`, file) // who waits for the file finds all of it
    session.disconnect()
  })
}
