// A Dockerfile as data: its stages with their instructions. Reads what ours is written in: exec forms, no heredocs, no variables but those of ENV.

export type Instruction = {
  readonly name: string
  /** `--from=build`, `--interval=10s`. */
  readonly flags: Readonly<Record<string, string>>
  /** Words behind the flags; of a JSON array its items. */
  readonly words: readonly string[]
  readonly isExec: boolean
}

export type Stage = { readonly image: string; readonly name: string | undefined; readonly instructions: readonly Instruction[] }

export function readDockerfile(text: string): Stage[] {
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = []
  const lines = text
    .replace(/^#.*\n/gm, '')
    .replaceAll('\\\n', ' ')
    .split('\n')
  for (const line of lines.filter(line => line.trim() !== '')) {
    const one = instructionOf(line)
    if (one.name === 'FROM') stages.push({ image: one.words[0]!, name: one.words[2], instructions: [] })
    else if (one.name === 'HEALTHCHECK')
      stages.at(-1)!.instructions.push({ ...instructionOf(one.words.join(' ')), name: 'HEALTHCHECK', flags: one.flags })
    else stages.at(-1)!.instructions.push(one)
  }
  return stages
}

function instructionOf(line: string): Instruction {
  const [, name = '', options = '', rest = ''] = /^\s*([A-Z]+)((?:\s+--[a-z-]+=\S+)*)\s+(.*)$/.exec(line) ?? []
  if (name === '') throw new Error(`not an instruction: ${line}`)
  const flags = Object.fromEntries(options.matchAll(/--([a-z-]+)=(\S+)/g).map(([, flag, value]) => [flag!, value!]))
  const isExec = rest.startsWith('[')
  const words = isExec ? JSON.parse(rest) : name === 'RUN' ? ['/bin/sh', '-c', rest] : rest.trim().split(/\s+/)
  return { name, flags, words, isExec }
}

/** All that ENV sets. */
export const environmentOf = ({ instructions }: Stage): Readonly<Record<string, string>> =>
  Object.fromEntries(
    instructions.filter(({ name }) => name === 'ENV').flatMap(({ words }) => words.map(word => word.split(/=(.*)/s).slice(0, 2))),
  )

/** The last instruction of a name, which is the one that counts. */
export function lastOf({ image, instructions }: Stage, wanted: string): Instruction {
  const found = instructions.findLast(({ name }) => name === wanted)
  if (!found) throw new Error(`the stage of ${image} has no ${wanted}`)
  return found
}
