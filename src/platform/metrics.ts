// Figures for the operator. Every room declares its own; every label has few values: never an id or a URL. To count costs no more than a sum, because nobody
// may ever ask; scrape.ts reads them.

export type FigureLabels = Readonly<Record<string, string | number>>
/** `part`: which line of a histogram the value is. */
export type FigureValue = readonly [labels: FigureLabels, value: number, part?: 'bucket' | 'sum' | 'count']

export type Figure = {
  /** Counters and histograms only grow while the process runs. */
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly name: string
  readonly help: string
  /** What the figures of several processes make together; their sum when absent. */
  readonly across?: 'sum' | 'min' | 'max'
  /** As it is now; read at every scrape. */
  read(): readonly FigureValue[]
}

/** Figures that the database is asked for at a scrape, and that are read after that. */
export type Measure = { readonly name: string; readonly figures: readonly Figure[]; measure(): Promise<void> }

/** A gauge without labels. */
export const gauge = (name: string, help: string, value: () => number): Figure => ({
  kind: 'gauge',
  name,
  help,
  read: () => [[{}, value()]],
})

/** A figure that only grows, one for each value of its label. `known`: those that are told from the beginning, so that the first one is seen as a change. */
export function countBy<Label extends string>(
  figures: Figure[],
  name: string,
  help: string,
  label: string,
  known: readonly Label[] = [],
): (value: Label) => void {
  const counts = new Map(known.map(value => [value, 0]))
  figures.push({
    kind: 'counter',
    name,
    help,
    read: () => [...counts].map(([value, count]) => [{ [label]: value }, count]),
  })
  return value => void counts.set(value, (counts.get(value) ?? 0) + 1)
}

/** From a millisecond, which a read from memory takes, to the half minute after which nobody waits any more. */
export const secondsBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

/** How often a value was how large, for each of some values of its labels: counts by fixed bounds, and the sum. */
export function distribution<Label extends string>(
  figures: Figure[],
  name: string,
  help: string,
  labels: readonly Label[],
  bounds: readonly number[] = secondsBounds,
): (value: number, ...labelled: string[]) => void {
  /** By the values of the labels: a count for each bound, one for what is above them all, the sum. */
  const series = new Map<string, Float64Array>()
  figures.push({
    kind: 'histogram',
    name,
    help,
    read: () =>
      [...series].flatMap(([key, counts]) => {
        const values = key.split('\n')
        const of = Object.fromEntries(labels.map((label, at) => [label, values[at]!]))
        let below = 0
        return [
          ...[...bounds, '+Inf'].map((le, at): FigureValue => {
            below += counts[at]!
            return [{ ...of, le }, below, 'bucket']
          }),
          [of, counts[bounds.length + 1]!, 'sum'],
          [of, below, 'count'],
        ] satisfies FigureValue[]
      }),
  })
  return (value, ...labelled) => {
    const key = labelled.join('\n')
    let counts = series.get(key)
    if (!counts) {
      counts = new Float64Array(bounds.length + 2)
      series.set(key, counts)
    }
    let at = 0
    while (at < bounds.length && value > bounds[at]!) at++
    counts[at]!++
    counts[bounds.length + 1]! += value
  }
}
