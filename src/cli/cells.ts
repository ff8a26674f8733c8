// tollgate cells: the map and the configuration of the proxy before several cells, and whether the cells agree with each other.

import type { Command } from 'commander'
import { amountText } from '../contract/amounts.ts'
import { isValidAt } from '../merchants/store.ts'
import { systemClock } from '../platform/clock.ts'
import { type CellContents, cellMapOf, moveFindings, readMap, renewMap, type Surveyed, survey } from '../start/cellMap.ts'
import { type Cells, cellOfName, readCells } from '../start/cells.ts'
import { lostText } from '../start/moves/claims.ts'
import { type Returned, settleRestored } from '../start/moves/restored.ts'
import { type ProxyOptions, proxyConfiguration, standardLimits } from '../start/proxy.ts'
import { wholeNumber } from './choices.ts'
import { openServingCells, silentText } from './eachCell.ts'
import { refuseCommand, runCommand, timeText } from './open.ts'
import { type ReadOptions, reads, show } from './reads.ts'

type CellsOption = { readonly cells: string }
type RestoredOptions = ReadOptions & CellsOption & { readonly cell: string; readonly serve?: readonly string[] }

export default (program: Command): void => {
  const cells = program.command('cells').description('several installations beside each other, each with merchants of its own')

  reads(
    cells
      .command('map')
      .description(
        'write the map that the proxy routes by, and have it read; ends with 1 when a cell did not answer, one id is in several, or a cell of the map is not named',
      )
      .requiredOption('--cells <file>', 'the cells file')
      .option('--without <cell...>', 'take out the lines of these, which the file names no more'),
    { '': 'lines changed wrong absent', 'silent[]': 'cell why' },
  ).action((options: ReadOptions & CellsOption & { readonly without?: readonly string[] }) =>
    runCommand(async () => {
      const given = readCells(options.cells)
      const named = options.without?.find(name => given.cells.some(cell => cell.name === name))
      if (named !== undefined) refuseCommand(`${options.cells} names ${named}: take it out there first. Nothing was changed.`)
      const renewed = await renewMap(given, options.without)
      show(options, renewed, () =>
        [
          ...renewed.silent.map(silentText),
          ...renewed.wrong.map(sentence => `${sentence}\n`),
          ...renewed.absent.map(name => `${given.map} had no line of ${name}: there was nothing to take out.\n`),
          `${given.map} ${renewed.changed ? 'is written' : 'stands as it should'}: ${renewed.lines} lines.\n`,
        ].join(''),
      )
      if (renewed.silent.length + renewed.wrong.length > 0) process.exitCode = 1
    }),
  )

  reads(
    cells
      .command('check')
      .description(
        'whether the cells have the same mode, keys, schema and tokens, and the map says where everybody is; ends with 1 when not',
      )
      .requiredOption('--cells <file>', 'the cells file'),
    { '': 'findings', 'cells[]': 'cell merchants' },
  ).action((options: ReadOptions & CellsOption) =>
    runCommand(async () => {
      const document = await check(readCells(options.cells))
      const { findings } = document
      const end =
        findings.length === 0 ? 'The cells agree with each other, and the map with them.' : `${findings.length} findings.`
      show(options, document, () => [...findings, end].map(line => `${line}\n`).join(''))
      if (findings.length > 0) process.exitCode = 1
    }),
  )

  reads(
    cells
      .command('restored')
      .description(
        'after a cell was put back to an earlier moment: ask the others who has left it since, and take those away there; ends with 1 when somebody has to decide',
      )
      .requiredOption('--cells <file>', 'the cells file')
      .requiredOption('--cell <name>', 'the cell that was put back')
      .option(
        '--serve <merchantId...>',
        'serve these there as they are, though another cell has sent them back since, or had them and was put back itself',
      ),
    {
      '': 'served',
      'left[]': 'merchantId to',
      'held[]': 'merchantId why',
      'twice[]': 'merchantId paymentId what paymentType amount currency',
      'lost[]': 'merchantId from to why',
      'returned[]': 'merchantId from accounts',
      'silent[]': 'cell why',
    },
  ).action((options: RestoredOptions) => runCommand(() => settleCell(options)))

  cells
    .command('proxy')
    .description('print the configuration of an HAProxy before the cells')
    .requiredOption('--cells <file>', 'the cells file')
    .option('--bind <address>', 'where it listens', ':443')
    .option('--certificate <file>', 'the certificate with its key, as HAProxy reads them; without it the proxy speaks plain HTTP')
    .option('--connections <count>', 'at a time, of all together', wholeNumber(100, 1_000_000), standardLimits.connections)
    .option(
      '--per-network <count>',
      'of these from one address of IPv4 or one /48 of IPv6; 0 = no limits by network, for a proxy that stands behind a balancer',
      wholeNumber(0, 1_000_000),
      standardLimits.perNetwork,
    )
    .option(
      '--reload-socket <path>',
      "a unix socket of the proxy's own, in a folder that nobody else may write to, by which a reload keeps whose servers are merchants'",
    )
    .action(({ cells: file, ...options }: CellsOption & ProxyOptions) =>
      runCommand(async () => void process.stdout.write(proxyConfiguration(readCells(file), options))),
    )
}

