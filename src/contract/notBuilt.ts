// Parts of the interface that this gateway knows and does not have yet, by the beginning of their paths (decisions, 59).

import type { ResultName } from './results/results.ts'

const parts: readonly (readonly [paths: RegExp, name: ResultName])[] = [
  [/^\/v\d\/secureRegistrations(\/|$)/, 'secureReadNotBuilt'],
  [/^\/v\d\/exemption(\/|$)/, 'exemptionNotBuilt'],
  [/^\/scheduling(\/|$)/, 'schedulesNotBuilt'],
  [/^\/paybylink(\/|$)/, 'linksNotBuilt'],
]

/** The refusal of a path that is known and leads nowhere yet; undefined for any other path. */
export const notBuilt = (path: string): ResultName | undefined => parts.find(([paths]) => paths.test(path))?.[1]
