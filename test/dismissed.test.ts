// Whoever is dismissed, given another role or signed out in the midst of a request: its act is not done, whatever it is, and no row tells of it. Requests are let in first,
// and find it out where their act is told of. What cannot be taken back is told of all the same.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Actor } from '../src/audit/entry.ts'
import { openCase } from '../src/payments/cases/cases.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import type { Connection } from '../src/platform/database/connect.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import type { DueSource } from '../src/platform/due/source.ts'
import { advanceClock } from '../src/sandbox/advance.ts'
import type { SandboxParts } from '../src/sandbox/parts.ts'
import { changePerson, endSessionsOf, findPerson, lockPeople, removePerson } from '../src/staff/store.ts'
import { decode } from './support/entities.ts'
import { sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { untilWaiting } from './support/locks.ts'
import { addStaff, type Clerk, type OfficeReply, signedIn, signedInAgain, whileLocked } from './support/office.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'

const psp = '5a11d0000000000000000000000000a0'
let gateway: TestGateway
let receiver: Receiver
let admin: Clerk
before(async () => {
  ;[gateway, receiver] = await Promise.all([testGateway(), startReceiver()])
  admin = await signedIn(gateway, 'admin', [psp])
})
after(async () => {
  await receiver.close()
  await gateway.stop()
})

/** What a colleague does to somebody while a request of theirs is under way, and whether that one still acts afterwards. */
const happenings: Readonly<Record<string, readonly [(db: Connection, id: string) => Promise<unknown>, boolean]>> = {
  'is removed': [(db, id) => removePerson(db, id, Date.now()), false],
  'is signed out': [endSessionsOf, false],
  'has another role': [(db, id) => changePerson(db, id, 'viewer', [psp]), false],
  'acts for others': [(db, id) => changePerson(db, id, 'admin', [sandbox.merchantId]), false],
  'stays as it was': [async () => {}, true],
}

let ordered = 0
const orderFields = (amount: string) => ({
  amount,
  reason: 'shoes came back',
  confirmed: 'yes',
  once: `${++ordered}`.padStart(32, '0'),
})
const linkIn = ({ text }: OfficeReply, pattern: RegExp): string => pattern.exec(text)![0]
const webhook = async (): Promise<string> =>
  linkIn(
    await admin.post('/office/webhooks', { url: receiver.url, entity: sandbox.merchantId }),
    /\/office\/webhooks\/[0-9a-f]{32}\/[0-9a-f]{32}/,
  )
const openedCase = async (): Promise<string> => {
  const about = { kind: 'clearingLine', merchantId: sandbox.merchantId, details: {} } as const
  await openCase(gateway.pool, { clock: systemClock, random: systemRandom }, { ...about, subject: `line ${++ordered}` })
  const { rows } = await gateway.pool.query('select id from operator_cases order by opened_at desc, id desc limit 1')
  return `/office/cases/${sandbox.merchantId}/${rows[0].id}`
}
const colleague = async (): Promise<string> => `/office/staff/${(await addStaff(gateway.pool, 'viewer', [psp])).id}`
const sftp = { host: 'sftp.shop.example', port: '22', user: 'tollgate', hostKey: 'ssh-ed25519 AAAA', folder: '/in' }

/** Every kind of act of the staff: the table that it would change, and the request, made ready. */
const acts: Readonly<Record<string, readonly [table: string, () => Promise<(who: Clerk) => Promise<OfficeReply>>]>> = {
  'a token is made': [
    'access_tokens',
    async () => who => who.post(`/office/entities/${sandbox.merchantId}/tokens`, { label: 'mine' }),
  ],
  'a token is revoked': [
    'access_tokens',
    async () => {
      const path = `/office/entities/${sandbox.lenientEntityId}`
      const made = await admin.post(`${path}/tokens`, { label: 'to be revoked' })
      const revoke = linkIn(made, new RegExp(`${path}/tokens/[0-9a-f]{32}/revoke`))
      return who => who.post(revoke)
    },
  ],
  'settings are changed': [
    'entities',
    async () => {
      const path = `/office/entities/${sandbox.divisionId}`
      const settings = decode(/name="shown" value="([^"]*)"/.exec((await admin.ask(path)).text)![1]!)
      return who => who.post(path, { name: `Renamed ${++ordered}`, shown: settings, settings })
    },
  ],
  'an entity is made': [
    'entities',
    async () => who => who.post(`/office/entities/${sandbox.merchantId}/below`, { name: 'A new channel' }),
  ],
  'a webhook is made': [
    'endpoints',
    async () => who => who.post('/office/webhooks', { url: receiver.url, entity: sandbox.merchantId }),
  ],
  'a webhook is activated': [
    'endpoints',
    async () => {
      const path = await webhook()
      return who => who.post(`${path}/activate`)
    },
  ],
  'a secret is rotated': [
    'endpoints',
    async () => {
      const path = await webhook()
      return who => who.post(`${path}/rotate`, { step: 'begin' })
    },
  ],
  'a webhook is deleted': [
    'endpoints',
    async () => {
      const path = await webhook()
      return who => who.post(`${path}/delete`)
    },
  ],
  'a value is listed for the risk check': [
    'risk_entries',
    async () => who =>
      who.post('/office/risk', {
        list: 'allow',
        kind: 'customer',
        value: `customer ${++ordered}`,
        entity: sandbox.merchantId,
        reason: 'a good one',
      }),
  ],
  'a case is written on': [
    'case_notes',
    async () => {
      const path = await openedCase()
      return who => who.post(`${path}/note`, { text: 'looked at it' })
    },
  ],
  'a case is closed': [
    'operator_cases',
    async () => {
      const path = await openedCase()
      return who => who.post(`${path}/close`, { reason: 'nothing in it' })
    },
  ],
  'a report is scheduled': [
    'report_schedules',
    async () => who =>
      who.post('/office/schedules', {
        entity: psp,
        report: 'settlement',
        every: 'month',
        form: 'csv',
        mode: 'internal',
        ...sftp,
      }),
  ],
  'a file is asked for': ['exports', async () => who => who.post('/office/payments.csv')],
  'a file is taken': ['saved_filters', async () => who => who.ask('/office/payments.csv')],
  'somebody is added': [
    'staff',
    async () => who => who.post('/office/staff', { name: `new${++ordered}@office.example`, role: 'viewer', entity: psp }),
  ],
  'the role of somebody is changed': [
    'staff',
    async () => {
      const path = await colleague()
      return who => who.post(`${path}/role`, { role: 'support', entity: psp })
    },
  ],
  'somebody gets a new link': [
    'staff_links',
    async () => {
      const path = await colleague()
      return who => who.post(`${path}/reset`)
    },
  ],
  'somebody is removed': [
    'staff',
    async () => {
      const path = await colleague()
      return who => who.post(`${path}/remove`)
    },
  ],
  'money is given back': [
    'payments',
    async () => {
      const { body } = await gateway.pay()
      return who => who.post(`/office/payments/${sandbox.merchantId}/${body.id}/refund`, orderFields('12.00'))
    },
  ],
  'a file of an acquirer is handed in': [
    'payments',
    async () => {
      const { body } = await gateway.pay()
      const heading = 'report,line,type,acquirer,reference,amount,currency,reason,date'
      const bytes = `${heading}\nnorth-${++ordered},1,CB,,${body.id},92.00,EUR,10.4,2031-03-04`
      return who => who.upload('/office/files', { what: 'chargebacks' }, { name: 'north.csv', bytes })
    },
  ],
  'the clock is moved': [
    'entities',
    async () => who => who.post('/office/console/clock', { merchant: sandbox.merchantId, advance: '1m' }),
  ],
}

