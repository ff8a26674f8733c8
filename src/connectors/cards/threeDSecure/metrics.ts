// What directory servers show the operator.

import type { Figure, FigureValue } from '../../../platform/metrics.ts'
import type { DirectoryMetrics } from './directory.ts'

export const figuresOfDirectories = (directories: ReadonlyMap<string, { metrics(): DirectoryMetrics }>): readonly Figure[] => {
  const read = () => [...directories].map(([mode, directory]) => ({ mode, ...directory.metrics() }))
  return [
    {
      kind: 'counter',
      name: 'tollgate_directory_server_messages_total',
      help: 'Messages to directory servers of 3-D Secure by how they ended; what failed is no authentication.',
      read: () =>
        read().flatMap(({ mode, counts }) =>
          Object.entries(counts).flatMap(([message, events]) =>
            Object.entries(events).map(([event, count]): FigureValue => [{ mode, message, event }, count]),
          ),
        ),
    },
    {
      kind: 'gauge',
      name: 'tollgate_card_ranges',
      help: 'Card ranges of directory servers that a process keeps; 0 before they were asked for.',
      across: 'max',
      read: () => read().map(({ mode, ranges }) => [{ mode }, ranges]),
    },
    {
      kind: 'counter',
      name: 'tollgate_card_range_lookups_total',
      help: 'Cards looked for in the card ranges of directory servers; those outside pay without authentication.',
      read: () =>
        read().flatMap(({ mode, cards }) => Object.entries(cards).map(([event, count]): FigureValue => [{ mode, event }, count])),
    },
  ]
}
