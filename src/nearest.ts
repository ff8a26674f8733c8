// What somebody may have meant by a name that nobody knows.

/** The known name that differs least, when it differs by little; undefined when none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Math.max(1, Math.floor(name.length / 3)) + 1
  for (const one of known) {
    const far = distance(name.toLowerCase(), one.toLowerCase(), least)
    if (far < least) [best, least] = [one, far]
  }
  return best
}

/** How many letters must be put in, taken out or replaced, or swapped with their neighbour; not counted beyond `most`. */
function distance(a: string, b: string, most: number): number {
  if (Math.abs(a.length - b.length) >= most) return most
  let [before, row]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)]
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1), swapped)
    }
    ;[before, row] = [row, next]
  }
  return row[b.length]!
}
