// What the shop chose of the form's look and words. Its page is not trusted: words become text, values must look like what they are for.

import { textOn, variables } from '../colours.ts'
import type { FormMessage } from '../messages.ts'
import { element, flags, shopTexts } from './page.ts'

/** The names that shops use for labels, and ours for the elements that show them. */
const labels: Readonly<Record<string, string>> = {
  cardNumber: 'cardNumber-label',
  expiryDate: 'expiry-label',
  cvv: 'cvv-label',
  cardHolder: 'cardHolder-label',
}

/** The names that shops use for errors, and ours. */
const errors: Readonly<Record<string, readonly string[]>> = {
  cardNumberError: ['cardNumberMissing', 'cardNumberIncomplete', 'cardNumberWrong'],
  expiryMonthError: ['expiryMissing', 'expiryWrong', 'expiryPast'],
  expiryYearError: ['expiryMissing', 'expiryWrong', 'expiryPast'],
  cvvError: ['cvvMissing', 'cvvWrong'],
  cardHolderError: ['holderMissing', 'holderWrong'],
}

const placeholders: Readonly<Record<string, string>> = {
  cardNumberPlaceholder: 'cardNumber',
  expiryDatePlaceholder: 'expiry',
  cvvPlaceholder: 'cvv',
  cardHolderPlaceholder: 'cardHolder',
}

export function takeOptions(message: FormMessage): void {
  Object.assign(flags, message.flags)
  for (const [name, text] of Object.entries(message.texts as Record<string, string>)) {
    const label = Object.hasOwn(labels, name) ? element(labels[name]!) : null
    if (label) label.textContent = text
    for (const ours of Object.hasOwn(errors, name) ? errors[name]! : []) shopTexts[ours] = text
    if (Object.hasOwn(placeholders, name)) element<HTMLInputElement>(placeholders[name]!)?.setAttribute('placeholder', text)
    if (name === 'submit') for (const panel of document.querySelectorAll<HTMLElement>('.method')) panel.dataset.button = text
  }
  paint(message.variables as Record<string, string>)
  const { classList } = document.documentElement
  classList.add('ready') // for whoever waits: tests and pictures
  classList.toggle('noLabels', flags.showLabels === 'false')
  classList.toggle('noHints', flags.showCVVHint === 'false')
  classList.toggle('plain', flags.style === 'plain' || flags.style === 'none')
  if (flags.hideSaved === 'true') for (const one of document.querySelectorAll('#choices > .title, #saved')) one.remove()
  if (flags.showPlaceholders === 'false')
    for (const input of document.querySelectorAll('input[placeholder]')) input.removeAttribute('placeholder')
  if (flags.maskCvv === 'true')
    for (const input of document.querySelectorAll('input[name="card.cvv"]')) input.setAttribute('type', 'password')
  if (flags.hideInitialPaymentForms === 'true') element('others')?.setAttribute('hidden', '')
  element('showOthers')?.toggleAttribute('hidden', flags.hideInitialPaymentForms !== 'true')
  const holder = element<HTMLInputElement>('cardHolder')
  if (holder && flags.forceCardHolderEqualsBillingName === 'true' && holder.value !== '') holder.readOnly = true
  if (flags.autofocus === 'true') document.querySelector<HTMLInputElement>('.chosen input:not([type=radio])')?.focus()
}

export function paint(chosen: Readonly<Record<string, string>>): void {
  const { style } = document.documentElement
  for (const [name, value] of Object.entries(chosen)) {
    if (!Object.hasOwn(variables, name) || !variables[name]!.test(value)) continue
    style.setProperty(name, value)
    if (name === '--wpwl-color-primary') style.setProperty('--on-primary', textOn(value))
  }
}
