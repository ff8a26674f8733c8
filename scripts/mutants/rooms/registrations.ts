// The planted faults of src/registrations/.

import type { Mutant } from '../plant.ts'

export const registrationsMutants: readonly Mutant[] = [
  { name: 'the key of an older registration never ends', file: 'src/registrations/create.ts', tests: ['idempotency'],
    find: ' && madeAt - one.madeAt < keyHours * 3_600_000', instead: '' },
  { name: 'registrations: nobody is told who deleted one', file: 'src/registrations/erase.ts', tests: ['registrations'],
    find: "await record(db, recorder, [{ action: 'registrationDeleted', entityId: channelId, subject: id }])", instead: 'void [record, recorder, channelId]' },
  { name: 'a deleted registration keeps its card', file: 'src/registrations/erase.ts', tests: ['registrations'],
    find: 'await dropCard(db, ownerId, id)', instead: '' },
  { name: 'registrations: the hash of a card that an older version left stays', file: 'src/registrations/kept.ts', tests: ['erase'],
    find: '(fingerprint is not null or key_fingerprint is not null)', instead: '(key_fingerprint is not null)' },
  { name: 'registrations: the hash of a request stays', file: 'src/registrations/kept.ts', tests: ['erase'],
    find: "forgets: 'fingerprint = null, key_fingerprint = null'", instead: "forgets: 'fingerprint = null'" },
  { name: 'the network hears nothing of the agreement', file: 'src/registrations/use.ts', tests: ['acquirerProfiles', 'scenarios'],
    find: "agreementMode(request.values) === 'REPEATED' && sameMode", instead: "agreementMode(request.values) === 'NEVER' && sameMode" },
  { name: 'own channel: registrations of others are paid with', file: 'src/registrations/use.ts', tests: ['settings'],
    find: 'channelId === entityId || ', instead: "channelId !== '' || " },
]
