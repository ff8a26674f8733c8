// What 3-D Secure wants to know of the shopper's browser. What is absent is collected on our own page.

import { AN, N, oneWordOf, shaped } from '../formats.ts'
import type { Parameters } from './parameter.ts'

export const browser = {
  'customer.browser.acceptHeader':      { format: AN(2048), keep: true, descriptive: true },
  'customer.browser.userAgent':         { format: AN(2048), keep: true, descriptive: true },
  'customer.browser.language':          { format: shaped('AN35, as in Accept-Language', '^[A-Za-z0-9\\-]{1,35}$', ['de', 'pt-BR'], ['', 'de_DE', 'a'.repeat(36)]), keep: true, descriptive: true },
  'customer.browser.screenHeight':      { format: N(6), keep: true, descriptive: true },
  'customer.browser.screenWidth':       { format: N(6), keep: true, descriptive: true },
  'customer.browser.screenColorDepth':  { format: N(2), keep: true, descriptive: true },
  'customer.browser.timezone':          { format: shaped('minutes to UTC, -840 to 840', '^[+\\-]?[0-9]{1,3}$', ['0', '-120', '+60', '840'], ['841', 'x', '1000', ''], value => Math.abs(Number(value)) <= 840), keep: true, descriptive: true },
  'customer.browser.javaEnabled':       { format: oneWordOf('true', 'false'), keep: true, descriptive: true },
  'customer.browser.javascriptEnabled': { format: oneWordOf('true', 'false'), keep: true, descriptive: true },
  'customer.browser.challengeWindow':   { format: shaped('1 to 5, or 01 to 05', '^0?[1-5]$', ['1', '05'], ['0', '6', '005']), keep: true, descriptive: true, note: '01 250×400, 02 390×400, 03 500×600, 04 600×400, 05 full page.' },
} satisfies Parameters
