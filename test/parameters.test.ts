// The parameter table at its limits: what just fits passes, what just does not is refused by name, and a secret is never repeated.
// The cases come from the table itself; below them stand the traps of form data, one test each.

import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { failuresMax } from '../src/audit/failures.ts'
import { amountMax, amountText, hundredths } from '../src/contract/amounts.ts'
import { currencies, notMoney } from '../src/contract/currencies.ts'
import { type Form, parametersMax, readForm } from '../src/contract/form.ts'
import { amount } from '../src/contract/formats.ts'
import { type FormResult, formChecker } from '../src/contract/formCheck.ts'
import { limits } from '../src/contract/limits.ts'
import { namesNear } from '../src/contract/nearest.ts'
import { openApi } from '../src/contract/openapi.ts'
import type { Parameter, Parameters } from '../src/contract/parameters/parameter.ts'
import { type Group, groups, indexMax, valueNamed } from '../src/contract/parameters/table.ts'
import { type RequestKind, requests } from '../src/contract/requests.ts'
import { bodyMax, browserBodyMax } from '../src/http/server.ts'
import { releaseHours } from '../src/payments/followUps/rules.ts'
import { keyHours } from '../src/payments/kept.ts'
import { costsTimes } from './support/costs.ts'
import { type Body, sandbox, type TestGateway, testGateway } from './support/gateway.ts'

type Pairs = readonly (readonly [string, string])[]

const required: Pairs = [
  ['paymentType', 'DB'],
  ['amount', '92.00'],
  ['currency', 'EUR'],
]

// Every group is judged within a request that takes it; the required parameters come along.
const kindOf = (group: Group): RequestKind =>
  requests.payment.groups.some(one => one === group) ? { ...requests.payment, refused: {} } : { groups: [group], required: [] }

function judge(kind: RequestKind, sent: Pairs, lenient = false): FormResult {
  const names = new Set(sent.map(([name]) => name))
  const rest = kind.required.length > 0 ? required.filter(([name]) => !names.has(name)) : []
  return formChecker(kind)(formOf([...rest, ...sent]), lenient)
}

function formOf(pairs: Pairs): Form {
  const form = readForm(new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value])).toString())
  assert.ok(form !== 'tooManyParameters')
  return form
}

const pay = (sent: Pairs, lenient = false): FormResult => judge(requests.payment, sent, lenient)
const raw = (text: string, lenient = false): FormResult =>
  formChecker(requests.payment)(readForm(`paymentType=DB&amount=92.00&currency=EUR&${text}`) as Form, lenient)
const wrong = ({ errors }: FormResult): string[] => errors.map(({ name }) => name).sort()

const wireName = (row: string) => row.replaceAll('[n]', '[0]').replace(/\[(name|brand)\]/, '[a_B9]')
const rowsOf = (group: Group) => Object.entries(groups[group] as Parameters) as [string, Parameter][]
const allRows = (Object.keys(groups) as Group[]).flatMap(group =>
  rowsOf(group).map(([row, parameter]) => ({ group, row, parameter })),
)
const sent = (values: readonly string[], { blankCounts }: Parameter) => values.filter(value => value !== '' || blankCounts)

