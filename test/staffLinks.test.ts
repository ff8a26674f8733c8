// What a link that sets somebody's factors is worth when somebody's role has changed meanwhile: that of whom it is for, and that of who made it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { readSeed, sandboxSeed } from '../src/merchants/seed.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { makeStaffLink } from '../src/staff/links.ts'
import { stepAt, totpCode } from '../src/staff/totp.ts'
import { sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type Clerk, type OfficeReply, sandboxDeveloper, signedIn, textOf, visitor } from './support/office.ts'

let gateway: TestGateway
let boss: Clerk
let otherMerchant: string
const { psp } = readSeed(sandboxSeed)
before(async () => {
  gateway = await testGateway()
  boss = await signedIn(gateway, 'admin', [psp.id])
  const made = await boss.post(`/office/entities/${sandbox.divisionId}/below`, { name: 'Another merchant' })
  otherMerchant = made.location!.split('/').pop()!
})
after(() => gateway.stop())

const linkOf = (reply: OfficeReply): string => new URL(textOf(reply, 'link')).pathname
const idOf = async (name: string): Promise<string> =>
  (await gateway.pool.query<{ id: string }>('select id from staff where name = $1', [name])).rows[0]!.id
let invited = 0

async function invite(by: Clerk, role: string, entity: string): Promise<{ id: string; link: string }> {
  const name = `guest${invited++}@office.example`
  return { link: linkOf(await by.post('/office/staff', { name, role, entity })), id: await idOf(name) }
}
const changeRole = async (by: Clerk, id: string, role: string, entity: string) =>
  assert.equal((await by.post(`/office/staff/${id}/role`, { role, entity })).status, 303)

/** As whoever has the link does it; what is seen of the whole installation then. */
async function use(link: string): Promise<number> {
  const guest = visitor(gateway)
  const page = await guest.ask(link)
  if (page.status !== 200) return page.status
  return take(guest, link, page)
}
async function take(guest: Clerk, link: string, page: OfficeReply): Promise<number> {
  let bits = ''
  for (const letter of textOf(page, 'key'))
    bits += 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0')
  const secret = Buffer.from(bits.match(/.{8}/g)!.map(byte => Number.parseInt(byte, 2)))
  const code = totpCode(secret, stepAt(systemClock.real()))
  return (await guest.post(link, { password: 'my dog eats 7 shoes', code })).status
}

test('a link sets the factors of whom it was made for', async () => {
  const host = await signedIn(gateway, 'admin', [sandbox.merchantId])
  assert.equal(await use((await invite(host, 'viewer', sandbox.merchantId)).link), 200)
})

test('of somebody who has risen, or works elsewhere now, it sets nothing', async () => {
  const host = await signedIn(gateway, 'admin', [sandbox.merchantId])
  for (const [role, entity] of [
    ['admin', psp.id],
    ['viewer', otherMerchant],
  ] as const) {
    const { id, link } = await invite(host, 'viewer', sandbox.merchantId)
    await changeRole(boss, id, role, entity)
    assert.equal(await use(link), 410, role)
    const { rows } = await gateway.pool.query('select password from staff where id = $1', [id])
    assert.equal(rows[0].password, null)
  }
})

test('nor does one whose maker has lost what he could give away, or works here no more', async () => {
  for (const lose of [
    (id: string) => changeRole(boss, id, 'viewer', psp.id),
    (id: string) => changeRole(boss, id, 'admin', otherMerchant),
    (id: string) => boss.post(`/office/staff/${id}/remove`),
  ]) {
    const host = await signedIn(gateway, 'admin', [psp.id])
    const { link } = await invite(host, 'admin', psp.id)
    const colleague = await signedIn(gateway, 'viewer', [psp.id])
    const reset = linkOf(await host.post(`/office/staff/${colleague.id}/reset`))
    await lose(host.id!)
    assert.equal(await use(link), 410)
    assert.equal(await use(reset), 410)
  }
})

test('a maker who may still give as much away leaves his links as they are', async () => {
  const host = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const { link } = await invite(host, 'viewer', sandbox.merchantId)
  await changeRole(boss, host.id!, 'admin', psp.id)
  assert.equal(await use(link), 200)
})

test('whom somebody adds who came by the sandbox’s door can come in', async () => {
  const developer = await sandboxDeveloper(gateway)
  const { link } = await invite(developer, 'viewer', sandbox.merchantId)
  assert.equal(await use(link), 200)
})

test('the link itself asks: one that was made at the same moment as the role was taken opens nothing either', async () => {
  const host = await signedIn(gateway, 'viewer', [sandbox.merchantId])
  const [above, beside, within] = [psp.id, otherMerchant, sandbox.merchantId]
  const parts = { keys: testKeys, random: systemRandom, clock: systemClock }
  const linkFor = async (entity: string, maker: string) => {
    const { id } = await signedIn(gateway, 'finance', [entity])
    return `/office/invitation/${await makeStaffLink(gateway.pool, parts, id, maker)}`
  }
  assert.equal(await use(await linkFor(within, host.id!)), 410)
  const admin = await signedIn(gateway, 'admin', [within])
  for (const entity of [above, beside]) assert.equal(await use(await linkFor(entity, admin.id!)), 410)
  assert.equal(await use(await linkFor(within, admin.id!)), 200)
})
