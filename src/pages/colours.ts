// The shop's colour on our pages: what is written on it stays readable, and what is drawn in it stays visible (WCAG 2.2, 1.4.3 and 1.4.11).

/** Custom properties of a style sheet for a button in this colour, on paper of that colour. */
export function buttonColours(colour: string, paper: string, line: string): Readonly<Record<string, string>> {
  return {
    '--accent': colour,
    '--on-accent': readableOn(colour),
    '--button-line': contrast(colour, paper) >= 3 ? colour : line,
  }
}

/** Black or white: one of them always has a contrast above 4.5. */
const readableOn = (colour: string): '#000000' | '#ffffff' =>
  contrast(colour, '#ffffff') >= contrast(colour, '#000000') ? '#ffffff' : '#000000'

/** From 1 to 21. Both colours as #rrggbb. */
function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

/** As the guidelines define it. */
function luminance(colour: string): number {
  const [red, green, blue] = [1, 3, 5].map(at => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}
