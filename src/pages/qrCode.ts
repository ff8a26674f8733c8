// QR codes of texts (ISO/IEC 18004): as bytes, with level M, in the smallest version that holds them. Written here, because whoever knows an address may
// have one drawn: it takes less time than the page around it.

import { type Html, trusted } from './html.ts'

/** Black on what is behind it, with no margin: the page gives it a white one of four modules or more. */
export function qrCode(text: string): Html {
  const code = qrModules(text)
  const path = darkRuns(code)
    .map(([left, top, wide]) => `M${left} ${top}h${wide}v1h-${wide}z`)
    .join('')
  return trusted(`<svg viewBox="0 0 ${code.size} ${code.size}" shape-rendering="crispEdges"><path d="${path}"/></svg>`)
}

/** Row by row, 1 where it is dark. */
export type QrModules = { readonly size: number; readonly modules: Uint8Array }

/** Where the dark modules stand that are beside each other in a row, and how many they are. */
export function darkRuns({ size, modules }: QrModules): [left: number, top: number, wide: number][] {
  const runs: [number, number, number][] = []
  for (let top = 0; top < size; top++)
    for (let left = 0; left < size; left++) {
      const from = left
      while (left < size && modules[top * size + left]) left++
      if (left > from) runs.push([from, top, left - from])
    }
  return runs
}

/** Throws when the text has more than 2331 bytes. */
export function qrModules(text: string): QrModules {
  const bytes = Buffer.from(text)
  const version = versions.find(one => dataOf(one) >= bytes.length + headOf(one))
  if (!version) throw new Error('the text is too long for a QR code')
  const { size, modules, isFree } = frameOf(version)
  const bits = Buffer.concat(codewords(version, bytes))
  let at = 0
  for (const place of placesOf(size)) if (isFree[place]) modules[place] = (bits[at >> 3]! >> (7 - (at++ & 7))) & 1
  const masked = masks.map((flips, mask) => {
    const own = modules.slice()
    for (let top = 0, place = 0; top < size; top++)
      for (let left = 0; left < size; left++, place++) if (isFree[place] && flips(left, top)) own[place]! ^= 1
    drawFormat(own, size, mask)
    return { size, modules: own }
  })
  const penalties = masked.map(penalty)
  return masked[penalties.indexOf(Math.min(...penalties))]!
}

type CodeVersion = {
  readonly number: number
  readonly size: number
  readonly codewords: number
  readonly blocks: number
  readonly checks: number
}

/** Blocks of each version at level M, and how many codewords of each block are checks. */
const blocksOf =
  '1 1 1 2 2 4 4 4 5 5 5 8 9 9 10 10 11 13 14 16 17 17 18 20 21 23 25 26 28 29 31 33 35 37 38 40 43 45 47 49'.split(' ')
const checksOf = '10 16 26 18 24 16 18 22 22 26 30 22 22 24 24 28 28 26 26 26 26'.split(' ')

const versions: readonly CodeVersion[] = blocksOf.map((blocks, at) => {
  const size = 21 + 4 * at
  const free = size ** 2 - frameModules(at + 1)
  return { number: at + 1, size, codewords: free >> 3, blocks: Number(blocks), checks: Number(checksOf[at] ?? 28) }
})

/** Finders with their white and the format, timing, alignment (of which some cross the timing), version. */
function frameModules(version: number): number {
  const aligned = alignmentsOf(version).length
  const alignments = aligned === 0 ? 0 : (aligned ** 2 - 3) * 25 - 2 * (aligned - 2) * 5
  return 3 * 64 + 31 + 2 * (1 + 4 * version) + alignments + (version < 7 ? 0 : 36)
}

/** The middles of alignment patterns, in both directions. */
function alignmentsOf(version: number): number[] {
  if (version === 1) return []
  const count = Math.floor(version / 7) + 2
  const step = version === 32 ? 26 : 2 * Math.floor((4 * version + 2 * count + 1) / (2 * count - 2))
  return [6, ...Array.from({ length: count - 1 }, (_, at) => 10 + 4 * version - step * (count - 2 - at))]
}

