// Card brands of an installation's own: what the file may say, what is wrong with it, and what a gateway then takes.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it, test } from 'node:test'
import { shortenedCards } from '../src/audit/details.ts'
import { thisProcess } from '../src/audit/entry.ts'
import { readReport } from '../src/clearing/chargebacks/report.ts'
import { inTurns } from '../src/clearing/steps.ts'
import { readCardBrands } from '../src/connectors/cards/brandsFile.ts'
import { knowBrands, knownBrands, standardBrands } from '../src/contract/brands.ts'
import { shortenCards } from '../src/contract/cardNumbers.ts'
import { seedSchema } from '../src/merchants/seed.ts'
import { channelSettings, entityName, merchantSettings, settingsFor } from '../src/merchants/settings.ts'
import { addressText } from '../src/pages/office/fields.ts'
import { listedValue } from '../src/payments/risk/lists/lists.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { inTransaction } from '../src/platform/database/connect.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { mistakesIn } from '../src/platform/schema.ts'
import type { StaffParts } from '../src/staff/parts.ts'
import { beginSession } from '../src/staff/sessions.ts'
import { readConfig } from '../src/start/config.ts'
import { type Fields, type TestGateway, testGateway, testKeys } from './support/gateway.ts'

const read = (brands: unknown[]) => readCardBrands(JSON.stringify({ brands }), 'brands.json')
const mada = { name: 'MADA', ranges: ['446404', '968201-968211', '588846-588848'], lengths: [16], also: ['VISA'] }

test('a brand of the file stands in the place of ours, a new one beside them', () => {
  const brands = read([mada, { name: 'HOUSE', ranges: ['990000-990009'], lengths: [16, 19], cvvRequired: false }])
  for (const [number, brand] of [
    ['5888460000000000', 'MADA'],
    ['5888450000000000', 'MAESTRO'], // ours had it as MADA
    ['9900090000000000', 'HOUSE'],
    ['9900100000000000', undefined],
    ['4200000000000000', 'VISA'],
    ['99', undefined],
  ] as const)
    assert.equal(brands.detect(number)?.name, brand, number)
  assert.equal(standardBrands.detect('5888450000000000')?.name, 'MADA')
  assert.deepEqual(brands.named('HOUSE'), {
    name: 'HOUSE',
    ranges: ['990000-990009'],
    lengths: [16, 19],
    cvvLength: 3,
    cvvRequired: false,
    also: [],
  })
})

test('what a process has heard of once it knows for good, as one that reads the files of several cells', () => {
  for (const [name, range, length] of [
    ['ONE', '998001', 16],
    ['TWO', '998002', 16],
    ['ONE', '998001', 19],
  ] as const)
    knowBrands(read([{ name, ranges: [range], lengths: [length] }]))
  const lengths = (beginning: string) => [...new Set(knownBrands.lengthsOf(beginning))].sort()
  assert.deepEqual([lengths('998001'), lengths('998002'), lengths('998003')], [[16, 19], [16], []])
  knowBrands(read([{ name: 'CORP', ranges: ['411199'], lengths: [17] }]))
  assert.ok(lengths('411199').includes(16), 'it is VISA elsewhere')
})

test('a number may be of a brand that takes those of another, and has other lengths', () => {
  const brands = read([
    { name: 'OURS', lengths: [17], ranges: [], also: ['AMEX'] },
    { name: 'MADA', lengths: [16, 19], ranges: ['999002'], also: ['VISA'] },
  ])
  assert.deepEqual([...brands.lengthsOf('340000000000')].sort(), [15, 17])
  assert.deepEqual([...brands.lengthsOf('999002000000')].sort(), [13, 16, 18, 19])
  assert.equal(shortenCards('it was 34000000000000009 here', brands), 'it was 340000…0009 here')
})

test('among ranges of the same number of digits the file is first', () => {
  const own = { name: 'OWN', ranges: ['4'], lengths: [16] }
  assert.equal(read([own]).detect('4200000000000000')?.name, 'OWN')
  assert.equal(read([{ ...own, ranges: ['42'] }]).detect('4200000000000000')?.name, 'OWN')
  assert.equal(read([{ ...own, ranges: ['4'] }]).detect('4026000000000000')?.name, 'VISAELECTRON')
})

