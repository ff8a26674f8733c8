// The reference page of the command line, from the commands themselves.

import type { Command } from 'commander'
import { makeProgram } from '../../src/cli/program.ts'
import { shapeOf } from '../../src/cli/reads.ts'
import { code, generatedMark, table } from './markdown.ts'

export function commandLinePage(): string {
  return `# Command line

${generatedMark}
\`bin/tollgate\` works with the Node that the packages bring, or with the first on \`PATH\` that is 24 or newer; packages that were never installed it
installs first. It reads the same environment as the gateway. \`tollgate completion bash\` and \`tollgate completion zsh\` print scripts that complete it:
put \`source <(tollgate completion bash)\` into \`~/.bashrc\`.

| Exit code | Meaning |
| --- | --- |
| 0 | all is well |
| 1 | it failed, or it found something: books that differ, a chain that was tampered with, a line that was refused |
| 2 | it was used wrongly: an unknown command or option, a malformed value |

What goes wrong is a sentence on standard error. Commands with \`--json\` print one JSON document on standard output; its fields stay as they are named here, and
new ones may come. Times are of ISO 8601 in UTC, amounts texts with two decimals. \`listen --json\` goes on for as long as it runs and prints a document a line.

${makeProgram()
  .commands.flatMap(command => sectionsOf(command, 'tollgate'))
  .join('\n')}`
}

function sectionsOf(command: Command, above: string): string[] {
  const path = `${above} ${command.name()}`
  const below = command.commands.flatMap(one => sectionsOf(one, path))
  const shape = shapeOf(command)
  // A name that only leads to others needs no section.
  if (below.length > 0 && !shape) return below
  const words = command.registeredArguments.map(argument => ` ${argument.name().toUpperCase()}`).join('')
  const options = command.options.map(({ flags, description, mandatory, defaultValue }) => [
    code(flags),
    `${description}${mandatory ? ' (required)' : ''}${defaultValue === undefined ? '' : ` (\`${defaultValue}\`)`}`,
  ])
  const fields = Object.entries(shape ?? {}).map(([place, names]) => [
    place === '' ? 'the document' : code(place),
    names.split(' ').map(code).join(', '),
  ])
  return [
    [
      `## ${path}${words}\n`,
      `${command.description()}\n`,
      ...(options.length > 0 ? [`${table(['Option', 'What it does'], options)}\n`] : []),
      ...(fields.length > 0 ? [`${table(['Of `--json`', 'Fields'], fields)}\n`] : []),
    ].join('\n'),
    ...below,
  ]
}
