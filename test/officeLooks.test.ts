// The back office in a real browser: in both languages, light and dark, on a desk and on a phone; nothing for axe-core to find, nothing that runs out of
// the page, no script or style that the policy stops; and the way of somebody who comes for the first time, by keyboard.

import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { openCase } from '../src/payments/cases/cases.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { stepAt, totpCode } from '../src/staff/totp.ts'
import { violations } from './support/axe.ts'
import { launchBrowser } from './support/chromium.ts'
import { sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { addStaff, type Clerk, signedIn } from './support/office.ts'
import { startReceiver } from './support/receiver.ts'

const { psp } = readSeed(sandboxSeed)
/** SCREENSHOTS=<folder> keeps pictures. */
const pictures = process.env.SCREENSHOTS
let gateway: TestGateway
let browser: Browser
let clerk: Clerk
const paths: string[] = []

before(async () => {
  ;[gateway, browser] = await Promise.all([testGateway({ environment: { PUBLIC_URL: 'http://localhost:1' } }), launchBrowser()])
  clerk = await signedIn(gateway, 'admin', [psp.id])
  const made = { clock: systemClock, random: systemRandom }
  const about = {
    merchantId: sandbox.merchantId,
    subject: 'a'.repeat(32),
    details: { acquirer: 'sandbox', terminal: 'TOLL0001' },
  }
  await openCase(gateway.pool, made, { kind: 'answerUnproven', ...about })
  const receiver = await startReceiver()
  const webhook = await clerk.post('/office/webhooks', { url: receiver.url, entity: sandbox.merchantId })
  await receiver.close()
  const sftp = { host: 'sftp.shop.example', port: '22', user: 'tollgate', hostKey: 'ssh-ed25519 AAAA', folder: '/in' }
  const schedule = { entity: psp.id, report: 'settlement', every: 'month', form: 'csv', mode: 'internal' }
  assert.equal((await clerk.post('/office/schedules', { ...schedule, ...sftp })).status, 303)
  const other = await signedIn(gateway, 'support', [sandbox.merchantId])
  const found = (text: string, pattern: RegExp) => pattern.exec(text)![0]
  paths.push(
    '/office/cases',
    found((await clerk.ask('/office/cases')).text, /\/office\/cases\/[0-9a-f]{32}\/[0-9a-f]{32}/),
    '/office/deliveries',
    '/office/files',
    '/office/risk',
    '/office/work',
    '/office/exports',
    '/office/schedules',
    '/office/webhooks',
    found(webhook.text, /\/office\/webhooks\/[0-9a-f]{32}\/[0-9a-f]{32}/),
    '/office/entities',
    `/office/entities/${sandbox.entityId}`,
    `/office/entities/${sandbox.divisionId}`,
    '/office/staff',
    `/office/staff/${other.id}`,
    '/office/audit',
    '/office/account',
    '/office/account/passkeys',
    '/office/prove',
    '/office/nowhere',
    '/office/sign-in',
    (await addStaff(gateway.pool, 'viewer', [sandbox.merchantId])).link,
  )
})
after(async () => {
  await browser?.close()
  await gateway?.stop()
})

/** A page for whoever is signed in, or for nobody; what the policy stops or a script throws is kept in `errors`. */
async function opened(look: {
  width: number
  dark: boolean
  locale: string
  isIn?: boolean
}): Promise<{ page: Page; errors: string[] }> {
  const { width, dark, locale, isIn = true } = look
  const context = await browser.newContext({
    locale,
    viewport: { width, height: 900 },
    colorScheme: dark ? 'dark' : 'light',
  })
  const [name, value] = [...clerk.cookies][0]!
  if (isIn) await context.addCookies([{ name, value, url: gateway.baseUrl }])
  const page = await context.newPage()
  const errors: string[] = []
  page.on('console', told => {
    if (told.type() === 'error' && !/status of 4\d\d/.test(told.text())) errors.push(told.text())
  })
  page.on('pageerror', error => errors.push(error.message))
  return { page, errors }
}

describe('every page', () => {
  for (const [locale, width, dark] of [
    ['en-GB', 1280, false],
    ['pt-BR', 1280, true],
    ['pt-BR', 360, false],
    ['en-GB', 320, true],
  ] as const)
    test(`${locale}, ${width} wide, ${dark ? 'dark' : 'light'}`, async () => {
      const { page, errors } = await opened({ locale, width, dark })
      for (const path of paths) {
        if (path === '/office/sign-in') await page.context().clearCookies()
        await page.goto(gateway.baseUrl + path)
        assert.deepEqual(await violations(page), [], path)
        const overflow = await page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        assert.ok(overflow <= 0, `${path} is ${overflow} px too wide`)
        assert.equal(await page.evaluate('document.documentElement.lang'), locale)
        if (pictures) {
          mkdirSync(pictures, { recursive: true })
          const name = path
            .split('/')
            .slice(2)
            .map(part => part.slice(0, 12))
            .join('-')
          await page.screenshot({ path: `${pictures}/${name}-${locale}-${width}-${dark ? 'dark' : 'light'}.png`, fullPage: true })
        }
      }
      assert.deepEqual(errors, [])
      await page.context().close()
    })
})

/** What an app shows, or will show in the next half minute: codes count once. */
function codeOf(key: string, ahead: number): string {
  let bits = ''
  for (const letter of key) bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')
  const bytes = Buffer.from(bits.match(/.{8}/g)!.map(byte => Number.parseInt(byte, 2)))
  return totpCode(bytes, stepAt(Date.now()) + ahead)
}

test('the first time, by keyboard: the link, both factors, the codes for recovery, out and in again', async () => {
  const { name, link } = await addStaff(gateway.pool, 'finance', [psp.id])
  const { page, errors } = await opened({ locale: 'en-GB', width: 1280, dark: false, isIn: false })
  const { keyboard } = page
  await page.goto(gateway.baseUrl + link)
  const key = (await page.locator('#key').textContent())!
  await page.locator('#password').focus()
  await keyboard.type('my dog eats 7 shoes')
  await keyboard.press('Tab')
  await keyboard.type(codeOf(key, 0))
  await keyboard.press('Enter')
  await page.locator('#recovery').waitFor()
  await page.getByRole('link', { name: 'Go on' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  assert.equal(await page.getByRole('link', { name: 'Audit' }).count(), 0, 'what a role may not do is not offered')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.locator('#name').focus()
  await keyboard.type(name)
  await keyboard.press('Tab')
  await keyboard.type('my dog eats 7 shoes')
  await keyboard.press('Tab')
  await keyboard.type(codeOf(key, 1))
  await keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('link', { name: 'Cases', exact: true }).click()
  await page.getByRole('link', { name: /nobody can tell whether/ }).click()
  await page.getByRole('button', { name: 'Take it over' }).click()
  await page.getByLabel('What became of the payment').selectOption('carriedOut')
  await page.getByLabel('Reason, for whoever asks later').fill('the acquirer has it')
  await page.getByRole('button', { name: 'Close the case' }).click()
  await page.getByText('closed it: the acquirer has it').waitFor()
  assert.deepEqual(errors, [])
  await page.context().close()
})

test('a passkey is made, signs in without a password, proves, and is removed', async () => {
  const { cookies } = await signedIn(gateway, 'finance', [sandbox.merchantId])
  const office = gateway.baseUrl.replace('127.0.0.1', 'localhost')
  const context = await browser.newContext({ locale: 'en-GB' })
  const [name, value] = [...cookies][0]!
  await context.addCookies([{ name, value, url: office }])
  const page = await context.newPage()
  const devices = await context.newCDPSession(page)
  await devices.send('WebAuthn.enable')
  const look = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true } as const
  const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: { ...look, isUserVerified: true, automaticPresenceSimulation: true },
  })
  await page.goto(`${office}/office/account`)
  await page.getByRole('link', { name: 'Passkeys' }).click()
  await page.getByLabel('Name of the passkey').fill('Virtual key')
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByRole('cell', { name: 'Virtual key' }).waitFor()
  assert.deepEqual(await violations(page), [])
  await page.getByRole('button', { name: 'Sign out' }).click()
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByText('The browser gave no passkey').waitFor()
  assert.deepEqual(await violations(page), [])
  await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.goto(`${office}/office/prove?to=/office/account/passkeys`)
  await page.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByText('You have none yet').waitFor()
  await context.close()
})

test('on a phone the menu folds, and opens without a script', async () => {
  const { page } = await opened({ locale: 'en-GB', width: 360, dark: false })
  await page.goto(`${gateway.baseUrl}/office/cases`)
  assert.equal(await page.getByRole('link', { name: 'Audit' }).isVisible(), false)
  await page.locator('summary').click()
  await page.getByRole('link', { name: 'Audit' }).click()
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await page.context().close()
})