async function settleCell(options: RestoredOptions): Promise<void> {
  const { cells: file, cell: name, serve = [] } = options
  const given = readCells(file)
  cellOfName(given, name)
  const { opened, silent } = await openServingCells(given)
  try {
    const sides = opened.map(({ cell, parts }) => ({ ...parts, name: cell.name }))
    const own = sides.find(one => one.name === name)
    if (!own) refuseCommand(silent.map(silentText).join('').trim())
    const others = sides.filter(one => one !== own)
    const mapped = readMap(given.map)
    const settled = await settleRestored({ own, others, silent: silent.map(({ cell }) => cell), mapped, serve })
    const { left, served, held, twice, lost, returned } = settled
    const asMoney = (amount: number | null, currency: string | null) =>
      amount === null ? '' : ` ${amountText(amount)} ${currency}`
    show(options, { served, left, held, twice, lost, returned, silent }, () =>
      [
        ...silent.map(one => silentText(one).trim()),
        ...left.map(
          ({ merchantId, to }) =>
            `The merchant ${merchantId} is in ${to}: ${name} serves it no more, and does nothing of its due work.`,
        ),
        ...(served.length > 0 ? [`${served.length} merchants are served by ${name} as before.`] : []),
        ...returned.map(one => returnedText(name, one)),
        ...held.map(({ merchantId, why }) => `The merchant ${merchantId} is refused: ${why}.`),
        ...lost.map(lostText),
        ...twice.map(
          ({ merchantId, paymentId, what, paymentType, amount, currency }) =>
            `The payment ${paymentId} (${paymentType}${asMoney(amount, currency)}) of the merchant ${merchantId} was ${what} in ${name}, and not by the cell that has the merchant: decide what becomes of it.`,
        ),
        ...(left.length + served.length + held.length + twice.length + lost.length + returned.length === 0
          ? [`Nobody has left ${name} but by its own word.`]
          : []),
      ]
        .map(line => `${line}\n`)
        .join(''),
    )
    if (silent.length + held.length + twice.length + lost.length > 0) process.exitCode = 1
  } finally {
    for (const { parts } of opened) await parts.close()
  }
}

function returnedText(name: string, { merchantId, from, accounts }: Returned): string {
  const slips =
    accounts.length === 0
      ? ''
      : ` Slips that ${from} has issued since are with shoppers: their numbers must be passed over with \`tollgate slips skip\`, of ${accounts.join(', ')}.`
  return `The merchant ${merchantId} is served by ${name} as it was when it left: what ${from} did for it is lost. \`tollgate cells map\` leads requests there.${slips}`
}

async function check(given: Cells) {
  const surveyed = await survey(given)
  const written = readMap(given.map)
  const { lines, wrong } = cellMapOf(surveyed, written)
  const silent = [...surveyed].flatMap(([cell, why]) =>
    typeof why === 'string' ? [`The cell ${cell} does not answer: ${why}.`] : [],
  )
  const unsure = [...surveyed].flatMap(([cell, one]) =>
    typeof one === 'string' || one.unsure === undefined
      ? []
      : [`The cell ${cell} serves nobody, as far as can be told: ${one.unsure}.`],
  )
  const astray = [...new Set([...lines.keys(), ...written.keys()])].filter(key => lines.get(key) !== written.get(key)).length
  const toWrite = astray === 0 ? [] : [`${astray} lines of ${given.map} are not what the cells say: run \`tollgate cells map\`.`]
  const cells = [...surveyed].map(([cell, one]) => ({
    cell,
    merchants: typeof one === 'string' ? null : one.entities.filter(({ kind }) => kind === 'merchant').length,
  }))
  return {
    cells,
    findings: [
      ...silent,
      ...unsure,
      ...wrong,
      ...moveFindings(surveyed),
      ...differencesOf(surveyed),
      ...tokenDifferencesOf(surveyed, systemClock.real()),
      ...toWrite,
    ],
  }
}

