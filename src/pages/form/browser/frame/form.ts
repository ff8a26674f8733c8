// The form: puts the parts together and pays.

import { cardFields } from './card.ts'
import { allRight, showProblem } from './fields.ts'
import { takeOptions } from './look.ts'
import { chooseMethod, chosenValue, payMethods, showChosen } from './methods.ts'
import { element, flags, formData, textOf } from './page.ts'
import { askShop, leaveTo, listenToShop, tellShop } from './port.ts'
import { askState, browserFields, type PayAnswer, sendPayment, stateAfterLoss } from './send.ts'

let shopperResultUrl = formData.shopperResultUrl
const form = element<HTMLFormElement>('form')
const card = cardFields()
const methods = payMethods(card)
let isPaying = false

/** The shop's address with what it needs to read the status. */
function wayBack(): string | undefined {
  if (shopperResultUrl === undefined) return undefined
  const url = new URL(shopperResultUrl)
  url.searchParams.append('id', formData.id)
  url.searchParams.append('resourcePath', formData.payPath)
  return url.href
}

function say(text: string): void {
  const summary = element('summary')!
  summary.textContent = text
  summary.hidden = text === ''
}

function busy(text: string | undefined): void {
  isPaying = text !== undefined
  const button = element<HTMLButtonElement>('pay')!
  button.setAttribute('aria-disabled', String(isPaying))
  button.classList.toggle('busy', isPaying)
  element('choices')!.inert = isPaying
  element('progress')!.textContent = text === undefined ? '' : textOf({ text })
  if (!isPaying) showChosen()
  else element('pay-text')!.textContent = textOf({ text: text! })
}

/** Nothing more can be done here; the shop knows how it stands. */
function close(title: string, text: string): void {
  for (const id of ['form', 'left']) element(id)?.remove()
  const over = element('over')!
  over.hidden = false
  element('done')!.toggleAttribute('hidden', title !== 'paidTitle')
  element('over-title')!.textContent = textOf({ text: title })
  element('over-text')!.textContent = textOf({ text })
  showWayBack()
  over.focus()
}

function showWayBack(): void {
  const back = element<HTMLAnchorElement>('back')!
  const url = wayBack()
  if (url === undefined) return
  back.href = url
  back.hidden = false
  back.onclick = event => {
    event.preventDefault()
    leaveTo(url)
  }
}

async function pay(): Promise<void> {
  const method = methods.get(chosenValue())
  if (isPaying || !method) return
  say('')
  if (!allRight(method.fields)) return say(textOf({ text: 'checkFields' }))
  if (!navigator.onLine) return say(textOf({ text: 'offline' }))
  busy(formData.standalone ? 'saving' : 'paying')
  const brand = method.brand || (card?.values().paymentBrand ?? '')
  const { go, fields } = await askShop({ kind: 'before', container: method.container, method: method.kind, brand })
  if (go !== true) return busy(undefined)
  const save = element<HTMLInputElement>('createRegistration')
  const sending = sendPayment(formData.payPath, {
    ...(fields as Record<string, string>),
    ...browserFields(),
    ...(shopperResultUrl !== undefined && { shopperResultUrl }),
    ...(method.kind === 'card' && save && { createRegistration: String(save.checked) }),
    ...method.values(),
  })
  tellShop({ kind: 'sent', container: method.container })
  const answer = await sending
  if (!answer) return afterLoss()
  const away = answer.redirect?.url ?? answer.shopperResultUrl
  if (away !== undefined) return leaveTo(away)
  return told(answer.result)
}

/** The connection broke on the way: whether it was paid is the shop's to find out, unless the form says that it was not. */
async function afterLoss(): Promise<void> {
  busy('connectionLost')
  const state = (await stateAfterLoss(formData.statePath))?.state
  const url = wayBack()
  if (state === 'over' && url !== undefined) return leaveTo(url)
  if (state === 'over') return close('overTitle', 'overText')
  tellShop({ kind: 'failed', name: 'PciIframeSubmitError', brand: '', text: 'the connection was lost' })
  busy(undefined)
  say(textOf({ text: 'lookInShop' }))
}