describe('every row at its limits', () => {
  for (const group of Object.keys(groups) as Group[]) {
    test(group, () => {
      const kind = kindOf(group)
      for (const [row, parameter] of rowsOf(group)) {
        const name = wireName(row)
        const { fits, fails } = parameter.format
        assert.ok(fits.length > 0 && fails.length > 0, `${row} has samples of both sides`)
        for (const value of sent(fits, parameter)) {
          const { values, errors } = judge(kind, [[name, value]])
          assert.deepEqual(
            errors.filter(error => error.name === name),
            [],
            `${name} takes ${show(value)}`,
          )
          assert.equal(valueNamed(values, name), [...value].slice(0, parameter.truncate).join(''), `${name} keeps ${show(value)}`)
        }
        for (const value of sent(fails, parameter)) {
          const { values, errors } = judge(kind, [[name, value]])
          const error = errors.find(error => error.name === name)
          assert.ok(error, `${name} refuses ${show(value)}`)
          assert.ok(valueNamed(values, name) === undefined)
          if (parameter.secret) assert.ok(!('value' in error), `${name} does not repeat ${show(value)}`)
        }
      }
    })
  }

  test('names in brackets', () => {
    for (const { group, row, parameter } of allRows.filter(({ parameter }) => parameter.key)) {
      const named = (key: string): Pairs => [[row.replace(/\[.*\]$/, `[${key}]`), parameter.format.fits[0]!]]
      for (const key of parameter.key!.fits) assert.deepEqual(wrong(judge(kindOf(group), named(key))), [], key)
      for (const key of parameter.key!.fails) assert.deepEqual(wrong(judge(kindOf(group), named(key))), [named(key)[0]![0]], key)
    }
  })

  test('a lenient channel drops what is malformed and descriptive, and refuses the rest', () => {
    for (const { row, parameter } of allRows.filter(({ group }) => requests.payment.groups.some(one => one === group))) {
      if (parameter.key || row === 'createRegistration') continue
      const name = wireName(row)
      for (const value of sent(parameter.format.fails, parameter)) {
        const { values, errors, dropped } = pay([[name, value]], true)
        if (row === 'merchantTransactionId' && value.length < 8)
          assert.equal(valueNamed(values, name), value) // kept unchanged
        else if (parameter.descriptive) assert.deepEqual([dropped, errors], [[name], []], `${name} drops ${show(value)}`)
        else
          assert.ok(
            errors.some(error => error.name === name),
            `${name} refuses ${show(value)}`,
          )
      }
    }
  })

  test('HTML forms can use every pattern: all compile with the flag v', () => {
    for (const { row, parameter } of allRows) {
      for (const format of [parameter.format, parameter.key]) {
        if (format) assert.doesNotThrow(() => new RegExp(format.pattern.source, 'v'), row)
      }
    }
  })
})

describe('names', () => {
  const items = (...indexes: string[]): Pairs => indexes.map(index => [`cart.items[${index}].name`, 'Book'])

  test('a list begins at 0 and leaves no gap', () => {
    assert.deepEqual(wrong(pay(items('0', '1', '2'))), [])
    assert.deepEqual(wrong(pay(items('1', '0'))), [], 'in any order')
    assert.deepEqual(wrong(pay(items('999'))), ['cart.items'])
    assert.deepEqual(wrong(pay(items('0', '2'))), ['cart.items'])
    assert.deepEqual(wrong(pay([['airline.passengers[0].legs[1].flightNumber', 'LH1']])), ['airline.passengers[0].legs'])
  })

  test('a lenient channel counts the items anew', () => {
    const { errors, known } = pay(items('3', '7'), true)
    assert.deepEqual(errors, [])
    assert.deepEqual(
      [...known.values()].filter(({ row }) => row.startsWith('cart')).map(({ path }) => path[2]),
      [0, 1],
    )
  })

  test('a lenient channel counts lists within lists anew, the outer and the inner together', () => {
    const leg = (passenger: number, leg: number): [string, string] => [
      `airline.passengers[${passenger}].legs[${leg}].flightNumber`,
      `LH${passenger}-${leg}`,
    ]
    const { errors, known } = pay([leg(3, 5), leg(7, 2), leg(7, 9), leg(3, 0), leg(9, 999)], true)
    assert.deepEqual(errors, [])
    const places = [...known].flatMap(([name, { path, row }]) =>
      row.startsWith('airline') ? [[name.match(/\d+/g)!.join('-'), path[2], path[4]]] : [],
    )
    assert.deepEqual(places, [
      ['3-5', 0, 1],
      ['7-2', 1, 0],
      ['7-9', 1, 1],
      ['3-0', 0, 0],
      ['9-999', 2, 0],
    ])
  })

  test('a thousand lists with gaps cost little more than a thousand lists without', async () => {
    const legs = (leg: number): Pairs =>
      Array.from({ length: 990 }, (_, at) => [`airline.passengers[${at}].legs[${leg}].flightNumber`, 'LH1'])
    const judged = formChecker(requests.payment)
    const [whole, gapped] = [0, 999].map(leg => formOf([...required, ...legs(leg)])) as [Form, Form]
    await costsTimes(
      10,
      () => judged(whole, true),
      () => judged(gapped, true),
      'lists with gaps',
    )
  })

  test('so many wrong parameters are named', () => {
    const wrongItems: Pairs = Array.from({ length: 500 }, (_, at) => [`cart.items[${at}].price`, 'x'])
    assert.equal(pay(wrongItems).errors.length, limits.errorsMost)
  })

  test('an index has an upper bound', () => {
    const name = `cart.items[${indexMax + 1}].name`
    assert.deepEqual(wrong(pay([[name, 'Book']])), [name])
  })

  test('an index is written without leading zeros, signs or words; other spellings are unknown names', () => {
    for (const index of ['00', '01', '-1', '+1', 'a', '', '1e1', ' 0', '0x0']) {
      const { values, errors } = pay(items(index))
      assert.deepEqual([errors, [...values].length], [[], 3], index)
    }
  })

  test('a free name of digits is a name, not an index; brackets within a free name are refused', () => {
    const { values, known } = pay([['customParameters[123]', 'x']])
    assert.equal(values.get('customParameters[123]'), 'x')
    assert.deepEqual(known.get('customParameters[123]')?.path, ['customParameters', '123'])
    assert.deepEqual(wrong(pay([['customParameters[a][b]', 'x']])), ['customParameters[a][b]'])
  })

  test('overridePaymentType belongs to checkouts', () => {
    assert.deepEqual(wrong(pay([['overridePaymentType[BOLETO]', 'PA']])), ['overridePaymentType[BOLETO]'])
  })
})

