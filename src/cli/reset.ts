// tollgate reset: takes a sandbox's embedded database away, so that the next start begins anew. Nothing of live mode is ever removed, and nothing that
// somebody works with.

import { randomUUID } from 'node:crypto'
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { systemClock } from '../platform/clock.ts'
import { connect } from '../platform/database/connect.ts'
import { removeFolder } from '../platform/database/embedded/ownFile.ts'
import { startEmbedded } from '../platform/database/embedded.ts'
import { claimFolder } from '../platform/database/folder.ts'
import { type InstallationMode, readMode } from '../platform/database/installation.ts'
import { errorText } from '../platform/errors.ts'
import { readConfig } from '../start/config.ts'
import { sandboxKeyFiles } from '../vault/keyFile.ts'
import { readProofs } from '../vault/store.ts'
import { refuseCommand, refuseWords, runCommand } from './open.ts'

type ResetOptions = { readonly yes?: true; readonly keys?: true }

const projectFolder = fileURLToPath(new URL('../..', import.meta.url))

/** What a sandbox writes beside its database, and writes anew. */
const leftovers = ['postgres.log', 'sandbox.json', 'acquirer-host.jsonl']

export default (program: Command): void => {
  program
    .command('reset')
    .description("removes a sandbox's embedded database with all that it holds; the next start begins anew")
    .option('--yes', 'do not ask')
    .option('--keys', 'its keys too, which are kept otherwise')
    .action((options: ResetOptions) => runCommand(() => reset(options)))
}

async function reset({ yes, keys }: ResetOptions): Promise<void> {
  const { mode, databaseUrl, dataDir, embeddedUser } = readConfig(process.env, projectFolder)
  if (databaseUrl !== undefined)
    refuseCommand('DATABASE_URL names a database; only an embedded one is removed. Nothing was changed.')
  if (mode !== 'sandbox') refuseCommand('MODE is live: only a sandbox is removed. Nothing was changed.')
  if (!yes && !process.stdin.isTTY) refuseWords('reset asks on a terminal; elsewhere it needs --yes. Nothing was changed.')
  const [cluster, keyFolder] = [join(dataDir, 'postgres'), join(dataDir, 'keys')]
  if (!existsSync(cluster)) return say(`There is no database in ${dataDir}: the next start makes one.`)
  const claim = claimFolder(dataDir) // refuses while a gateway runs, and keeps one from starting meanwhile
  try {
    refuseUnlessSandbox(await modeOf(dataDir, embeddedUser), cluster)
    if (!yes) await confirm(`Remove ${cluster}${keys ? ` and its keys in ${keyFolder}` : ''}, with all payments in it? (yes/no) `)
    // In one step, and under a name that the next start clears away: a database that is half gone is never started.
    const aside = `${cluster}.new-${randomUUID()}`
    renameSync(cluster, aside)
    for (const name of leftovers) rmSync(join(dataDir, name), { recursive: true, force: true })
    if (keys) removeKeys(keyFolder)
    removeFolder(aside)
    say(`The database in ${dataDir} is removed${keys ? ', and its keys' : ''}: the next start begins anew.`)
  } finally {
    claim.release()
  }
}

/** Others may have put theirs beside them, which no database here needs, and another does. */
function removeKeys(folder: string): void {
  for (const path of sandboxKeyFiles(folder)) rmSync(path, { force: true })
  if (existsSync(folder) && readdirSync(folder).length === 0) rmSync(folder, { recursive: true })
}

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

/** The database says itself what it was made for; it is started for that. 'unknown': of the time before that was written. */
async function modeOf(dataDir: string, asUser: string | undefined): Promise<InstallationMode | 'unknown' | 'unused'> {
  const options = { dataDir, say: () => {}, ...(asUser !== undefined && { user: asUser }) }
  const embedded = await startEmbedded(options).catch(error =>
    refuseCommand(`${errorText(error)}\nSo nobody can tell whether it is a sandbox's. Nothing was changed.`),
  )
  const { host, port, user, database } = embedded
  const opened = connect({ host, port, user, database, ssl: false }, systemClock, () => {})
  try {
    return (await readMode(opened.work)) ?? ((await readProofs(opened.work)).length > 0 ? 'unknown' : 'unused')
  } finally {
    await opened.close()
    await embedded.stop()
  }
}

function refuseUnlessSandbox(mode: Awaited<ReturnType<typeof modeOf>>, cluster: string): void {
  if (mode === 'live') refuseCommand(`The database in ${cluster} belongs to live mode. Nothing was changed.`)
  if (mode === 'unknown')
    refuseCommand(
      `The database in ${cluster} does not say whether it is a sandbox's: start a gateway on it once. Nothing was changed.`,
    )
}

async function confirm(question: string): Promise<void> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(question)
  terminal.close()
  if (answer.trim().toLowerCase() !== 'yes') refuseCommand('Nothing was changed.')
}
