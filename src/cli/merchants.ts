// tollgate seed, list, revoke: who may call, and for whom. A token itself is never printed: only its keyed hash is stored.

import type { Command } from 'commander'
import { revokeByHand } from '../merchants/access/tokens.ts'
import { appliedText, applySeed, readSeed } from '../merchants/seed.ts'
import { type EntityRow, readEntities, readTokens } from '../merchants/store.ts'
import { listMoves } from '../start/moves/store.ts'
import { looksLikeId, refuseCommand, refuseWords, runCommand, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'
import { likeTokens, revokeOverCells } from './revokeCells.ts'
import { seedOverCells } from './seedCells.ts'
import { maySpanCells } from './spanning.ts'

export default (program: Command): void => {
  program
    .command('seed <file>')
    .description('apply a seed file: merchants, channels, tokens; running gateways know it at once')
    .option('--cells <file>', 'to the cells of this file: each merchant to the one that has it')
    .option('--cell <name>', 'where merchants go that are in no cell yet')
    .action((file: string, { cells, cell }: { cells?: string; cell?: string }) => {
      if (cells !== undefined) return runCommand(() => seedOverCells(file, cells, cell))
      return withOpened(async ({ config, database, keys, clock, random, by, channelRefusal: refusal }) => {
        const seed = readSeed(file, config.brandNames, config.mode)
        const applied = await applySeed(database.work, keys, clock, random, seed, { by, refusal })
        process.stdout.write(`${appliedText(applied)}\n`)
        if (applied.left.length > 0) process.exitCode = 1
      })
    })

  reads(program.command('list').description('list entities and access tokens'), {
    'entities[]': 'id kind parentId merchantId name settings clockOffset movedTo',
    'tokens[]': 'id label legacy entities merchantId lookupKey createdAt revokedAt',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const movedTo = new Map(
        (await listMoves(database.work))
          .filter(({ state }) => state === 'moved' || state === 'forgetting')
          .map(one => [one.merchantId, one.other]),
      )
      const entities = (await readEntities(database.work)).map(one => ({
        ...one,
        movedTo: movedTo.get(one.merchantId ?? '') ?? null,
      }))
      const tokens = (await readTokens(database.work)).map(({ hash: _secret, routeHash: _route, ...token }) => token)
      const document = {
        entities,
        tokens: tokens.map(token => ({
          ...token,
          createdAt: timeField(token.createdAt),
          revokedAt: timeField(token.revokedAt),
        })),
      }
      show(options, document, () => asTables(entities, tokens))
    }),
  )

  program
    .command('revoke <id>')
    .description('revoke an access token by its id, at once and for good')
    .option('--cells <file>', 'in all cells of this file, whatever its id is there')
    .action((id: string, { cells }: { cells?: string }) => {
      const check = () => looksLikeId(id) || refuseWords('A token is named by the 32 hex characters that `tollgate list` shows.')
      if (cells !== undefined) return runCommand(async () => check() && (await revokeOverCells(id, cells)))
      return withOpened(async opened => {
        check()
        if (!(await revokeByHand(opened.database.work, opened, id))) refuseCommand(`There is no valid token ${id}.`)
        process.stdout.write(`Token ${id} is revoked.\n`)
        const [token] = await readTokens(opened.database.work, { ids: [id] })
        for (const like of await likeTokens(opened, [token!])) {
          process.stdout.write(
            `Token ${like.id} (${like.label}) may be the same, under another lookup key: if it is, \`tollgate revoke ${like.id}\` revokes it.\n`,
          )
          process.exitCode = 1
        }
        if (await maySpanCells(opened.database.work, token!.entities))
          process.stdout.write(`Other cells may have it: \`tollgate revoke ${id} --cells FILE\` revokes it in all.\n`)
      })
    })
}

type Entities = readonly (EntityRow & { readonly movedTo: string | null })[]
type Tokens = Omit<Awaited<ReturnType<typeof readTokens>>[number], 'hash' | 'routeHash'>[]

function asTables(entities: Entities, tokens: Tokens): string {
  const entityRows = entities.map(({ kind, id, parentId, name, settings, movedTo }) => [
    kind,
    id,
    parentId,
    name,
    JSON.stringify(settings),
    movedTo,
  ])
  const tokenRows = tokens.map(({ id, label, legacy, entities, createdAt, revokedAt }) => [
    id,
    label,
    legacy ? 'user id and password' : 'token',
    entities.join(' '),
    timeText(createdAt),
    timeText(revokedAt),
  ])
  return [
    table([['entity', 'id', 'parent', 'name', 'settings', 'moved to'], ...entityRows]),
    table([['token', 'label', 'made of', 'acts for', 'created', 'revoked'], ...tokenRows]),
  ].join('\n')
}