describe('unknown names', () => {
  const near = (...names: string[]) => namesNear(requests.payment)(names)

  test('are told with the parameter that was probably meant', () => {
    for (const [sent, meant] of [
      ['amout', 'amount'],
      ['amuont', 'amount'],
      ['Amount', 'amount'],
      ['card.expiryMoth', 'card.expiryMonth'],
      ['cart.items[7].prise', 'cart.items[n].price'],
      ['customParameter[shop]', 'customParameters[name]'],
      ['merchantTransactionID', 'merchantTransactionId'],
    ])
      assert.deepEqual(near(sent!), [`${sent}: did you mean ${meant}?`])
    assert.deepEqual(near('shopSystem', 'id'), ['shopSystem', 'id'])
  })

  test('what is no name, or may be a card number, is not repeated', () => {
    assert.deepEqual(near('4200000000000000', 'card 4200', 'a4200000000000000', 'cvv_947', 'x'.repeat(65), 'a\nb', '', '💳'), [])
    assert.equal(near(...Array.from({ length: 50 }, (_, at) => `unknown${at}`)).length, 10)
  })
})

describe('the log of a sandbox', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())
  test('names unknown parameters, of POST and GET, and never a value', async () => {
    await gateway.pay({ amout: '4711.77', 'card.holdr': 'Secret Person' })
    await gateway.get('/v1/query', { entityId: '5a11d0000000000000000000000000c1', merchantTransactionIdd: 'hidden-id' })
    const log = gateway.logged.join('\n')
    for (const said of [
      'amout: did you mean amount?',
      'card.holdr: did you mean card.holder?',
      'did you mean merchantTransactionId?',
    ])
      assert.ok(log.includes(said), said)
    for (const value of ['4711.77', 'Secret Person', 'hidden-id']) assert.ok(!log.includes(value), value)
  })
})

describe('currencies', () => {
  test('what ISO 4217 lists and people pay in passes; funds, metals and units of account are refused by name', () => {
    const judged = (currency: string) => judge({ ...requests.payment, required: [] }, [['currency', currency]]).errors
    // The codes of ICU that are still active.
    const withdrawn = ['ANG', 'BGN', 'CUC', 'HRK', 'SLL', 'ZWL']
    const active = Intl.supportedValuesOf('currency').filter(code => !withdrawn.includes(code) && !/^X[DS]/.test(code))
    assert.ok(active.length > 150)
    for (const code of [...active, 'UYW', 'VED', 'XCG', 'ZWG']) assert.deepEqual(judged(code), [], code)
    for (const [code, kind] of notMoney) {
      assert.ok(!currencies.has(code), code)
      assert.deepEqual(judged(code), [{ name: 'currency', value: code, message: `${code} is ${kind}, not a currency to pay in` }])
    }
    for (const code of withdrawn) assert.match(judged(code)[0]!.message, /ISO 4217/)
  })
})

