// Profiles: each example end to end with a host that speaks it, frames against other programs' work, both sides of every limit, hostile frames,
// MACs against the vectors of their standards, and what the file refuses. Between gateway and host stands a tap that keeps the bytes.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { recordChargeback } from '../src/clearing/chargebacks/chargebacks.ts'
import { bytesOfText, textOfBytes } from '../src/connectors/cards/iso8583/characters.ts'
import { decode, encode, isMalformed, type Message } from '../src/connectors/cards/iso8583/codec.ts'
import { type Dialect, dialectOf, exampleDialect, fromTheHost } from '../src/connectors/cards/iso8583/dialects.ts'
import { fields1993 } from '../src/connectors/cards/iso8583/fields.ts'
import { type Framing, frame, frameMax, splitter } from '../src/connectors/cards/iso8583/framing.ts'
import { makeLine } from '../src/connectors/cards/iso8583/line.ts'
import { cmac, makeMac, wrapKey } from '../src/connectors/cards/iso8583/mac.ts'
import { type Meaning, readPrivateData, writePrivateData } from '../src/connectors/cards/iso8583/privateData.ts'
import { type ExampleName, exampleNames, type GivenProfile, profileSchema } from '../src/connectors/cards/iso8583/profile.ts'
import { answerType, versionOf } from '../src/connectors/cards/iso8583/versions.ts'
import { openDirectory } from '../src/merchants/directory.ts'
import { readSeed, type Seed, sandboxSeed } from '../src/merchants/seed.ts'
import { examine } from '../src/payments/ledger/doctor.ts'
import { systemClock, systemRandom } from '../src/platform/clock.ts'
import { connect as connectDatabase } from '../src/platform/database/connect.ts'
import { OperatorError } from '../src/platform/errors.ts'
import { read } from '../src/platform/schema.ts'
import { readAcquirers } from '../src/start/acquirers.ts'
import { eventually, sandbox, type TestGateway, testGateway, testKeys } from './support/gateway.ts'
import { acquirersFile, type TestHost, testHost } from './support/host.ts'

const hex = (text: string) => Buffer.from(text, 'hex')
const macKey = hex('0123456789abcdeffedcba9876543210')

const bytesOf = (message: Message, dialect: Dialect, ...more: [ReturnType<typeof makeMac>?]): Buffer => {
  const bytes = encode(message, dialect, ...more)
  assert.ok(Buffer.isBuffer(bytes), JSON.stringify(bytes))
  return bytes
}
const messageOf = (type: string, fields: Record<number, string>): Message => ({
  type,
  fields: new Map(Object.entries(fields).map(([field, value]) => [Number(field), value])),
})
const given = (profile: object): GivenProfile => read(profileSchema, profile, 'test')

describe('characters', () => {
  const printable = Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at)).join('')
  const iconv = (text: string) => spawnSync('iconv', ['-f', 'ASCII', '-t', 'IBM037'], { input: text })

  it('iconv agrees on every character of code page 037', { skip: iconv('A').status !== 0 && 'iconv is not here' }, () => {
    assert.equal(bytesOfText(printable, 'ebcdic').toString('hex'), iconv(printable).stdout.toString('hex'))
    assert.equal(textOfBytes(iconv(printable).stdout, 'ebcdic'), printable)
  })

  it('a byte that is no printable character is not taken for one', () => {
    const known = new Set(bytesOfText(printable, 'ebcdic'))
    for (let byte = 0; byte < 256; byte++)
      assert.equal(textOfBytes(Buffer.from([byte]), 'ebcdic') === '\ufffd', !known.has(byte), `byte ${byte}`)
  })
})

describe('frames', () => {
  const rows: [Framing, least: string, longest: string, hostile: string[]][] = [
    [{ bytes: 2, written: 'binary', countsItself: false }, '0001', '1000', ['0000', '1001', 'ffff']],
    [{ bytes: 2, written: 'binary', countsItself: true }, '0003', '1002', ['0000', '0001', '0002', '1003']],
    [{ bytes: 4, written: 'binary', countsItself: false }, '00000001', '00001000', ['00000000', '00001001', 'ffffffff']],
    [{ bytes: 4, written: 'binary', countsItself: true }, '00000005', '00001004', ['00000004', '00001005', '80000000']],
    [{ bytes: 2, written: 'bcd', countsItself: false }, '0001', '4096', ['0000', '4097', '9999', '00a1', '0f00']],
    [{ bytes: 2, written: 'bcd', countsItself: true }, '0003', '4098', ['0002', '4099']],
    [{ bytes: 4, written: 'bcd', countsItself: false }, '00000001', '00004096', ['00000000', '00004097', '0000000a']],
    [
      { bytes: 4, written: 'ascii', countsItself: false },
      '30303031',
      '34303936',
      ['30303030', '34303937', '2d303031', '30783130', '20202031', 'f0f0f0f1'],
    ],
    [{ bytes: 4, written: 'ascii', countsItself: true }, '30303035', '34313030', ['30303034', '34313031']],
  ]
  for (const [framing, least, longest, hostile] of rows) {
    it(JSON.stringify(framing), () => {
      const [one, most] = [Buffer.from('a'), Buffer.alloc(frameMax, 'b')]
      assert.equal(frame(one, framing).subarray(0, framing.bytes).toString('hex'), least)
      assert.equal(frame(most, framing).subarray(0, framing.bytes).toString('hex'), longest)
      assert.throws(() => frame(Buffer.alloc(frameMax + 1), framing))
      const stream = Buffer.concat([one, most, one].map(message => frame(message, framing)))
      for (const cut of [0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, stream.length - 1]) {
        const split = splitter(framing)
        assert.deepEqual(
          [...(split.push(stream.subarray(0, cut)) as Buffer[]), ...(split.push(stream.subarray(cut)) as Buffer[])],
          [one, most, one],
        )
      }
      for (const length of hostile) assert.equal(splitter(framing).push(Buffer.concat([hex(length), one])), 'badLength', length)
    })
  }
})

