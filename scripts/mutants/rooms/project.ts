// The planted faults of what stands beside src/.

import type { Mutant } from '../plant.ts'

export const projectMutants: readonly Mutant[] = [
  { name: 'the CVV of a challenge is sampled for the planner', file: 'migrations/0053_no_samples.sql', tests: ['challengeSecrets', 'keyRotation'],
    find: 'alter column payment_id set statistics 0,\n  alter column sealed set statistics 0,', instead: 'alter column payment_id set statistics 0,' },
  { name: 'sealed records that were sampled stay with the planner', file: 'migrations/0053_no_samples.sql', tests: ['migrations'],
    find: 'alter table challenge_secrets\n  alter column sealed type bytea,', instead: 'alter table challenge_secrets' },
  { name: 'sealed cards are sampled for the planner', file: 'migrations/0053_no_samples.sql', tests: ['keyRotation'],
    find: 'alter table sealed_cards     alter column sealed type bytea, alter column sealed set statistics 0', instead: 'alter table sealed_cards alter column sealed type bytea' },
  { name: 'deliveries: the end of one wakes nobody', file: 'migrations/0062_closed_endpoints.sql', tests: ['deliveryBacklog'],
    find: 'update deliveries d set behind = false', instead: 'update deliveries d set behind = true' },
  { name: 'deliveries: the end of one wakes nobody while its merchant leaves', file: 'migrations/0062_closed_endpoints.sql', tests: ['deliveryBacklog'],
    find: " and m.direction = 'arriving'", instead: '' },
  { name: 'deliveries: an end wakes the next alone, though nobody waits for that one', file: 'migrations/0062_closed_endpoints.sql', tests: ['deliveryBacklog'],
    find: 'exit when not found or not goes_on', instead: 'exit' },
  { name: 'closing: what is given up wakes the next', file: 'migrations/0062_closed_endpoints.sql', tests: ['deliveryBacklog'],
    find: " and e.state = 'active')", instead: ')' },
  { name: 'moves: who is forgotten is written for', file: 'migrations/0071_left_behind.sql', tests: ['moves'],
    find: "and not here and state <> 'frozen'", instead: "and not here and state = 'moved'" },
  { name: 'moves: who is held ends nothing that it has begun', file: 'migrations/0071_left_behind.sql', tests: ['heldMerchants'],
    find: ' and put_back_at is null)', instead: ')' },
  { name: 'moves: what is changed where a merchant arrives is lost', file: 'migrations/0071_left_behind.sql', tests: ['moves'],
    find: "else 'insert or update or delete' end", instead: "else 'insert' end" },
  { name: 'moves: a table is left out without a reason', file: 'migrations/0071_left_behind.sql', tests: ['moves'],
    find: 'capture_files,captures,', instead: 'answers,capture_files,captures,' },
  { name: 'inspector: a script of npm opens one', file: 'package.json', tests: ['inspector'],
    find: 'node --disable-sigusr1 scripts/upgradeDatabase.ts', instead: 'node scripts/upgradeDatabase.ts' },
]
