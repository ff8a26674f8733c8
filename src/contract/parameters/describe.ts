// A row of the parameter table in words, for people: what OpenAPI and the reference page say beside the format.

import type { Parameter } from './parameter.ts'

/** `Required for cards.`, `Optional.` */
export const needOf = ({ needed }: Parameter): string => (needed === undefined ? 'Optional.' : `Required ${needed}.`)

/** What happens to a value that is good: echo, truncation, blank, default. One sentence each. */
export function effectsOf({ echo, keep, secret, truncate, blankCounts, cardNumbers, default: otherwise }: Parameter): string[] {
  const sentences: (string | false | undefined)[] = [
    truncate !== undefined && `Cut after ${truncate} characters.`,
    blankCounts && 'An empty value counts as a value.',
    otherwise !== undefined && `When absent, ${otherwise} counts.`,
    cardNumbers === 'byChance' && 'An identifier: what passes for a card number is kept unless the channel says otherwise.',
    echo && 'Returned in the answer.',
    !echo && keep && 'Not returned.',
    secret && 'Secret: never returned, logged or stored in clear.',
  ]
  return sentences.filter(sentence => typeof sentence === 'string')
}

/** All of it in one line: format, condition, note, effects. */
export function describe(parameter: Parameter): string {
  const { format, note } = parameter
  const label = format.label.charAt(0).toUpperCase() + format.label.slice(1)
  return [`${label}.`, needOf(parameter), ...(note === undefined ? [] : [note]), ...effectsOf(parameter)].join(' ')
}
