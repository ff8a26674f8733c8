// Endpoints of a test gateway: made and activated by the functions that the command line uses, on the gateway's database.

import type pg from 'pg'
import {
  activateEndpoint,
  createEndpoint,
  type EndpointParts,
  type NewEndpoint,
} from '../../src/notifications/endpoints/endpoint.ts'
import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import type { Database } from '../../src/platform/database/connect.ts'
import { caller } from '../../src/platform/egress/call.ts'
import { resolver } from '../../src/platform/egress/resolve.ts'
import { readConfig } from '../../src/start/config.ts'
import { sandbox, testKeys } from './gateway.ts'

export function endpointParts(pool: pg.Pool): EndpointParts {
  const { egress } = readConfig({}, '/nonexistent')
  return {
    clock: systemClock,
    random: systemRandom,
    keys: testKeys,
    database: { work: pool } as unknown as Database,
    egress,
    call: caller(systemClock, egress, resolver()),
  }
}

export type TestEndpoint = { readonly id: string; readonly secret: string }

/** An active endpoint of the sandbox's merchant. */
export async function addEndpoint(pool: pg.Pool, wanted: Partial<NewEndpoint> & { url: string }): Promise<TestEndpoint> {
  const parts = endpointParts(pool)
  const made = await createEndpoint(parts, { merchantId: sandbox.merchantId, kind: 'webhook', ...wanted })
  if ('refused' in made) throw new Error(made.refused)
  const called = await activateEndpoint(parts, made.endpoint.merchantId, made.endpoint.id, Date.now())
  if ('refused' in called || !(called.status! >= 200 && called.status! < 300))
    throw new Error(`the test notification failed: ${JSON.stringify(called)}`)
  return { id: made.endpoint.id, secret: made.secret }
}
