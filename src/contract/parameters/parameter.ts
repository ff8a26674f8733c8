// One row of the parameter table: all that is known of a wire name.

import type { Format } from '../formats.ts'
import type { OwnNumber } from '../ownNumbers.ts'

export type Parameter = {
  readonly format: Format
  /** Bracketed free key of the name, as in `customParameters[name]`. */
  readonly key?: Format
  /** Returned in answers, under the same name. */
  readonly echo?: true
  /** Never stored in clear, logged, echoed, or repeated in an error. */
  readonly secret?: true
  /** A lenient channel drops a malformed value instead of failing the payment (decisions, 23). */
  readonly descriptive?: true
  /** Longer values are cut after so many code points. */
  readonly truncate?: number
  /** An empty value counts as a value; elsewhere blank means absent (decisions, 24). */
  readonly blankCounts?: true
  /** Digits that pass for a card number: `belong` here, or stand here `byChance` because others made the identifier. Absent: they are a mistake. */
  readonly cardNumbers?: 'belong' | 'byChance'
  /** Numbers with check digits of their own that belong here, of free keys under one: they are no card numbers. What stands beside them may be one. */
  readonly ownNumbers?: { readonly kinds: readonly OwnNumber[]; readonly at?: string }
  /** Kept with the payment for connectors, though not echoed. */
  readonly keep?: true
  /** When the parameter must be sent; absent = optional. */
  readonly needed?: string
  readonly note?: string
  /** Name of the parameter whose value counts when this one is absent. */
  readonly default?: string
}

export type Parameters<Name extends string = string> = Readonly<Record<Name, Parameter>>
