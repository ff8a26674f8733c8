// A file as others send it, row by row. Pure.

/** Without the mark that some programs put first, and whatever ends the last row. */
export function rowsOf(text: string): string[] {
  const rows = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  if (rows.at(-1) === '') rows.pop()
  return rows
}
