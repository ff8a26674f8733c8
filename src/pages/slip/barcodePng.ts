// The barcode of a slip as an image, for shops that make a page of their own: a PNG (ISO/IEC 15948) of one bit a pixel, with the white that scanners need, and
// the digits below.

import { crc32, deflateSync } from 'node:zlib'
import { barPlaces, barsOf, modulesOf, type Symbology } from './bars.ts'

/** Pixels of a module of the bars, and of a dot of the digits. */
const scale = 3
/** Modules of white beside the bars; the other sizes are in pixels. */
const quiet = 15
const [margin, high, between] = [15, 110, 9]

/** An even number of digits. */
export function barcodePng(kind: Symbology, digits: string): Buffer {
  const bars = barsOf(kind, digits)
  const width = (modulesOf(bars) + 2 * quiet) * scale
  const white = rowOf(width, 0, [])
  const rows = [
    ...times(margin, white),
    ...times(high, rowOf(width, quiet * scale, barPlaces(bars))),
    ...times(between, white),
    ...dotsOf(digits).flatMap(dots => times(scale, rowOf(width, (width - dotsWide * digits.length * scale) / 2, dots))),
    ...times(margin, white),
  ]
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(rows.length, 4)
  head[8] = 1 // a bit a pixel, black and white, and no more than that
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.concat(rows))),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

type DarkPlaces = readonly (readonly [from: number, wide: number])[]

/** White but for these places, scaled, behind so many pixels. The first byte says that the row is written as it is. */
function rowOf(width: number, left: number, places: DarkPlaces): Buffer {
  const row = Buffer.alloc(1 + Math.ceil(width / 8), 0xff)
  row[0] = 0
  for (const [from, wide] of places) {
    const begin = Math.floor(left) + from * scale
    for (let pixel = begin; pixel < begin + wide * scale; pixel++) row[1 + (pixel >> 3)]! &= ~(0x80 >> (pixel & 7))
  }
  return row
}

const times = (count: number, row: Buffer): Buffer[] => Array<Buffer>(count).fill(row)

/** Of each digit seven rows of five dots, in hexadecimal. */
const shapes =
  `0e11131519110e 040c040404040e 0e11010204081f 1f02040201110e 02060a121f0202 1f101e0101110e 0608101e11110e 1f010204080808 0e11110e11110e
  0e11110f01020c`.split(/\s+/)
/** With the white before the next one. */
const dotsWide = 6

const dotsOf = (digits: string): DarkPlaces[] =>
  [0, 1, 2, 3, 4, 5, 6].map(row =>
    [...digits].flatMap((digit, at) => {
      const dots = Number.parseInt(shapes[Number(digit)]!.slice(2 * row, 2 * row + 2), 16)
      return [0, 1, 2, 3, 4].flatMap(dot => ((dots >> (4 - dot)) & 1 ? [[at * dotsWide + dot, 1] as const] : []))
    }),
  )

const signature = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1')

function chunk(name: string, content: Buffer): Buffer {
  const named = Buffer.concat([Buffer.from(name), content])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(content.length)
  check.writeUInt32BE(crc32(named))
  return Buffer.concat([length, named, check])
}