const rowsOf = async (table: string, isOne = 'true'): Promise<string[]> =>
  (await gateway.pool.query(`select row_to_json(t)::text as row from ${table} t where ${isOne} order by 1`)).rows.map(
    ({ row }) => row,
  )
/** Of one person, beside having signed in. */
const toldOf = ({ id }: Clerk) => rowsOf('audit', `actor = '${id}' and action <> 'staffSignedIn'`)

/** Something happens to somebody after a request of theirs was let in, and before its act is told of. */
async function meanwhile(who: Clerk, happens: keyof typeof happenings, act: (who: Clerk) => Promise<OfficeReply>) {
  const { answer } = await whileLocked(gateway.pool, who.id!, async db => {
    await happenings[happens]![0](db, who.id!)
    const answer = act(who)
    await Promise.race([answer, untilWaiting(gateway.pool, 'from staff where')])
    return { answer }
  })
  return answer
}

for (const [name, [table, ready]] of Object.entries(acts))
  test(`${name} by nobody who is removed meanwhile, and by whoever stays`, async () => {
    for (const happens of ['is removed', 'stays as it was']) {
      const [, isStill] = happenings[happens]!
      const who = await signedIn(gateway, 'admin', [psp])
      const act = await ready()
      const without = table === 'staff' ? `id <> '${who.id}'` : 'true'
      const before = await rowsOf(table, without)
      const { status, text } = await meanwhile(who, happens, act)
      assert.equal(status < 400, isStill, `${happens}: ${status} ${text.slice(0, 2000)}`)
      assert.equal((await toldOf(who)).length > 0, isStill, happens)
      if (isStill) continue
      assert.equal(status, 403)
      assert.match(text, /Your access has changed/)
      assert.deepEqual(await rowsOf(table, without), before)
    }
  })

