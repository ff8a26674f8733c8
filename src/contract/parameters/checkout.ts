// What only the creation of a checkout takes.

import { oneWordOf, shaped } from '../formats.ts'
import { hex32 } from './common.ts'
import type { Parameters } from './parameter.ts'

export const checkout = {
  'registrations[n].id': { format: hex32, note: 'Registrations that the form offers to the shopper.' },
  'integrity': { format: oneWordOf('true', 'false'), note: "The answer names the hash of the form's script, and the checkout keeps that script until it ends." },
  'validMinutes': { format: shaped('N6: minutes, 1 to 999999', '^[1-9][0-9]{0,5}$', ['1', '30', '999999'], ['0', '01', '1000000', '-1', '1.5']), note: 'For a link that is sent: how long the checkout lives, up to what the channel allows; 30 when absent. The answer then carries the link.' },
} satisfies Parameters