describe('values', () => {
  test('blank means absent, except in three places', () => {
    const counts = allRows.filter(({ parameter }) => parameter.blankCounts).map(({ row }) => row)
    assert.deepEqual(counts.sort(), ['customParameters[name]', 'risk.parameters[name]', 'transactionCategory'])
    for (const { group, row, parameter } of allRows) {
      if (parameter.key || kindOf(group).required.includes(row)) continue
      const { values, errors } = judge(kindOf(group), [[row.replaceAll('[n]', '[0]'), '']])
      assert.deepEqual(errors, [], row)
      assert.equal(valueNamed(values, row) !== undefined, parameter.blankCounts === true, row)
    }
    assert.deepEqual(wrong(pay([['amount', '']])), ['amount'], 'a blank required parameter is missing')
  })

  test('lengths count code points, not UTF-16 units', () => {
    assert.deepEqual(wrong(pay([['descriptor', '💳'.repeat(127)]])), [])
    assert.deepEqual(wrong(pay([['descriptor', '💳'.repeat(128)]])), ['descriptor'])
  })

  test('names of the customer are cut after 48 code points, never within one', () => {
    const cut = (value: string) => pay([['customer.givenName', value]]).values.get('customer.givenName')
    assert.equal(cut('é'.repeat(48)), 'é'.repeat(48))
    assert.equal(cut('é'.repeat(49)), 'é'.repeat(48))
    assert.equal(cut('💳'.repeat(49)), '💳'.repeat(48))
    assert.equal(cut('💳'.repeat(30)), '💳'.repeat(30), '60 units, 30 code points')
  })

  test('letters are those of all scripts with what names need; digits are no letters', () => {
    for (const name of ["Jane O'Brien-Smith Jr.", 'Ñandú', '李小龍', 'नरेन्द्र', 'Zoë'])
      assert.deepEqual(wrong(pay([['card.holder', name]])), [], name)
    for (const name of ['Jane 7', 'Jane_Jones', 'Jane\tJones'])
      assert.deepEqual(wrong(pay([['card.holder', name]])), ['card.holder'], name)
  })

  test('a parameter sent twice is an error on a strict channel; on a lenient one the last counts', () => {
    const twice: Pairs = [
      ['descriptor', 'one'],
      ['descriptor', 'two'],
    ]
    assert.deepEqual(wrong(pay(twice)), ['descriptor'])
    assert.equal(pay(twice, true).values.get('descriptor'), 'two')
  })

  test('all wrong parameters are named at once', () => {
    const checked = pay([
      ['amount', '1,00'],
      ['currency', 'ZZZ'],
      ['card.number', '42'],
      ['billing.country', 'de'],
    ])
    assert.deepEqual(wrong(checked), ['amount', 'billing.country', 'card.number', 'currency'])
  })

  test('an error never repeats what may be a card number', () => {
    for (const number of ['4200000000000000', '4200 0000 0000 0000', '4200-0000-0000-0000']) {
      for (const name of ['billing.country', 'customer.phone', 'card.expiryYear', 'paymentBrand', 'currency', 'testMode']) {
        const { errors } = pay([[name, `${number}!`]])
        assert.deepEqual(wrong({ errors } as FormResult).includes(name), true, name)
        assert.ok(!JSON.stringify(errors).includes(number), `${name} ${number}`)
      }
    }
  })
})

describe('conditions', () => {
  test('any customer field asks for both names', () => {
    assert.deepEqual(wrong(pay([['customer.email', 'jane@example.com']])), ['customer.givenName', 'customer.surname'])
    assert.deepEqual(wrong(pay([['customer.givenName', 'Jane']])), ['customer.surname'])
    assert.deepEqual(wrong(pay([['customer.email', 'jane@example.com']], true)), [], 'a lenient channel does without')
    assert.deepEqual(wrong(pay([['shipping.customer.email', 'jane@example.com']])), [], 'shipping has no such condition')
  })

  test('identification documents come in pairs', () => {
    const names: Pairs = [
      ['customer.givenName', 'Jane'],
      ['customer.surname', 'Jones'],
    ]
    const [type, id] = [
      ['customer.identificationDocType', 'PASSPORT'],
      ['customer.identificationDocId', '12345678'],
    ] as const
    assert.deepEqual(wrong(pay([...names, type])), ['customer.identificationDocId'])
    assert.deepEqual(wrong(pay([...names, id])), ['customer.identificationDocType'])
    assert.deepEqual(wrong(pay([...names, type, id])), [])
  })

  for (const address of ['billing', 'shipping']) {
    test(`house numbers of ${address}`, () => {
      assert.deepEqual(wrong(pay([[`${address}.houseNumber2`, '2']])), [`${address}.houseNumber1`])
      const checked = pay([
        [`${address}.houseNumber1`, '1'],
        [`${address}.houseNumber2`, '2'],
        [`${address}.street1`, 'Main'],
        [`${address}.street2`, 'ignored'],
      ])
      assert.deepEqual(wrong(checked), [])
      assert.deepEqual(
        [valueNamed(checked.values, `${address}.street2`) !== undefined, checked.known.has(`${address}.street2`)],
        [false, false],
      )
      assert.ok(valueNamed(pay([[`${address}.street2`, 'kept']]).values, `${address}.street2`))
    })
  }
})

