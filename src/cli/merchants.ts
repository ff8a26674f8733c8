// tollgate seed, list, revoke: who may call, and for whom. A token itself is never printed: only its keyed hash is stored.

import type { Command } from 'commander'
import { revokeByHand } from '../merchants/access/tokens.ts'
import { appliedText, applySeed, readSeed } from '../merchants/seed.ts'
import { readEntities, readTokens } from '../merchants/store.ts'
import { looksLikeId, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

export default (program: Command): void => {
  program
    .command('seed <file>')
    .description('apply a seed file: merchants, channels, tokens; running gateways know it at once')
    .action((file: string) =>
      withOpened(async ({ config, database, keys, clock, random, by }) => {
        const applied = await applySeed(database.work, keys, clock, random, readSeed(file, config.brandNames, config.mode), by)
        process.stdout.write(`${appliedText(applied)}\n`)
      }),
    )

  reads(program.command('list').description('list entities and access tokens'), {
    'entities[]': 'id kind parentId merchantId name settings clockOffset',
    'tokens[]': 'id label legacy entities merchantId lookupKey createdAt revokedAt',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const entities = await readEntities(database.work)
      const tokens = (await readTokens(database.work)).map(({ hash: _secret, ...token }) => token)
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
    .action((id: string) =>
      withOpened(async opened => {
        if (!looksLikeId(id)) refuseWords('A token is named by the 32 hex characters that `tollgate list` shows.')
        if (!(await revokeByHand(opened.database.work, opened, id))) refuseCommand(`There is no valid token ${id}.`)
        process.stdout.write(`Token ${id} is revoked.\n`)
      }),
    )
}

type Entities = Awaited<ReturnType<typeof readEntities>>
type Tokens = Omit<Awaited<ReturnType<typeof readTokens>>[number], 'hash'>[]

function asTables(entities: Entities, tokens: Tokens): string {
  const entityRows = entities.map(({ kind, id, parentId, name, settings }) => [
    kind,
    id,
    parentId,
    name,
    JSON.stringify(settings),
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
    table([['entity', 'id', 'parent', 'name', 'settings'], ...entityRows]),
    table([['token', 'label', 'made of', 'acts for', 'created', 'revoked'], ...tokenRows]),
  ].join('\n')
}
