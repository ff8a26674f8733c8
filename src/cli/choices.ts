// Options and arguments that take one of a few words, told with the nearest when they are mistyped and offered by completion; and those that take a
// number.

import { Argument, InvalidArgumentError, Option } from 'commander'
import { nearest } from '../contract/nearest.ts'

const parser = (words: readonly string[]) => (text: string) => {
  if (words.includes(text)) return text
  const near = nearest(text, words)
  throw new InvalidArgumentError(
    `must be one of ${words.join(', ')}${near === undefined ? '' : `, not ${text}: did you mean ${near}?`}`,
  )
}

export const choice = (flags: string, what: string, words: readonly string[]): Option =>
  new Option(flags, what).choices(words).argParser(parser(words))

export const argumentOf = (name: string, what: string, words: readonly string[]): Argument =>
  new Argument(name, what).choices(words).argParser(parser(words))

export const wholeNumber = (from: number, to: number) => (text: string) => {
  if (!/^\d+$/.test(text) || Number(text) < from || Number(text) > to)
    throw new InvalidArgumentError(`must be a whole number from ${from} to ${to}.`)
  return Number(text)
}
