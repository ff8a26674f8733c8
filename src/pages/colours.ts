// The shop's colour on our pages: what is written on it stays readable, and what is drawn in it stays visible (WCAG 2.2, 1.4.3 and 1.4.11).

import { contrast, textOn } from './form/browser/colours.ts'

/** Custom properties of a style sheet for a button in this colour, on paper of that colour. */
export function buttonColours(colour: string, paper: string, line: string): Readonly<Record<string, string>> {
  return {
    '--accent': colour,
    '--on-accent': textOn(colour),
    '--button-line': contrast(colour, paper) >= 3 ? colour : line,
  }
}
