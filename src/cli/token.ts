// tollgate token create, rotate: makes access tokens, shown once or written to a file. A token never stands in the arguments, which everybody on
// the machine sees. It is handed over before it becomes valid, so that whatever dies in between, nobody is left without a valid token.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, realpathSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { makeToken, type NewToken, tokenByChance, tokenRefusals } from '../merchants/access/tokens.ts'
import { isValidAt, readTokens } from '../merchants/store.ts'
import { isUnknown } from '../platform/database/errors.ts'
import { alone } from '../platform/database/locks.ts'
import { OperatorError } from '../platform/errors.ts'
import { duration } from '../sandbox/clock.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { freeText } from './freeText.ts'
import { type CommandParts, looksLikeId, readSecret, refuseCommand, refuseWords, timeText, withOpened } from './open.ts'
import { printOnce } from './output.ts'
import { maySpanCells } from './spanning.ts'

type Outlet = { readonly output?: string }
type TokenOptions = Outlet & { readonly entity: string[]; readonly label: string; readonly tokenFile?: string }
type RotateOptions = Outlet & { readonly grace: string }

const outputOption = ['--output <file>', 'write it to this file, which nobody else may read, instead of printing it'] as const
const say = (sentence: string) => void process.stderr.write(`${sentence}\n`)

export default (program: Command): void => {
  const token = program.command('token').description('access tokens, made and changed one by one')

  token
    .command('create')
    .description('makes an access token, which is printed this once; running gateways know it at once')
    .requiredOption('--entity <id...>', 'for which it acts, and for all below: a PSP, division, merchant or channel')
    .option('--label <name>', 'what operators know it by', 'token')
    .option(...outputOption)
    .option('--token-file <path>', 'a token that callers know already: a file that holds it, or - for standard input')
    .action(({ entity, label, output, tokenFile }: TokenOptions) =>
      withOpened(async opened => {
        const entities = [...new Set(entity)]
        for (const id of entities) if (!looksLikeId(id)) refuseWords('--entity must be 32 lower-case hex characters.')
        const wanted = { label: freeText(opened, '--label', label, 100), entities }
        if (await maySpanCells(opened.database.work, entities))
          refuseCommand(
            `A token for ${entities.join(', ')} would be in this cell alone: seed it with \`tollgate seed FILE --cells FILE\`.`,
          )
        if (tokenFile !== undefined) {
          if (output !== undefined) refuseWords('--output is for a token that is made here, --token-file for one that is there.')
          const { id } = await makeToken(opened.database.work, opened, { ...wanted, sent: readSecret(tokenFile, '--token-file') })
          return say(`Token ${id} acts for ${entities.join(', ')}.`)
        }
        await handOver(opened, wanted, output)
      }),
    )

  token
    .command('rotate <id>')
    .description('makes a token for the same entities, which is printed this once, and revokes the old one')
    .option('--grace <duration>', 'so long the old one stays valid beside it, for example 30m, 24h or 7d', '0s')
    .option(...outputOption)
    .action((id: string, { grace, output }: RotateOptions) =>
      withOpened(async opened => {
        if (!looksLikeId(id)) refuseWords('A token is named by the 32 hex characters that `tollgate list` shows.')
        const milliseconds = duration(grace) ?? refuseWords('--grace must be a number and ms, s, m, h or d, for example 24h.')
        const [old] = await readTokens(opened.database.work, { ids: [id] })
        if (!old) return refuseCommand(`There is no token ${id}.`)
        if (await maySpanCells(opened.database.work, old.entities))
          refuseCommand(
            `Other cells may have the token ${id}, which acts for ${old.entities.join(', ')}: seed the new one with \`tollgate seed FILE --cells FILE\`, and then \`tollgate revoke ${id} --cells FILE\`.`,
          )
        if (old.legacy) say('The old one was user id and password; the new one is an access token alone.')
        await handOver(opened, { label: old.label, entities: old.entities, follows: { id, grace: milliseconds } }, output)
      }),
    )
}

/** Out first, valid then. Two commands that name one file have it one after the other. */
async function handOver(opened: CommandParts, wanted: Omit<NewToken, 'sent'>, output: string | undefined): Promise<void> {
  if (output === undefined) return makeAndTell(opened, wanted, undefined)
  await alone(opened.database.work, `file of a token ${placeOf(output)}`, () => makeAndTell(opened, wanted, output))
}

