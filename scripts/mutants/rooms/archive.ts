// The planted faults of src/archive/.

import type { Mutant } from '../plant.ts'

export const archiveMutants: readonly Mutant[] = [
  { name: 'archive: what changed since it was written is taken out', file: 'src/archive/archive.ts', tests: ['archive'],
    find: 'now.filter(({ root, text }) => texts.get(root) === text)', instead: 'now.filter(({ root }) => texts.has(root))' },
  { name: 'archive: a chain with a finding goes', file: 'src/archive/archive.ts', tests: ['archive'],
    find: 'settled.filter(root => !findings.has(root))', instead: 'settled.filter(root => root !== String(findings))' },
  { name: 'archive: of a hundred chains the last is read twice', file: 'src/archive/archive.ts', tests: ['archive'],
    find: 'after = roots.at(-1)!', instead: 'after = roots.at(-2)!' },
  { name: 'archive: a file of somebody else is written over', file: 'src/archive/archive.ts', tests: ['archive'],
    find: '(await archiveIn(path)) === begun.id', instead: '(await archiveIn(path)) !== undefined' },
  { name: 'archive: a live chain of yesterday goes', file: 'src/archive/archive.ts', tests: ['archive'],
    find: "(mode === 'live' ? leastDays * 86_400_000 : 0)", instead: "(mode === 'live' ? leastDays * 86_000_000 : 0)" },
  { name: 'archive: a file is believed before it was read to its end', file: 'src/archive/archive.ts', tests: ['archive'],
    find: 'if (!archive!.proof?.equals(reading!.proof())) throw', instead: 'if (archive!.proof === null) throw' },
  { name: 'archive: two commands work at a time', file: 'src/archive/store.ts', tests: ['archive'],
    find: 'return rows[0]!.ours', instead: 'return rows.length === 1' },
  { name: 'archive: what was answered lately goes', file: 'src/archive/store.ts', tests: ['archive'],
    find: ' and a.answered_at < $3)', instead: ')' },
  { name: 'archive: a chain is taken that no file could bring back', file: 'src/archive/store.ts', tests: ['archive'],
    find: '> ${chainBytesMost}', instead: '> 1000 * ${chainBytesMost}' },
]