describe('bytes', () => {
  const descriptor = (text: string) => raw(`descriptor=${text}`).values.get('descriptor')

  test('percent signs and plus signs', () => {
    assert.equal(descriptor('a+b%2Bc%20d'), 'a b+c d')
    assert.equal(descriptor('100%'), '100%', 'a stray percent sign stays what it is')
    assert.equal(descriptor('100%zz'), '100%zz')
    assert.equal(descriptor('%e2%82%ac'), '€')
    assert.equal(descriptor('%E2%82%AC%'), '€%')
    assert.equal(descriptor('a=b=c'), 'a=b=c')
    assert.equal(raw('&&&descriptor=x&&').values.get('descriptor'), 'x')
    assert.equal(raw('%64escriptor=x').values.get('descriptor'), 'x', 'names are decoded too')
  })

  test('bytes that are no UTF-8 are refused by name', () => {
    for (const bytes of ['%E9', '%ff', '%C0%80', '%ED%A0%80', '%E2%82']) {
      const { errors } = raw(`descriptor=${bytes}`)
      assert.deepEqual(
        errors.map(({ name, message }) => [name, message]),
        [['descriptor', 'must be UTF-8']],
        bytes,
      )
    }
  })

  test('NUL and other controls are refused, tabs and line ends taken only by long texts', () => {
    for (const name of ['descriptor', 'customer.surname', 'customParameters[note]', 'merchantMemo']) {
      assert.ok(wrong(raw(`${name}=a%00b`)).includes(name), name)
    }
    assert.deepEqual(wrong(raw('descriptor=a%0Ab')), ['descriptor'])
    assert.deepEqual(wrong(raw('customParameters[note]=a%0Ab%09c')), [])
  })

  test('a form has at most so many parameters', () => {
    const form = (count: number) => readForm('a=1&'.repeat(count))
    assert.notEqual(form(parametersMax), 'tooManyParameters')
    assert.equal(form(parametersMax + 1), 'tooManyParameters')
  })

  test('what a stranger sends costs for each parameter as much as in a small form', async () => {
    const reads = (form: string) => () => readForm(form)
    const few = reads('a=1&'.repeat(1990))
    await costsTimes(3, few, reads('a=1&'.repeat(1990) + '&'.repeat(400)), 'a long form')
    await costsTimes(7, few, reads('a=%41&'.repeat(1990)), 'escapes')
    await costsTimes(12, few, reads('\xff=\xff&'.repeat(1990)), 'what is no UTF-8')
    await costsTimes(12, few, () => readForm('\xff=\xff&'.repeat(1990), 'windows-1252'), 'another charset')
    const long = 'x'.repeat(200_000)
    await costsTimes(3, reads('a=&'.repeat(1990) + long), reads('a&'.repeat(1990) + long), 'names without a value')
  })

  test('what is UTF-8 is read as such, and nothing else', () => {
    const reads = (bytes: Uint8Array) => {
      const form = readForm(`a=${[...bytes].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')}`) as Form
      assert.equal(form.broken.size === 0, isUtf8(bytes), `${bytes}`)
      if (isUtf8(bytes)) assert.deepEqual(form.pairs, [['a', Buffer.from(bytes).toString()]])
    }
    const edges = [
      0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xef, 0xf0, 0xf1,
      0xf3, 0xf4, 0xf5, 0xff,
    ]
    for (const one of edges)
      for (const two of edges)
        for (const three of edges)
          for (const more of [[], [0x80], [0xbf, 0x41], [0xc0]]) reads(Uint8Array.of(one, two, three, ...more))
    fc.assert(fc.property(fc.uint8Array({ maxLength: 20 }), reads))
  })

  test('reading never throws, whatever the bytes', () => {
    const pieces = fc.array(fc.constantFrom('%', '%2', '%zz', '%E9', '%00', '&', '=', '+', '[', ']', 'a', '💳', '\ud800'))
    fc.assert(fc.property(fc.string({ unit: 'binary' }), text => void readForm(text)))
    fc.assert(fc.property(pieces, parts => void formChecker(requests.payment)(readForm(parts.join('')) as Form, true)))
  })

  test('what a client encodes is read back', () => {
    const word = fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }).map(text => text.toWellFormed())
    fc.assert(
      fc.property(fc.array(fc.tuple(word, word), { maxLength: 10 }), pairs => assert.deepEqual(formOf(pairs).pairs, pairs)),
    )
  })
})