/** Names of parameters, and the fields that they are typed into. */
const inputOf: Readonly<Record<string, string>> = {
  'card.number': 'CardNumber',
  'card.expiryMonth': 'ExpiryDate',
  'card.expiryYear': 'ExpiryDate',
  'card.cvv': 'SecurityCode',
  'card.holder': 'CardHolder',
}

/** Without a shop to go back to, the form says itself what became of it. */
async function told({ code, parameterErrors = [] }: PayAnswer['result']): Promise<void> {
  const found = await askState(formData.statePath, code)
  busy(undefined)
  if (found && found.advice === undefined) return close('paidTitle', formData.standalone ? 'savedDone' : 'paidText')
  if (found?.advice === 'waitForShop') return close('pendingTitle', 'waitForShop')
  const named = parameterErrors.map(({ name }) => inputOf[name] ?? name)
  const wrong = methods.get(chosenValue())?.fields.filter(({ name }) => named.includes(name)) ?? []
  for (const field of wrong) if (field.name.includes('.')) showProblem(field, { text: 'fieldWrong' })
  wrong[0]?.input.focus()
  say(found?.text ?? textOf({ text: 'lookInShop' }))
}

function tellHeight(): void {
  tellShop({ kind: 'height', pixels: Math.ceil(document.body.getBoundingClientRect().height) })
}

function countDown(): void {
  const ends = performance.now() + formData.secondsLeft * 1000
  const look = () => {
    const left = Math.ceil((ends - performance.now()) / 1000)
    if (left <= 0 && !isPaying) return expired()
    const shown = element('left')!
    shown.hidden = left > 300
    if (left <= 300) {
      const time = `${Math.max(0, Math.floor(left / 60))}:${String(Math.max(0, left % 60)).padStart(2, '0')}`
      shown.textContent = textOf({ text: 'timeLeft', slots: { time } })
    }
    setTimeout(look, 1000)
  }
  look()
}

function expired(): void {
  tellShop({ kind: 'failed', name: 'InvalidCheckoutIdError', brand: '', text: 'the checkout is over' })
  close('overTitle', 'overText')
}

listenToShop(message => {
  if (message.kind === 'options') {
    shopperResultUrl = formData.shopperResultUrl ?? ((message.shopperResultUrl as string) || undefined)
    if (formData.state === 'over') return expired()
    tellHeight()
    if (!form) return tellShop({ kind: 'failed', name: 'WidgetError', brand: '', text: 'no brand of the form is taken here' })
    takeOptions(message)
    card?.choose()
    chooseMethod(chosenValue())
    tellHeight()
    const { container, kind } = methods.get(methods.has('card') ? 'card' : chosenValue())!
    tellShop({ kind: 'ready', container, method: kind, cards: [...formData.taken] })
    return
  }
  if (message.kind === 'brand') card?.choose(message.brand as string)
  if (message.kind === 'pay') {
    const wanted = [...methods].find(([, { container }]) => container === message.container)
    if (wanted && methods.get(chosenValue())?.container !== message.container) chooseMethod(wanted[0])
    void pay()
  }
})

if (formData.state === 'over') showWayBack()
if (form && formData.state === 'open') {
  form.addEventListener('submit', event => {
    event.preventDefault()
    void pay()
  })
  form.addEventListener('keydown', event => {
    if (event.key === 'Enter' && flags.disableSubmitOnEnter === 'true' && event.target instanceof HTMLInputElement)
      event.preventDefault()
  })
  form.addEventListener('change', event => {
    if ((event.target as HTMLInputElement).name === 'method') showChosen()
  })
  element('showOthers')?.addEventListener('click', () => {
    element('others')!.hidden = false
    element('showOthers')!.hidden = true
    chooseMethod(document.querySelector<HTMLElement>('#others .method')!.dataset.value!)
  })
  addEventListener('online', () => say(''))
  addEventListener('offline', () => say(textOf({ text: 'offline' })))
  // A browser that goes back shows the page as it was left: in the middle of paying.
  addEventListener('pageshow', event => event.persisted && location.reload())
  showChosen()
  countDown()
}
new ResizeObserver(tellHeight).observe(document.body)
