// What the callers of each network have of a process together, counted as it comes and goes.

import { networkShare } from '../platform/network.ts'

/** Requests whose answers are not gone, and those of them that came without a token; bytes of requests that have not begun, and bytes of answers that are not taken. */
export type NetworkCount = 'unfinished' | 'tokenless' | 'kept' | 'untaken'

/** What comes through trusted proxies is of so many callers at least: a network of its own with more than one of these has goes before. */
const callersOfProxies = 16

/** For how many addresses a network counts. */
export const shareOf = (name: string): number => (name === '' ? callersOfProxies : networkShare(name))

/** `asking`: the connections on which one of its callers asked last, those of proxies too; who came first first. */
type Circle<One> = { readonly name: string; readonly share: number; users: number; readonly asking: Set<One> } & Record<
  NetworkCount,
  number
>

export type CallerNetwork<One> = {
  /** The names of its circles. */
  readonly names: readonly string[]
  /** Itself, and those around it, the narrowest first: many are given a /56 or a /48 of IPv6. */
  readonly circles: readonly Circle<One>[]
}

export const networkName = <One>({ names }: CallerNetwork<One>): string => names[0]!

/** As much as one address has: of a wide network what it has together, by how many addresses it counts for. */
export function crowdOf<One>(network: CallerNetwork<One>, what: NetworkCount): number {
  const most = crowdedCircle(network, what)
  return most[what] / most.share
}

/** That of its circles of which this is. */
export function crowdedCircle<One>({ circles }: CallerNetwork<One>, what: NetworkCount): Circle<One> {
  return circles.reduce((most, circle) => (circle[what] / circle.share > most[what] / most.share ? circle : most))
}

export type Networks<One> = {
  /** By the names of its circles, the narrowest first; kept until everybody has left who has joined. */
  join(names: readonly string[]): CallerNetwork<One>
  leave(network: CallerNetwork<One>): void
  add(network: CallerNetwork<One>, what: NetworkCount, by: number): void
  /** Of all networks. */
  sum(what: NetworkCount): number
  all(): Iterable<CallerNetwork<One>>
}

export function countNetworks<One>(): Networks<One> {
  const circles = new Map<string, Circle<One>>()
  const networks = new Map<string, CallerNetwork<One>>()
  const sums = nothing()

  function circleOf(name: string): Circle<One> {
    const found = circles.get(name)
    if (found) return found
    const circle = { name, share: shareOf(name), users: 0, asking: new Set<One>(), ...nothing() }
    circles.set(name, circle)
    return circle
  }

  return {
    join(names) {
      const [name] = names as readonly [string]
      const network = networks.get(name) ?? { names, circles: names.map(circleOf) }
      networks.set(name, network)
      for (const circle of network.circles) circle.users++
      return network
    },
    leave(network) {
      for (const circle of network.circles) if (--circle.users === 0) circles.delete(circle.name)
      if (network.circles[0]!.users === 0) networks.delete(networkName(network))
    },
    add(network, what, by) {
      sums[what] += by
      for (const circle of network.circles) circle[what] += by
    },
    sum: what => sums[what],
    all: () => networks.values(),
  }
}

const nothing = (): Record<NetworkCount, number> => ({ unfinished: 0, tokenless: 0, kept: 0, untaken: 0 })
