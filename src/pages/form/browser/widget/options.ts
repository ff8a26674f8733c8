// What shops say in wpwlOptions, as they have always said it, and what of it the frame is told. Everything is read once, when the form is made.

import { variables } from '../colours.ts'

export type WpwlOptions = Readonly<Record<string, unknown>> & {
  readonly locale?: string
  readonly theme?: string
  readonly shopperResultUrl?: string
  readonly paymentTarget?: string
  readonly shopperResultTarget?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly errorMessages?: Readonly<Record<string, string>>
  readonly registrations?: { readonly requireCvv?: boolean; readonly hideInitialPaymentForms?: boolean }
  readonly browser?: { readonly threeDChallengeWindow?: string | number }
  readonly brandDetectionPriority?: readonly string[]
}

declare global {
  interface Window {
    wpwlOptions?: WpwlOptions
    wpwl?: object
  }
}

export const wpwlOptions = (): WpwlOptions => window.wpwlOptions ?? {}

/** Calls one of the shop's functions. What it throws is the shop's to see, and does not stop the form. */
export function callShop(name: string, ...values: unknown[]): unknown {
  const callback = wpwlOptions()[name]
  if (typeof callback !== 'function') return undefined
  try {
    return callback.apply(wpwlOptions(), values)
  } catch (error) {
    console.error(`wpwlOptions.${name}:`, error)
    return undefined
  }
}

/** Switches that the frame knows, by their names in wpwlOptions. */
const switches = [
  'style',
  'autofocus',
  'numberFormatting',
  'showLabels',
  'showPlaceholders',
  'showCVVHint',
  'maskCvv',
  'allowEmptyCvv',
  'allowEmptyCardHolderName',
  'disableCardExpiryDateValidation',
  'disableSubmitOnEnter',
  'brandDetection',
  'forceCardHolderEqualsBillingName',
]

export function frameFlags(): Record<string, string> {
  const { requireCvv, registrations = {}, showOneClickWidget, brandDetectionPriority } = wpwlOptions()
  const given = Object.fromEntries(
    switches.flatMap(name => (wpwlOptions()[name] === undefined ? [] : [[name, String(wpwlOptions()[name])]])),
  )
  return {
    ...given,
    ...(requireCvv === false && { allowEmptyCvv: 'true' }),
    ...(registrations.requireCvv !== undefined && { savedCvv: String(registrations.requireCvv) }),
    ...(registrations.hideInitialPaymentForms && { hideInitialPaymentForms: 'true' }),
    ...(showOneClickWidget === false && { hideSaved: 'true' }),
    ...(Array.isArray(brandDetectionPriority) && { brandDetectionPriority: brandDetectionPriority.join(' ') }),
  }
}

/** Labels, placeholders and error messages. */
export function frameTexts(): Record<string, string> {
  const { labels = {}, errorMessages = {} } = wpwlOptions()
  return Object.fromEntries(
    Object.entries({ ...labels, ...errorMessages }).map(([name, text]) => [name, String(text).slice(0, 300)]),
  )
}

/** The variables that the shop's own style sheet sets where its form stands. */
export function frameVariables(place: Element): Record<string, string> {
  const style = getComputedStyle(place)
  return Object.fromEntries(
    Object.keys(variables).flatMap(name => {
      const value = style.getPropertyValue(name).trim()
      return value === '' ? [] : [[name, value]]
    }),
  )
}

/** The window that goes on with the payment: the whole one, unless the shop's page is itself in a frame and wants to stay there. */
export const leaveTarget = (): string => String(wpwlOptions().paymentTarget ?? wpwlOptions().shopperResultTarget ?? '_top')
