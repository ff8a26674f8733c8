// The page of a slip behind EXTERNAL_SYSTEM_LINK: private, for a phone as for a printer, and true about how the slip stands.

import { type Html, html, type Page, trusted } from '../html.ts'
import { type Language, moneyText } from '../languages/languages.ts'
import { barPlaces, barsOf, modulesOf, type Symbology } from './bars.ts'
import { filledIn, type SlipTexts } from './texts.ts'
import { canBePaid, groupsOf, maskedTaxId, type SlipView } from './view.ts'

/** `address`: the page's own, without a slash at the end. */
export function slipPage(
  view: SlipView,
  { language, texts }: { readonly language: Language; readonly texts: SlipTexts },
  address: string,
  pixImage: Html | undefined,
  canPay: boolean,
): Page {
  const { slip, account, state, paid, shop, payer, product, shopUrl, number, pix, isTest } = view
  const isStore = account.kind === 'chain'
  const money = (amount: number) => moneyText(language.locale, amount, slip.currency)
  const slots = { date: dayText(slip.dueOn, language.locale), amount: money(paid) }
  const title = filledIn(texts[state], slots)
  const says = state === 'payable' && isStore ? texts.payableStoreText : texts[`${state}Text`]
  const rows: readonly (readonly [name: string, value: string | undefined])[] = [
    [language.texts.amount, money(slip.amount)],
    [texts.due, dayText(slip.dueOn, language.locale)],
    [texts.product, product],
    [texts.beneficiary, isStore ? undefined : account.beneficiary.name],
    [texts.payer, payer.name],
    [texts.taxId, payer.taxId && maskedTaxId(payer.taxId.id)],
    [texts.number, isStore ? undefined : number],
  ]
  const copied = (id: string, label: string, value: string, button: string) => html`<div class="field">
<label for="${id}">${label}</label>
<input id="${id}" type="text" readonly dir="ltr" value="${value}">
<button class="plain unprinted" type="button" data-copies="${id}">${button}</button>
</div>`
  return {
    language,
    shop,
    ...(isTest && { notice: texts.testNotice }),
    title: `${texts.title} – ${title}`,
    body: html`<h1 class="state ${state}">${title}</h1>
<p>${filledIn(says, slots)}</p>
<dl>${rows.map(([name, value]) => (value === undefined || value === '' ? html`` : html`<dt>${name}</dt><dd><bdi>${value}</bdi></dd>`))}</dl>
${
  canBePaid(view) &&
  html`${copied('line', isStore ? texts.reference : texts.line, slip.line, isStore ? texts.copyReference : texts.copyLine)}
<figure>${barcodeImage(isStore ? 'code128' : 'interleaved2of5', slip.barcode, filledIn(texts.barcode, { digits: slip.barcode }))}
<figcaption>${isStore ? groupsOf(slip.barcode) : slip.line}</figcaption></figure>
${pix !== undefined && pixImage && html`<h2>${texts.pixTitle}</h2><figure class="pix">${pixImage}</figure>${copied('pix', 'Pix', pix, texts.copyPix)}`}
<p class="unprinted"><a class="button" href="${address}/slip.pdf">${texts.pdf}</a><button class="plain" type="button" data-prints>${texts.print}</button></p>`
}
${shopUrl !== undefined && html`<a class="button plain unprinted" href="${shopUrl}">${language.texts.shopButton}</a>`}`,
    style,
    script: script(texts.copied),
    ...(canPay && {
      tester: html`<h2 id="tester">${language.texts.testerTitle}</h2><p class="soft">${texts.forTesters}</p>
<form method="post" action="${address}/pay"><button>${texts.payIt}</button></form>`,
    }),
  }
}

export const dayText = (day: string, locale: string): string =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC', numberingSystem: 'latn' }).format(new Date(day))

/** White beside it, or no scanner reads it. */
const quiet = 12

export function barcodeImage(kind: Symbology, digits: string, says: string): Html {
  const bars = barsOf(kind, digits)
  const width = modulesOf(bars) + 2 * quiet
  const path = barPlaces(bars)
    .map(([from, wide]) => `M${quiet + from} 0h${wide}v50h-${wide}z`)
    .join('')
  return html`<svg class="bars" role="img" aria-label="${says}" viewBox="0 0 ${width} 50" preserveAspectRatio="none" shape-rendering="crispEdges">
<rect width="${width}" height="50" fill="#fff"/>${trusted(`<path fill="#000" d="${path}"/>`)}</svg>`
}

const style = `
.state.overdue, .state.part { color: var(--warn); }
.state.writtenOff { color: var(--wrong); }
figure { margin: 0 0 1.25rem; padding: .75rem 0; background: #fff; color: #1b2430; border-radius: 9px; text-align: center; }
figure svg { display: block; width: 100%; }
.bars { height: 4.25rem; }
figcaption { padding: .5rem .5rem 0; font: .8rem/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.pix { padding: 1.25rem; }
.pix svg { max-width: 14rem; margin: 0 auto; }
.field button { margin-top: .5rem; }
main > p > button { margin-top: .6rem; }
@media (min-width: 48rem) { main { width: 34rem; } }
@media print {
  body { background: #fff; color: #000; }
  .unprinted, .tester { display: none; }
  main { width: auto; border: 0; padding: 0; }
  .stage { padding: 1rem 0; }
  .bars { width: 109.1mm; height: 13mm; margin: 0 auto; }
}
`

const script = (copied: string): string => `
for (const button of document.querySelectorAll('[data-copies]')) button.addEventListener('click', async () => {
  const field = document.getElementById(button.dataset.copies)
  field.select()
  try { await navigator.clipboard.writeText(field.value) } catch { document.execCommand('copy') }
  button.textContent = ${JSON.stringify(copied)}
})
document.querySelector('[data-prints]')?.addEventListener('click', () => print())
`
