// What axe-core finds on a page against WCAG 2.2 AA: the rule, and where.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

export async function violations(page: Page): Promise<string[]> {
  await page.evaluate(source)
  return page.evaluate(`axe.run(document, { runOnly: ${JSON.stringify(tags)} }).then(({ violations }) =>
    violations.map(one => one.id + ': ' + one.nodes.map(({ target }) => target.join(' ')).join(', ')))`)
}
