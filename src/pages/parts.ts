// What pages need of a process.

import type { HttpParts } from '../http/parts.ts'

export type PageParts = HttpParts & {
  /** What goes along from a page to the next: a sandbox's switches. `query`: that of the page. */
  readonly passOn?: (url: string, query: string) => string
}
