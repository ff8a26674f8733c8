// Events that can be made to happen in a sandbox, as the calls that make them.

import type { SandboxEvent } from '../pages/developers/events.ts'

const card = {
  amount: '92.00',
  currency: 'EUR',
  paymentBrand: 'VISA',
  'card.number': '4200000000000000',
  'card.holder': 'Jane Jones',
  'card.expiryMonth': '05',
  'card.expiryYear': '2034',
  'card.cvv': '123',
}
const whole = { amount: card.amount, currency: card.currency }

const pay = (paymentType: string, more: Readonly<Record<string, string>> = {}) => ({ fields: { ...card, paymentType, ...more } })
const refer = (paymentType: string, more: Readonly<Record<string, string>> = {}) => ({
  refers: true as const,
  fields: { paymentType, ...more },
})

export const triggers: Readonly<Record<string, SandboxEvent>> = {
  'payment.approved': { says: 'a debit that is approved', steps: [pay('DB')] },
  'payment.declined': { says: 'a debit that the issuer declines', steps: [pay('DB', { 'card.number': '4000000000000002' })] },
  'payment.pending': {
    says: 'pending at first, approved a second later',
    steps: [pay('DB', { 'customParameters[simulateAnswer]': 'late' })],
  },
  'payment.timedOut': {
    says: 'pending at first; after 15 seconds (or `tollgate clock`) timed out and reversed',
    steps: [pay('DB', { 'customParameters[simulateAnswer]': 'none' })],
  },
  preauthorization: { says: 'a preauthorization', steps: [pay('PA')] },
  capture: { says: 'a preauthorization and its capture', steps: [pay('PA'), refer('CP', whole)] },
  refund: { says: 'a debit and its refund', steps: [pay('DB'), refer('RF', { ...whole, amount: '10.00' })] },
  reversal: { says: 'a debit and its reversal', steps: [pay('DB'), refer('RV')] },
}
