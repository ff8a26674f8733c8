// Random numbers that a seed repeats (the generator called mulberry32).

export type Dice = {
  /** 0 up to 1. */
  roll(): number
  /** A whole number from 0 up to but without `below`. */
  whole(below: number): number
  chance(of: number): boolean
  pick<Value>(values: readonly Value[]): Value
}

export function dice(seed: number): Dice {
  let state = seed >>> 0
  const roll = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const whole = (below: number) => Math.floor(roll() * below)
  return { roll, whole, chance: of => roll() < of, pick: values => values[whole(values.length)]! }
}