for (const [happens, [, isStill]] of Object.entries(happenings))
  test(`whoever ${happens} ${isStill ? 'makes' : 'makes no'} token with a request that was under way`, async () => {
    const who = await signedIn(gateway, 'admin', [psp])
    const [, ready] = acts['a token is made']!
    assert.equal((await meanwhile(who, happens, await ready())).status, isStill ? 200 : 403)
    assert.equal((await toldOf(who)).length, isStill ? 1 : 0)
  })

test('an order that waits for its turn at the payment is not carried out for whoever is dismissed meanwhile', async () => {
  for (const happens of ['is removed', 'stays as it was']) {
    const [happen, isStill] = happenings[happens]!
    const who = await signedIn(gateway, 'finance', [sandbox.merchantId])
    const { body } = await gateway.pay()
    const refunding = await inTransaction(gateway.pool, async db => {
      await db.query('select from payments where id = $1 for update', [body.id])
      const answer = who.post(`/office/payments/${sandbox.merchantId}/${body.id}/refund`, orderFields('12.00'))
      await untilWaiting(gateway.pool, 'from payments where')
      assert.equal((await toldOf(who)).length, 1, 'it was ordered')
      await inTransaction(gateway.pool, async other => {
        await lockPeople(other, [who.id!])
        await happen(other, who.id!)
      })
      return { answer }
    })
    assert.equal((await refunding.answer).status, isStill ? 303 : 403, happens)
    const refunds = await gateway.pool.query('select from payments where reference_id = $1', [body.id])
    assert.equal(refunds.rowCount, isStill ? 1 : 0, happens)
    assert.equal((await toldOf(who)).length, 1)
  }
})

for (const [order, fields] of [
  ['role', { role: 'support', entity: sandbox.merchantId }],
  ['reset', {}],
  ['remove', {}],
] as const)
  test(`whom somebody above has moved or given another role meanwhile, no ${order} meets, and whoever stays`, async () => {
    const who = await signedIn(gateway, 'admin', [sandbox.merchantId])
    for (const [role, entity, isStill] of [
      ['viewer', sandbox.divisionId, false],
      ['admin', sandbox.merchantId, false],
      ['viewer', sandbox.merchantId, true],
    ] as const) {
      const { id } = await addStaff(gateway.pool, 'viewer', [sandbox.merchantId])
      const { answer } = await whileLocked(gateway.pool, id, async db => {
        const answer = who.post(`/office/staff/${id}/${order}`, fields)
        await untilWaiting(gateway.pool, 'from staff where')
        await changePerson(db, id, role, [entity])
        return { answer }
      })
      const { status, text } = await answer
      assert.equal(status < 400, isStill, `${role} ${entity}: ${status} ${text.slice(0, 2000)}`)
      assert.equal((await rowsOf('audit', `subject = '${id}' and action <> 'staffAdded'`)).length, isStill ? 1 : 0)
      if (isStill) continue
      assert.match(text, /was given another role meanwhile/)
      const person = await findPerson(gateway.pool, 'id', id)
      assert.deepEqual([person?.role, person?.entities], [role, [entity]])
    }
  })

