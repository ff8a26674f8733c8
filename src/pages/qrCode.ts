// QR codes of texts (ISO/IEC 18004), with level M, in the smallest version that holds them. Whoever knows an address may have one drawn: it must take less
// time than the page around it.

import encodeQr from 'qr'
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

/** Throws when the text is too long for any code. */
export function qrModules(text: string): QrModules {
  const rows = encodeQr(text, 'raw', { ecc: 'medium', border: 1 })
    .slice(1, -1)
    .map(row => row.slice(1, -1))
  return { size: rows.length, modules: Uint8Array.from(rows.flat(), Number) }
}