test('a range of any size costs nothing to read', () => {
  const wide = { name: 'WIDE', ranges: ['400000000000-499999999999'], lengths: [16] }
  assert.equal(read([wide]).detect('4567890123456789')?.name, 'WIDE')
})

describe('a file that cannot be is refused with all that is wrong', () => {
  const wrong = (brands: unknown[]): string[] => {
    try {
      read(brands)
    } catch (error) {
      return (error as Error).message.split('\n').map(line => line.replace('brands.json: ', ''))
    }
    return []
  }
  for (const [what, row, rule] of [
    ['a misspelt field', { ...mada, range: ['4'] }, /^brands\[0\]\.range is not known: did you mean ranges\?$/],
    ['a name in small letters', { ...mada, name: 'mada' }, /name must be capitals/],
    ['the name of a method that is no card', { ...mada, name: 'PAYPAL' }, /name is the name of a method/],
    ['ends of different lengths', { ...mada, ranges: ['4-50'] }, /ranges\[0\] must have ends/],
    ['ends the wrong way round', { ...mada, ranges: ['55-51'] }, /ranges\[0\] must have ends/],
    ['a number for a range', { ...mada, ranges: [4] }, /ranges\[0\] must be/],
    ['a length that no card has', { ...mada, lengths: [11] }, /lengths\[0\] must be/],
    ['no lengths', { ...mada, lengths: [] }, /lengths must hold/],
    ['a length as a text', { ...mada, lengths: ['16'] }, /lengths\[0\] must be/],
    ['a CVV of five digits', { ...mada, cvvLength: 5 }, /cvvLength must be 3 or 4/],
    ['a text for true', { ...mada, cvvRequired: 'false' }, /cvvRequired must be true or false/],
    ['a family that nobody knows', { ...mada, also: ['VISAA'] }, /also names VISAA/],
    ['no map', 7, /^brands\[0\] must be a map/],
  ] as const)
    test(what, () => {
      const said = wrong([row])
      assert.ok(
        said.some(line => rule.test(line)),
        said.join('\n'),
      )
    })
  test('twice the same brand', () => assert.deepEqual(wrong([mada, mada]), ['brands holds MADA twice.']))
  test('several mistakes at once', () => {
    assert.equal(
      wrong([
        { ...mada, lengths: 16 },
        { name: 'HOUSE', ranges: 'x', cvvLength: '3' },
      ]).length,
      4,
    )
  })
  test('another shape', () => {
    for (const text of ['[]', '{}', '{"brands": {}}', '{"brands": [], "more": 1}', '7', 'null'])
      assert.throws(() => readCardBrands(text, 'brands.json'), OperatorError, text)
    assert.throws(() => readCardBrands('{', 'brands.json'), /brands\.json is not JSON/)
  })
})

