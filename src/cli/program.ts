// The command line as a whole: each file beside this one adds its commands. It is looked at too, by completion and by the reference page.

import { Command } from 'commander'
import { buildNumber } from '../platform/build.ts'
import acquirerHost from './acquirerHost.ts'
import acquirers from './acquirers.ts'
import archive from './archive.ts'
import audit from './audit.ts'
import backup from './backup.ts'
import cases from './cases.ts'
import cells from './cells.ts'
import chargebacks from './chargebacks.ts'
import clock from './clock.ts'
import completion from './completion.ts'
import doctor from './doctor.ts'
import endpoints from './endpoints.ts'
import keys from './keys.ts'
import listen from './listen.ts'
import logs from './logs.ts'
import merchants from './merchants.ts'
import moves from './moves.ts'
import notifications from './notifications.ts'
import { openOtherSchemas } from './open.ts'
import { offerCells } from './overCells.ts'
import { takesOtherSchemas } from './reads.ts'
import receipts from './receipts.ts'
import report from './report.ts'
import reporting from './reporting.ts'
import reset from './reset.ts'
import restore from './restore.ts'
import retention from './retention.ts'
import returns from './returns.ts'
import schedules from './schedules.ts'
import search from './search.ts'
import slips from './slips.ts'
import staff from './staff.ts'
import token from './token.ts'
import transfers from './transfers.ts'
import trigger from './trigger.ts'
import upgradeDatabase from './upgradeDatabase.ts'

const groups = [
  merchants,
  moves,
  token,
  clock,
  endpoints,
  notifications,
  listen,
  logs,
  search,
  trigger,
  transfers,
  chargebacks,
  slips,
  returns,
  acquirers,
  cases,
  cells,
  report,
  reporting,
  acquirerHost,
  keys,
  retention,
  archive,
  backup,
  restore,
  upgradeDatabase,
  doctor,
  audit,
  receipts,
  schedules,
  staff,
  reset,
  completion,
]

export function makeProgram(): Command {
  const [build, version] = buildNumber().split('@')
  const program = new Command('tollgate')
    .description('Works on a Tollgate gateway that runs on this machine, or on its database.')
    .version(`tollgate ${version} (${build})`, '--version', 'which version this is')
    .enablePositionalOptions() // or `audit` would take the options of `audit verify`
    .exitOverride() // commands made from here on have it too: the exit codes are ours
    .configureOutput({ outputError: (text, write) => write(`${sentence(text)}\n`) })
    .addHelpText('after', '\nIt ends with 0 when all is well, 1 when it failed or found something, 2 when it was used wrongly.')
  for (const add of groups) add(program)
  program.hook('preAction', (_, action) => openOtherSchemas(takesOtherSchemas(action)))
  offerCells(program)
  return program
}

/** `error: unknown command 'lsit'\n(Did you mean list?)` → `Unknown command 'lsit': did you mean list?` */
function sentence(text: string): string {
  const [, what, near] = /^error: ([\s\S]*?)\s*(?:\(Did you mean ([\s\S]*)\?\))?\s*$/.exec(text)!
  const wrong = /^(?:option '(--[\w-]+).*|command-argument .*) is invalid(?: for argument '(\w+)')?\. ([\s\S]*)$/.exec(what!)
  if (wrong) return `${wrong[1] ?? wrong[2]} ${wrong[3]!.replace(/([^.?])$/, '$1.')}`
  // What was typed too much, or behind a name that is none, may be a secret.
  const plain = what!.replace(/( but got \d+): [\s\S]*$/, '$1').replace(/^(unknown option '[^=']*)=[\s\S]*'$/, "$1'")
  const begun = plain.charAt(0).toUpperCase() + plain.slice(1)
  if (near !== undefined) return `${begun}: did you mean ${near}?`
  return `${begun.replace(/\.$/, '')}; see \`tollgate --help\`.`
}
