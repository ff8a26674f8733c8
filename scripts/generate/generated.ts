// Every generated file with the text it should have. The check of `npm run check` and the tidy test ask the same question.

import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { openApi } from '../../src/contract/openapi.ts'
import { architecturePage } from '../rooms.ts'
import { commandLinePage } from './commandLine.ts'
import { definitionsPath, definitionsText } from './definitions.ts'
import { parametersPage } from './parameters.ts'
import { paymentPageScripts } from './paymentPageScripts.ts'
import { resultCodesPage } from './resultCodes.ts'
import { retentionPage } from './retention.ts'
import { schemaText } from './schema.ts'
import { schemaFiles } from './schemas.ts'
import { simulatorPage } from './simulator.ts'

/** The frozen interface that contractBaseline.test.ts compares with; it is old on purpose, so it is never called stale. */
export const baselinePath = 'test/baseline/openapi.json'

/** Name in the project → text. The database must be migrated. */
export async function generated(database: pg.Pool): Promise<ReadonlyMap<string, string>> {
  const openApiText = `${JSON.stringify(openApi(), null, 2)}\n`
  return new Map([
    ['ARCHITECTURE.md', architecturePage()],
    ['docs/reference/command-line.md', commandLinePage()],
    ['docs/reference/openapi.json', openApiText],
    ['docs/reference/parameters.md', parametersPage()],
    ['docs/reference/payment-page-scripts.json', paymentPageScripts()],
    ['docs/reference/result-codes.md', resultCodesPage()],
    ['docs/reference/retention.md', retentionPage()],
    ['docs/reference/simulator.md', simulatorPage()],
    ...schemaFiles(),
    ['migrations/schema.sql', await schemaText(database)],
    [definitionsPath, await definitionsText(database)],
    [baselinePath, openApiText],
  ])
}

/** The names of files that differ from what they should be, or are missing. */
export function stale(files: ReadonlyMap<string, string>): string[] {
  return [...files].filter(([name, text]) => name !== baselinePath && textOf(name) !== text).map(([name]) => name)
}

function textOf(name: string): string | undefined {
  try {
    return readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
  } catch {
    return undefined
  }
}
