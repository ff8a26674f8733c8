// The planted faults of src/alerts/.

import type { Mutant } from '../plant.ts'

export const alertsMutants: readonly Mutant[] = [
  { name: 'watching: mail comes every minute', file: 'src/alerts/alerts.ts', tests: ['alertMail'],
    find: 'news.length === 0 || now - mailedAt < mailMilliseconds', instead: 'news.length === 0' },
  { name: 'watching: a restart tells everything again', file: 'src/alerts/alerts.ts', tests: ['alertMail'],
    find: '...remembered([...found, ...happened], told), ...nowTold', instead: '...nowTold' },
  { name: 'watching: nobody is told that the database was away', file: 'src/alerts/alerts.ts', tests: ['alertMail'],
    find: 'wasAway = isAway', instead: 'wasAway = false' },
]
