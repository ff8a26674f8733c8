// What checkouts need of a process.

import type { PaymentParts } from '../payments/parts.ts'

/** The form's script: the build that is served now, and the hash by which a page may insist on it. */
export type FormBuild = { readonly build: string; readonly integrity: string }

export type CheckoutParts = PaymentParts & { formBuild(): FormBuild }
