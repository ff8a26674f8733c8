// The ways to pay: saved details, a card, other brands. One is chosen, and the button says what it does.

import { cvvProblem } from '../checks.ts'
import { digitsOf } from '../number.ts'
import type { CardFields } from './card.ts'
import { type FormField, watchField } from './fields.ts'
import { element, flags, formData } from './page.ts'

export type PayMethod = {
  /** `card`, `registration`, or the method of another brand; as callbacks of shops know it. */
  readonly container: string
  readonly kind: string
  readonly brand: string
  readonly fields: readonly FormField[]
  values(): Record<string, string>
}

const panels = (): HTMLElement[] => [...document.querySelectorAll<HTMLElement>('.method')]

/** Every way to pay that the page has, by the value of its choice. */
export function payMethods(card: CardFields | undefined): ReadonlyMap<string, PayMethod> {
  return new Map(
    panels().map(panel => {
      const { value = '', kind = '', brand = '', saved } = panel.dataset
      const method: PayMethod =
        kind === 'card'
          ? { container: 'card', kind, brand: '', fields: card!.fields, values: card!.values }
          : saved !== undefined
            ? { container: 'registration', kind: 'registration', brand, ...savedDetails(panel, saved) }
            : { container: brand, kind, brand, ...askedDetails(panel, brand) }
      return [value, method]
    }),
  )
}

/** What the brand needs of the shopper beside itself: nothing, or who pays. */
function askedDetails(panel: HTMLElement, brand: string): Pick<PayMethod, 'fields' | 'values'> {
  const inputs = [...panel.querySelectorAll<HTMLInputElement>('.panel input')]
  const asked = inputs
    .filter(({ type }) => type !== 'hidden')
    .map(
      (input): FormField => ({
        name: input.name,
        input,
        problem: () => (input.value.trim() === '' ? { text: 'fieldMissing' } : undefined),
      }),
    )
  for (const field of asked) watchField(field)
  return {
    fields: asked,
    values: () => ({ paymentBrand: brand, ...Object.fromEntries(inputs.map(({ name, value }) => [name, written(name, value)])) }),
  }
}

/** A CEP is written with a hyphen and sent without. */
const written = (name: string, value: string): string =>
  name === 'billing.postcode' ? value.replace(/[\s-]/g, '') : value.trim()

function savedDetails(panel: HTMLElement, id: string): Pick<PayMethod, 'fields' | 'values'> {
  const input = panel.querySelector<HTMLInputElement>('input[name="card.cvv"]')
  if (!input) return { fields: [], values: () => ({ registrationId: id }) }
  const length = Number(input.dataset.length)
  const field: FormField = {
    name: 'SecurityCode',
    input,
    problem: () => cvvProblem(digitsOf(input.value), length, !isSavedCvvAsked()),
  }
  watchField(field)
  return {
    fields: [field],
    values: () => ({ registrationId: id, ...(isSavedCvvAsked() && input.value !== '' && { 'card.cvv': digitsOf(input.value) }) }),
  }
}

const isSavedCvvAsked = (): boolean => (flags.savedCvv === undefined ? formData.savedCvvAsked : flags.savedCvv === 'true')

export const chosenValue = (): string =>
  document.querySelector<HTMLInputElement>('input[name=method]:checked')?.value ?? panels()[0]?.dataset.value ?? ''

export function chooseMethod(value: string): void {
  const radio = document.querySelector<HTMLInputElement>(`input[name=method][value="${CSS.escape(value)}"]`)
  if (radio) radio.checked = true
  showChosen()
}

/** What is not chosen cannot be reached, and the button says what it does. */
export function showChosen(): void {
  const value = chosenValue()
  for (const panel of panels()) {
    const isChosen = panel.dataset.value === value
    panel.classList.toggle('chosen', isChosen)
    const inner = panel.querySelector<HTMLElement>('.panel')!
    inner.hidden = !isChosen || (panel.dataset.saved !== undefined && !isSavedCvvAsked())
    if (!isChosen) continue
    element('pay-text')!.textContent = panel.dataset.button ?? ''
    element('secure')!.hidden = panel.dataset.kind !== 'card'
  }
}
