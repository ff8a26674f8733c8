// What slips have of a payment.

import type { ChainTable } from '../payments/store/chainTable.ts'

export const chainsOfSlips: readonly ChainTable[] = [{ table: 'slips' }]
