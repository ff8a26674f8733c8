// Reports as files for spreadsheets: RFC 4180, a heading, amounts with a dot. Pure.

type CsvCell = string | number | undefined

/** A row with its line end. What a spreadsheet would take for a formula is made text, and what it would take for the end of a cell, in whichever country, is quoted;
 * numbers stay numbers. */
export const csvRow = (cells: readonly CsvCell[]): string =>
  `${cells.map(cell => quoted(plainCell(String(cell ?? '')))).join(',')}\r\n`

const plainCell = (text: string): string => (/^-?\d+(\.\d+)?$/.test(text) ? text : text.replace(formulas, "'$&"))

/** Also inside a cell: whoever parts at `;` or a tab sees no quote at the beginning of ours, so that each part of it is a cell of its own there. Blanks before it, and what nobody sees, some leave out. */
const formulas = /^[\t\r\n]|(?<=^|[;\t\r\n])["\p{Zs}\p{Cf}]*[=+\-@＝＋－＠]/gu

const quoted = (text: string): string => (/[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Columns by their names, each with what it takes of a record. */
export type Columns<Item> = Readonly<Record<string, (item: Item) => CsvCell>>

/** The row of an item. */
export const csvOf = <Item>(columns: Columns<Item>, item: Item): string => csvRow(Object.values(columns).map(take => take(item)))

/** Items as they come, some at a time. */
export type Portions<Item> = AsyncIterable<readonly Item[]> | readonly (readonly Item[])[]

/** A file's lines: its heading, then a row for each record. */
export async function* csvFile<Item>(columns: Columns<Item>, items: Portions<Item>): AsyncGenerator<string> {
  yield csvRow(Object.keys(columns))
  for await (const portion of items) yield portion.map(item => csvOf(columns, item)).join('')
}
