// The script of a shop's page. It finds every form.paymentWidgets, puts our frame in its place, and speaks for it with the shop's own scripts.
// It never sees card data: those are typed into the frame, and no message has them.

import type { FormMessage } from '../messages.ts'
import { makePlace, nameContainer, ownFields, type WidgetPlace } from './markup.ts'
import { callShop, frameFlags, frameTexts, frameVariables, leaveTarget, wpwlOptions } from './options.ts'
import { type Talk, talkTo } from './talk.ts'

type Widget = {
  readonly place: WidgetPlace
  readonly talk: Talk
  key: string
  method: string
  ready: boolean
  cards: readonly string[]
}

/** The address of this script says where the gateway is and which checkout is paid. */
const own = new URL((document.currentScript as HTMLScriptElement | null)?.src ?? '')
const [checkoutId = '', purpose = 'payment'] = (own.searchParams.get('checkoutId') ?? '').split('/')
const widgets: Widget[] = []

/** What the shop may say before a payment of each kind. */
const before: Readonly<Record<string, string>> = {
  card: 'onBeforeSubmitCard',
  registration: 'onBeforeSubmitOneClickCard',
  virtualAccount: 'onBeforeSubmitVirtualAccount',
  onlineTransfer: 'onBeforeSubmitOnlineTransfer',
  prepayment: 'onBeforeSubmitPrepayment',
  directDebit: 'onBeforeSubmitDirectDebit',
}

function failed(name: string, message: string, more: object = {}): void {
  const error = Object.assign(new Error(message), { name }, more)
  if (typeof wpwlOptions().onError === 'function') callShop('onError', error)
  else console.error(error)
}

function mount(original: HTMLFormElement): void {
  const { locale = '', theme = 'light' } = wpwlOptions()
  const brands = (original.dataset.brands ?? original.textContent ?? '')
    .trim()
    .split(/[\s,]+/)
    .filter(name => /^[A-Z0-9_]{2,32}$/i.test(name))
  const address = new URL(`/v1/form/${encodeURIComponent(checkoutId)}`, own)
  for (const [name, value] of Object.entries({ locale, theme, brands: brands.join(' ') }))
    if (value !== '') address.searchParams.set(name, value)
  const shopperResultUrl = original.getAttribute('action') ? original.action : (wpwlOptions().shopperResultUrl ?? '')
  const variables = frameVariables(original)
  const place = makePlace(
    original,
    brands,
    address.href,
    new URL(`/v1/checkouts/${checkoutId}/${purpose}`, own).href,
    theme,
    'Secure card payment',
  )
  const widget: Widget = {
    place,
    key: 'card',
    method: 'card',
    ready: false,
    cards: [],
    talk: talkTo(
      place.frame,
      own.origin,
      message => hear[message.kind]?.(message, widget),
      () => widget.talk.tell({ kind: 'options', flags: frameFlags(), texts: frameTexts(), variables, shopperResultUrl }),
      () => failed('PciIframeCommunicationError', 'the payment form did not answer'),
    ),
  }
  place.form.addEventListener('submit', event => {
    event.preventDefault()
    pay(widget)
  })
  place.form.submit = () => pay(widget)
  place.brand.addEventListener('change', () => widget.talk.tell({ kind: 'brand', brand: place.brand.value }))
  widgets.push(widget)
}

const pay = (widget: Widget, container = widget.key): void => widget.talk.tell({ kind: 'pay', container })

/** What a frame says, and what the shop's page does. */
const hear: Readonly<Record<string, (message: FormMessage, widget: Widget) => void>> = {
  ready({ container, method, cards }, widget) {
    const isFirst = !widget.ready
    Object.assign(widget, { key: container, method, cards, ready: true })
    callShop('onReadyIframeCommunication')
    if (!isFirst || widgets.some(({ ready }) => !ready)) return
    for (const { place, key, method } of widgets) nameContainer(place, key, method)
    callShop(
      'onReady',
      widgets.map(one => ({ containerKey: one.key, ccMethods: [...one.cards] })),
    )
  },
  height({ pixels }, { place }) {
    place.frame.style.height = `${pixels}px`
  },
  focus: ({ field }) => void callShop('onFocusIframeCommunication', field),
  blur({ field, valid }, { place }) {
    place.form.classList.toggle('wpwl-has-error', valid === false)
    callShop('onBlurIframeCommunication', field)
    callShop(`onBlur${field}`, valid)
  },
  brands({ brands, active }, { place }) {
    if (active !== '') place.brand.value = String(active)
    place.form.querySelector('.wpwl-brand')!.className =
      `wpwl-brand wpwl-brand-card ${active === '' ? '' : `wpwl-brand-${active}`}`.trim()
    callShop('onDetectBrand', brands, active)
    if (active !== '') callShop('onChangeBrand', active)
  },
  before: (message, widget) => void answerBefore(message, widget),
  sent: ({ container }) => void callShop('onAfterSubmit', container),
  leave: ({ url }) => leave(String(url)),
  failed: ({ name, brand, text }) => failed(String(name), String(text), { brand }),
}

/** The shop may hold a payment back, at once or after a while, and have its fields go along. */
async function answerBefore({ number, method, container }: FormMessage, widget: Widget): Promise<void> {
  const event = { target: widget.place.form, containerKey: container }
  const name = before[String(method)] ?? 'onBeforeSubmitVirtualAccount'
  let go = callShop(name, event) !== false
  if (go && method === 'card') {
    const promised = callShop('onBeforeSubmitCardPromise', event)
    go = await Promise.resolve(promised).then(
      value => value !== false,
      () => false,
    )
  }
  callShop('onSaveTransactionData', { containerKey: container })
  const challengeWindow = wpwlOptions().browser?.threeDChallengeWindow
  const fields = {
    ...ownFields(widget.place),
    ...(challengeWindow !== undefined && { 'customer.browser.challengeWindow': String(challengeWindow).padStart(2, '0') }),
  }
  widget.talk.tell({ kind: 'answer', number, go, fields: go ? fields : {} })
}

/** The whole window goes on. */
function leave(url: string): void {
  const target = leaveTarget()
  if (target === '_top' && window.top !== window) open(url, '_top')
  else if (target === '_parent') open(url, '_parent')
  else location.assign(url)
}

function unload(): void {
  for (const { place, talk } of widgets.splice(0)) {
    talk.end()
    place.container.replaceWith(place.original)
  }
}

/** `wpwl-container-card`, or the name of one brand's container. */
function executePayment(container: string): void {
  const key = container.replace(/^wpwl-container-([A-Za-z]+-)?/, '')
  const widget = widgets.find(one => one.key === key) ?? widgets[0]
  if (widget) pay(widget, key)
}

function begin(): void {
  if (checkoutId === '') failed('InvalidCheckoutIdError', 'the address of the script names no checkoutId')
  else for (const form of document.querySelectorAll<HTMLFormElement>('form.paymentWidgets')) mount(form)
}

window.wpwl = { executePayment, unload, cacheVersion: '1', checkout: { id: checkoutId } }
if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', begin)
else begin()
