// What pages need of a process.

import type { CheckoutParts } from '../checkouts/parts.ts'
import type { HttpParts } from '../http/parts.ts'
import type { BuiltForm } from './form/build.ts'

export type PageParts = HttpParts &
  CheckoutParts & {
    /** The scripts of the payment form that this process serves. */
    readonly builtForm: BuiltForm
    /** What goes along from a page to the next: a sandbox's switches. `query`: that of the page. */
    readonly passOn?: (url: string, query: string) => string
  }