const dataOf = ({ codewords, blocks, checks }: CodeVersion): number => codewords - blocks * checks

/** Bytes of what stands around the text: what it is (4 bits), its length (8 bits or 16), its end (4 bits). */
const headOf = ({ number }: CodeVersion): number => (number < 10 ? 2 : 3)

/** In the order in which they are placed: the first of each block, the second of each, …, then their checks so. */
function codewords(version: CodeVersion, bytes: Buffer): Uint8Array[] {
  const { blocks, checks } = version
  const length = bytes.length.toString(16).padStart(2 * headOf(version) - 2, '0')
  const written = Buffer.from(`4${length}${bytes.toString('hex')}0`, 'hex')
  const data = Buffer.alloc(dataOf(version), '\xec\x11', 'latin1')
  // What fills it up begins anew behind the text.
  data.copyWithin(written.length, 0, data.length - written.length)
  written.copy(data)
  const short = Math.floor(data.length / blocks)
  const shortBlocks = blocks - (data.length % blocks)
  const parts = Array.from({ length: blocks }, (_, at) => {
    const from = at * short + Math.max(0, at - shortBlocks)
    return data.subarray(from, from + short + (at < shortBlocks ? 0 : 1))
  })
  return [
    interleaved(parts, short + 1),
    interleaved(
      parts.map(part => checkOf(part, checks)),
      checks,
    ),
  ]
}

const interleaved = (parts: readonly Uint8Array[], most: number): Uint8Array =>
  Uint8Array.from(Array.from({ length: most }, (_, at) => parts.flatMap(part => (at < part.length ? [part[at]!] : []))).flat())

/** Powers of 2 in the field of 256, modulo x⁸ + x⁴ + x³ + x² + 1, and which power a value is. */
const powers = new Uint8Array(255)
const powerOf = new Uint8Array(256)
for (let power = 0, value = 1; power < 255; power++) {
  powers[power] = value
  powerOf[value] = power
  value = (value << 1) ^ (value > 127 ? 0x11d : 0)
}
const times = (one: number, other: number): number =>
  one === 0 || other === 0 ? 0 : powers[(powerOf[one]! + powerOf[other]!) % 255]!

/** The remainder of Reed and Solomon's division. */
function checkOf(data: Uint8Array, checks: number): Uint8Array {
  const divisor = divisorOf(checks)
  const rest = new Uint8Array(checks)
  for (const byte of data) {
    const factor = byte ^ rest[0]!
    rest.copyWithin(0, 1)
    rest[checks - 1] = 0
    for (let at = 0; at < checks; at++) rest[at]! ^= times(divisor[at]!, factor)
  }
  return rest
}

/** (x - 2⁰)(x - 2¹)… without its first factor, which is 1. */
function divisorOf(checks: number): Uint8Array {
  const divisor = new Uint8Array(checks)
  divisor[checks - 1] = 1
  for (let root = 0; root < checks; root++)
    for (let at = 0; at < checks; at++) divisor[at] = times(divisor[at]!, powers[root]!) ^ (divisor[at + 1] ?? 0)
  return divisor
}

