// The scripts that shops and shoppers get: browser modules with their types taken out, put one behind the other, in a file for the shop's page and one
// for the form. A shop's page takes no modules: what its integrity covers is one file. No bundler: modules give each other names, and no name twice.

import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { cacheFolder } from '../../platform/cacheFolder.ts'

export type BuiltFile = {
  readonly name: string
  readonly content: string
  /** The first 32 hex characters of its SHA-256: what its address and a checkout name it by. */
  readonly hash: string
  /** For the integrity attribute. */
  readonly integrity: string
}

export type BuiltForm = { readonly widget: BuiltFile; readonly form: BuiltFile }

export function buildForm(): BuiltForm {
  return { widget: built('paymentWidgets.js', 'widget/widget.ts'), form: built('form.js', 'frame/form.ts') }
}

/** What a checkout that asks for integrity is pinned to. */
export const pinnedBuild = ({ widget }: BuiltForm): { build: string; integrity: string } => ({
  build: widget.hash,
  integrity: widget.integrity,
})

function built(name: string, entry: string): BuiltFile {
  const content = scriptText(new URL(`./browser/${entry}`, import.meta.url), plain)
  const digest = (algorithm: string) => createHash(algorithm).update(content)
  return {
    name,
    content,
    hash: digest('sha256').digest('hex').slice(0, 32),
    integrity: `sha384-${digest('sha384').digest('base64')}`,
  }
}

const scriptText = (entry: URL, write: typeof plain): string => `(()=>{'use strict'\n${joined(entry, write)}})()\n`

/** The script of a page that carries it: of a browser module and all that it imports, made when it is first asked for. Texts stay as they were written. */
export function pageScript(entry: URL): () => string {
  let script: string | undefined
  return () => {
    script ??= scriptText(entry, untyped)
    return script
  }
}

/** A module behind all that it imports, each once. */
function joined(entry: URL, write: typeof plain): string {
  const texts = new Map<string, string>()
  const names = new Map<string, string>()
  const add = (file: URL): void => {
    if (texts.has(file.href)) return
    texts.set(file.href, '')
    const source = readFileSync(file, 'utf8')
    for (const [, from] of source.matchAll(importLine)) add(new URL(from!, file))
    const text = write(source)
    for (const [, name] of source.matchAll(/^(?:export )?(?:async )?(?:function|const|let|class) (\w+)/gm)) {
      if (names.has(name!))
        throw new Error(`${name} stands in ${file.href} and in ${names.get(name!)}: in one script no name means two things`)
      names.set(name!, file.href)
    }
    texts.delete(file.href) // behind what it imports
    texts.set(file.href, text)
  }
  add(entry)
  return [...texts.values()].join('')
}

const importLine = /^import (?!type\b)[^'"]*? from '(\.[^']+)'$/gm

/** JavaScript without types and imports, else as it was written. */
const untyped = (source: string): string =>
  withoutTypes(source)
    .replace(/^import [^'"]*? from '[^']+';?$/gm, '')
    .replace(/^export /gm, '')

/** The same without comments and indentation. No text in such a module goes over several lines. */
const plain = (source: string): string =>
  untyped(source)
    .replace(/\/\*\*[\s\S]*?\*\//g, '')
    .split('\n')
    .map(line =>
      line
        .trim()
        .replace(/^\/\/.*$| \/\/ .*$/, '')
        .replace(/\s{2,}/g, ' '),
    )
    .filter(line => line !== '')
    .map(line => `${line}\n`)
    .join('')

/** Done once for all starts: it takes longer than many a module takes to load. */
function withoutTypes(source: string): string {
  const cache = cacheFolder('scripts')
  if (cache === undefined) return stripped(source)
  const path = join(cache, createHash('sha256').update(process.version).update(source).digest('hex'))
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // The first time.
  }
  const text = stripped(source)
  try {
    writeFileSync(`${path}.${process.pid}`, text)
    renameSync(`${path}.${process.pid}`, path)
  } catch {
    // A disk that is full.
  }
  return text
}

const stripped = (source: string): string => quietly(() => stripTypeScriptTypes(source))

/** Node says of this function that it may change; whoever runs a gateway cannot do anything about it. */
function quietly<Value>(act: () => Value): Value {
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return act()
  } finally {
    process.emitWarning = emitWarning
  }
}
