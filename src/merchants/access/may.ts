// Who may do what, on behalf of whom: the one question that every door asks.

/** What can be asked for. A report is about a channel or a whole merchant. */
export const rightNames = ['pay', 'register', 'read', 'search', 'report', 'listen', 'moveClock'] as const
export type Action = (typeof rightNames)[number]

/** Whoever has shown who he is, and the entities for which he acts: for these and for all below them. */
export type Principal = { readonly kind: keyof typeof rights; readonly entities: readonly string[] }

// A merchant's server may do all that the interface has. What people may who sign in stands in staff/permissions.ts.
const rights = {
  token: new Set<Action>(rightNames),
} as const satisfies Readonly<Record<string, ReadonlySet<Action>>>

/** `lineage`: the entity that is meant and those above it. */
export const may = ({ kind, entities }: Principal, action: Action, lineage: readonly string[]): boolean =>
  rights[kind].has(action) && lineage.some(id => entities.includes(id))
