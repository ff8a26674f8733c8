// The bars of slips as widths in modules: bar, space, bar, space … Pure. Interleaved 2 of 5 for banks, Code 128 in pairs of digits for stores.
// Sources: ISO/IEC 16390 and 15417.

export type Symbology = 'interleaved2of5' | 'code128'

/** Which of a digit's five elements are wide. */
const wideOf = ['00110', '10001', '01001', '11000', '00101', '10100', '01100', '00011', '10010', '01010']
const wide = 3

/** The code of a pair of digits; 105 begins, 106 ends. */
const code128 =
  `212222 222122 222221 121223 121322 131222 122213 122312 132212 221213 221312 231212 112232 122132 122231 113222 123122 123221 223211 221132
   221231 213212 223112 312131 311222 321122 321221 312212 322112 322211 212123 212321 232121 111323 131123 131321 112313 132113 132311 211313
   231113 231311 112133 112331 132131 113123 113321 133121 313121 211331 231131 213113 213311 213131 311123 311321 331121 312113 312311 332111
   314111 221411 431111 111224 111422 121124 121421 141122 141221 112214 112412 122114 122411 142112 142211 241211 221114 413111 241112 134111
   111242 121142 121241 114212 124112 124211 411212 421112 421211 212141 214121 412121 111143 111341 131141 114113 114311 411113 411311 113141
   114131 311141 411131 211412 211214 211232 2331112`.split(/\s+/)
const [start, stop] = [105, 106]

/** An even number of digits. */
export function barsOf(kind: Symbology, digits: string): number[] {
  const pairs = digits.match(/\d\d/g) ?? []
  if (digits.length === 0 || pairs.length * 2 !== digits.length) throw new Error('bars are made of pairs of digits')
  return kind === 'code128' ? code128Bars(pairs.map(Number)) : interleavedBars(pairs)
}

/** Of each pair the first digit is in the bars, the second in the spaces. */
function interleavedBars(pairs: readonly string[]): number[] {
  const width = (digit: string, at: number) => (wideOf[Number(digit)]![at] === '1' ? wide : 1)
  const elements = pairs.flatMap(([bars, spaces]) => [0, 1, 2, 3, 4].flatMap(at => [width(bars!, at), width(spaces!, at)]))
  return [1, 1, 1, 1, ...elements, wide, 1, 1]
}

function code128Bars(values: readonly number[]): number[] {
  const check = values.reduce((sum, value, at) => sum + value * (at + 1), start) % 103
  return [start, ...values, check, stop].flatMap(value => [...code128[value]!].map(Number))
}

export const modulesOf = (bars: readonly number[]): number => bars.reduce((sum, width) => sum + width, 0)

/** Where each bar begins, and how wide it is, in modules. */
export function barPlaces(bars: readonly number[]): [from: number, width: number][] {
  let from = 0
  return bars.flatMap((width, at): [number, number][] => {
    from += width
    return at % 2 === 0 ? [[from - width, width]] : []
  })
}