describe('one message in each example', () => {
  const Iso = createRequire(import.meta.url)('iso_8583')
  const fields = {
    2: '4242424242424242',
    3: '000000',
    4: '000000009200',
    7: '1120020000',
    11: '000001',
    32: '423935',
    41: 'TERM0001',
    49: '986',
  }
  /** As another codec writes it, without the second bitmap that it always adds. */
  const theirs: Buffer = new Iso({ 0: '0100', ...fields }).getBufferMessage().subarray(2)
  const [bitmap, body] = [Buffer.from(theirs.subarray(4, 12)), theirs.subarray(20)]
  bitmap[0]! &= 0x7f
  const ours = (name: ExampleName) => bytesOf(messageOf('0100', fields), exampleDialect(name))

  it('1987: as another codec writes it', () => {
    assert.equal(ours('1987').toString('hex'), Buffer.concat([theirs.subarray(0, 4), bitmap, body]).toString('hex'))
  })

  it('EBCDIC: as another codec writes it, translated by another program', t => {
    const text = Buffer.concat([Buffer.from('0100'), Buffer.from(bitmap.toString('hex').toUpperCase()), body])
    const { status, stdout } = spawnSync('iconv', ['-f', 'ASCII', '-t', 'IBM037'], { input: text })
    if (status !== 0) return t.skip('iconv is not here')
    assert.equal(ours('1987 ebcdic').toString('hex'), `c9e2d6f0f1${stdout.toString('hex')}`)
  })

  it('packed digits: by hand, DE49 in three characters', () => {
    const byHand = [
      '6000010000',
      '0100',
      bitmap.toString('hex'),
      '164242424242424242',
      '000000',
      '000000009200',
      '1120020000',
      '000001',
    ]
    assert.equal(ours('1987 bcd').toString('hex'), [...byHand, '06423935', '5445524d30303031', '393836'].join(''))
  })

  it('1993: by hand', () => {
    const message = messageOf('1804', { 7: '1120020000', 11: '000001', 12: '261120020000', 24: '831' })
    const byHand = ['1804', '0230010000000000', '1120020000', '000001', '261120020000', '831']
    const [type, bits, ...rest] = byHand as [string, string, ...string[]]
    assert.equal(
      bytesOf(message, exampleDialect('1993')).toString('hex'),
      Buffer.from(type).toString('hex') + bits + Buffer.from(rest.join('')).toString('hex'),
    )
  })

  it('1993: lengths of the standard', () => {
    const lengths =
      '3 n6 4 n12 7 n10 11 n6 12 n12 13 n4 14 n4 15 n6 18 n4 22 an12 24 n3 25 n4 26 n4 28 n6 29 n3 30 n24 ' +
      '31 ans..99 32 n..11 37 an12 38 an6 39 n3 40 n3 41 ans8 42 ans15 43 ans..99 44 ans..99 46 ans...204 49 an3 ' +
      '53 b..48 54 ans...120 55 b...255 56 n..35 57 n3 58 n..11 64 b8 66 ans...204 71 n8 72 ans...999 86 n16 90 n10 ' +
      '95 ans..99 96 b...999 97 x17 100 n..11 104 ans...100 128 b8'
    for (const [, number, content, length] of lengths.matchAll(/(\d+) ([a-z]+)([.\d]+)/g)) {
      const row = fields1993.get(Number(number))!
      assert.equal(`${row.content}${'.'.repeat(row.prefix)}${row.length}`, `${content}${length}`, `DE${number}`)
    }
  })

  it('answers are named by their requests: 1804 by 1814', () => {
    for (const [asked, answer] of Object.entries({
      '0100': '0110',
      '0101': '0110',
      '0421': '0430',
      '0221': '0230',
      '0800': '0810',
      '1804': '1814',
      '1805': '1814',
      '1420': '1430',
    }))
      assert.equal(answerType(asked), answer)
  })

  it('the merchant’s place in 1993: name, street, city, postcode, region and country', () => {
    const place = { name: 'SHOP', city: 'SAO PAULO', state: 'SP', country: 'BR' }
    assert.equal(versionOf(exampleDialect('1993')).nameAndPlace(place), 'SHOP\\\\SAO PAULO\\          SP BRA')
  })

  it('local time is that of the profile, across a date line too', () => {
    const at = Date.UTC(2026, 10, 20, 22, 30, 5)
    const times = (name: ExampleName) =>
      Object.fromEntries(versionOf(exampleDialect(name)).localTime(at, exampleDialect(name).timeZone))
    assert.deepEqual(times('1987'), { 12: '223005', 13: '1120' })
    assert.deepEqual(times('1987 bcd'), { 12: '193005', 13: '1120' })
    assert.deepEqual(times('1987 ebcdic'), { 12: '073005', 13: '1121' })
    assert.deepEqual(times('1993'), { 12: '261120173005' })
  })
})

