// For a name that nobody knows, the one that was probably meant. Names only: a value is never looked at.

import { type Group, groups } from './parameters/table.ts'
import type { RequestKind } from './requests.ts'

const shownMost = 10

/** The names that some unknown ones were probably meant to be. They say nothing of what was sent: that may be a secret in the place of a name. */
export const meantNames = (near: readonly string[]): string[] =>
  near.flatMap(said => /: did you mean (.*)\?$/.exec(said)?.[1] ?? []).map(name => `something like ${name}`)

/** Says of unknown names what they were probably meant to be: `amout: did you mean amount?`. What does not look like a name is left out. */
export function namesNear({ groups: taken }: Pick<RequestKind, 'groups'>): (unknown: readonly string[]) => string[] {
  const known = taken.flatMap(group => Object.keys(groups[group as Group])).map(row => ({ row, word: wordOf(row) }))
  return unknown =>
    unknown
      .filter(name => /^[A-Za-z][A-Za-z0-9_.[\]]{0,63}$/.test(name) && !/\d{3}/.test(name)) // a mistyped card number is no name, nor is `cvv_947`
      .slice(0, shownMost)
      .map(name => {
        const near = nearestOf(name, known)
        return near === undefined ? name : `${name}: did you mean ${near}?`
      })
}

/** The known name that was probably meant: at most `slips` away. */
export const nearest = (name: string, known: Iterable<string>, slips = 2): string | undefined => nearestAmong(known, slips)(name)

/** The same for many names. */
export function nearestAmong(known: Iterable<string>, slips = 2): (name: string) => string | undefined {
  const words = [...known].map(row => ({ row, word: wordOf(row) }))
  return name => (name.length > longest ? undefined : nearestOf(name, words, slips))
}

/** No name is as long, and letters are compared one by one. */
const longest = 100

/** As names are compared: what stands in brackets is free, and so is the case. */
const wordOf = (name: string): string => name.replace(/\[[^[\]]*\]/g, '[]').toLowerCase()

/** At most two slips away, and fewer in a short name. */
function nearestOf(name: string, known: readonly { row: string; word: string }[], slipsMost = 2): string | undefined {
  const sent = wordOf(name)
  const most = Math.min(slipsMost, Math.floor(sent.length / 3))
  return known
    .filter(({ word }) => Math.abs(word.length - sent.length) <= most)
    .map(({ row, word }) => ({ row, slips: slipsBetween(sent, word) }))
    .filter(({ slips }) => slips <= most)
    .sort((a, b) => a.slips - b.slips)[0]?.row
}

/** Letters to add, leave out or exchange (Levenshtein); two neighbours that changed places are one slip. */
function slipsBetween(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const swapped =
        i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1), swapped))
    }
    before = last
    last = row
  }
  return last[b.length]!
}
