// Dialects: which table of fields a host speaks, and how its type indicator and bitmap are written. docs/operating-acquirer.md tells how to add one.

import { type Fields, fields1987, fields1993, packed } from './fields.ts'

export type Dialect = {
  readonly name: string
  /** Decides the codes and where times and original data stand, see versions.ts. */
  readonly version: '1987' | '1993'
  readonly fields: Fields
  readonly typeIndicator: 'ascii' | 'bcd'
  readonly bitmap: 'binary' | 'hex'
}

export const dialects: Readonly<Record<string, Dialect>> = {
  '1987': { name: '1987', version: '1987', fields: fields1987, typeIndicator: 'ascii', bitmap: 'binary' },
  '1987 hex bitmap': { name: '1987 hex bitmap', version: '1987', fields: fields1987, typeIndicator: 'ascii', bitmap: 'hex' },
  '1987 bcd': { name: '1987 bcd', version: '1987', fields: packed(fields1987), typeIndicator: 'bcd', bitmap: 'binary' },
  '1993': { name: '1993', version: '1993', fields: fields1993, typeIndicator: 'ascii', bitmap: 'binary' },
}
