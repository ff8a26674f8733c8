// The command line: each file beside this one adds its commands.

import { Command } from 'commander'
import { outliveReaders, refuseInspector } from '../platform/errors.ts'
import acquirerHost from './acquirerHost.ts'
import acquirers from './acquirers.ts'
import audit from './audit.ts'
import cases from './cases.ts'
import chargebacks from './chargebacks.ts'
import clock from './clock.ts'
import doctor from './doctor.ts'
import endpoints from './endpoints.ts'
import keys from './keys.ts'
import listen from './listen.ts'
import merchants from './merchants.ts'
import notifications from './notifications.ts'
import trigger from './trigger.ts'

outliveReaders()
refuseInspector()
const program = new Command('tollgate').description('Works on a Tollgate gateway that runs on this machine, or on its database.')
for (const add of [
  merchants,
  clock,
  endpoints,
  notifications,
  listen,
  trigger,
  chargebacks,
  acquirers,
  cases,
  acquirerHost,
  keys,
  doctor,
  audit,
])
  add(program)
await program.parseAsync()
