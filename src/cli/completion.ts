// tollgate completion: a script for bash or zsh that completes commands and options. It is written from the commands as they are, so that a new one
// is completed without another line here.

import { type Command, Option } from 'commander'

/** What may stand at one place of the command line, and what it is, for shells that show it. */
type OfferedWord = readonly [word: string, what: string]
type Completable = {
  /** Names of the commands that lead here, `notifications list`; '' at the begin. */
  readonly path: string
  readonly commands: readonly OfferedWord[]
  readonly options: readonly OfferedWord[]
  /** Options whose next word is a file, one of these words, or anything else. */
  readonly values: readonly (readonly [flag: string, kind: 'file' | 'free' | readonly string[]])[]
  /** Whether what follows the command's name is a file, or one of these words. */
  readonly argument: 'file' | 'free' | readonly string[]
}

const shells: Readonly<Record<string, (places: readonly Completable[]) => string>> = { bash, zsh }

export default (program: Command): void => {
  const completion = program.command('completion').description('prints a script that completes commands and options in a shell')
  for (const [shell, script] of Object.entries(shells))
    completion
      .command(shell)
      .description(`for ${shell}: put \`source <(tollgate completion ${shell})\` into ~/.${shell}rc`)
      .action(() => void process.stdout.write(script(placesOf(program, ''))))
}

function placesOf(command: Command, path: string): Completable[] {
  const options = [...command.options, new Option('-h, --help', 'what it does and takes')]
  const flagOf = (option: Option) => option.long ?? option.short!
  const [argument] = command.registeredArguments
  return [
    {
      path,
      commands: command.commands.map(one => [one.name(), one.description()]),
      options: options.map(option => [flagOf(option), option.description]),
      values: options
        .filter(({ required, optional }) => required || optional)
        .map(option => [flagOf(option), option.argChoices ?? kindOf(option.flags)]),
      argument: argument ? (argument.argChoices ?? kindOf(`<${argument.name()}>`)) : [],
    },
    ...command.commands.flatMap(one => placesOf(one, `${path}${path && ' '}${one.name()}`)),
  ]
}

const kindOf = (flags: string) => (/<(file|path)>/.test(flags) ? 'file' : 'free')

/** Both scripts look which commands were written already, and choose among `case`s by them. */
const found = (places: readonly Completable[], words: string) => `  local at= word
  for word in ${words}; do
    case "$at $word" in
      ${places
        .filter(({ path }) => path !== '')
        .map(({ path }) => `' ${path}'`)
        .join('|')}) at="$at $word" ;;
    esac
  done
  at=\${at# }`

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
/** compgen splits at spaces: a word of two is left to the hand. */
const joined = (words: readonly string[]) => quoted(words.filter(word => !word.includes(' ')).join(' '))

function bash(places: readonly Completable[]): string {
  const values = places.flatMap(({ path, values }) =>
    values.map(([flag, kind]) => {
      const words = kind === 'file' ? 'compopt -o default' : `words=${joined(kind === 'free' ? [] : kind)}`
      return `    ${quoted(`${path} ${flag}`)}) ${words}; known=1 ;;`
    }),
  )
  const words = places.map(({ path, commands, options, argument }) => {
    const first = argument === 'file' ? 'compopt -o default; ' : ''
    const plain = [...commands.map(([name]) => name), ...(typeof argument === 'string' ? [] : argument)]
    return `    ${quoted(path)}) ${first}plain=${joined(plain)}; options=${joined(options.map(([flag]) => flag))} ;;`
  })
  return `# Completion of tollgate for bash, written by \`tollgate completion bash\`.
_tollgate() {
  local current=\${COMP_WORDS[COMP_CWORD]} words= plain= options= known=
${found(places, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
${values.join('\n')}
  esac
  case $at in
${words.join('\n')}
  esac
  if [ -z "$known" ]; then
    case $current in
      -*) words=$options ;;
      *) words=$plain ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _tollgate tollgate
`
}

function zsh(places: readonly Completable[]): string {
  const described = (words: readonly OfferedWord[]) =>
    words.map(([word, what]) => quoted(`${word.replaceAll(':', '\\:')}:${what}`)).join(' ')
  const values = places.flatMap(({ path, values }) =>
    values.map(([flag, kind]) => {
      const act = kind === 'file' ? '_files' : kind === 'free' ? '_message value' : `compadd -- ${kind.map(quoted).join(' ')}`
      return `    ${quoted(`${path} ${flag}`)}) ${act}; return ;;`
    }),
  )
  const words = places.map(({ path, commands, options, argument }) => {
    const files = argument === 'file' ? ' _files;' : ''
    const plain = [...commands, ...(typeof argument === 'string' ? [] : argument.map(word => [word, ''] as const))]
    return `    ${quoted(path)})${files} plain=(${described(plain)}); options=(${described(options)}) ;;`
  })
  return `#compdef tollgate
# Completion of tollgate for zsh, written by \`tollgate completion zsh\`.
_tollgate() {
  local -a plain options
${found(places, `\${words[2,CURRENT-1]}`)}
  case "$at \${words[CURRENT-1]}" in
${values.join('\n')}
  esac
  case $at in
${words.join('\n')}
  esac
  if [[ \${words[CURRENT]} == -* ]]; then _describe option options; else _describe command plain; fi
}
compdef _tollgate tollgate
`
}
