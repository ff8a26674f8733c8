// Plots as pictures in the page: no script, no style of their own, and a table beside them that says the same.

import { approvalRate, type Endings } from '../../../reporting/overview/overview.ts'
import { type Html, html } from '../../html.ts'

const height = 100
const width = 10

/** One column a slot: approved below, then declined, then the rest; the line is the share that was approved. `names`: of slots, in their order. */
export function endingsPlot(label: string, slots: readonly Endings[], names: readonly string[]): Html {
  const most = Math.max(1, ...slots.map(totalOf))
  const points = slots.flatMap((slot, at) => {
    const rate = approvalRate(slot)
    return rate === undefined ? [] : [`${at * width + width / 2},${round((1 - rate) * height)}`]
  })
  return html`<svg class="plot" viewBox="0 0 ${slots.length * width} ${height}" preserveAspectRatio="none" role="img" aria-label="${label}">
<line x1="0" x2="${slots.length * width}" y1="${height}" y2="${height}" stroke="currentColor" stroke-opacity=".4" vector-effect="non-scaling-stroke"/>
${slots.map((slot, at) => column(slot, at, most, names[at]!))}
${points.length > 1 && html`<polyline points="${points.join(' ')}" fill="none" stroke="currentColor" stroke-width="1.5" vector-effect="non-scaling-stroke"/>`}
</svg>`
}

const kinds = [
  ['approved', 'good', '.75'],
  ['declined', 'bad', '.8'],
  ['other', 'soft', '.6'],
] as const

function column(slot: Endings, at: number, most: number, name: string): Html {
  let top = height
  const parts = kinds.map(([kind, colour, opacity]) => {
    const tall = (slot[kind] / most) * height
    top -= tall
    return (
      tall > 0 &&
      html`<rect class="${colour}" x="${at * width + 1}" width="${width - 2}" y="${round(top)}" height="${round(tall)}" fill="currentColor" fill-opacity="${opacity}"/>`
    )
  })
  return html`<g><title>${name}: ${kinds.map(([kind]) => slot[kind]).join(' / ')}</title>${parts.filter(part => part !== false)}</g>`
}

export const totalOf = ({ approved, declined, other }: Endings): number => approved + declined + other

const round = (value: number): string => String(Math.round(value * 100) / 100)