describe('a gateway with a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-brands-'))
  const path = join(folder, 'brands.json')
  writeFileSync(
    path,
    JSON.stringify({
      brands: [
        { name: 'HOUSE', ranges: ['990000-990009'], lengths: [16], cvvLength: 4 },
        { name: 'MADA', ranges: ['999001'], lengths: [19] },
      ],
    }),
  )
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway({ environment: { CARD_BRANDS_FILE: path } })
  })
  after(async () => {
    await gateway.stop()
    rmSync(folder, { recursive: true })
  })

  const card = { 'card.number': '9900000000000002', 'card.cvv': '1234', merchantTransactionId: 'house-card-1' }
  const check = async (fields: Fields, wanted: string) => {
    const { status, body } = await gateway.pay(fields)
    assert.equal(`${status} ${body.result.code} ${body.paymentBrand}`, wanted, JSON.stringify(body))
  }
  it('takes the brand, stated or detected, by its lengths and CVV, and finds it again', async () => {
    await check({ ...card, paymentBrand: 'HOUSE' }, '200 000.100.110 HOUSE')
    await check({ ...card, paymentBrand: '' }, '200 000.100.110 HOUSE')
    await check({ ...card, paymentBrand: 'HOUSE', 'card.cvv': '123' }, '400 100.100.601 HOUSE')
    await check({ ...card, paymentBrand: 'VISA' }, '400 100.100.700 VISA')
    const { body } = await gateway.get('/v3/query', {
      entityId: '5a11d0000000000000000000000000c1',
      merchantTransactionId: 'house-card-1',
      paymentMethods: 'CC',
    })
    assert.equal(body.records.length, 4)
  })
  it('knows its numbers wherever none belongs', async () => {
    const number = card['card.number']
    const long = '9990010000000000001'
    const own = (text: string) => text.includes(number) || text.includes(long)
    const psp = { id: '7e57c0de000000000000000000000001', name: 'PSP' }
    assert.equal(listedValue(testKeys, 'customer', number), undefined)
    assert.equal(mistakesIn(entityName, `Shop ${number}`).length, 1)
    const label = (text: string) =>
      mistakesIn(seedSchema(), { psp, tokens: [{ label: text, token: 'a'.repeat(16), entities: [psp.id] }] })
    assert.deepEqual([label(`shop ${number}`).length, label('shop cvv 123').length, label('shop').length], [1, 1, 0])
    assert.ok(!own(JSON.stringify(shortenedCards({ note: long }))), 'of a brand of ours that has other lengths in the file')
    const { channel } = settingsFor(new Set())
    assert.equal(mistakesIn(channel, { shopName: `Shop ${number}` }).length, 1)
    assert.equal(mistakesIn(channelSettings, { shopName: `Shop ${number}` }).length, 0, 'what stands there is read')
    const lines = [
      'report,line,type,acquirer,reference,amount,currency,reason,date',
      `${number},1,CB,,${'0'.repeat(32)},1.00,EUR,10.4,2026-01-01`,
      `r,2,CB,,${'0'.repeat(32)},1.00,EUR,${number},2026-01-01`,
    ]
    assert.deepEqual(await inTurns(readReport(lines.join('\n'))), [
      { at: 2, malformed: 'report must not hold a card number' },
      { at: 3, malformed: 'reason must not hold a card number' },
    ])
    assert.ok(!own(JSON.stringify(shortenedCards({ note: `it was ${number}, not 4200000000000000` }))))
    assert.doesNotMatch(
      JSON.stringify(shortenedCards({ note: 'it was 4200000000000000' })),
      /4200000000000000/,
      'nor those of ours',
    )
    assert.deepEqual(Object.keys(shortenedCards({ [`to ${number}`]: { inner: 1 } })), ['to 990000…0002'], 'names too')
    const { merchant } = settingsFor(new Set())
    const server = { host: 'files.shop.example', user: `shop ${number}`, hostKey: 'ssh-ed25519 AAAA', folder: 'cvv 123' }
    assert.equal(mistakesIn(merchant, { receiptFiles: server }).length, 2)
    assert.equal(mistakesIn(merchantSettings, { receiptFiles: server }).length, 0, 'what stands there is read')
    assert.ok(!own(addressText(`https://shop.example/${number}`)))
    const before = process.env.SUDO_USER
    process.env.SUDO_USER = number
    assert.ok(!own(thisProcess('commandLine').id))
    if (before === undefined) delete process.env.SUDO_USER
    else process.env.SUDO_USER = before
    await inTransaction(gateway.pool, db =>
      beginSession(
        db,
        { clock: systemClock, random: systemRandom, keys: testKeys } as unknown as StaffParts,
        null,
        { address: '127.0.0.1', agent: `browser ${number}` },
        'staffSignedIn',
      ),
    )
    const { rows } = await gateway.pool.query('select agent from staff_sessions')
    assert.ok(rows.length > 0 && rows.every(({ agent }) => !own(agent)))
  })
  it('asks for what cards need', async () => {
    const { body } = await gateway.pay({ paymentBrand: 'HOUSE', 'card.number': '', 'card.expiryYear': '' })
    assert.deepEqual(
      body.result.parameterErrors.map(({ name }: { name: string }) => name),
      ['card.number', 'card.expiryYear'],
    )
  })
  it('does not start with a bad one', () => {
    writeFileSync(path, '{"brands": [{"name": "x"}]}')
    assert.throws(() => readConfig({ CARD_BRANDS_FILE: path }, '/nonexistent'), OperatorError)
    assert.throws(() => readConfig({ CARD_BRANDS_FILE: join(folder, 'none.json') }, '/nonexistent'), /CARD_BRANDS_FILE names/)
  })
})