/** All that is the same whatever the text is, and where its bits may stand. */
function frameOf({ number, size }: CodeVersion): QrModules & { readonly isFree: Uint8Array } {
  const modules = new Uint8Array(size ** 2)
  const isFree = new Uint8Array(size ** 2).fill(1)
  const put = (left: number, top: number, isDark: boolean): void => {
    if (left < 0 || top < 0 || left >= size || top >= size) return
    modules[top * size + left] = Number(isDark)
    isFree[top * size + left] = 0
  }
  /** Rings around a middle. */
  const square = (left: number, top: number, reach: number, isDark: (ring: number) => boolean): void => {
    for (let x = -reach; x <= reach; x++)
      for (let y = -reach; y <= reach; y++) put(left + x, top + y, isDark(Math.max(Math.abs(x), Math.abs(y))))
  }
  for (let at = 0; at < size; at++) {
    put(6, at, at % 2 === 0)
    put(at, 6, at % 2 === 0)
  }
  const middles = alignmentsOf(number)
  const end = size - 7
  for (const left of middles)
    for (const top of middles)
      if (![`6 6`, `6 ${end}`, `${end} 6`].includes(`${left} ${top}`)) square(left, top, 2, ring => ring !== 1)
  for (const [left, top] of [
    [3, 3],
    [size - 4, 3],
    [3, size - 4],
  ] as const)
    square(left, top, 4, ring => ring !== 2 && ring !== 4)
  for (const [left, top] of formatPlaces(size).flat()) put(left, top, false)
  put(8, size - 8, true)
  if (number >= 7) {
    const bits = (number << 12) | remainder(number << 12, 0x1f25)
    for (let at = 0; at < 18; at++) {
      const [far, near] = [size - 11 + (at % 3), Math.floor(at / 3)]
      put(far, near, ((bits >> at) & 1) === 1)
      put(near, far, ((bits >> at) & 1) === 1)
    }
  }
  return { size, modules, isFree }
}

/** Of the 15 bits that name level and mask, the lowest first, the two places of each. */
const formatPlaces = (size: number): (readonly [left: number, top: number])[][] =>
  Array.from({ length: 15 }, (_, at) => [
    at < 6 ? [8, at] : at < 8 ? [8, at + 1] : at === 8 ? [7, 8] : [14 - at, 8],
    at < 8 ? [size - 1 - at, 8] : [8, size - 15 + at],
  ])

/** Level M is 00. */
function drawFormat(modules: Uint8Array, size: number, mask: number): void {
  const bits = ((mask << 10) | remainder(mask << 10, 0x537)) ^ 0x5412
  for (const [at, places] of formatPlaces(size).entries())
    for (const [left, top] of places) modules[top * size + left] = (bits >> at) & 1
}

/** Of a division of polynomials whose coefficients are bits. */
function remainder(value: number, divisor: number): number {
  const over = Math.clz32(divisor) - Math.clz32(value)
  return over < 0 ? value : remainder(value ^ (divisor << over), divisor)
}

/** Up and down in columns of two, from the right, past the column of the timing. */
function* placesOf(size: number): Generator<number> {
  let isUp = true
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5
    for (let at = 0; at < size; at++) {
      const row = (isUp ? size - 1 - at : at) * size
      yield row + right
      yield row + right - 1
    }
    isUp = !isUp
  }
}

const masks: readonly ((left: number, top: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  x => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
]

/** What scanners stumble over: long runs, squares of one colour, what looks like a finder, much more of one colour. */
function penalty({ size, modules }: QrModules): number {
  let [sum, dark] = [0, 0]
  for (let at = 0; at < size; at++) {
    sum += linePenalty(modules, at * size, 1, size) + linePenalty(modules, at, size, size)
    for (let left = 0; left < size; left++) {
      const place = at * size + left
      const own = modules[place]!
      dark += own
      const hasNext = left < size - 1 && at < size - 1
      if (hasNext && own === modules[place + 1] && own === modules[place + size] && own === modules[place + size + 1]) sum += 3
    }
  }
  return sum + 10 * Math.floor(Math.abs(dark * 20 - size ** 2 * 10) / size ** 2)
}

function linePenalty(modules: Uint8Array, from: number, step: number, size: number): number {
  let [sum, run, seen] = [0, 0, 0]
  for (let at = 0; at < size + 4; at++) {
    const own = at < size ? modules[from + at * step]! : 0 // white is around it
    run = at > 0 && own === (seen & 1) ? run + 1 : 1
    if (at < size) sum += run === 5 ? 3 : Number(run > 5)
    seen = ((seen << 1) | own) & 0x7fff
    // As in the middle of a finder, with four white ones before or behind.
    if (((seen >> 4) & 0x7f) === 0b1011101 && ((seen & 0xf) === 0 || seen >> 11 === 0)) sum += 40
  }
  return sum
}
