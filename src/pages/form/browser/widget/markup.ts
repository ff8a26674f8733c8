// What stands in the shop's page around the frame: the containers, forms and groups that shops' styles and scripts have always found, with the frame
// where the fields were. Fields that a shop's script puts into the form travel with the payment.

export type WidgetPlace = {
  /** The shop's own form, which comes back at the end. */
  readonly original: HTMLFormElement
  readonly container: HTMLElement
  readonly form: HTMLFormElement
  readonly frame: HTMLIFrameElement
  readonly brand: HTMLSelectElement
}

function made<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Element[]
): HTMLElementTagNameMap[Name] {
  const one = document.createElement(name)
  one.className = className
  for (const [attribute, value] of Object.entries(attributes)) one.setAttribute(attribute, value)
  one.append(...children)
  return one
}

/** `card` where the form has a card; the brand where it has none. */
export function makePlace(
  original: HTMLFormElement,
  brands: readonly string[],
  address: string,
  payAddress: string,
  theme: string,
  title: string,
): WidgetPlace {
  const frame = made('iframe', 'wpwl-control wpwl-control-iframe', {
    title,
    allow: 'payment; autofill',
    scrolling: 'no',
    src: address,
  })
  Object.assign(frame.style, {
    display: 'block',
    width: '100%',
    height: '420px',
    border: '0',
    colorScheme: theme === 'auto' ? 'light dark' : theme,
  })
  const brand = made('select', 'wpwl-control wpwl-control-brand', { name: 'paymentBrand', 'aria-hidden': 'true', tabindex: '-1' })
  for (const name of brands) brand.append(new Option(name, name))
  const button = made('button', 'wpwl-button wpwl-button-pay', { type: 'submit', name: 'pay', tabindex: '-1' })
  const brandGroup = made(
    'div',
    'wpwl-group wpwl-group-brand wpwl-clearfix',
    {},
    made('div', 'wpwl-wrapper wpwl-wrapper-brand', {}, brand),
    made('div', 'wpwl-brand wpwl-brand-card'),
  )
  const submitGroup = made(
    'div',
    'wpwl-group wpwl-group-submit wpwl-clearfix',
    {},
    made('div', 'wpwl-wrapper wpwl-wrapper-submit', {}, button),
  )
  // The frame shows these two; here they are for scripts.
  brandGroup.hidden = true
  button.hidden = true
  const form = made(
    'form',
    'wpwl-form wpwl-form-card wpwl-clearfix',
    { action: payAddress, method: 'POST', target: 'cnpIframe', lang: document.documentElement.lang || 'en' },
    brandGroup,
    made('div', 'wpwl-group wpwl-group-card wpwl-clearfix', {}, made('div', 'wpwl-wrapper wpwl-wrapper-card', {}, frame)),
    submitGroup,
  )
  // Fields of the shop's own form go along.
  for (const own of original.querySelectorAll('input, select, textarea')) form.insertBefore(own.cloneNode(true), submitGroup)
  const container = made('div', 'wpwl-container wpwl-container-card', {}, form)
  original.replaceWith(container)
  return { original, container, form, frame, brand }
}

/** The classes say what the form turned out to have: `card`, or a brand's method and name. */
export function nameContainer({ container, form }: WidgetPlace, key: string, method: string): void {
  if (key === 'card') return
  container.className = `wpwl-container wpwl-container-${method} wpwl-container-${method}-${key}`
  form.className = `wpwl-form wpwl-form-${method} wpwl-form-${method}-${key} wpwl-clearfix`
}

/** What the shop's page has to say beside the card; never a card's data, which the frame alone has. */
const taken =
  /^(createRegistration|customParameters\[SHOPPER_[A-Za-z0-9._-]+\]|recurring\.numberOfInstallments|billing\.[A-Za-z0-9]+|customer\.(?!browser)[A-Za-z.]+|shipping\.[A-Za-z0-9.]+)$/

export function ownFields({ form }: WidgetPlace): Record<string, string> {
  const named = [...new FormData(form)].flatMap(([name, value]) =>
    taken.test(name) && typeof value === 'string' && value !== '' ? [[name, value]] : [],
  )
  return Object.fromEntries(named)
}
