// How many there are of each, by name.

/** Counts of nothing are forgotten. */
export function addTo(counts: Map<string, number>, name: string, by: number): void {
  const sum = (counts.get(name) ?? 0) + by
  if (sum === 0) counts.delete(name)
  else counts.set(name, sum)
}
