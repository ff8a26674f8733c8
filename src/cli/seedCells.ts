// A seed over all cells: each merchant into the cell that has it, PSP, divisions and what acts for them into every one.

import { appliedText, applySeed, doubledIds, entitiesOf, readSeed, seedWhere, takenIds } from '../merchants/seed.ts'
import { readEntities } from '../merchants/store.ts'
import { readMap, renewMap } from '../start/cellMap.ts'
import { cellOfName, readCells } from '../start/cells.ts'
import { isAtHome } from '../start/moves/claims.ts'
import { listMoves } from '../start/moves/store.ts'
import { openCells, silentText } from './eachCell.ts'
import { refuseCommand } from './open.ts'

/** `newIn`: the cell of merchants that are in none. */
export async function seedOverCells(file: string, cellsFile: string, newIn: string | undefined): Promise<void> {
  const cells = readCells(cellsFile)
  if (newIn !== undefined) cellOfName(cells, newIn)
  const { opened, silent } = await openCells(cells)
  try {
    const first = opened[0]?.parts.config
    if (!first) return refuseCommand(silent.map(silentText).join('').trim())
    const seed = readSeed(file, first.brandNames, first.mode)
    const rows = new Set<string>()
    const entities: { id: string; cell: string; isGroup: boolean; isServed: boolean }[] = []
    for (const { cell, parts } of opened) {
      const moves = new Map((await listMoves(parts.database.work)).map(move => [move.merchantId, move]))
      for (const { id, merchantId } of await readEntities(parts.database.work)) {
        const move = moves.get(merchantId ?? '')
        rows.add(id)
        if (isAtHome(move)) entities.push({ id, cell: cell.name, isGroup: merchantId === null, isServed: move?.here !== false })
      }
    }
    const mapped = readMap(cells.map)
    const homesOf = (isServed: boolean) =>
      entities.filter(one => !one.isGroup && one.isServed === isServed).map(({ id, cell }) => [id, cell] as const)
    const serving = homesOf(true)
    const served = new Set(serving.map(one => one.join()))
    /** Of several that serve it, the one that the map names; one that does not answer may have it. */
    const isKept = (id: string, line: string | undefined) =>
      line !== undefined && (served.has([id, line].join()) || silent.some(({ cell }) => cell === line))
    // Who is refused in a cell for a time is in another one where that serves it. A map may be older than a move, and than a cell's name.
    const homes = new Map([...homesOf(false), ...mapped, ...serving.filter(([id]) => !isKept(id, mapped.get(id)))])
    /** A cell that answers and has nothing of whom the map leads there, though another has: it was put back to before that merchant came. */
    const hasLost = (id: string, home: string) =>
      opened.some(({ cell }) => cell.name === home) && rows.has(id) && !entities.some(one => one.id === id && one.cell === home)
    for (const { id, isGroup } of entities) if (isGroup) homes.delete(id) // groups go into every cell
    const given = entitiesOf(seed)
    const wrong = doubledIds(given)
    for (const { cell, parts } of opened) {
      const there = new Map((await readEntities(parts.database.work)).map(row => [row.id, row]))
      wrong.push(...takenIds(given, there).map(sentence => `${cell.name}: ${sentence}`))
    }
    for (const merchant of (seed.divisions ?? []).flatMap(({ merchants }) => merchants ?? [])) {
      const home = homes.get(merchant.id) ?? newIn
      if (home === undefined) wrong.push(`The merchant ${merchant.id} is in no cell: name one with --cell.`)
      else if (!cells.cells.some(({ name }) => name === home))
        wrong.push(`The merchant ${merchant.id} is in ${home} by the map, and the cells file names no such cell.`)
      else if (hasLost(merchant.id, home))
        wrong.push(
          `The merchant ${merchant.id} is in ${home} by the map, which does not have it: \`tollgate cells check\` says what to do.`,
        )
      else if (!homes.has(merchant.id) && silent.length > 0)
        wrong.push(`The merchant ${merchant.id} may be in a cell that does not answer.`)
      else {
        homes.set(merchant.id, home)
        for (const { id } of merchant.channels ?? []) {
          const taken = homes.get(id)
          if (taken === undefined && silent.length > 0) wrong.push(`The channel ${id} may be in a cell that does not answer.`)
          else if (taken !== undefined && taken !== home && silent.some(({ cell }) => cell === taken))
            wrong.push(`${taken}: channel ${id}: the id is taken there; an entity does not move.`)
          else homes.set(id, home)
        }
      }
    }
    if (wrong.length > 0) return refuseCommand([...silent.map(one => silentText(one).trim()), ...wrong].join('\n'))
    for (const { cell, parts } of opened) {
      const { database, keys, clock, random, by, channelRefusal: refusal } = parts
      const elsewhere = new Set([...homes].flatMap(([id, home]) => (home === cell.name ? [] : [id])))
      const own = seedWhere(
        seed,
        id => (homes.get(id) ?? cell.name) === cell.name,
        () => true, // it is looked for where it is applied
      )
      const applied = await applySeed(database.work, keys, clock, random, own, { by, refusal, elsewhere })
      process.stdout.write(`${cell.name}: ${appliedText(applied)}\n`)
      if (applied.left.length > 0) process.exitCode = 1
    }
    for (const one of silent) process.stderr.write(silentText(one))
    const { lines, wrong: conflicts } = await renewMap(cells)
    process.stdout.write(`${cells.map} has ${lines} lines.\n`)
    for (const conflict of conflicts) process.stderr.write(`${conflict}\n`)
    if (silent.length + conflicts.length > 0) process.exitCode = 1
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}
