// A file as others send it, row by row. Pure.

/** More than an acquirer has lines for in a day; rows that hold nothing cost memory too. */
export const rowsMost = 500_000

/** Without the mark that some programs put first, and whatever ends the last row. Undefined for more rows than a file may have. */
export function rowsOf(text: string): string[] | undefined {
  const rows = text.replace(/^\uFEFF/, '').split(/\r?\n/, rowsMost + 2)
  if (rows.at(-1) === '') rows.pop()
  return rows.length > rowsMost ? undefined : rows
}

export const tooManyRows = `it has more than ${rowsMost} lines: ask for it in several files`