test('of two who remove each other at a time one does, and the other finds that nobody asks', async () => {
  const [one, other] = [await signedIn(gateway, 'admin', [psp]), await signedIn(gateway, 'admin', [psp])]
  const { answers } = await inTransaction(gateway.pool, async db => {
    await lockPeople(db, [one.id!, other.id!])
    const answers = Promise.all([one.post(`/office/staff/${other.id}/remove`), other.post(`/office/staff/${one.id}/remove`)])
    await untilWaiting(gateway.pool, 'from staff where', 2)
    return { answers }
  })
  assert.deepEqual((await answers).map(({ status }) => status).sort(), [303, 403])
  assert.equal((await rowsOf('staff', `id in ('${one.id}', '${other.id}') and removed_at is not null`)).length, 1)
})

test('who adds somebody and moves somebody to the same place is not in the own way', async () => {
  const who = await signedIn(gateway, 'admin', [psp])
  const [moved, entity] = [await colleague(), sandbox.divisionId]
  const { answers } = await inTransaction(gateway.pool, async db => {
    await lockPeople(db, [who.id!])
    const answers = [who.post(`${moved}/role`, { role: 'viewer', entity })]
    await untilWaiting(gateway.pool, 'from staff where')
    answers.push(who.post('/office/staff', { name: 'next@office.example', role: 'viewer', entity }))
    await untilWaiting(gateway.pool, 'from staff where', 2)
    return { answers: Promise.all(answers) }
  })
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    [303, 200],
  )
})

test('a session that was ended ends no other one of its person', async () => {
  const who = await signedIn(gateway, 'viewer', [psp])
  const other = await signedInAgain(gateway, { id: who.id!, name: who.name })
  const { rows } = await gateway.pool.query('select id from staff_sessions where staff_id = $1 order by begun_at, id', [who.id])
  const [own, kept] = rows.map(({ id }) => id)
  const end = (clerk: Clerk) => clerk.post(`/office/account/sessions/${kept}/end`)
  const { answer } = await whileLocked(gateway.pool, who.id!, async db => {
    await db.query('delete from staff_sessions where id = $1', [own])
    const answer = end(who)
    await untilWaiting(gateway.pool, 'from staff where')
    return { answer }
  })
  assert.equal((await answer).status, 404)
  assert.equal((await other.ask('/office/account')).status, 200)
  assert.equal((await end(other)).status, 303)
})

test('time that has moved is told of, whatever becomes of whoever moved it; before that it is not moved', async () => {
  const minute = 60_000
  const told = async () =>
    (await gateway.pool.query(`select actor, details from audit where action = 'clockMoved' order by sequence`)).rows
  const before = (await told()).length
  for (const [movesFirst, ends] of [
    [true, false],
    [false, true],
  ]) {
    let isHere = movesFirst!
    let left = movesFirst ? 1 : 0
    const by: Actor = { kind: 'user', id: `who ${movesFirst}`, address: '127.0.0.1', isStill: async () => isHere }
    const leave = async () => {
      isHere = false
    }
    const source = {
      first: async (_db: Connection, _merchant: string, _until: number, now: number) =>
        left-- > 0 ? { dueAt: now + minute, take: async () => leave } : undefined,
      move: async () => {},
    } as unknown as DueSource
    const parts = { clock: systemClock, database: { work: gateway.pool }, keys: testKeys } as unknown as SandboxParts
    const directory = { reload: async () => {}, businessTime: () => 0 }
    const moving = advanceClock({ ...parts, directory } as never, [source], sandbox.merchantId, 3 * minute, by)
    if (ends) await assert.rejects(moving, /may act no more/)
    else await moving
  }
  assert.deepEqual((await told()).slice(before), [{ actor: 'who true', details: `{"milliseconds":${3 * minute}}` }])
})
