// How many there are of each, by name.

/** Returns how many there are now. Counts of nothing are forgotten. */
export function addTo(counts: Map<string, number>, name: string, by: number): number {
  const sum = (counts.get(name) ?? 0) + by
  if (sum === 0) counts.delete(name)
  else counts.set(name, sum)
  return sum
}