/** The same for each way to write it. */
function placeOf(path: string): string {
  const whole = resolve(path)
  try {
    return join(realpathSync(dirname(whole)), basename(whole))
  } catch {
    return whole // nothing will be written there
  }
}

async function makeAndTell(opened: CommandParts, wanted: Omit<NewToken, 'sent'>, output: string | undefined): Promise<void> {
  const db = opened.database.work
  const [pending, ...older] = output === undefined ? [] : pendingsOf(opened.keys, output)
  // One whose path is that of a folder is there, however it is written.
  if (output !== undefined && existsSync(resolve(output)))
    refuseCommand(`${output} is there already: take it away, or name another file.`)
  if (output !== undefined) for (const one of [pending!, ...older]) if (await finished(opened, wanted, one, output)) return
  const token = { ...wanted, sent: tokenByChance(opened.random) }
  const refusals = await tokenRefusals(db, opened.keys, token)
  if (refusals.length > 0) refuseCommand(refusals.join('\n'))
  await (output === undefined ? printOnce(token.sent, 'The token') : write(pending!, token.sent, output))
  const { id, precedentEndsAt } = await makeToken(db, opened, token).catch((error: Error) => {
    if (isUnknown(error))
      throw new OperatorError(
        `${error.message}\nNobody knows whether the token was made: ${output === undefined ? 'look at the last one of `tollgate list`, and revoke it, or keep what stands above' : 'give the same command again'}.${wanted.follows ? ' If it was, the one before ends as asked.' : ''}`,
      )
    if (output !== undefined) rmSync(pending!)
    throw new OperatorError(
      `${error.message}\nNothing was changed${output === undefined ? ': the token above is not valid' : ''}.`,
    )
  })
  if (output !== undefined) renameSync(pending!, resolve(output))
  tell(id, wanted, output, precedentEndsAt)
}

function tell(id: string, { entities, follows }: Omit<NewToken, 'sent'>, output: string | undefined, endsAt: number | undefined) {
  say(`Token ${id} acts for ${entities.join(', ')}${output === undefined ? '; it is not shown again' : ` and is in ${output}`}.`)
  if (follows)
    say(`Token ${follows.id} ${follows.grace === 0 ? 'is revoked' : `is valid until ${timeText(endsAt ?? null)} UTC`}.`)
}

/**
 * Where a token stands before it is valid: beside its file, under a longer name that nobody else chooses and the next run finds, also when the lookup key was
 * changed; the newest first.
 */
export function pendingsOf(keys: Keys, output: string): string[] {
  const place = placeOf(output)
  return keyedHashes(keys, 'file of a token', place).map(hash =>
    join(dirname(place), `.${basename(place)}.${hash.toString('hex', 0, 16)}`),
  )
}

/** An earlier run was killed after the token had become valid: then what is left to do is its last step. */
async function finished(
  { database, keys, clock }: CommandParts,
  wanted: Omit<NewToken, 'sent'>,
  pending: string,
  output: string,
): Promise<boolean> {
  if (!existsSync(pending)) return false
  const hashes = keyedHashes(keys, 'token', readFileSync(pending, 'utf8').trim())
  const tokens = await readTokens(database.work, { hashes, ids: wanted.follows ? [wanted.follows.id] : [] })
  const found = tokens.find(token => isValidAt(token, clock.real()) && hashes.some(hash => hash.equals(token.hash)))
  if (!found) return false
  const old = tokens.find(({ id }) => id === wanted.follows?.id)
  const isMeant = found.label === wanted.label && String(found.entities) === String(wanted.entities)
  if (!isMeant || (old && old.revokedAt === null))
    refuseCommand(`${pending} holds the valid token ${found.id} of an earlier command: take it away, or revoke it, first.`)
  renameSync(pending, resolve(output))
  say('An earlier run was ended before its last step, which is done now.')
  tell(found.id, wanted, output, old?.revokedAt ?? undefined)
  return true
}

function write(path: string, token: string, output: string): void {
  try {
    rmSync(path, { force: true }) // what an earlier run left: it never became valid
    const file = openSync(path, 'wx', 0o600)
    writeSync(file, `${token}\n`)
    fsyncSync(file)
    closeSync(file)
  } catch (error) {
    refuseCommand(`${output} cannot be written (${(error as NodeJS.ErrnoException).code}). Nothing was changed.`)
  }
}
