// Colours of shops: whether a text is black or white on them, and which variables of a shop's style the form takes over.

const bright = (part: number): number => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)

/** The relative luminance of `#rrggbb` (WCAG 2.2). */
function luminance(colour: string): number {
  const part = (at: number) => bright(Number.parseInt(colour.slice(at, at + 2), 16) / 255)
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

/** Black or white, whichever can be read on the colour: one of them always has a contrast of 4.5 or more. */
export const textOn = (colour: string): string => (luminance(colour) > 0.179 ? '#000000' : '#ffffff')

/** The contrast of two colours, 1 to 21. */
export function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

const colour = /^#[0-9a-f]{6}$/i
const length = /^(0|\d{1,2}(\.\d{1,2})?(px|rem|em))$/

/** The variables that a shop may set, each with what its value must look like. */
export const variables: Readonly<Record<string, RegExp>> = {
  '--wpwl-color-primary': colour,
  '--wpwl-color-background': colour,
  '--wpwl-color-field': colour,
  '--wpwl-color-text': colour,
  '--wpwl-color-border': colour,
  '--wpwl-color-error': colour,
  '--wpwl-border-radius': length,
  '--wpwl-spacing': length,
  '--wpwl-font-size': /^(1[3-9]|2[0-4])px$/,
  '--wpwl-font-family':
    /^(system-ui|sans-serif|serif|monospace|Arial|Helvetica|Verdana|Georgia)(, ?(sans-serif|serif|monospace))?$/,
}
