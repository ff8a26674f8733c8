// The book of result codes: each with what it means, who must act, whether to try again, and what a shopper is told. Found by code, name or words.

import { catalogue } from '../../contract/results/catalogue.ts'
import { isGood, type Outcome, type Result, refusalNames, results } from '../../contract/results/results.ts'
import { shopperAdvice } from '../../contract/results/shopperAdvice.ts'
import { actorWords, outcomeWords, retryWords } from '../../contract/results/words.ts'
import { type Html, html } from '../html.ts'
import { english } from '../languages/languages.ts'

const listed: readonly Result[] = [
  ...Object.keys(catalogue).map(name => results[name as keyof typeof catalogue]),
  ...refusalNames.map(name => results[name]),
].sort((a, b) => (a.code < b.code ? -1 : a.code > b.code ? 1 : 0))

/** Those that have every word, in their code, name or description, and the outcome if one is asked for. */
export function findCodes(asked: string, outcome: string): readonly Result[] {
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean)
  return listed.filter(
    one =>
      (outcome === '' || one.outcome === outcome) &&
      words.every(
        word =>
          one.code.startsWith(word) || one.name.toLowerCase().includes(word) || one.description.toLowerCase().includes(word),
      ),
  )
}

export function codesPage(asked: string, outcome: string): Html {
  const found = findCodes(asked, outcome)
  return html`<h1>Result codes</h1>
<p>Every answer has <code>result.code</code> and <code>result.description</code>. The list of codes is closed.</p>
<form class="search" method="get" action="/docs/codes" role="search">
<label class="label" for="q">A code, its beginning, a name or words of its description</label>
<input id="q" name="q" type="search" value="${asked}" autocomplete="off">
<select name="outcome" aria-label="Outcome"><option value="">Any outcome</option>${(Object.keys(outcomeWords) as Outcome[]).map(
    one => html`<option value="${one}"${one === outcome && html` selected`}>${one}</option>`,
  )}</select>
<button>Find</button>
</form>
<p role="status" class="soft">${found.length === 0 ? 'No code fits.' : found.length === 1 ? 'One result.' : `${found.length} results.`}</p>
${found.map(entry)}`
}

/** Hundreds of them, the same for everybody: each is written once. */
const entries = new Map<Result, Html>()
const entry = (result: Result): Html => {
  const written = entries.get(result) ?? writeEntry(result)
  entries.set(result, written)
  return written
}

const writeEntry = ({ code, name, description, outcome, actor, retry }: Result): Html => {
  const advice = shopperAdvice(code)
  return html`<article id="${name}"><h2><code>${code}</code> <a href="#${name}">${name}</a></h2>
<p>${description}</p>
<p><span class="chip ${outcome}">${outcome}</span> <span class="chip">HTTP ${isGood(outcome) ? '200' : '400'} on a POST</span> ${outcomeWords[outcome]}.</p>
<p class="soft">Who must act: ${actorWords[actor]}. Again: ${retryWords[retry]}.${advice && html` Shoppers read: “${english.texts[advice]}”`}</p>
</article>
`
}
