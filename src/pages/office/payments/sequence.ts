// A chain as what was said between shopper, merchant, gateway and the other side, in the order of time. Pure: what is drawn is a list that can be read aloud.

import { amountText } from '../../../contract/amounts.ts'
import { results } from '../../../contract/results/results.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { momentText, type OfficeLanguage } from '../words.ts'
import type { Story } from './story.ts'
import { type PaymentWords, paymentWords } from './words.ts'

const lanes = ['shopper', 'merchant', 'gateway', 'otherSide'] as const
type Lane = (typeof lanes)[number]

export type SequenceStep = {
  /** Business time, milliseconds. */
  readonly at: number
  readonly from: Lane
  readonly to: Lane
  readonly what: string
  readonly bad?: boolean
}

const reported: ReadonlySet<string> = new Set(['RC', 'CB', 'CR'])

export function stepsOf({ chain, told }: Pick<Story, 'chain' | 'told'>, words: PaymentWords): SequenceStep[] {
  const steps: SequenceStep[] = []
  for (const { type, amount, currency, connector, receivedAt, answer, pendingBody, record, tokenId, referenceId } of chain) {
    const what = `${type} ${amountText(amount)} ${currency}`
    // Nobody was asked: it came in a file of the acquirer, the bank or the store chain.
    if (reported.has(type)) {
      steps.push({ at: receivedAt, from: 'otherSide', to: 'gateway', what: fill(words.reports, { what }) })
      continue
    }
    const byShopper = record.checkout !== undefined && type !== 'CP' && type !== 'RF' && type !== 'RV'
    const asking: Lane = byShopper ? 'shopper' : 'merchant'
    // Without a token it was ordered here.
    const wasAsked = byShopper || tokenId !== undefined || referenceId === undefined
    steps.push(
      wasAsked
        ? { at: receivedAt, from: asking, to: 'gateway', what: fill(words.asks, { what }) }
        : { at: receivedAt, from: 'gateway', to: 'gateway', what: fill(words.begins, { what }) },
    )
    const wasSent = connector !== '' && (answer === undefined || Object.keys(answer.kept).length > 0 || answer.approved)
    if (wasSent) steps.push({ at: receivedAt, from: 'gateway', to: 'otherSide', what: fill(words.forwards, { who: connector }) })
    if (pendingBody?.includes('"redirect"')) steps.push({ at: receivedAt, from: 'gateway', to: 'shopper', what: words.goesAway })
    if (!answer) {
      steps.push({ at: receivedAt, from: 'otherSide', to: 'gateway', what: words.waits, bad: true })
      continue
    }
    const { code } = results[answer.result]
    if (wasSent)
      steps.push({ at: answer.answeredAt, from: 'otherSide', to: 'gateway', what: words.replies, bad: !answer.approved })
    const said = fill(words.answers, { status: code })
    if (wasAsked) steps.push({ at: answer.answeredAt, from: 'gateway', to: asking, what: said, bad: !answer.approved })
  }
  for (const { tries } of told)
    for (const { attempt, attemptedAt, status, failure, acknowledged } of tries) {
      steps.push({ at: attemptedAt, from: 'gateway', to: 'merchant', what: fill(words.tells, { attempt: String(attempt) }) })
      const how = fill(acknowledged ? words.taken : words.notTaken, { status: String(status ?? failure ?? '–') })
      steps.push({ at: attemptedAt, from: 'merchant', to: 'gateway', what: how, bad: !acknowledged })
    }
  return steps.sort((a, b) => a.at - b.at)
}

export function sequenceOf(story: Story, language: OfficeLanguage): Html {
  const words = paymentWords(language)
  return html`<div class="scroll sequence" role="region" tabindex="0" aria-label="${words.sequence}">
<div class="lanes" aria-hidden="true">${lanes.map(lane => html`<span>${words[lane]}</span>`)}</div>
<ol>${stepsOf(story, words).map(({ at, from, to, what, bad }) => {
    const [start, end] = [lanes.indexOf(from), lanes.indexOf(to)]
    const [left, right] = [Math.min(start, end), Math.max(start, end)]
    return html`<li><div class="step s${left}${right} ${directionOf(start, end)}${bad && ' bad'}"><span class="unseen">${words[from]} → ${words[to]}: </span>${what}</div><time>${momentText(language, at)}</time></li>`
  })}</ol></div>`
}

const directionOf = (start: number, end: number): string => (start === end ? 'own' : start < end ? 'on' : 'back')

/** Four lanes; a step goes from the middle of one to the middle of another. */
export const sequenceStyle = `
.sequence { padding: .75rem; } .sequence > * { min-width: 38rem; }
.sequence .lanes, .sequence li { display: grid; grid-template-columns: repeat(8, 1fr) 11rem; }
.sequence .lanes span { grid-column-end: span 2; text-align: center; font-weight: 600; }
.sequence ol { margin: .5rem 0 0; padding: 0; list-style: none; background: repeating-linear-gradient(90deg, transparent 0 calc(100% - 1px), var(--line) calc(100% - 1px)) 0 0 / calc((100% - 11rem) / 8) 100% no-repeat; }
.sequence .step { padding: .1rem .4rem; text-align: center; font-size: .85rem; border-bottom: 2px solid var(--accent); position: relative; overflow-wrap: anywhere; }
.sequence .step.bad { border-color: var(--wrong); color: var(--wrong); }
.sequence .step::after { position: absolute; bottom: -.55em; line-height: 1; color: var(--accent); }
.sequence .step.bad::after { color: var(--wrong); }
.sequence .step.on::after { content: "▶"; right: -.2em; } .sequence .step.back::after { content: "◀"; left: -.2em; }
.sequence .step.own { border-color: var(--line); } .sequence .s22 { grid-column: 5 / 7; }
.sequence .s01 { grid-column: 2 / 4; } .sequence .s02 { grid-column: 2 / 6; } .sequence .s03 { grid-column: 2 / 8; }
.sequence .s12 { grid-column: 4 / 6; } .sequence .s13 { grid-column: 4 / 8; } .sequence .s23 { grid-column: 6 / 8; }
.sequence li { margin: 0 0 .55rem; } .sequence time { grid-column: 9; color: var(--soft); font-size: .82rem; text-align: right; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
`
