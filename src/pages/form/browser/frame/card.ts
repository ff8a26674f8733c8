// The fields of a card: they write themselves as they are printed on cards, and tell the brand.

import { type BrandRow, brandOfNumber, brandsToPayAs } from '../brands.ts'
import { cvvProblem, expiryProblem, holderProblem, numberProblem, numberProblemSoon } from '../checks.ts'
import { expiryOf, expiryText } from '../expiry.ts'
import { digitsOf, groupedNumber, placeBehind } from '../number.ts'
import { type FormField, showProblem, watchField } from './fields.ts'
import { element, flags, formData, textOf } from './page.ts'
import { tellShop } from './port.ts'

export type CardFields = {
  readonly fields: readonly FormField[]
  /** As parameters of the interface. */
  values(): Record<string, string>
  /** Absent = as the number says. */
  choose(brand?: string): void
}

const { rows, taken, month } = formData
const rowNamed = (name: string): BrandRow | undefined => rows.find(row => row.name === name)

/** The brands that the number can be paid as; with detection switched off those are all. */
const choices = (digits: string): readonly BrandRow[] =>
  flags.brandDetection === 'false' ? taken.flatMap(name => rowNamed(name) ?? []) : brandsToPayAs(rows, sorted(), digits)

/** The shop may say which brand stands first where several fit. */
function sorted(): readonly string[] {
  const first = (flags.brandDetectionPriority ?? '').split(' ')
  return [...taken].sort((a, b) => ((first.indexOf(a) + 99) % 99) - ((first.indexOf(b) + 99) % 99))
}

export function cardFields(): CardFields | undefined {
  const number = element<HTMLInputElement>('cardNumber')
  if (!number) return undefined
  const expiry = element<HTMLInputElement>('expiry')!
  const cvv = element<HTMLInputElement>('cvv')!
  const holder = element<HTMLInputElement>('cardHolder')!
  let chosen: string | undefined
  let told = ''

  const digits = () => digitsOf(number.value)
  const brand = (): BrandRow | undefined => {
    const fitting = choices(digits())
    return (
      fitting.find(({ name }) => name === chosen) ??
      (fitting.length > 0 && flags.brandDetection !== 'false' ? fitting[0] : undefined)
    )
  }
  const cvvOptional = () => flags.allowEmptyCvv === 'true' || !formData.cvvAsked || brand()?.cvvRequired === false

  const fields: readonly FormField[] = [
    {
      name: 'CardNumber',
      input: number,
      problem: () =>
        flags.brandDetection === 'false' && digits() !== '' && !brand()
          ? { text: 'brandMissing' }
          : numberProblem(rows, taken, digits()),
    },
    {
      name: 'ExpiryDate',
      input: expiry,
      problem: () => expiryProblem(expiry.value, flags.disableCardExpiryDateValidation === 'true' ? undefined : month, example()),
    },
    {
      name: 'SecurityCode',
      input: cvv,
      problem: () =>
        cvvProblem(digitsOf(cvv.value), brand()?.cvvLength ?? (digitsOf(cvv.value).length === 4 ? 4 : 3), cvvOptional()),
    },
    { name: 'CardHolder', input: holder, problem: () => holderProblem(holder.value, flags.allowEmptyCardHolderName === 'true') },
  ]
  const [numberField] = fields as [FormField]

  number.addEventListener('input', event => {
    writeNumber(number, (event as InputEvent).inputType, brandOfNumber(rows, digits())?.name)
    const soon = numberProblemSoon(rows, taken, digits())
    if (soon || numberField.problem() === undefined) showProblem(numberField, soon)
    showBrands()
  })
  expiry.addEventListener('input', event => {
    const adding = !(event as InputEvent).inputType?.startsWith('delete')
    if (expiry.selectionEnd === expiry.value.length || !adding) expiry.value = expiryText(expiry.value, adding)
  })
  expiry.addEventListener('blur', () => {
    const known = expiryOf(expiry.value)
    if (known) expiry.value = `${known.month} / ${known.year.slice(2)}`
  })
  cvv.addEventListener('input', () => {
    const plain = digitsOf(cvv.value)
    if (plain !== cvv.value) cvv.value = plain
  })
  element('brandChoice')!.addEventListener('change', event => {
    chosen = (event.target as HTMLInputElement).value
    showBrands()
  })
  fields.forEach(watchField)
  showBrands()

  /** Marks, the choice of a brand, and where its code stands. */
  function showBrands(): void {
    const fitting = choices(digits())
    const active = brand()
    const shown = active ? [active.name] : taken.slice(0, marksThatFit())
    for (const mark of element('marks')!.children)
      mark.toggleAttribute('hidden', !shown.includes((mark as SVGElement).dataset.brand!))
    const choice = element('brandChoice')!
    choice.hidden = fitting.length < 2
    for (const label of choice.querySelectorAll('label')) {
      const input = label.querySelector('input')!
      label.hidden = !fitting.some(({ name }) => name === input.value)
      input.checked = input.value === active?.name
    }
    const length = active?.cvvLength ?? 3
    element('cvv-hint')!.textContent = textOf({
      text: length === 4 ? 'cvvHintFront' : 'cvvHint',
      slots: { digits: String(length) },
    })
    const names = fitting.map(({ name }) => name)
    const telling = `${names.join(' ')} ${active?.name}`
    if (telling !== told) tellShop({ kind: 'brands', brands: names, active: active?.name ?? '' })
    told = telling
  }

  return {
    fields,
    choose(name = chosen) {
      chosen = name
      showBrands()
    },
    values() {
      const known = expiryOf(expiry.value)
      return {
        ...(brand() && { paymentBrand: brand()!.name }),
        'card.number': digits(),
        'card.expiryMonth': known?.month ?? '',
        'card.expiryYear': known?.year ?? '',
        'card.cvv': digitsOf(cvv.value),
        'card.holder': holder.value.trim(),
      }
    },
  }
}

/** Beside a whole card number. */
const marksThatFit = (): number => Math.max(1, Math.min(4, Math.floor((element('marks')!.parentElement!.offsetWidth - 220) / 38)))

/** A month that is still to come, as the placeholder writes it. */
const example = (): string => `05 / ${String(Number(month.slice(2, 4)) + 4).padStart(2, '0')}`

/** Groups the digits and leaves the caret behind the digit that it stood behind. A space that is taken away takes its digit along. */
function writeNumber(input: HTMLInputElement, inputType: string | undefined, brand: string | undefined): void {
  let all = digitsOf(input.value)
  let before = digitsOf(input.value.slice(0, input.selectionStart ?? input.value.length)).length
  const shown = input.dataset.digits ?? ''
  if (inputType === 'deleteContentBackward' && all === shown && before > 0 && input.dataset.shown !== input.value) {
    all = all.slice(0, before - 1) + all.slice(before)
    before--
  }
  const text = flags.numberFormatting === 'false' ? all : groupedNumber(all, brand)
  input.value = text
  input.dataset.digits = all
  input.dataset.shown = text
  const place = placeBehind(text, before)
  // Behind a full group the caret stands behind its space, where the next digit comes.
  const caret = text[place] === ' ' && !inputType?.startsWith('delete') ? place + 1 : place
  if (document.activeElement === input) input.setSelectionRange(caret, caret)
}