describe('amounts', () => {
  test('text → hundredths → text gives the amount with two decimals', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[0-9]{1,10}(\.[0-9]{2})?$/), text => {
        assert.ok(amount.pattern.test(text))
        const [whole, decimals = '00'] = text.split('.') as [string, string?]
        assert.equal(amountText(hundredths(text)), `${whole.replace(/^0+(?=\d)/, '')}.${decimals}`)
      }),
    )
  })

  test('hundredths → text → hundredths is the identity', () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: amountMax }), count => assert.equal(hundredths(amountText(count)), count)))
    assert.equal(hundredths('9999999999.99'), amountMax)
  })
})

test('the limits that documents state are those that the code keeps', () => {
  const {
    errorsMost,
    searchReach,
    pageMaxBytes,
    checkoutMinutes,
    offeredRegistrations,
    reportDays,
    shoppersParametersMax,
    ...kept
  } = limits // those are imported by the code that keeps them
  assert.ok(
    errorsMost && searchReach && pageMaxBytes && checkoutMinutes && offeredRegistrations && reportDays && shoppersParametersMax,
  )
  assert.deepEqual(kept, {
    bodyMaxBytes: bodyMax,
    shoppersBodyMaxBytes: browserBodyMax,
    parametersMax,
    indexMax,
    releaseHours,
    idempotencyKeyHours: keyHours,
    failuresPerAddress: failuresMax.address,
    failuresPerUser: failuresMax.user,
    failuresPerCredential: failuresMax.credential,
  })
})

describe('what goes out is not much more than what came in', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())
  const sent = (fields: Record<string, string>) => new URLSearchParams(fields).toString().length

  test('lists with gaps on a lenient channel: no null, nothing unfolded', async () => {
    const legs = Object.fromEntries(
      Array.from({ length: 500 }, (_, at) => [`airline.passengers[${at + 500}].legs[999].flightNumber`, `LH${at}`]),
    )
    const { status, body, text } = await gateway.pay({ entityId: sandbox.lenientEntityId, ...legs })
    assert.equal(status, 200)
    assert.ok(text.length < sent(legs), `${text.length} bytes for ${sent(legs)}`)
    assert.doesNotMatch(text, /null/)
    assert.equal(body.airline.passengers.length, 500)
    assert.deepEqual(body.airline.passengers[499].legs, [{ flightNumber: 'LH499' }])
    const read = await gateway.get(`/v1/payments/${body.id}`, { entityId: sandbox.lenientEntityId })
    assert.deepEqual(read.body.airline, body.airline)
  })
  test('the largest request that is all echoed, and one that is all wrong', async () => {
    const quotes = Object.fromEntries(Array.from({ length: 120 }, (_, at) => [`customParameters[key${at}]`, '"'.repeat(2000)]))
    const echoed = await gateway.pay(quotes).catch(error => error)
    assert.ok(echoed.status === 413 || echoed.text.length < 2 * sent(quotes))
    const wrong = Object.fromEntries(
      Array.from({ length: 1900 }, (_, at) => [`cart.items[${Math.floor(at / 2)}].${at % 2 ? 'tax' : 'price'}`, 'x']),
    )
    const refused = await gateway.pay(wrong)
    assert.equal(refused.status, 400)
    assert.ok(refused.text.length < sent(wrong), `${refused.text.length} bytes for ${sent(wrong)}`)
  })
})