describe('hostile messages', () => {
  it('a header that is not an answer to us is refused, one that the profile does not name is read over', () => {
    const dialect = exampleDialect('1987 bcd')
    const echo = messageOf('0810', { 11: '000001', 39: '00' })
    assert.ok(!isMalformed(decode(bytesOf(echo, fromTheHost(dialect)), dialect)))
    const ours = decode(bytesOf(echo, dialect), dialect)
    assert.ok(isMalformed(ours) && ours.path === 'header')
    assert.ok(isMalformed(decode(hex('6000'), dialect)))
    const any = dialectOf(given({ like: '1987 bcd', header: { sent: '6000010000' } }))
    assert.ok(!isMalformed(decode(bytesOf(echo, dialect), any)))
  })

  it('a field that is tolerated is read over, one that is not makes the message unreadable', () => {
    const strict = dialectOf(given({ like: '1987' }))
    const host = dialectOf(
      given({ like: '1987', fields: { 105: { content: 'ans', length: '...999' }, 120: { content: 'ans', length: '...999' } } }),
    )
    const answer = (field: number) => bytesOf(messageOf('0110', { 11: '000001', 39: '00', [field]: 'whatever' }), host)
    const tolerant = dialectOf(given({ like: '1987', tolerates: { 105: '...999' } }))
    assert.deepEqual([...(decode(answer(105), tolerant) as Message).fields.keys()], [11, 39])
    for (const bytes of [answer(120)]) assert.ok(isMalformed(decode(bytes, tolerant)))
    const refused = decode(answer(105), strict)
    assert.ok(isMalformed(refused) && refused.path === 'DE105')
    assert.ok(!Buffer.isBuffer(encode(messageOf('0100', { 105: 'x' }), tolerant)), 'and never sent')
  })

  it('a filling nibble that holds something, and a length digit beyond its places, are no digits', () => {
    const dialect = dialectOf(given({ like: '1987', digits: 'bcd', lengths: 'bcd', typeIndicator: 'bcd' }))
    const right = hex('0110' + '0000000002000000' + '3030') // DE39
    assert.ok(!isMalformed(decode(right, dialect)))
    const entry = (value: string) => decode(hex(`0110${'0000040000000000'}${value}`), dialect) // DE22, three digits
    assert.equal((entry('0010') as Message).fields.get(22), '010')
    assert.ok(isMalformed(entry('1010')))
    const behind = (value: string) => decode(hex(`0110${'4000000000000000'}${value}`), dialect) // DE2
    assert.ok(!isMalformed(behind('15378282246310005f')))
    assert.ok(isMalformed(behind('153782822463100050')))
    const before = dialectOf(given({ like: '1987', digits: 'bcd', lengths: 'bcd', typeIndicator: 'bcd', filling: 'zeroBefore' }))
    assert.equal((decode(hex(`0110${'4000000000000000'}150378282246310005`), before) as Message).fields.get(2), '378282246310005')
    assert.ok(isMalformed(decode(hex(`0110${'1000000000000000'}${'0'.repeat(10)}`), dialect)), 'cut off')
    const long = decode(hex(`0110${'0000000000100000'}a12020`), dialect) // DE44 with a length that is no number
    assert.ok(isMalformed(long) && long.path === 'DE44')
  })

  for (const name of exampleNames) {
    it(`${name}: noise is named, and never thrown`, () => {
      const dialect = exampleDialect(name)
      const mac = dialect.mac && makeMac(dialect.mac.algorithm, macKey)
      let state = 7
      const byte = () => {
        state = (state * 1_103_515_245 + 12_345) & 0x7fffffff
        return state >> 16
      }
      for (let run = 0; run < 3000; run++) {
        const noise = Buffer.from(Array.from({ length: byte() % 200 }, () => byte() & 0xff))
        const header = run % 2 === 0 ? (dialect.header.answered ?? Buffer.alloc(0)) : Buffer.alloc(0)
        const found = decode(Buffer.concat([header, noise]), dialect, mac)
        if (isMalformed(found)) assert.match(found.path, /^(header|type|bitmap|end|DE\d+)$/)
      }
    })
  }
})

describe('message authentication', () => {
  it('ISO 9797-1 algorithm 3, by the vectors of the standard', () => {
    const mac = makeMac('retail', macKey)
    assert.equal(mac.of(Buffer.from('Now is the time for all ')).toString('hex'), 'a1c72e74ea3fa9b6')
    assert.equal(mac.of(Buffer.from('Now is the time for it')).toString('hex'), '2e2b1428cc78254f')
    assert.equal(
      makeMac('retail', hex('7ca110454a1a6e570131d9619dc1376e')).of(Buffer.from('Hello World !!!!')).toString('hex'),
      'f09b856213bab83b',
    )
  })

  it('AES-CMAC, by RFC 4493, and wrapped keys, by RFC 3394', () => {
    const key = hex('2b7e151628aed2a6abf7158809cf4f3c')
    const message = hex(
      '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
    )
    const wanted = {
      0: 'bb1d6929e95937287fa37d129b756746',
      16: '070a16b46b4d4144f79bdd9dd04a287c',
      40: 'dfa66747de9ae63030ca32611497c827',
      64: '51f0bebf7e3b9d92fc49741779363cfe',
    }
    for (const [length, mac] of Object.entries(wanted))
      assert.equal(cmac(key, message.subarray(0, Number(length))).toString('hex'), mac)
    const wrapped = wrapKey('cmac', hex('000102030405060708090a0b0c0d0e0f'), hex('00112233445566778899aabbccddeeff'))
    assert.equal(wrapped.toString('hex'), '1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5')
  })

  for (const algorithm of ['retail', 'cmac'] as const) {
    it(`${algorithm}: a message with any byte changed, without its MAC or under another key is refused`, () => {
      const dialect = dialectOf(given({ mac: { algorithm } }))
      const mac = makeMac(algorithm, macKey)
      for (const fields of [
        { 11: '000001', 39: '00' },
        { 11: '000001', 90: '0'.repeat(42) },
      ] as Record<number, string>[]) {
        const bytes = bytesOf(messageOf('0110', fields), dialect, mac)
        assert.deepEqual(decode(bytes, dialect, mac), messageOf('0110', fields))
        for (let at = 0; at < bytes.length; at++) {
          const changed = Buffer.from(bytes)
          changed[at]! ^= 1
          assert.ok(isMalformed(decode(changed, dialect, mac)), `byte ${at}`)
        }
        assert.ok(isMalformed(decode(bytesOf(messageOf('0110', fields), dialect), dialect, mac)))
        assert.ok(isMalformed(decode(bytes, dialect, makeMac(algorithm, hex('00'.repeat(16))))))
      }
    })

    it(`${algorithm}: a new key is taken only when it came under ours, and what was under way still counts`, () => {
      const [ours, theirs] = [makeMac(algorithm, macKey), makeMac(algorithm, macKey)]
      const old = theirs.of(Buffer.from('under way'))
      const wrapped = wrapKey(algorithm, macKey, hex('1c'.repeat(16)))
      const wrong = Buffer.from(wrapped)
      wrong[0]! ^= 0x80
      for (const bad of [
        wrong,
        Buffer.alloc(0),
        wrapped.subarray(1),
        wrapKey(algorithm, hex('33'.repeat(16)), hex('1c'.repeat(16))),
      ])
        assert.equal(ours.take(bad), false)
      assert.equal(ours.take(wrapped) && theirs.take(wrapped), true)
      const fresh = theirs.of(Buffer.from('new'))
      assert.ok(ours.agrees(Buffer.from('new'), fresh) && ours.agrees(Buffer.from('under way'), old))
      assert.notDeepEqual(fresh, makeMac(algorithm, macKey).of(Buffer.from('new')))
    })
  }
})

