// Concurrent rows ride together: while one statement commits, the next batch gathers. Nobody waits for a timer,
// and each row is confirmed only after its own commit.

export type GroupCommit<Row, Outcome> = (row: Row) => Promise<Outcome>

export const batchMax = 128

/**
 * `write` stores a batch and returns one outcome per row, in order. When a batch fails, its rows are tried one by one,
 * so that one bad row fails alone. `key` sorts a batch: two processes then lock in the same order.
 */
export function groupCommit<Row, Outcome>(options: {
  write(rows: readonly Row[]): Promise<readonly Outcome[]>
  key(row: Row): string
}): GroupCommit<Row, Outcome> {
  type Waiting = { row: Row; key: string; done(outcome: Outcome): void; failed(error: unknown): void }
  let waiting: Waiting[] = []
  let writing = false

  async function drain(): Promise<void> {
    writing = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax).sort((a, b) => (a.key < b.key ? -1 : 1))
      waiting = waiting.slice(batchMax)
      await attempt(batch)
    }
    writing = false
  }

  async function attempt(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await options.write(batch.map(({ row }) => row))
      batch.forEach(({ done }, at) => {
        done(outcomes[at]!)
      })
    } catch (error) {
      if (batch.length === 1) batch[0]!.failed(error)
      else for (const one of batch) await attempt([one])
    }
  }

  return row =>
    new Promise((done, failed) => {
      waiting.push({ row, key: options.key(row), done, failed })
      // The batch closes after the current turn of the event loop, so that requests read together commit together.
      if (!writing) {
        writing = true
        setImmediate(drain)
      }
    })
}

/** Statement sizes are few, so that each is prepared once: 1, 2, 4 … 128. */
export const quantised = (count: number): number => 2 ** Math.ceil(Math.log2(Math.max(count, 1)))

/** Remembers the text of each size: it is long, and the same text again is also compared fast. */
export function perSize(text: (size: number) => string): (size: number) => string {
  const texts = new Map<number, string>()
  return size => {
    const known = texts.get(size) ?? text(size)
    texts.set(size, known)
    return known
  }
}

/** `($1::uuid,$2::text),($3,$4)` for a number of rows; the casts of the first row type the columns. */
export function valuesList(casts: readonly string[], rows: number): string {
  const width = casts.length
  return Array.from(
    { length: rows },
    (_, row) => `(${casts.map((cast, column) => `$${row * width + column + 1}${row === 0 ? `::${cast}` : ''}`).join(',')})`,
  ).join(',')
}
