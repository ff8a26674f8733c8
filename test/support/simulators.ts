// Simulators whose own address a test knows, as their gateway does and no browser: for what servers ask each other.

import { systemClock, systemRandom } from '../../src/platform/clock.ts'
import { type Simulators, startSimulators } from '../../src/sandbox/serve.ts'

/** `gateway`: whose pages and notices they belong to. Without one browsers come to their own address, and nobody hears of anything. */
export async function testSimulators(gateway?: () => { readonly baseUrl: string }): Promise<Simulators> {
  const simulators: Simulators = await startSimulators(
    systemClock,
    systemRandom,
    () => (gateway ? `${gateway().baseUrl}/simulators` : simulators.url),
    () => ({
      host: '127.0.0.1',
      port: Number(new URL(gateway?.().baseUrl ?? simulators.url).port),
      tls: false,
      hosts: { names: new Set(), followed: true },
    }),
  )
  return simulators
}