describe('working keys', () => {
  const dialect = dialectOf(given({ mac: { algorithm: 'cmac', exchange: true } }))
  const started: { stop(): unknown }[] = []
  after(async () => {
    for (const one of started.reverse()) await one.stop()
  })

  /** A host in the hands of the test: it signs on whoever comes and gives the first key, all else is the test's. */
  async function hostWithKeys(firstKey: Buffer) {
    const theirs = fromTheHost(dialect)
    const mac = makeMac('cmac', macKey)
    const heard: Message[] = []
    let socket: Socket | undefined
    const say = (message: Message, under: typeof mac | 'none' = mac) =>
      socket!.write(frame(bytesOf(message, theirs, under === 'none' ? undefined : under), dialect.framing))
    const server = createServer(opened => {
      socket = opened
      const split = splitter(dialect.framing)
      opened
        .on('error', () => {})
        .on('data', bytes => {
          for (const one of split.push(bytes) as Buffer[]) {
            const message = decode(one, theirs, mac)
            assert.ok(!isMalformed(message), JSON.stringify(message))
            heard.push(message)
            if (message.type !== '0800') continue
            const isKeyChange = message.fields.get(70) === '101'
            const wrapped = firstKey.length === 0 ? Buffer.alloc(24) : wrapKey('cmac', macKey, firstKey)
            const key = isKeyChange ? ([[48, wrapped.toString('hex').toUpperCase()]] as const) : []
            say({ type: '0810', fields: new Map([...message.fields, [39, '00'], ...key]) })
            if (isKeyChange) mac.take(wrapped)
          }
        })
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    started.push({ stop: () => server.close() })
    const line = makeLine({
      name: 'north',
      dialect,
      mac: makeMac('cmac', macKey),
      address: async () => ({ host: '127.0.0.1', port: (server.address() as { port: number }).port }),
      signOn: true,
      echoSeconds: 60,
      echoAnswerSeconds: 0.5,
      inFlightMax: 10,
      breakerTimeouts: 10,
      breakerSeconds: 5,
      reconnectMilliseconds: { first: 50, max: 500 },
      clock: systemClock,
      random: () => 0.5,
      say: () => {},
    })
    started.push({ stop: () => line.stop(0) })
    return { line, heard, say, mac }
  }
  const request = (number: number) =>
    messageOf('0100', { 3: '000000', 7: '1120020000', 11: String(number).padStart(6, '0'), 41: 'TERM0001' })
  const answerTo = ({ fields }: Message): Message => ({ type: '0110', fields: new Map([...fields, [39, '00']]) })
  const heardOf = (heard: readonly Message[], type: string) =>
    eventually(async () => heard.find(one => one.type === type) !== undefined, type)

  it('are asked for after signing on, changed when the host says so, and nothing under another ends a request', async () => {
    const { line, heard, say, mac } = await hostWithKeys(hex('1c'.repeat(16)))
    assert.equal(await line.ready(3000), true)
    assert.deepEqual(
      heard.map(({ fields }) => fields.get(70)),
      ['001', '101'],
    )
    const first = line.send(request(1), AbortSignal.timeout(3000), () => {})
    await heardOf(heard, '0100') // decoded under the working key
    say(answerTo(request(1)), makeMac('cmac', hex('00'.repeat(16))))
    say(answerTo(request(1)), 'none')
    await eventually(async () => line.counters.malformed === 2, 'both are refused')
    assert.equal(line.inFlight(), 1)
    say(answerTo(request(1)))
    assert.equal((await first).kind, 'answer')

    const next = wrapKey('cmac', macKey, hex('2d'.repeat(16)))
    const change = (wrapped: Buffer, stan: string) =>
      say(messageOf('0800', { 7: '1120020000', 11: stan, 48: wrapped.toString('hex').toUpperCase(), 70: '101' }))
    change(Buffer.from(next).fill(0, 0, 4), '000077')
    change(next, '000078')
    await eventually(async () => heard.filter(({ type }) => type === '0810').length === 2, 'both key changes are answered')
    const answers = heard.filter(({ type }) => type === '0810')
    assert.deepEqual(
      answers.map(({ fields }) => [fields.get(11), fields.get(39), fields.has(48)]),
      [
        ['000077', '96', false],
        ['000078', '00', false],
      ],
    )
    mac.take(next)
    const second = line.send(request(2), AbortSignal.timeout(3000), () => {})
    await eventually(
      async () => heard.some(one => one.fields.get(11) === '000002' && one.type === '0100'),
      'it came under the new key',
    )
    say(answerTo(request(2)))
    assert.equal((await second).kind, 'answer')
  })

  it('a line that gets none does not come up', async () => {
    const { line } = await hostWithKeys(Buffer.alloc(0))
    assert.equal(await line.ready(700), false)
  })
})

describe('private data', () => {
  const values = new Map<Meaning, string>([
    ['cvv', '123'],
    ['cardOnFile', 'C101'],
    ['networkTransaction', '000000000000042'],
  ])
  const wanted: Record<string, Record<number, string>> = {
    '1987': { 48: '2204C10163150000000000000429203123' },
    '1987 bcd': { 48: '9203123', 63: '0622C1011736000000000000042' },
    '1987 ebcdic': { 48: `123 C101${' '.repeat(30)}${'000000000000042'.padEnd(40)}${' '.repeat(40)}` },
    '1993': { 48: '22004C101630150000000000000429203123'.replace('9203123', '92003123') },
  }
  for (const [name, fields] of Object.entries(wanted)) {
    it(`${name}: by hand, and back`, () => {
      const { privateData } = exampleDialect(name as ExampleName)
      assert.deepEqual(Object.fromEntries(writePrivateData(values, privateData)), fields)
      assert.deepEqual(
        [...readPrivateData(new Map(writePrivateData(values, privateData)), privateData)].sort(),
        [...values].sort(),
      )
    })
  }
  it('nothing to say is no field, and what is cut anywhere says nothing wrong', () => {
    for (const { privateData } of exampleNames.map(exampleDialect)) {
      assert.deepEqual(writePrivateData(new Map(), privateData), [])
      for (const [field, text] of writePrivateData(values, privateData))
        for (let length = 0; length < text.length; length++)
          for (const [what, value] of readPrivateData(new Map([[field, text.slice(0, length)]]), privateData))
            assert.ok(values.get(what)!.startsWith(value))
    }
  })
})

describe('a profile', () => {
  const wrong: [object, string][] = [
    [{ like: '1988' }, 'profile.like'],
    [{ framing: { bytes: 2, written: 'ascii' } }, 'profile.framing counts to 99 only'],
    [{ framing: { bytes: 3, written: 'binary' } }, 'profile.framing.bytes'],
    [{ header: { sent: '6' } }, 'profile.header.sent'],
    [{ characters: 'latin' }, 'profile.characters'],
    [{ fields: { 129: { content: 'n', length: '3' } } }, 'profile.fields'],
    [{ fields: { 48: { content: 'q', length: '3' } } }, 'profile.fields.48.content'],
    [{ fields: { 48: { content: 'ans', length: '....3' } } }, 'profile.fields.48.length'],
    [{ messages: { RF: [3, 4, 11] } }, 'messages.RF without'],
    [{ timeZone: 'Mars/Olympus' }, 'profile.timeZone is no time zone'],
    [{ codes: { first: { '51': 'declined' } } }, 'profile.codes.first.51'],
    [{ retrievalReference: 'host', matching: [11, 37] }, 'cannot match by DE37'],
    [{ privateData: [{ field: 48, layout: 'fixed', parts: [{ what: 'cryptogram', length: 27 }] }] }, 'profile.privateData'],
    [{ privateData: [{ field: 48, layout: 'tagLengthValue', parts: [{ what: 'cvv' }] }] }, 'needs for each part a tag'],
    [{ mac: { algorithm: 'sha1' } }, 'profile.mac.algorithm'],
    [{ colour: 'blue' }, 'profile.colour is not known'],
    [{ mac: { algorithm: 'cmac' } }, 'macKey is missing'],
  ]
  const refusals = (more: object): string => {
    const file = acquirersFile({ north: [5001] }, more)
    try {
      readAcquirers(file.path)
      return 'nothing'
    } catch (error) {
      assert.ok(error instanceof OperatorError, String(error))
      return error.message
    } finally {
      file.remove()
    }
  }
  for (const [profile, expected] of wrong)
    it(`${JSON.stringify(profile)}: ${expected}`, () =>
      assert.ok(refusals({ profile }).includes(expected), refusals({ profile })))

  it('its key comes from a file that others may not read, of the right length, and never without use', () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-mac-'))
    const keyIn = (text: string, mode: number) => {
      const path = join(folder, `${mode}-${text.length}`)
      writeFileSync(path, text, { mode })
      return path
    }
    const profile = { mac: { algorithm: 'cmac' } }
    const secret = macKey.toString('hex')
    assert.match(refusals({ profile, macKey: keyIn(secret, 0o644) }), /others may read: set its mode to 0600/)
    const short = refusals({ profile, macKey: keyIn(secret.slice(2), 0o600) })
    assert.match(short, /macKey must hold 32 hex characters/)
    assert.ok(!short.includes(secret.slice(2)))
    assert.match(refusals({ profile, macKey: join(folder, 'none') }), /cannot be read/)
    assert.match(refusals({ macKey: keyIn(secret, 0o600) }), /macKey is of no use/)
    assert.equal(refusals({ profile, macKey: keyIn(secret, 0o600) }), 'nothing')
    rmSync(folder, { recursive: true, force: true })
  })
})

/** Stands between a gateway and a host, and keeps what each sent. */
async function tapTo(host: TestHost, dialect: Dialect) {
  const kept = { sent: [] as Buffer[], answered: [] as Buffer[] }
  const server = createServer(from => {
    const to = connect(host.port, '127.0.0.1')
    const [ours, theirs] = [splitter(dialect.framing), splitter(dialect.framing)]
    from.on('data', bytes => {
      kept.sent.push(...(ours.push(bytes) as Buffer[]))
      to.write(bytes)
    })
    to.on('data', bytes => {
      kept.answered.push(...(theirs.push(bytes) as Buffer[]))
      from.write(bytes)
    })
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const)
      one.on('error', () => {}).on('close', () => other.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const messages = (list: Buffer[], as: Dialect): Message[] =>
    list.map(bytes => decode(bytes, as) as Message).filter(({ type }) => type[1] !== '8')
  return {
    port: (server.address() as { port: number }).port,
    kept,
    /** What the gateway sent beside network messages. */
    sent: () => messages(kept.sent, fromTheHost(dialect)),
    last: () => messages(kept.sent, fromTheHost(dialect)).at(-1)!,
    close: () => server.close(),
  }
}

describe('payments through a host of each example', () => {
  type Side = { host: TestHost; tap: Awaited<ReturnType<typeof tapTo>> }
  const sides = new Map<string, Side>()
  const currencies: Record<string, string> = { '1987': 'USD', '1987 bcd': 'GBP', '1987 ebcdic': 'BRL', '1993': 'EUR' }
  const nameOf = (profile: string) => profile.replace(' ', '-')
  let gateway: TestGateway
  let folder: string
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'tollgate-profiles-'))
    writeFileSync(join(folder, 'mac.key'), `${macKey.toString('hex')}\n`, { mode: 0o600 })
    const acquirers: object[] = []
    for (const [at, profile] of exampleNames.entries()) {
      const dialect = exampleDialect(profile as ExampleName)
      const host = await testHost({ dialect, ...(dialect.mac && { macKey }) })
      const tap = await tapTo(host, dialect)
      sides.set(profile, { host, tap })
      acquirers.push({
        name: nameOf(profile),
        modes: ['external'],
        lines: [{ host: '127.0.0.1', port: tap.port }],
        profile: { like: profile },
        ...(dialect.mac && { macKey: 'mac.key' }),
        acquirerId: `42393${at}`,
        merchantId: `MERCHANT-${at}`,
        terminals: [`TERM${at}001`],
        facilitator: true,
        merchantCountry: 'BR',
        answerWithinSeconds: 5,
        recoverAfterSeconds: 0.2,
      })
    }
    writeFileSync(join(folder, 'acquirers.json'), JSON.stringify({ acquirers }))
    const seed = readSeed(sandboxSeed) as { -readonly [Key in keyof Seed]: Seed[Key] }
    seed.divisions![0]!.merchants![0]!.channels![0]!.settings = {
      accountChecks: true,
      partialApprovals: true,
      routes: Object.entries(currencies).map(([profile, currency]) => ({ currencies: [currency], acquirers: [nameOf(profile)] })),
    }
    gateway = await testGateway({ seed, environment: { ACQUIRERS_FILE: join(folder, 'acquirers.json') } })
  })
  after(async () => {
    await gateway.stop()
    for (const { host, tap } of sides.values()) {
      tap.close()
      await host.stop()
    }
    rmSync(folder, { recursive: true, force: true })
  })

  for (const [profile, currency] of Object.entries(currencies)) {
    const pay = (fields: Record<string, string>) => gateway.pay({ testMode: 'EXTERNAL', currency, ...fields })
    const refer = (id: string, paymentType: string, amount?: string) =>
      gateway.refer(id, { paymentType, ...(amount !== undefined && { amount, currency }) })

    it(`${profile}: held, captured in part, the rest released, refunded, reversed, declined`, async () => {
      const { host } = sides.get(profile)!
      const books = () => host.ledger.totals().get({ USD: '840', GBP: '826', BRL: '986', EUR: '978' }[currency]!)
      const held = await pay({ paymentType: 'PA', amount: '92.00' })
      assert.equal(held.body.result.code, '000.100.112', held.text)
      assert.deepEqual(books(), { held: 9200n, cleared: 0n })
      const captured = await refer(held.body.id, 'CP', '50.00')
      assert.equal(captured.body.result.code, '000.100.112', captured.text)
      await eventually(async () => books()?.held === 0n, 'the rest is free')
      assert.deepEqual(books(), { held: 0n, cleared: 5000n })
      const refunded = await refer(held.body.id, 'RF', '20.00')
      assert.equal(refunded.body.result.code, '000.100.112', refunded.text)
      assert.deepEqual(books(), { held: 0n, cleared: 3000n })
      const other = await pay({ paymentType: 'PA', amount: '10.00' })
      assert.deepEqual(books(), { held: 1000n, cleared: 3000n })
      const reversed = await refer(other.body.id, 'RV')
      assert.equal(reversed.body.result.code, '000.100.112', reversed.text)
      assert.deepEqual(books(), { held: 0n, cleared: 3000n })
      const declined = await pay({ paymentType: 'PA', amount: '6660.51' })
      assert.equal(declined.body.result.code, '800.100.155', declined.text)
      assert.equal(host.counters.malformed, 0)
    })

    it(`${profile}: what is not answered is taken back, what is repeated is booked once`, async () => {
      const { host, tap } = sides.get(profile)!
      const before = [...host.ledger.entries()].length
      const lost = await pay({ paymentType: 'PA', amount: '7770.05' })
      assert.equal(lost.body.result.code, '000.200.000', lost.text)
      await eventually(async () => [...host.ledger.entries()].length >= before + 2, 'the reversal has come')
      const [hold, reversal] = [...host.ledger.entries()].slice(before)
      assert.deepEqual([hold!.line.kind, hold!.held, reversal!.line.kind], ['hold', 0n, 'reversal'])
      assert.match(tap.last().type, /^[01]42[01]$/)
    })

    it(`${profile}: every message but those of the network has a MAC where the profile says so`, () => {
      const dialect = exampleDialect(profile as ExampleName)
      const { kept } = sides.get(profile)!.tap
      const all = [
        ...kept.sent.map(bytes => [bytes, decode(bytes, fromTheHost(dialect))] as const),
        ...kept.answered.map(bytes => [bytes, decode(bytes, dialect)] as const),
      ]
      assert.ok(all.length > 10)
      for (const [, message] of all) {
        assert.ok(!isMalformed(message), JSON.stringify(message))
        const fields = [...message.fields.keys()]
        assert.equal(
          fields.at(-1) === 64 || fields.at(-1) === 128,
          dialect.mac !== undefined && message.type[1] !== '8',
          message.type,
        )
      }
    })
  }

  const shop = {
    testMode: 'EXTERNAL',
    transactionCategory: 'MO',
    descriptor: 'Order 7',
    'merchant.mcc': '5411',
    'merchant.name': 'Corner',
    'merchant.city': 'Recife',
    'merchant.submerchantId': 'SUB-7',
    'standingInstruction.mode': 'INITIAL',
    'standingInstruction.type': 'UNSCHEDULED',
    'standingInstruction.source': 'CIT',
  }
  const usd = (amount: string) => ({ amount, currency: 'USD' })
  const sentSince = (profile: string, from: number) => sides.get(profile)!.tap.sent().slice(from)

  it('captures, refunds and reversals say again what the authorization said', async () => {
    const { privateData } = exampleDialect('1987')
    const from = sides.get('1987')!.tap.sent().length
    const held = await gateway.pay({ ...shop, paymentType: 'PA', ...usd('92.00') })
    await gateway.refer(held.body.id, { paymentType: 'CP', ...usd('92.00') })
    await gateway.refer(held.body.id, { paymentType: 'RF', ...usd('10.00') })
    const other = await gateway.pay({ ...shop, paymentType: 'PA', ...usd('20.00') })
    await gateway.refer(other.body.id, { paymentType: 'RV' })
    const [pa, cp, rf, second, rv] = sentSince('1987', from)
    assert.deepEqual(
      [pa, cp, rf, second, rv].map(message => message!.type),
      ['0100', '0220', '0200', '0100', '0400'],
    )
    for (const [first, later] of [
      [pa, cp],
      [pa, rf],
      [second, rv],
    ] as [Message, Message][]) {
      for (const field of [18, 22, 25, 43])
        assert.equal(later.fields.get(field), first.fields.get(field), `${later.type} DE${field}`)
      const told = readPrivateData(later.fields, privateData)
      assert.equal(told.get('submerchant'), 'SUB-7')
      assert.equal(told.get('cardOnFile'), 'C101')
      assert.match(told.get('networkTransaction') ?? '', /^\d{15}$/)
      assert.equal(told.has('cvv'), false)
      assert.match(later.fields.get(38) ?? '', /^\d{6}$/)
      assert.equal(
        later.fields.get(90)!.slice(4, 10),
        (later === rf ? cp : first)!.fields.get(11),
        'DE90 names the message before',
      )
    }
    assert.deepEqual([pa!.fields.get(18), pa!.fields.get(22), pa!.fields.get(25)], ['5411', '012', '08'])
    assert.match(pa!.fields.get(43)!, /^Corner {17}Recife/)
    assert.equal(rf!.fields.get(90)!.slice(0, 4), '0220')
  })

  it('mail and telephone orders leave as such, all else as electronic commerce', async () => {
    for (const [currency, profile] of [
      ['USD', '1987'],
      ['EUR', '1993'],
    ] as const)
      for (const [category, kind] of [
        ['MO', 'mailOrder'],
        ['TO', 'telephoneOrder'],
        ['MOTO', 'telephoneOrder'],
        ['EC', 'electronicCommerce'],
      ] as const) {
        await gateway.pay({ testMode: 'EXTERNAL', amount: '5.00', currency, transactionCategory: category })
        const { fields } = sides.get(profile)!.tap.last()
        for (const [field, value] of exampleDialect(profile).entry[kind])
          assert.equal(fields.get(field), value, `${category} DE${field}`)
      }
  })

  it('the network’s id comes back from the payment that begins an agreement, and goes out with those that repeat it', async () => {
    for (const [currency, profile] of [
      ['USD', '1987'],
      ['BRL', '1987 ebcdic'],
    ] as const) {
      const { privateData } = exampleDialect(profile)
      const agreement = (mode: string, more: Record<string, string> = {}) =>
        gateway.pay({
          testMode: 'EXTERNAL',
          amount: '5.00',
          currency,
          'standingInstruction.mode': mode,
          'standingInstruction.type': 'RECURRING',
          ...more,
        })
      const first = await agreement('INITIAL', { 'standingInstruction.source': 'CIT' })
      const id = first.body.standingInstruction.initialTransactionId
      assert.match(id, /^\d{15}$/)
      const again = await agreement('REPEATED', {
        'standingInstruction.source': 'MIT',
        'standingInstruction.initialTransactionId': id,
      })
      assert.equal(again.body.result.code, '000.100.112', again.text)
      assert.equal(again.body.standingInstruction.initialTransactionId, id)
      const { fields } = sides.get(profile)!.tap.last()
      const told = readPrivateData(fields, privateData)
      assert.deepEqual([told.get('networkTransaction'), told.get('cardOnFile'), fields.get(22)], [id, 'M103', '100'])
      const declined = await agreement('INITIAL', { 'standingInstruction.source': 'CIT', amount: '6660.51' })
      assert.equal(declined.body.standingInstruction.initialTransactionId, undefined)
    }
  })

  it('the network’s id is kept with a registration: the merchant repeats without it, without a CVV, and the host is told', async () => {
    const common = { testMode: 'EXTERNAL', amount: '5.00', currency: 'USD' }
    const first = await gateway.pay({
      ...common,
      createRegistration: 'true',
      'standingInstruction.mode': 'INITIAL',
      'standingInstruction.type': 'RECURRING',
    })
    const id = first.body.standingInstruction.initialTransactionId
    const charged = await gateway.post(`/v1/registrations/${first.body.registrationId}/payments`, {
      entityId: sandbox.entityId,
      ...common,
      paymentType: 'DB',
      'standingInstruction.mode': 'REPEATED',
      'standingInstruction.source': 'MIT',
      'standingInstruction.type': 'RECURRING',
    })
    assert.equal(charged.body.result.code, '000.100.112', charged.text)
    const { fields } = sides.get('1987')!.tap.last()
    const told = readPrivateData(fields, exampleDialect('1987').privateData)
    assert.deepEqual([told.get('networkTransaction'), told.get('cardOnFile'), told.get('cvv')], [id, 'M103', undefined])
    // Another mode is another network.
    const internal = await gateway.post(`/v1/registrations/${first.body.registrationId}/payments`, {
      entityId: sandbox.entityId,
      amount: '5.00',
      currency: 'USD',
      paymentType: 'DB',
      'standingInstruction.mode': 'REPEATED',
    })
    assert.equal(internal.body.standingInstruction.initialTransactionId, undefined)
  })

  it('a number that the host gives is returned, goes with what follows, and a report names the payment by it', async () => {
    const from = sides.get('1987 bcd')!.tap.sent().length
    const gbp = (amount: string) => ({ amount, currency: 'GBP' })
    const held = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', ...gbp('92.00') })
    const reference = held.body.resultDetails.ConnectorTxID1
    assert.match(reference, /^H\d{11}$/)
    const captured = await gateway.refer(held.body.id, { paymentType: 'CP', ...gbp('92.00') })
    await gateway.refer(held.body.id, { paymentType: 'RF', ...gbp('2.00') })
    assert.deepEqual(
      sentSince('1987 bcd', from).map(({ fields }) => fields.get(37)),
      [undefined, reference, reference],
    )
    const database = connectDatabase(gateway.connection, systemClock, () => {})
    const directory = await openDirectory(database, testKeys, systemClock, () => {})
    try {
      const parts = { database, directory, clock: systemClock, random: systemRandom, keys: testKeys, build: 'test' }
      const date = new Date().toISOString().slice(0, 10)
      const line = { report: 'r', line: 1, type: 'CB', reference, amount: 9200, currency: 'GBP', reason: '', date } as const
      assert.deepEqual(await recordChargeback(parts, { ...line, acquirer: '1987' }), { kind: 'refused', why: 'noPayment' })
      const said = await recordChargeback(parts, { ...line, acquirer: '1987-bcd' })
      assert.equal(said.kind === 'recorded' && said.payment.referenceId, captured.body.id, JSON.stringify(said))
    } finally {
      await directory.close()
      await database.close()
    }
  })

  it('a payment of nothing is an account check: 85 is good, nothing is held, and there is nothing to capture', async () => {
    for (const [currency, profile] of [
      ['USD', '1987'],
      ['EUR', '1993'],
    ] as const) {
      const checked = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', amount: '0.00', currency })
      assert.equal(checked.body.result.code, '000.100.112', checked.text)
      const { fields } = sides.get(profile)!.tap.last()
      assert.equal(fields.get(4), '0'.repeat(12))
      for (const [field, value] of exampleDialect(profile).entry.accountCheck) assert.equal(fields.get(field), value)
      const captured = await gateway.refer(checked.body.id, { paymentType: 'CP', amount: '1.00', currency })
      assert.equal(captured.status, 400, captured.text)
      assert.equal((await gateway.refer(checked.body.id, { paymentType: 'RV' })).status, 400)
    }
    for (const wrong of [{ paymentType: 'DB' }, { paymentType: 'PA.CP' }, { paymentType: 'CD' }])
      assert.equal(
        (await gateway.pay({ testMode: 'EXTERNAL', amount: '0.00', currency: 'USD', ...wrong })).body.result.code,
        '100.550.300',
      )
    const declined = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', amount: '6660.85', currency: 'USD' })
    assert.equal(declined.status, 400, 'only an account check hears that there is no reason to decline')
    assert.deepEqual((await examine(gateway.pool)).findings, [])
  })

  it('a part that the issuer approves is taken where the channel allows it, and all that follows goes by it', async () => {
    for (const [currency, number, profile] of [
      ['USD', '840', '1987'],
      ['EUR', '978', '1993'],
    ] as const) {
      const { host } = sides.get(profile)!
      const books = () => host.ledger.totals().get(number)!
      const before = { ...books() }
      const held = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA', amount: '7770.08', currency })
      assert.deepEqual([held.body.result.code, held.body.amount], ['000.100.112', '3885.04'], held.text)
      assert.equal(books().held - before.held, 388_504n)
      const capture = (amount: string) => gateway.refer(held.body.id, { paymentType: 'CP', amount, currency })
      assert.equal((await capture('3885.05')).body.result.code, '700.400.100')
      const captured = await capture('3885.04')
      assert.equal(captured.body.result.code, '000.100.112', captured.text)
      assert.equal((await gateway.refer(held.body.id, { paymentType: 'RF', amount: '3885.05', currency })).status, 400)
      assert.deepEqual([books().held - before.held, books().cleared - before.cleared], [0n, 388_504n])
      const debit = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'DB', amount: '7770.08', currency })
      assert.equal(debit.body.amount, '3885.04')
      assert.equal((await gateway.refer(debit.body.id, { paymentType: 'RV' })).body.amount, '3885.04')
      assert.deepEqual([books().held - before.held, books().cleared - before.cleared], [0n, 388_504n])
      const read = await gateway.get(`/v1/payments/${held.body.id}`, { entityId: sandbox.entityId })
      assert.equal(read.body.amount, '3885.04')
      const atOnce = await gateway.pay({ testMode: 'EXTERNAL', paymentType: 'PA.CP', amount: '7770.08', currency })
      assert.equal(atOnce.body.result.code, '800.100.155', atOnce.text)
      await eventually(async () => books().held === before.held, 'the part is given back')
    }
    assert.deepEqual((await examine(gateway.pool)).findings, [])
  })
})
