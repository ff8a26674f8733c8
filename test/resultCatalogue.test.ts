// The catalogue of results keeps its wire texts, and the advice puts every code on the right side of each group's boundary.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { actor, type Outcome, outcome, type Retry, retry, type WhoMustAct } from '../src/contract/results/advice.ts'
import { catalogue } from '../src/contract/results/catalogue.ts'

const rows: readonly (readonly [code: string, description: string])[] = Object.values(catalogue)

// Clients compare or search these texts.
const wireTexts: Readonly<Record<string, string>> = {
  '000.000.000': 'Transaction succeeded',
  '000.000.100': 'successful request',
  '000.100.110': "Request successfully processed in 'Merchant in Integrator Test Mode'",
  '000.100.111': "Request successfully processed in 'Merchant in Validator Test Mode'",
  '000.100.112': "Request successfully processed in 'Merchant in Connector Test Mode'",
  '000.200.000': 'transaction pending',
  '000.200.100': 'successfully created checkout',
  '000.200.101': 'successfully updated checkout',
  '100.100.101': 'invalid creditcard, bank account number or bank name',
  '100.100.600': 'empty CVV for VISA,MASTER, AMEX not allowed',
  '200.300.404': 'invalid or missing parameter',
  '700.400.510': 'capture needs at least one successful transaction of type (PA)',
  '700.400.530': 'reversal needs at least one successful transaction of type (CP, DB, RB or PA)',
  '700.400.580': 'cannot find transaction',
  '800.100.151': 'transaction declined (invalid card)',
  '800.120.100': 'Too many requests. Please try again later.',
  '800.900.201': 'unknown channel',
  '800.900.300': 'invalid authentication information',
}

const outcomes: readonly (readonly [code: string, outcome: Outcome])[] = [
  ['000.000.000', 'success'],
  ['000.100.105', 'success'],
  ['000.100.112', 'success'],
  ['000.100.200', 'rejected'], // a chargeback
  ['000.100.299', 'rejected'],
  ['000.200.000', 'pending'],
  ['000.200.201', 'pending'],
  ['000.300.000', 'success'],
  ['000.310.110', 'success'],
  ['000.400.000', 'review'],
  ['000.400.020', 'review'],
  ['000.400.030', 'error'], // the one among the reviews that failed
  ['000.400.040', 'review'],
  ['000.400.091', 'review'],
  ['000.400.100', 'review'],
  ['000.400.101', 'rejected'],
  ['000.400.109', 'rejected'],
  ['000.400.110', 'success'],
  ['000.400.111', 'rejected'],
  ['000.400.113', 'rejected'],
  ['000.400.120', 'success'],
  ['000.400.200', 'rejected'],
  ['000.500.000', 'success'],
  ['000.600.000', 'success'],
  ['100.100.700', 'invalid'],
  ['100.100.701', 'rejected'],
  ['100.150.100', 'invalid'],
  ['100.370.100', 'rejected'],
  ['100.370.101', 'invalid'],
  ['100.370.111', 'rejected'],
  ['100.370.121', 'invalid'],
  ['100.380.100', 'rejected'],
  ['100.380.101', 'invalid'],
  ['100.380.110', 'rejected'],
  ['100.380.306', 'invalid'],
  ['100.380.401', 'rejected'],
  ['100.390.124', 'rejected'],
  ['100.395.101', 'rejected'],
  ['100.397.102', 'rejected'],
  ['100.400.328', 'rejected'],
  ['100.400.500', 'pending'],
  ['100.500.101', 'invalid'],
  ['100.550.300', 'invalid'],
  ['200.300.404', 'invalid'],
  ['300.100.100', 'rejected'],
  ['500.100.201', 'invalid'],
  ['600.100.100', 'error'],
  ['600.200.100', 'invalid'],
  ['600.300.211', 'invalid'],
  ['700.100.100', 'invalid'],
  ['700.601.003', 'invalid'],
  ['800.100.100', 'rejected'],
  ['800.110.100', 'rejected'],
  ['800.120.402', 'rejected'],
  ['800.121.100', 'invalid'],
  ['800.130.100', 'rejected'],
  ['800.160.130', 'rejected'],
  ['800.200.159', 'rejected'],
  ['800.310.211', 'rejected'],
  ['800.400.151', 'rejected'],
  ['800.400.200', 'rejected'],
  ['800.400.500', 'pending'],
  ['800.400.502', 'pending'],
  ['800.500.100', 'error'],
  ['800.600.100', 'error'],
  ['800.700.100', 'rejected'],
  ['800.800.302', 'rejected'],
  ['800.800.400', 'error'],
  ['800.800.801', 'error'],
  ['800.900.100', 'invalid'],
  ['900.100.100', 'error'],
  ['999.999.888', 'error'],
  ['000.700.000', 'error'], // not a code of the list
]

