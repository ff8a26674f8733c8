// The colour of a shop: whatever it is, the text on its buttons can be read and their edges can be seen.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { buttonColours } from '../src/pages/colours.ts'

/** The contrast of two colours as the guidelines define it, written down a second time. */
function contrast(...colours: readonly [string, string]): number {
  const light = colours.map(colour => {
    const [r, g, b] = [1, 3, 5]
      .map(at => Number.parseInt(colour.slice(at, at + 2), 16) / 255)
      .map(part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)) as [number, number, number]
    return r * 0.2126 + g * 0.7152 + b * 0.0722
  })
  return (Math.max(...light) + 0.05) / (Math.min(...light) + 0.05)
}

it('is readable and visible in every shade', () => {
  const steps = Array.from({ length: 18 }, (_, at) => (at * 15).toString(16).padStart(2, '0'))
  for (const [paper, line] of [
    ['#ffffff', '#5b6877'],
    ['#1c232d', '#a3b0c0'],
  ] as const)
    for (const red of steps)
      for (const green of steps)
        for (const blue of steps) {
          const colour = `#${red}${green}${blue}`
          const made = buttonColours(colour, paper, line)
          assert.equal(made['--accent'], colour)
          assert.ok(contrast(made['--on-accent']!, colour) >= 4.5, colour)
          assert.ok(contrast(made['--button-line']!, paper) >= 3, colour)
        }
})

it('is written on in black or white, whichever can be read better', () => {
  for (const [colour, on] of [
    ['#000000', '#ffffff'],
    ['#ffffff', '#000000'],
    ['#1d5fd1', '#ffffff'],
    ['#ffee00', '#000000'],
    ['#FFEE00', '#000000'],
  ] as const)
    assert.equal(buttonColours(colour, '#ffffff', '#5b6877')['--on-accent'], on)
})
