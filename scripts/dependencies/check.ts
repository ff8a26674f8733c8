// The monthly look at what we depend on: known weaknesses, licences, and the bill of materials. `npm run dependencies:check`.

import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { askRegistry } from './advisories.ts'
import { type LockFile, packagesOf, refusedLicences } from './licences.ts'
import { sbomOf } from './sbom.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))
const lock: LockFile = JSON.parse(readFileSync(`${project}package-lock.json`, 'utf8'))
const say = (line: string) => void process.stdout.write(`${line}\n`)

const refused = refusedLicences(lock)
say(`Licences of ${packagesOf(lock).length} packages: ${refused.length === 0 ? 'all on the list.' : ''}`)
for (const sentence of refused) say(`  ${sentence}`)

const advisories = askRegistry(project)
if ('notAsked' in advisories)
  say(`Known weaknesses: NOT ASKED, ${advisories.notAsked}. Run this where the registry can be reached.`)
else {
  say(`Known weaknesses: ${advisories.findings.length === 0 ? 'none.' : ''}`)
  for (const finding of advisories.findings) say(`  ${finding}`)
}

const sbom = sbomOf(lock, project, new Date())
writeFileSync(`${project}sbom.cdx.json`, `${JSON.stringify(sbom, null, 2)}\n`)
say('The bill of materials is in sbom.cdx.json.')
for (const { name, components = [] } of sbom.components)
  for (const { version } of components) if (version !== undefined) say(`  ${name} carries ${version}: see SECURITY.md.`)

// Whoever runs it by the calendar hears of a month in which nobody was asked, too.
if (refused.length > 0 || 'notAsked' in advisories || advisories.findings.length > 0) process.exitCode = 1
