// Rows of fixed columns as the simulated bank writes them: a text at a column, from 1. It has no table in common with the gateway.

/** In ASCII, with blanks between. */
export function columns(width: number, ...parts: readonly (readonly [at: number, text: string])[]): string {
  let row = ' '.repeat(width)
  for (const [at, text] of parts) row = row.slice(0, at - 1) + text + row.slice(at - 1 + text.length)
  if (row.length !== width) throw new Error('the bank wrote beyond its row')
  return row
}

export const zeros = (value: number | string, length: number): string => String(value).padStart(length, '0')
export const blanks = (value: string, length: number): string => value.slice(0, length).padEnd(length)

/** `2026-12-01` → 01122026; '' → zeros. */
export const longDay = (day: string): string => day.replace(/(....)-(..)-(..)/, '$3$2$1') || '00000000'
/** `2026-12-01` → 011226; '' → zeros. */
export const shortDay = (day: string): string => day.replace(/..(..)-(..)-(..)/, '$3$2$1') || '000000'
