// QR codes: module by module those of another implementation; scanners read them; and drawing one takes little of anybody's time.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { toSVG } from 'bwip-js'
import { type QrModules, qrCode, qrModules } from '../src/pages/qrCode.ts'

/** Letters that no code but that of bytes writes. */
const textOf = (length: number): string => Array.from({ length }, (_, at) => 'abcdefghijklmnopqrstuvw'[(at * at) % 23]).join('')

/** How bwip-js draws it, whose outlines are four units a module; `mask` counts from one. */
function drawnBy(text: string, mask?: number): QrModules {
  const svg = toSVG({ bcid: 'qrcode', text, eclevel: 'M', fixedeclevel: true, ...(mask && { mask }) } as Parameters<
    typeof toSVG
  >[0])
  const size = Number(/viewBox="0 0 (\d+)/.exec(svg)![1]) / 4
  const modules = new Uint8Array(size ** 2)
  for (const outline of / d="([^"]+)"/.exec(svg)![1]!.split('Z')) {
    const corners = [...outline.matchAll(/[ML](\d+) (\d+)/g)].map(([, x, y]) => [Number(x) / 4, Number(y) / 4] as const)
    for (const [at, [left, top]] of corners.entries()) {
      const [x, y] = corners[(at + 1) % corners.length]!
      if (x !== left) continue
      for (let row = Math.min(top, y); row < Math.max(top, y); row++)
        for (let right = left; right < size; right++) modules[row * size + right]! ^= 1
    }
  }
  return { size, modules }
}
const isSame = (one: QrModules, other: QrModules): boolean => Buffer.compare(one.modules, other.modules) === 0
/** As it says itself, in three bits below its first finder (7.9). */
const maskOf = ({ size, modules }: QrModules): number =>
  0b101 ^ Number.parseInt([...modules.subarray(8 * size + 2, 8 * size + 5)].join(''), 2)

describe('a QR code', () => {
  it('is that of another implementation', () => {
    for (const length of [1, 20, 150]) {
      const code = qrModules(textOf(length))
      assert.ok(isSame(drawnBy(textOf(length), maskOf(code) + 1), code), `${length} bytes`)
    }
    assert.throws(() => qrModules(textOf(2400)))
  })

  const scanner = spawnSync('zbarimg', ['--version']).error ? 'zbarimg missing: apt-get install zbar-tools' : false
  it('is read by a scanner', { skip: scanner }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-codes-'))
    try {
      for (const text of ['x', 'https://pay.example/pay/0123456789abcdef', textOf(600)]) {
        const { size, modules } = qrModules(text)
        // A picture of text, four pixels a module, with its white.
        const wide = (size + 8) * 4
        const pixels = Array.from({ length: wide ** 2 }, (_, at) => {
          const [left, top] = [Math.floor((at % wide) / 4) - 4, Math.floor(at / wide / 4) - 4]
          return left >= 0 && top >= 0 && left < size && top < size ? modules[top * size + left] : 0
        })
        const file = join(folder, 'code.pbm')
        writeFileSync(file, `P1\n${wide} ${wide}\n${pixels.join('\n')}\n`)
        assert.equal(spawnSync('zbarimg', ['-q', '--raw', '--nodbus', file], { encoding: 'utf8' }).stdout, `${text}\n`)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('takes less than a quarter of the time of a library for all codes: whoever has many drawn keeps nobody waiting', () => {
    const links = Array.from(
      { length: 60 },
      (_, at) => `https://pay.example/pay/${'0123456789abcdef'.repeat(2)}${at}.prod01-vm-tx02`,
    )
    const timeOf = (draw: (link: string) => unknown, some: readonly string[]): number => {
      const before = process.cpuUsage()
      for (const link of some) draw(link)
      const { user, system } = process.cpuUsage(before)
      return user + system
    }
    const library = (text: string) => toSVG({ bcid: 'qrcode', text })
    // The least of some rounds: what a machine does beside them, or a collector of garbage in one, is no work of a code.
    const least = (draw: (link: string) => unknown) => Math.min(...Array.from({ length: 4 }, () => timeOf(draw, links)))
    const [ours, theirs] = [least(qrCode), least(library)]
    assert.ok(ours < theirs / 4, `${ours} of ${theirs} µs`)
  })
})