/** Tokens that several cells have and not with the same end or not for the same; and those that a cell lacks for whose merchants they act. */
export function tokenDifferencesOf(surveyed: Surveyed, now: number): string[] {
  const rows = [...surveyed].flatMap(([cell, one]) =>
    typeof one === 'string' ? [] : (one.known ?? []).map(token => ({ cell, token })),
  )
  return ofOneToken(rows).flatMap(same => {
    const [{ token: first }] = same as [(typeof same)[number]]
    const inCells = [...Map.groupBy(same, ({ cell }) => cell).keys()]
    const actsFor = (cell: string) => [...new Set(same.flatMap(row => (row.cell === cell ? row.token.entities : [])))]
    const isDifferent = (of: (token: typeof first) => string) => new Set(same.map(({ token }) => of(token))).size > 1
    const endOf = (token: typeof first) => {
      if (token.revokedAt === null) return 'valid'
      return isValidAt(token, now) ? `valid until ${timeText(token.revokedAt)} UTC` : 'ended'
    }
    const acting = new Set(same.flatMap(({ token }) => (isValidAt(token, now) ? token.entities : [])))
    const lacking = [...surveyed].flatMap(([cell, one]) =>
      typeof one !== 'string' &&
      !inCells.includes(cell) &&
      one.entities.some(({ id, merchantId }) => merchantId !== null && acting.has(id))
        ? [cell]
        : [],
    )
    const ends = same.map(({ cell, token }) => `${endOf(token)} in ${cell}`).join(', ')
    return [
      ...(isDifferent(endOf)
        ? [`The token ${first.id} (${first.label}) is ${ends}: \`tollgate revoke ${first.id} --cells FILE\` ends it in all.`]
        : []),
      ...lacking.map(
        cell =>
          `The token ${first.id} (${first.label}) acts for a merchant of ${cell}, which does not have it: seed it over all.`,
      ),
      ...(new Set(inCells.map(cell => actsFor(cell).sort().join())).size > 1 && same.some(({ token }) => isValidAt(token, now))
        ? [`The token ${first.id} (${first.label}) does not act for the same in ${inCells.join(', ')}: seed it over all.`]
        : []),
    ]
  })
}

type KnownToken = { readonly cell: string; readonly token: NonNullable<CellContents['known']>[number] }

/** Rows of one token together. One that was used since the lookup key changed has another hash than where it was not: what a proxy knows it by is the same, or its id where a move brought it. */
function ofOneToken(rows: readonly KnownToken[]): KnownToken[][] {
  const groups = new Map<string, KnownToken[]>()
  for (const row of rows) {
    const same = [...new Set([...namesOf(row).flatMap(name => groups.get(name) ?? []), row])]
    for (const name of same.flatMap(namesOf)) groups.set(name, same)
  }
  return [...new Set(groups.values())]
}

const namesOf = ({ token: { id, hash, routeHash } }: KnownToken): string[] => [
  `id ${id}`,
  `hash ${hash.toString('hex')}`,
  ...(routeHash === null ? [] : [`route ${routeHash}`]),
]

/** Where a cell is not as the first that answered. Groups need not be in every cell. */
function differencesOf(surveyed: Surveyed): string[] {
  const [first, ...others] = [...surveyed].flatMap(([cell, one]) => (typeof one === 'string' ? [] : [{ cell, ...one }]))
  if (!first) return []
  const groups = new Map<string, string>()
  const differs = [first, ...others].flatMap(({ entities }) =>
    entities.flatMap(({ id, kind, merchantId, parentId, name, settings }) => {
      if (merchantId !== null) return []
      const as = JSON.stringify([kind, parentId, name, Object.entries(settings).sort()])
      const before = groups.get(id)
      groups.set(id, before ?? as)
      return before === undefined || before === as ? [] : [`The ${kind} ${id} is not the same in all cells: seed it over all.`]
    }),
  )
  const alike = others.flatMap(other =>
    (Object.keys(first.alike) as (keyof typeof first.alike)[])
      .filter(what => other.alike[what] !== first.alike[what])
      .map(what => `The cell ${other.cell} has not the ${what} of ${first.cell}.`),
  )
  return [...alike, ...new Set(differs)]
}
