// The connectors and methods of a process, put together from its configuration.

import { transfer, transferMethod } from '../connectors/bankTransfer/transfer.ts'
import { withThreeDSecure } from '../connectors/cards/threeDSecure/authenticate.ts'
import { authenticationAlone } from '../connectors/cards/threeDSecure/authenticationAlone.ts'
import type { Requestor } from '../connectors/cards/threeDSecure/build.ts'
import { type DirectoryServer, directoryServer } from '../connectors/cards/threeDSecure/directory.ts'
import { figuresOfDirectories } from '../connectors/cards/threeDSecure/metrics.ts'
import type { Connector, Mode } from '../connectors/connector.ts'
import type { Connectors, Method, Methods } from '../connectors/registry.ts'
import { type SlipParts, slipMethods, slips } from '../connectors/slips/slip.ts'
import type { Transport } from '../connectors/transport.ts'
import { wallet, walletMethod } from '../connectors/wallet/paypal.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Figure } from '../platform/metrics.ts'
import type { ClientTls } from '../platform/tls.ts'
import { cardSimulator } from '../sandbox/cards.ts'
import { simulatorCredentials } from '../sandbox/wallet/paypal.ts'
import type { Network } from './assemble.ts'
import type { Config } from './config.ts'

const modes: readonly Mode[] = ['internal', 'external', 'live']

export function makeConnectors(
  config: Config,
  { acquirers, simulators, transport }: Network,
  clock: Clock,
  random: Random,
  log: Log,
  slipParts: Pick<SlipParts, 'numbers' | 'publicUrl'>,
): { connectors: Connectors; methods: Methods; figures: readonly Figure[] } {
  const connectors = new Map<string, Connector>()
  const add = (connector: Connector) => connectors.set(connector.name, connector)

  const directories = new Map<Mode, DirectoryServer>()
  for (const mode of modes) {
    const given =
      mode === 'internal' ? simulators && { url: `${simulators.url}/ds`, requestor: sandboxRequestor } : config.directories[mode]
    if (!given) continue
    const directory = directoryServer({
      requestor: given.requestor,
      url: () => given.url,
      httpsOnly: mode === 'live',
      transport: transportTo(transport, mode === 'internal' ? undefined : config.directories[mode]?.tls),
      clock,
      random,
      log,
    })
    directories.set(mode, directory)
    add(withThreeDSecure(authenticationAlone(mode), directory))
  }
  const cards = (mode: Mode, connector: Connector) => {
    add(withThreeDSecure(connector, directories.get(mode)))
  }
  cards('internal', cardSimulator(clock.sleep))

  for (const connector of acquirers) cards(connector.name === 'cards live' ? 'live' : 'external', connector)

  const methods = new Map<string, Method>()
  for (const mode of modes) {
    const settings = mode === 'internal' ? simulators && sandboxWallet(simulators) : config.wallets[mode]
    if (!settings) continue
    add(wallet(mode, () => settings, transportTo(transport, mode === 'internal' ? undefined : config.wallets[mode]?.tls)))
  }
  methods.set(walletMethod.brand, walletMethod)
  for (const method of config.redirectMethods) methods.set(method.brand, transferMethod(method))
  for (const mode of modes) {
    if (mode === 'internal' && !simulators) continue
    if (config.redirectMethods.some(({ endpoints }) => endpoints[mode]))
      add(transfer(mode, config.redirectMethods, () => simulators?.url ?? '', transport))
  }
  for (const method of slipMethods(config.slips)) methods.set(method.brand, method)
  for (const mode of modes)
    if ([...config.slips.values()].some(account => account.modes.includes(mode)))
      add(slips(mode, { ...slipParts, accounts: config.slips, random }))
  return { connectors, methods, figures: figuresOfDirectories(directories) }
}

/** With the partner's own certificates, if it has any. */
const transportTo =
  (transport: Transport, tls: ClientTls | undefined): Transport =>
  (request, signal) =>
    transport({ ...request, ...(tls && { tls }) }, signal)

const sandboxRequestor: Requestor = {
  id: 'tollgate-sandbox',
  name: 'Tollgate sandbox',
  url: 'https://tollgate.example/',
  referenceNumber: 'TOLLGATE-3DS-SERVER',
  acquirerBin: '400000',
  acquirerMerchantId: 'SANDBOX',
  merchantCountryCode: '276',
  mcc: '5999',
}

const sandboxWallet = ({ url, publicUrl }: NonNullable<Network['simulators']>) => ({
  endpoint: `${url}/wallet/nvp`,
  get checkout() {
    return `${publicUrl()}/wallet/checkout`
  },
  credentials: { default: simulatorCredentials },
})
