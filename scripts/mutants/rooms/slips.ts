// The planted faults of src/slips/.

import type { Mutant } from '../plant.ts'

export const slipsMutants: readonly Mutant[] = [
  { name: 'slips: a number that a slip has is given again', file: 'src/slips/numbers.ts', tests: ['slips'],
    find: '!given.has(number)', instead: 'true' },
  { name: 'slips: the last numbers of an account are for nobody', file: 'src/slips/numbers.ts', tests: ['slips'],
    find: 'if (wanted.length > 1) throw', instead: 'if (wanted.length > 1000) throw' },
  { name: 'slips: numbers begin anew with each process', file: 'src/slips/store.ts', tests: ['slips'],
    find: 'set next = n.next + $2 where', instead: 'set next = n.next where' },
  { name: 'slips: numbers are given that another cell gives out', file: 'src/slips/store.ts', tests: ['slips', 'moveDatabases'],
    find: '(not n.elsewhere or $4)', instead: '($4 or true)' },
  { name: 'slips: numbers of an account that is elsewhere cannot be passed over', file: 'src/slips/store.ts', tests: ['putBack'],
    find: 'goOn(db, account, count, end, true)', instead: 'goOn(db, account, count, end, false)' },
  { name: 'slips: an account without a counter is used up at once', file: 'src/slips/store.ts', tests: ['moveDatabases'],
    find: 'select $1, 1 + $2::bigint where 1 + $2 <= $3', instead: 'values ($1, 1 + $2::bigint)' },
]
