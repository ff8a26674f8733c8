// A planted fault: one line of the product, changed so that it does harm. The tests that it names must fail while it stands.

export type Mutant = {
  /** What goes wrong. */
  readonly name: string
  readonly file: string
  /** Stands in the file exactly once: else the fault has gone stale. */
  readonly find: string
  readonly instead: string
  /** Files of test/, without `.test.ts`. */
  readonly tests: readonly string[]
  /** Why no test can see it, for a fault that is known to survive: `because …`. */
  readonly survives?: string
}

/** The text of the file with the fault in it; undefined when it is stale. */
export function planted({ find, instead }: Mutant, text: string): string | undefined {
  const parts = text.split(find)
  return parts.length === 2 ? parts.join(instead) : undefined
}
