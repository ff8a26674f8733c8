// Who may open which page of the back office: every route with every role, for a merchant of others, from another site, and without signing in.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { standardBrands } from '../src/contract/brands.ts'
import { readSeed, type Seed, sandboxSeed } from '../src/merchants/seed.ts'
import { addressText } from '../src/pages/office/fields.ts'
import { menuFor } from '../src/pages/office/navigation.ts'
import type { OfficeParts } from '../src/pages/office/parts.ts'
import { goTo, type OfficeRoute, officeRoute } from '../src/pages/office/route.ts'
import { signedInRoutes } from '../src/pages/office/routes.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { type Role, roleMay, roles, type StaffAction, staffActions } from '../src/staff/permissions.ts'
import { sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { type Clerk, signedIn, visitor } from './support/office.ts'
import { requestFrom } from './support/request.ts'

const routes = signedInRoutes({} as OfficeParts)
const { psp } = readSeed(sandboxSeed)
const other = { merchantId: `${'f'.repeat(31)}1`, channelId: `${'f'.repeat(31)}2` }
const seed: Seed = {
  psp,
  divisions: [
    {
      id: `${'f'.repeat(31)}0`,
      name: 'Other division',
      merchants: [{ id: other.merchantId, name: 'Other merchant', channels: [{ id: other.channelId, name: 'Other channel' }] }],
    },
  ],
}

let gateway: TestGateway
const clerks = new Map<Role, Clerk>()
let whole: Clerk
before(async () => {
  gateway = await testGateway({ seed })
  for (const role of roles) clerks.set(role, await signedIn(gateway, role, [sandbox.merchantId]))
  whole = await signedIn(gateway, 'admin', [psp.id])
})
after(() => gateway.stop())

/** A path of a route with ids that nothing has, but for the entity. */
const pathOf = ({ path }: OfficeRoute, entity = sandbox.merchantId): string =>
  `/office${path
    .replace('{entity}', entity)
    .replace('{rest…}', 'nowhere')
    .replace(/\{\w+\}/g, 'e'.repeat(32))}`
const ask = (clerk: Clerk, route: OfficeRoute, entity?: string) =>
  route.method === 'GET' ? clerk.ask(pathOf(route, entity)) : clerk.post(pathOf(route, entity))
const nameOf = ({ method, path }: OfficeRoute) => `${method} /office${path}`
/** What ends the session of the one who asks is asked for last. */
const inOrder = [...routes].sort((one, other) => Number(one.path === '/sign-out') - Number(other.path === '/sign-out'))

test('the table says who may do what', () => {
  const may = (action: StaffAction) => roles.filter(role => roleMay(role, action)).join(' ')
  // Money, secrets and people, as they were meant: whoever changes the table changes this too.
  assert.deepEqual(Object.fromEntries(staffActions.map(({ action }) => [action, may(action)])), {
    own: 'viewer support finance developer admin',
    readPayments: 'viewer support finance developer admin',
    readOverview: 'viewer support finance developer admin',
    readRequests: 'support developer admin',
    readNotifications: 'viewer support finance developer admin',
    replayNotifications: 'support developer admin',
    capture: 'support finance admin',
    refund: 'support finance admin',
    approve: 'finance admin',
    enterTransfers: 'finance admin',
    readReports: 'viewer finance admin',
    export: 'finance admin',
    readCases: 'viewer support finance admin',
    closeCases: 'finance admin',
    importFiles: 'finance admin',
    readRiskLists: 'support finance admin',
    changeRiskLists: 'finance admin',
    readSettings: 'support developer admin',
    changeSettings: 'admin',
    makeEntities: 'admin',
    changeTokens: 'admin',
    changeWebhooks: 'developer admin',
    readStaff: 'admin',
    changeStaff: 'admin',
    readAudit: 'admin',
    readWork: 'support developer admin',
    useSandbox: 'support developer admin',
  })
})

describe('every route', () => {
  for (const route of inOrder)
    test(nameOf(route), async () => {
      for (const role of roles) {
        const { status, text } = await ask(clerks.get(role)!, route)
        const isAllowed = roleMay(role, route.action) && !route.whole
        // Wrong factors are answered with 403 too, in other words.
        assert.equal(text.includes('Not for your role'), !isAllowed, role)
        if (isAllowed) assert.ok(status !== 401 && status < 500, `${role}: ${status}`)
        else assert.equal(status, 403, role)
      }
      const stranger = await ask(visitor(gateway), route)
      assert.equal(stranger.status, route.method === 'GET' ? 303 : 401)
      if (route.method === 'GET') assert.match(stranger.location!, /^\/office\/sign-in\?to=/)
      if (route.method === 'POST') {
        const headers = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
        assert.equal((await whole.post(pathOf(route), {}, headers)).status, 403, 'another site')
      }
      if (route.method === 'GET') {
        const { text } = await whole.ask(pathOf(route), { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' })
        assert.equal(text.includes('This came from another site'), route.givesFile === true, 'a link of another site')
      }
      if (route.path.includes('{entity}')) {
        const nowhere = await ask(whole, route, 'd'.repeat(32))
        for (const role of roles.filter(role => roleMay(role, route.action) && !route.whole)) {
          const foreign = await ask(await signedIn(gateway, role, [sandbox.merchantId]), route, other.merchantId)
          assert.equal(foreign.status, 404, `${role}, the merchant of others`)
          assert.equal(foreign.headers.get('location'), null)
          assert.equal(nowhere.status, foreign.status, 'as if there were no such entity')
        }
      }
    })
})

test('what strangers send is not even read', async () => {
  const looked = new Proxy({} as OfficeParts, {
    get: (_, name) => {
      if (name === 'cardBrands') throw new Error('a value was looked at')
      return name === 'publicUrl' ? () => 'https://pay.example' : name === 'random' ? systemRandom : undefined
    },
  })
  const place = { method: 'POST', path: '/x', action: 'own', takesFiles: true, answer: () => goTo('/office') } as const
  const headers = {
    'sec-fetch-site': 'same-origin',
    origin: 'https://pay.example',
    'content-type': 'multipart/form-data; boundary=x',
  }
  const body = '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n4200000000000000\r\n--x--\r\n'
  const request = { ...requestFrom('192.0.2.7'), method: 'POST', path: '/office/x', headers, body }
  const { status } = await officeRoute(looked, place).answer(request, {})
  assert.equal(status, 401)
})

test('what somebody sends is looked through in turns of his own, and is no longer than what people write', async () => {
  const clerk = await signedIn(gateway, 'viewer', [sandbox.merchantId])
  let turns = 0
  let isInTurn = false
  const parts = {
    clock: systemClock,
    random: systemRandom,
    keys: testKeys,
    sandbox: true,
    database: { work: gateway.pool },
    directory: { entity: () => undefined, entities: () => [], below: () => [], lineage: () => [] },
    officeUnderWay: () => true,
    publicUrl: () => 'http://pay.example',
    get cardBrands() {
      assert.ok(isInTurn, 'it is looked at out of turn')
      return standardBrands
    },
  }
  const seen: string[] = []
  const route = officeRoute(parts as unknown as OfficeParts, {
    method: 'POST',
    path: '/x',
    action: 'own',
    answer({ values }) {
      seen.push(values.get('note')!)
      return goTo('/office')
    },
  })
  const headers = { origin: 'http://pay.example', cookie: `tollgate_office=${clerk.cookies.get('tollgate_office')}` }
  const request = { ...requestFrom('192.0.2.7'), method: 'POST', path: '/office/x', headers, body: 'note=4200000000000000' }
  const { status } = await route.answer(
    {
      ...request,
      inTurn(work) {
        turns++
        isInTurn = true
        const done = work()
        isInTurn = false
        return done
      },
    },
    {},
  )
  assert.deepEqual([status, seen, turns], [303, ['420000…0000'], 1])
  assert.equal(route.bodyMax, 32 * 1024)
})

test('of an address pages show as much as somebody reads, and no card number', () => {
  const short = `https://shop.example/${'a'.repeat(200 - 21)}`
  assert.equal(addressText(short), short)
  assert.equal(addressText(`${short}bc`), `${short}…`)
  assert.equal(addressText('https://shop.example/4200000000000000/x'), 'https://shop.example/420000…0000/x')
  for (let more = 0; more < 20; more++)
    assert.doesNotMatch(addressText(`https://shop.example/${'a'.repeat(160 + more)}/4200000000000000/x`), /\d{7}/)
})

test('lists show what is within reach and nothing of others', async () => {
  const clerk = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const reaching = await signedIn(gateway, 'admin', [other.merchantId])
  await gateway.pool.query(
    `insert into operator_cases (merchant_id, id, kind, subject, details, opened_at)
     select merchant_id, gen_random_uuid(), 'answerUnproven', 'about ' || merchant_id, '{}', '2026-01-01' from unnest($1::uuid[]) as given (merchant_id)`,
    [[sandbox.merchantId, other.merchantId, '0'.repeat(32)]],
  )
  const endpoint = await reaching.post('/office/webhooks', { url: 'http://127.0.0.1:8099/other', entity: other.merchantId })
  assert.equal(endpoint.status, 200, endpoint.text)
  for (const { path } of routes.filter(({ method, path }) => method === 'GET' && !path.includes('{'))) {
    const own = await clerk.ask(`/office${path}`)
    for (const secret of ['Other merchant', other.merchantId, '/other', reaching.name])
      assert.ok(!own.text.includes(secret), `${path} shows ${secret}`)
  }
  const hyphened = (id: string) => id.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  const subjects = async (one: Clerk) =>
    [...(await one.ask('/office/cases')).text.matchAll(/about ([0-9a-f-]{36})/g)].map(([, id]) => id!)
  assert.deepEqual(await subjects(clerk), [hyphened(sandbox.merchantId)])
  assert.deepEqual(await subjects(reaching), [hyphened(other.merchantId)])
  assert.equal((await subjects(whole)).length, 3)
})

test('nobody gives away more than he has', async () => {
  const clerk = await signedIn(gateway, 'admin', [sandbox.merchantId])
  const add = (name: string, entity: string) => clerk.post('/office/staff', { name, role: 'viewer', entity })
  assert.equal((await add('a@office.example', psp.id)).status, 404)
  assert.equal((await add('b@office.example', other.merchantId)).status, 404)
  assert.equal((await add('c@office.example', sandbox.merchantId)).status, 200)
  for (const action of ['role', 'reset', 'remove'])
    for (const person of [whole.id, clerk.id])
      assert.equal(
        (await clerk.post(`/office/staff/${person}/${action}`, { role: 'viewer', entity: sandbox.merchantId })).status,
        404,
      )
  assert.equal((await whole.ask('/office/account')).status, 200)
})

test('a role that was changed counts at the next request, and who was removed is out', async () => {
  const clerk = await signedIn(gateway, 'viewer', [sandbox.merchantId])
  assert.equal((await clerk.ask('/office/entities')).status, 403)
  await whole.post(`/office/staff/${clerk.id}/role`, { role: 'developer', entity: sandbox.merchantId })
  assert.equal((await clerk.ask('/office/entities')).status, 200)
  await whole.post(`/office/staff/${clerk.id}/remove`)
  assert.equal((await clerk.ask('/office/account')).status, 303)
})

test('the first page of somebody who signs in is one that there is', () => {
  const everything = { may: () => true, isWhole: true }
  assert.deepEqual(
    [true, false].map(sandbox => menuFor(everything, sandbox)[0]?.path),
    ['/console', '/overview'],
  )
  assert.ok(menuFor(everything, false).some(({ whole }) => whole))
  assert.ok(!menuFor({ ...everything, isWhole: false }, false).some(({ whole }) => whole))
})
