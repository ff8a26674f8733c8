// A token revoked in all cells. It may have another id in each, where each was given it by a seed: what it is known by is its hash. After a change of the lookup key a
// user id with password may have another one in each cell too, and nothing tells then for certain that it is the same: what may be is named.

import { mayBeOneOf, revokeByHand } from '../merchants/access/tokens.ts'
import { readElsewhere, readTokens, type TokenRow } from '../merchants/store.ts'
import { isElsewhere } from '../platform/database/elsewhere.ts'
import { readCells } from '../start/cells.ts'
import { readMove } from '../start/moves/store.ts'
import { openCells, silentText } from './eachCell.ts'
import { type CommandParts, refuseCommand } from './open.ts'

/** What became of it in a cell: a sentence, and whether that is its end there. */
type TokenEnd = { readonly text: string; readonly isOver: boolean }

export async function revokeOverCells(id: string, file: string): Promise<void> {
  const { opened, silent } = await openCells(readCells(file))
  try {
    const same: TokenRow[] = []
    for (const { parts } of opened) same.push(...(await readTokens(parts.database.work, { ids: [id] })))
    const [named] = same
    const ended = new Map<string, TokenEnd>()
    // Twice: a move that was copying it has copied it by then, and what one cell knows it by may find it in another.
    for (const _ of ['once', 'again'])
      for (const { cell, parts } of opened)
        for (const token of await sameTokens(parts, same)) {
          same.push(token)
          const known = ended.get(token.id + cell.name)
          if (!known || token.revokedAt === null) ended.set(token.id + cell.name, await revokeIn(parts, cell.name, token))
        }
    for (const { cell, parts } of opened)
      for (const { id, label } of await likeTokens(parts, same)) {
        const text = `${cell.name}: Token ${id} (${label}) may be the same, under another lookup key: if it is, \`tollgate revoke ${id} --cells FILE\` revokes it.`
        ended.set(id + cell.name, { text, isOver: false })
      }
    for (const { text } of ended.values()) process.stdout.write(`${text}\n`)
    for (const one of silent) process.stderr.write(silentText(one))
    if (!named) refuseCommand(`No cell that answers has a token ${id}.`)
    if (silent.length > 0 || [...ended.values()].some(({ isOver }) => !isOver)) process.exitCode = 1
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}

const sameTokens = ({ database }: CommandParts, same: readonly TokenRow[]): Promise<TokenRow[]> =>
  readTokens(database.work, {
    hashes: same.map(({ hash }) => hash),
    routeHashes: same.flatMap(({ routeHash }) => (routeHash === null ? [] : [Buffer.from(routeHash, 'hex')])),
  })

/** What may be one of these that were revoked. */
export async function likeTokens({ database, clock }: CommandParts, ended: readonly TokenRow[]): Promise<TokenRow[]> {
  const tokens = await readTokens(database.work, { entities: ended.flatMap(({ entities }) => entities) })
  const elsewhere = new Set<string | null>(await readElsewhere(database.work)) // they are told of where they are served
  return mayBeOneOf(tokens, ended, clock.real()).filter(({ merchantId }) => !elsewhere.has(merchantId))
}

async function revokeIn(parts: CommandParts, cell: string, { id, merchantId }: TokenRow): Promise<TokenEnd> {
  try {
    const isNew = await revokeByHand(parts.database.work, parts, id)
    return { text: `${cell}: Token ${id} ${isNew ? 'is revoked' : 'was revoked before'}.`, isOver: true }
  } catch (error) {
    if (!isElsewhere(error)) throw error
    const move = merchantId === null ? undefined : await readMove(parts.database.work, merchantId)
    return move && ['moved', 'forgetting'].includes(move.state)
      ? { text: `${cell}: Token ${id} is of a merchant who has moved to ${move.other}.`, isOver: true }
      : { text: `${cell}: Token ${id} is of a merchant who is on its way: give the command again.`, isOver: false }
  }
}
