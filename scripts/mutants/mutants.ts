// The planted faults, by the room of src/ where they stand. Each was once made by somebody, or is the mistake that its line invites.

import type { Mutant } from './plant.ts'
import { alertsMutants } from './rooms/alerts.ts'
import { archiveMutants } from './rooms/archive.ts'
import { auditMutants } from './rooms/audit.ts'
import { checkoutsMutants } from './rooms/checkouts.ts'
import { clearingMutants } from './rooms/clearing.ts'
import { cliMutants } from './rooms/cli.ts'
import { connectorsMutants } from './rooms/connectors.ts'
import { contractMutants } from './rooms/contract.ts'
import { httpMutants } from './rooms/http.ts'
import { merchantsMutants } from './rooms/merchants.ts'
import { notificationsMutants } from './rooms/notifications.ts'
import { pagesMutants } from './rooms/pages.ts'
import { paymentsMutants } from './rooms/payments.ts'
import { platformMutants } from './rooms/platform.ts'
import { projectMutants } from './rooms/project.ts'
import { registrationsMutants } from './rooms/registrations.ts'
import { reportingMutants } from './rooms/reporting.ts'
import { sandboxMutants } from './rooms/sandbox.ts'
import { slipsMutants } from './rooms/slips.ts'
import { staffMutants } from './rooms/staff.ts'
import { startMutants } from './rooms/start.ts'
import { vaultMutants } from './rooms/vault.ts'

/** `project`: what stands beside src/. */
export const mutantsOf: Readonly<Record<string, readonly Mutant[]>> = {
  alerts: alertsMutants,
  archive: archiveMutants,
  audit: auditMutants,
  checkouts: checkoutsMutants,
  clearing: clearingMutants,
  cli: cliMutants,
  connectors: connectorsMutants,
  contract: contractMutants,
  http: httpMutants,
  merchants: merchantsMutants,
  notifications: notificationsMutants,
  pages: pagesMutants,
  payments: paymentsMutants,
  platform: platformMutants,
  project: projectMutants,
  registrations: registrationsMutants,
  reporting: reportingMutants,
  sandbox: sandboxMutants,
  slips: slipsMutants,
  staff: staffMutants,
  start: startMutants,
  vault: vaultMutants,
}

export const mutants = Object.values(mutantsOf).flat()