const advice: readonly (readonly [code: string, actor: WhoMustAct, retry: Retry])[] = [
  ['000.000.000', 'nobody', 'no'],
  ['000.100.220', 'merchant', 'no'],
  ['000.200.000', 'nobody', 'no'],
  ['000.400.000', 'merchant', 'no'],
  ['000.400.030', 'merchant', 'no'],
  ['000.400.101', 'shopper', 'afterChange'],
  ['000.400.110', 'nobody', 'no'],
  ['000.400.111', 'shopper', 'afterChange'],
  ['000.400.113', 'issuer', 'afterChange'],
  ['000.400.120', 'nobody', 'no'],
  ['100.100.303', 'shopper', 'afterChange'],
  ['100.100.701', 'shopper', 'never'],
  ['100.380.401', 'shopper', 'later'],
  ['100.390.118', 'shopper', 'never'],
  ['100.396.101', 'shopper', 'later'],
  ['100.400.500', 'nobody', 'no'],
  ['100.550.401', 'developer', 'afterChange'],
  ['200.300.404', 'developer', 'afterChange'],
  ['300.100.100', 'shopper', 'afterChange'],
  ['600.200.201', 'operator', 'afterChange'],
  ['600.200.310', 'developer', 'afterChange'],
  ['700.300.700', 'merchant', 'never'],
  ['700.400.570', 'nobody', 'later'],
  ['700.400.580', 'developer', 'afterChange'],
  ['700.600.002', 'merchant', 'later'],
  ['700.601.001', 'shopper', 'afterChange'],
  ['700.601.003', 'shopper', 'never'],
  ['800.120.100', 'developer', 'later'],
  ['800.200.159', 'shopper', 'never'],
  ['800.400.500', 'nobody', 'no'],
  ['800.800.801', 'operator', 'later'],
  ['800.900.300', 'developer', 'afterChange'],
  ['900.100.300', 'acquirer', 'no'],
  ['900.100.301', 'acquirer', 'later'],
  ['900.100.310', 'operator', 'afterChange'],
  ['900.100.600', 'acquirer', 'later'],
  ['999.999.888', 'operator', 'later'],
  // The answers of card issuers, by the card schemes' rules for retries.
  ['800.100.151', 'shopper', 'never'],
  ['800.100.152', 'issuer', 'later'],
  ['800.100.153', 'shopper', 'afterChange'],
  ['800.100.154', 'developer', 'never'],
  ['800.100.155', 'shopper', 'later'],
  ['800.100.156', 'developer', 'afterChange'],
  ['800.100.157', 'shopper', 'afterChange'],
  ['800.100.159', 'shopper', 'never'],
  ['800.100.162', 'shopper', 'later'],
  ['800.100.163', 'shopper', 'later'],
  ['800.100.165', 'shopper', 'never'],
  ['800.100.170', 'issuer', 'never'],
  ['800.100.171', 'issuer', 'never'],
  ['800.100.172', 'issuer', 'never'],
  ['800.100.174', 'developer', 'afterChange'],
  ['800.100.190', 'operator', 'afterChange'],
  ['800.100.197', 'shopper', 'never'],
  ['900.100.400', 'acquirer', 'later'],
  ['900.100.500', 'acquirer', 'later'],
]

test('the catalogue holds the whole list, each code once', () => {
  assert.equal(rows.length, 662)
  assert.equal(new Set(rows.map(([code]) => code)).size, 662)
  for (const [code] of rows) assert.match(code, /^[0-9.]{2,11}$/)
})

test('every result has a description that fits the wire', () => {
  for (const [code, description] of rows) assert.ok(description.trim() !== '' && description.length <= 255, code)
})

test('the texts that clients match are kept letter by letter', () => {
  const byCode = new Map(rows)
  for (const [code, text] of Object.entries(wireTexts)) assert.equal(byCode.get(code), text, code)
  assert.match(byCode.get('600.200.500') ?? '', /^Invalid payment data/)
})

test('a code has its outcome', () => {
  for (const [code, expected] of outcomes) assert.equal(outcome(code), expected, code)
})

test('a code tells who must act and whether to try again', () => {
  for (const [code, who, again] of advice) assert.deepEqual([actor(code), retry(code)], [who, again], code)
})