describe('over HTTP', () => {
  let gateway: TestGateway
  before(async () => {
    gateway = await testGateway()
  })
  after(() => gateway.stop())

  test('free names that mean something to JavaScript are data', async () => {
    const { status, body } = await gateway.pay({
      'customParameters[__proto__]': 'a',
      'customParameters[constructor]': 'b',
      'customParameters[123]': 'c',
      'customParameters[SHOPPER_empty]': '',
    })
    assert.equal(status, 200)
    assert.deepEqual(Object.entries(body.customParameters).sort(), [
      ['123', 'c'],
      ['SHOPPER_empty', ''],
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
  })

  test('0.00 has the format of an amount and is refused by the rule', async () => {
    const { status, body } = await gateway.pay({ amount: '0.00' })
    assert.deepEqual([status, body.result.code], [400, '100.550.300'])
    assert.deepEqual(
      body.result.parameterErrors.map(({ name }: { name: string }) => name),
      ['amount'],
    )
  })

  test('values of unknown and secret parameters are never repeated, neither in the answer nor in the log', async () => {
    const secret = '4242424242424242'
    const { status, text } = await gateway.pay({
      'card.nummer': secret,
      'card.number': `${secret}0000`,
      'card.cvv': 'cvv98765',
      'Card.Number': secret,
    })
    assert.equal(status, 400)
    assert.ok(!text.includes(secret) && !text.includes('cvv98765') && !text.includes('nummer'), text)
    assert.ok(!gateway.logged.some(line => line.includes(secret) || line.includes('cvv98765')))
  })

  test('every row that is echoed comes back, and the OpenAPI document describes every field of the answer', async () => {
    const own = new Set([
      'paymentType',
      'paymentBrand',
      'amount',
      'currency',
      'card.expiryMonth',
      'card.expiryYear',
      'card.holder',
    ])
    const fields: Record<string, string> = {}
    for (const { group, row, parameter } of allRows) {
      if (!requests.payment.groups.some(one => one === group) || !parameter.echo || own.has(row) || row.endsWith('street2'))
        continue
      fields[wireName(row)] = parameter.format.fits.find(value => value.length > 0 && value.length < 300) ?? 'x'
    }
    const { status, body } = await gateway.pay(fields)
    assert.equal(status, 200, JSON.stringify(body))
    const answered = new Map(leaves(body))
    for (const [name, value] of Object.entries(fields)) assert.equal(answered.get(steps(name)), value, name)
    const { Payment, Result } = (openApi() as Body).components.schemas
    for (const path of answered.keys()) {
      const last = path.split('/').reduce((schema, step) => describedAt(schema, step, Result), Payment)
      assert.equal(last?.type, 'string', path)
    }
  })

  test('a record echoes structures as they were sent, and street2 not beside a house number', async () => {
    const { body } = await gateway.pay({
      'billing.street1': 'Main',
      'billing.street2': 'ignored',
      'billing.houseNumber1': '1',
      'cart.items[1].name': 'Pen',
      'cart.items[0].name': 'Book',
      'cart.items[0].price': '9.50',
    })
    assert.deepEqual(body.billing, { street1: 'Main', houseNumber1: '1' })
    assert.deepEqual(body.cart, { items: [{ name: 'Book', price: '9.50' }, { name: 'Pen' }] })
  })
})

const show = (value: string) =>
  value.length > 40 ? `${JSON.stringify(value.slice(0, 20))}… (${[...value].length})` : JSON.stringify(value)

/** `cart.items[0].name` → `cart/items/0/name` */
const steps = (name: string) =>
  name.replace(/\[(.*?)\]/g, (_, inside: string) => `/${inside.replaceAll('.', '·')}`).replaceAll('.', '/')

const leaves = (value: Body, path = ''): [string, string][] =>
  typeof value === 'string'
    ? [[path, value]]
    : Object.entries(value).flatMap(([name, inside]) =>
        leaves(inside, path === '' ? name : `${path}/${name.replaceAll('.', '·')}`),
      )

const describedAt = (schema: Body, step: string, result: Body): Body => {
  const found = schema?.properties?.[step] ?? (/^\d+$/.test(step) ? schema?.items : undefined) ?? schema?.additionalProperties
  return found?.$ref === '#/components/schemas/Result' ? result : found
}
