// From flat wire names to the nested structures of an answer. A free key `__proto__` is data; the steps before it are names of the table.

export type Nested = { [key: string]: NestedValue }
export type NestedValue = string | Nested | NestedValue[]

// Plain objects: JSON.stringify takes three times as long for objects without a prototype.
export const emptyNested = (): Nested => ({})

/** Puts a value where its path says: `['cart', 'items', 0, 'name']`. Lists must be filled in any order but without gaps in the end. */
export function put(into: Nested, path: readonly (string | number)[], value: NestedValue): void {
  // An array and a map are filled alike; only the kind of the next step decides which of them is made.
  type Container = { [step: string | number]: NestedValue }
  let here = into as Container
  for (let at = 0; at < path.length - 1; at++) {
    const step = path[at]!
    const next = here[step]
    if (next === undefined || typeof next === 'string') here[step] = typeof path[at + 1] === 'number' ? [] : emptyNested()
    here = here[step] as Container
  }
  const last = path.at(-1)!
  if (last === '__proto__') Object.defineProperty(here, last, { value, enumerable: true, writable: true, configurable: true })
  else here[last] = value
}
