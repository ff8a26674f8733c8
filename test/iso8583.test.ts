// ISO 8583: the codec against vectors that independent programs agree on, its limits by the table, frames at every byte, codes, amounts, and
// which parameters leave the house.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { decode, encode, isMalformed, type Message } from '../src/connectors/cards/iso8583/codec.ts'
import { exampleDialect, fromTheHost, responseOf } from '../src/connectors/cards/iso8583/dialects.ts'
import type { Field } from '../src/connectors/cards/iso8583/fields.ts'
import { type AcquirerAccountData, forwarded, notForwarded, placeOf } from '../src/connectors/cards/iso8583/forwarding.ts'
import { frame, frameMax, splitter } from '../src/connectors/cards/iso8583/framing.ts'
import { masked } from '../src/connectors/cards/iso8583/masking.ts'
import { messageOf, replyOf } from '../src/connectors/cards/iso8583/messages.ts'
import { type Meaning, privateText, readPrivateData, writePrivateData } from '../src/connectors/cards/iso8583/privateData.ts'
import { exampleNames } from '../src/connectors/cards/iso8583/profile.ts'
import { avsLetter, responseCodes, resultOfResponse } from '../src/connectors/cards/iso8583/responseCodes.ts'
import { retrievalReference, versionOf } from '../src/connectors/cards/iso8583/versions.ts'
import type { Operation, OperationType, Reply } from '../src/connectors/connector.ts'
import { amountDigits, hundredthsOf, minorUnits } from '../src/connectors/minorUnits.ts'
import { groups } from '../src/contract/parameters/table.ts'
import { results } from '../src/contract/results/results.ts'
import { channelSettings } from '../src/merchants/settings.ts'
import { read } from '../src/platform/schema.ts'

const ascii = exampleDialect('1987')
const at = Date.UTC(2026, 10, 20, 2, 0, 0)

const requestFields: [number, string][] = [
  [2, '4242424242424242'],
  [3, '000000'],
  [4, '000000009200'],
  [7, '1120020000'],
  [11, '000001'],
  [12, '020000'],
  [13, '1120'],
  [14, '2812'],
  [18, '5999'],
  [22, '010'],
  [25, '59'],
  [32, '423935'],
  [37, '632502000001'],
  [41, 'TERM0001'],
  [42, 'MERCHANT0000001'],
  [43, `${'SHOP'.padEnd(23)}${'SAO PAULO'.padEnd(13)}SPBR`],
  [49, '986'],
]

const answerVector =
  '00b530313130723c44810ee08000313634323432343234323432343234323432303030303030303030303030303039323030313132303032303030303030303030313032303030303131323032383132353939393031303539303634323339333536333235303230303030303131323334353630305445524d303030314d45524348414e543030303030303153484f502020202020202020202020202020202020202053414f205041554c4f2020202053504252393836'
const echoVector = '0027303830308220000000000000040000000000000031313230303230303030303030303031333031'

const bytesOf = (message: Message, dialect = ascii) => {
  const bytes = encode(message, dialect)
  assert.ok(Buffer.isBuffer(bytes), JSON.stringify(bytes))
  return bytes
}
const messageIn = (bytes: Buffer, dialect = ascii): Message => {
  const message = decode(bytes, fromTheHost(dialect))
  assert.ok(!isMalformed(message), JSON.stringify(message))
  return message
}

describe('vectors', () => {
  it('the agreed answer is encoded and decoded byte for byte', () => {
    const answer: Message = { type: '0110', fields: new Map([...requestFields, [38, '123456'], [39, '00']]) }
    assert.equal(frame(bytesOf(answer)).toString('hex'), answerVector)
    const read = messageIn(Buffer.from(answerVector, 'hex').subarray(2))
    assert.deepEqual([...read.fields].sort(byNumber), [...answer.fields].sort(byNumber))
  })

  it('a request with an empty second bitmap, as some programs send it, is understood', () => {
    const short = bytesOf({ type: '0100', fields: new Map(requestFields) })
    assert.equal(short.subarray(4, 12).toString('hex'), '723c448108e08000')
    const long = Buffer.concat([short.subarray(0, 4), Buffer.from('f23c448108e080000000000000000000', 'hex'), short.subarray(12)])
    assert.equal(long.length, 0xb5)
    assert.deepEqual(messageIn(long), messageIn(short))
  })

  it('an echo has both bitmaps', () => {
    const echo: Message = {
      type: '0800',
      fields: new Map([
        [7, '1120020000'],
        [11, '000001'],
        [70, '301'],
      ]),
    }
    assert.equal(frame(bytesOf(echo)).toString('hex'), echoVector)
  })

  it('a time-out reversal carries the data of its original', () => {
    const operation: Operation = { ...operationOf('DB'), type: 'RV', recovering: true, reference: referenceOf('PA') }
    const trace = { terminal: 'TERM0001', stan: '000001', at }
    const message = messageOf(operation, trace, account, ascii)
    assert.equal(message.type, '0420')
    assert.equal(bytesOf(message).subarray(4, 20).toString('hex'), 'f23800010ac080000000004000000000')
    assert.equal(message.fields.get(39), '68')
    assert.equal(message.fields.get(90), '010000000111200200000000042393500000000000')
  })

  it('a retrieval reference tells year, day, hour and trace', () => {
    assert.equal(retrievalReference(at, '000001'), '632402000001')
    assert.equal(retrievalReference(Date.UTC(2030, 0, 1), '999999'), '000100999999')
  })
})

describe('the codec by its table', () => {
  for (const [name, dialect] of exampleNames.map(name => [name, exampleDialect(name)] as const)) {
    it(`${name}: every field takes its shortest and longest value, and nothing beyond`, () => {
      for (const field of dialect.fields.values()) {
        if (field.dropped) continue
        const message = (value: string): Message => ({
          type: `${dialect.version === '1987' ? 0 : 1}100`,
          fields: new Map([[field.number, value]]),
        })
        for (const value of fitting(field))
          assert.deepEqual(messageIn(bytesOf(message(value), dialect), dialect), message(value), `DE${field.number}`)
        for (const value of unfitting(field)) {
          const failed = encode(message(value), dialect)
          assert.ok(!Buffer.isBuffer(failed), `DE${field.number} took ${value.length} characters`)
          assert.equal(failed.path, `DE${field.number}`)
        }
      }
    })

    it(`${name}: a message that is cut anywhere is named as malformed`, () => {
      const fields = new Map(
        requestFields.filter(
          ([number]) => dialect.fields.has(number) && (dialect.version === '1987' || ![12, 22, 25].includes(number)),
        ),
      )
      const bytes = Buffer.concat([
        dialect.header.answered ?? Buffer.alloc(0),
        bytesOf({ type: '0100', fields }, dialect).subarray(dialect.header.sent.length),
      ])
      for (let length = 0; length < bytes.length; length++)
        assert.ok(isMalformed(decode(bytes.subarray(0, length), dialect)), `${length} bytes`)
      const longer = decode(Buffer.concat([bytes, Buffer.from('0')]), dialect)
      assert.deepEqual(longer, { path: 'end', why: '1 bytes are left over' })
    })
  }

  it('an unknown field and a third bitmap are refused', () => {
    assert.deepEqual(encode({ type: '0100', fields: new Map([[105, 'x']]) }, ascii), {
      path: 'DE105',
      why: 'is not a field of this dialect',
    })
    assert.ok(isMalformed(decode(Buffer.from(`30313030${'c000000000000000'}${'8000000000000000'}`, 'hex'), ascii)))
  })

  it('packed digits keep odd lengths', () => {
    const bcd = exampleDialect('1987 bcd')
    const bytes = bytesOf(
      {
        type: '0100',
        fields: new Map([
          [2, '378282246310005'],
          [22, '010'],
        ]),
      },
      bcd,
    )
    assert.equal(bytes.toString('hex'), '6000010000' + '01004000040000000000' + '15378282246310005f' + '0010')
  })

  it('what is secret is masked where a message is shown', () => {
    const shown = masked(
      {
        type: '0100',
        fields: new Map([
          [2, '4242424242424242'],
          [14, '2812'],
          [48, '9203123'],
          [39, '00'],
        ]),
      },
      ascii,
    )
    assert.equal(shown, '0100 DE2=424242******4242 DE14=**** DE48=******* DE39=00')
    assert.equal(masked({ type: '0100', fields: new Map([[2, '500000000009']]) }, ascii), `0100 DE2=${'*'.repeat(12)}`)
  })

  it('of the card number the last four are shown wherever a host writes it, whatever digits are beside it', () => {
    const number = '4539065575909077'
    const said = (fields: [number, string][], asked?: string) => masked({ type: '0110', fields: new Map(fields) }, ascii, asked)
    for (const [text, shown] of [
      [`16${number}`, '16xxxxxxxxxxxx9077'],
      [`5A08${number}5F24`, '5A08xxxxxxxxxxxx90775F24'],
      [`${number}2812 ok`, 'xxxxxxxxxxxx90772812 ok'],
    ] as const) {
      assert.equal(
        said([
          [2, number],
          [44, text],
        ]),
        `0110 DE2=453906******9077 DE44=${shown}`,
      )
      assert.equal(said([[60, text]], number), `0110 DE60=${shown}`)
    }
    // Where the field ends in it, what is left of its beginning goes behind the first six.
    for (const [text, shown] of [
      [`YMCARD NO. ${number.slice(0, 14)}`, 'YMCARD NO. 453906xxxxxxxx'],
      ['4539 0655 7', '4539 06xx x'],
      ['453906', '453906'],
      ['45390655 declined', '453906xx declined'],
      ['4539 0755', '4539 0755'],
    ] as const)
      assert.equal(said([[44, text]], number), `0110 DE44=${shown}`)
    assert.equal(said([[44, 'NO 50000000000']], '500000000009'), '0110 DE44=NO xxxxxxxxxxx')
    assert.equal(said([[60, `16${number}`]], '4242424242424242'), `0110 DE60=16${number}`)
    const late = said([
      [37, '123456789012'],
      [60, `0016${number} 12345678901`],
    ])
    assert.equal(late, `0110 DE37=123456789012 DE60=${'x'.repeat(20)} 12345678901`)
  })
})

describe('another implementation', () => {
  // The npm package iso_8583 speaks 1987 in ASCII with binary bitmap; it always writes a second bitmap.
  const Iso = createRequire(import.meta.url)('iso_8583')
  const cases: [string, [number, string][]][] = [
    ['0100', requestFields],
    [
      '0420',
      [
        ...requestFields.filter(([number]) => ![14, 18, 22, 25, 43].includes(number)),
        [39, '68'],
        [90, '010000000111200200000000042393500000000000'],
      ],
    ],
    [
      '0400',
      [
        ...requestFields,
        [90, '010000000111200200000000042393500000000000'],
        [95, `000000008200${'0'.repeat(12)}C00000000C00000000`],
      ],
    ],
    ['0200', [...requestFields, [48, '9203123']]],
    [
      '0800',
      [
        [7, '1120020000'],
        [11, '000001'],
        [70, '301'],
      ],
    ],
  ]
  for (const [type, fields] of cases) {
    it(`${type}: ours is read there, theirs is read here`, () => {
      const theirs = new Iso({ 0: type, ...Object.fromEntries(fields) }).getBufferMessage()
      assert.ok(Buffer.isBuffer(theirs), JSON.stringify(theirs))
      assert.deepEqual([...messageIn(theirs.subarray(2)).fields], [...fields].sort(byNumber))
      const ours = bytesOf({ type, fields: new Map(fields) })
      const asTheyWrite = ours[4]! & 0x80 ? ours : withSecondBitmap(ours)
      const read = new Iso().getIsoJSON(frame(asTheyWrite), { lenHeader: true })
      assert.deepEqual(read, { 0: type, ...Object.fromEntries(fields) })
      assert.equal(frame(asTheyWrite).toString('hex'), theirs.toString('hex'))
    })
  }
})

describe('another program', () => {
  // What the program must be told: lengths are big-endian, and binary data are sent as they are.
  const settings = ['iso8583.len_endian:Big endian', 'iso8583.binencode:Bin data not encoded']
  const found = spawnSync('tshark', ['--version']).status === 0 && spawnSync('text2pcap', ['--version']).status === 0

  it('tshark reads what we write', { skip: !found && 'tshark is not installed' }, () => {
    const folder = mkdtempSync(join(tmpdir(), 'tollgate-tshark-'))
    try {
      const bytes = Buffer.from(answerVector, 'hex')
      const rows = Array.from({ length: Math.ceil(bytes.length / 16) }, (_, at) => {
        const cells = [...bytes.subarray(at * 16, at * 16 + 16)].map(byte => byte.toString(16).padStart(2, '0'))
        return `${(at * 16).toString(16).padStart(6, '0')} ${cells.join(' ')}`
      })
      const [text, capture] = [join(folder, 'message.txt'), join(folder, 'message.pcap')]
      writeFileSync(text, `${rows.join('\n')}\n`)
      const made = spawnSync('text2pcap', ['-q', '-T', '40000,5001', text, capture], { encoding: 'utf8' })
      assert.equal(made.status, 0, made.stderr)
      const options = settings.flatMap(setting => ['-o', setting])
      const read = spawnSync('tshark', ['-r', capture, '-d', 'tcp.port==5001,iso8583', ...options, '-V', '-O', 'iso8583'], {
        encoding: 'utf8',
      })
      assert.equal(read.status, 0, read.stderr)
      assert.match(read.stdout, /0110/)
      for (const [field, value] of [...requestFields, [38, '123456'], [39, '00']] as const)
        assert.ok(read.stdout.includes(value.trim()), `field ${field} in\n${read.stdout}`)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})

describe('frames', () => {
  const messages = [Buffer.from('a'), Buffer.alloc(300, 'b'), Buffer.from('cc'), Buffer.alloc(frameMax, 'd')]
  const stream = Buffer.concat(messages.map(one => frame(one)))

  it('are put together again wherever the stream is cut', () => {
    for (let cut = 0; cut <= 310; cut++) {
      const split = splitter()
      assert.deepEqual(
        [...(split.push(stream.subarray(0, cut)) as Buffer[]), ...(split.push(stream.subarray(cut)) as Buffer[])],
        messages,
      )
    }
  })

  it('come byte by byte too', () => {
    const split = splitter()
    const found: Buffer[] = []
    for (const byte of stream) found.push(...(split.push(Buffer.from([byte])) as Buffer[]))
    assert.deepEqual(found, messages)
  })

  it('of no length or above the limit end the stream', () => {
    assert.equal(splitter().push(Buffer.from([0, 0])), 'badLength')
    const tooLong = Buffer.alloc(2)
    tooLong.writeUInt16BE(frameMax + 1)
    assert.equal(splitter().push(tooLong), 'badLength')
  })
})

describe('response codes', () => {
  it('the schemes and our advice agree on trying again', () => {
    const advised = { never: 'never', later: 'later', fix: 'afterChange', done: 'no' }
    for (const [code, { result, retry }] of responseCodes)
      assert.equal(results[result].retry, advised[retry], `DE39 ${code} ${result}`)
  })

  it('codes of the interface, by code', () => {
    const wanted: Record<string, string> = {
      '00': '000.000.000',
      '08': '000.000.000',
      '11': '000.000.000',
      '01': '800.100.152',
      '02': '800.100.152',
      '03': '800.100.190',
      '04': '800.100.171',
      '05': '800.100.152',
      '07': '800.100.171',
      '12': '800.100.154',
      '13': '800.100.174',
      '14': '800.100.151',
      '15': '800.100.151',
      '19': '900.100.500',
      '30': '800.100.156',
      '33': '800.100.171',
      '38': '800.100.171',
      '41': '800.100.165',
      '43': '800.100.159',
      '46': '800.100.172',
      '51': '800.100.155',
      '54': '800.100.157',
      '55': '800.100.166',
      '57': '800.100.170',
      '58': '800.100.170',
      '59': '800.100.158',
      '61': '800.100.162',
      '62': '800.100.168',
      '65': '800.100.163',
      '68': '900.100.400',
      '75': '800.100.178',
      '82': '800.100.153',
      '91': '900.100.600',
      '92': '900.100.600',
      '96': '900.100.600',
      '1A': '300.100.100',
      N7: '800.100.153',
      R0: '800.100.197',
      R1: '800.100.197',
      R3: '800.100.197',
      ZZ: '800.100.100',
    }
    for (const [code, expected] of Object.entries(wanted))
      assert.equal(results[resultOfResponse(code, 'VISA')].code, expected, code)
    assert.equal(results[resultOfResponse('65', 'MASTER')].code, '300.100.100')
  })

  it('action codes of 1993 say the same', () => {
    const wanted = {
      '000': '00',
      '116': '51',
      '101': '54',
      '208': '41',
      '209': '43',
      '907': '91',
      '400': '00',
      '900': '00',
      '777': '??',
    }
    for (const [code, expected] of Object.entries(wanted))
      assert.equal(responseOf(code, 'first', exampleDialect('1993')), expected)
  })

  it('letters of the address check', () => {
    const wanted = {
      Y: 'F',
      X: 'F',
      D: 'F',
      M: 'F',
      F: 'F',
      A: 'A',
      B: 'A',
      Z: 'Z',
      W: 'Z',
      P: 'Z',
      N: 'N',
      C: 'N',
      U: 'U',
      R: 'U',
      S: 'U',
    }
    for (const [letter, expected] of Object.entries(wanted)) assert.equal(avsLetter(letter), expected)
    assert.equal(avsLetter(' '), undefined)
  })
})

describe('amounts', () => {
  it('go out by the currency and come back the same', () => {
    const wanted: [number, string, string][] = [
      [9200, 'JPY', '000000000092'],
      [123, 'KWD', '000000001230'],
      [9200, 'EUR', '000000009200'],
      [100, 'UYW', '000000010000'],
      [999_999_999_999, 'EUR', '999999999999'],
      [999_999_999_900, 'JPY', '009999999999'],
      [99_999_999_999, 'KWD', '999999999990'],
    ]
    for (const [hundredths, currency, digits] of wanted) {
      assert.equal(amountDigits(hundredths, currency), digits, currency)
      assert.equal(hundredthsOf(BigInt(digits), currency), hundredths)
    }
  })
  it('that do not fit are refused by name', () => {
    assert.equal(minorUnits(9250, 'JPY'), 'amountFinerThanCurrency')
    assert.equal(minorUnits(100_000_000_000, 'KWD'), 'amountTooLargeForAcquirer')
    assert.equal(hundredthsOf(1231n, 'KWD'), undefined)
  })
})

describe('what leaves the house', () => {
  const names = Object.values(groups).flatMap(group => Object.keys(group))
  // Reads and sandbox queries send nothing to an acquirer.
  const reading = new Set([...Object.keys(groups.query), ...Object.keys(groups.reporting)])

  it('every parameter is either carried by a named element or not forwarded', () => {
    for (const name of names) {
      const row = name.replace(/\[name\]|\[brand\]/, '')
      const kept = notForwarded.some(one => row === one || (one.endsWith('.') && row.startsWith(one)))
      assert.ok(reading.has(name) || Object.hasOwn(forwarded, name) || kept, `${name} is in neither list`)
    }
  })

  it('a parameter changes the message if, and only if, the table names its element', () => {
    const plain = textOf('PA', {})
    for (const [group, rows] of Object.entries(groups)) {
      if (group === 'card') continue // the card is no field of the operation
      for (const [row, { format }] of Object.entries(rows as Record<string, { format: { fits: readonly string[] } }>)) {
        if (elsewhere.has(row) || reading.has(row)) continue
        const name = row.replace('[n]', '[0]').replace('[n]', '[0]').replace('[name]', '[canary]').replace('[brand]', '[VISA]')
        const changed = [...format.fits, '4242', 'MO'].some(
          value => textOf('PA', { ...context[row], [name]: value }) !== textOf('PA', { ...context[row] }),
        )
        assert.equal(changed, Object.hasOwn(forwarded, row), `${row}: ${plain}`)
      }
    }
  })

  it('the invoice number is in no message, whatever is asked', () => {
    for (const type of ['PA', 'DB', 'CD', 'CP', 'RF', 'RV'] as const)
      assert.doesNotMatch(textOf(type, { merchantInvoiceId: 'INVOICE77' }), /INVOICE77/)
  })

  const deOf = (fields: ReadonlyMap<string, string>, of: AcquirerAccountData) =>
    versionOf(ascii).nameAndPlace(placeOf(fields, of))

  it('the statement line is 40 characters: name, city, state, country, marks folded', () => {
    const fields = new Map([
      ['merchant.name', 'Café Ñandú São João Extra Longo'],
      ['merchant.city', 'São Paulo'],
      ['merchant.country', 'br'],
    ])
    assert.equal(deOf(fields, account), `${'Cafe Nandu Sao Joao Ext'}${'Sao Paulo'.padEnd(13)}SPBR`)
    assert.equal(deOf(new Map([['descriptor', 'Order 7']]), account).slice(0, 23), 'Order 7'.padEnd(23))
    assert.equal(deOf(new Map([['descriptor', 'Order 7']]), { ...account, statement: 'name' }).slice(0, 23), 'SHOP'.padEnd(23))
  })

  it('card on file: who starts the payment and under which agreement', () => {
    const tag = (fields: Record<string, string>) =>
      readPrivateData(messageIn(bytesOf(message('PA', fields))).fields, ascii.privateData).get('cardOnFile')
    assert.equal(
      tag({
        'standingInstruction.mode': 'INITIAL',
        'standingInstruction.type': 'UNSCHEDULED',
        'standingInstruction.source': 'CIT',
      }),
      'C101',
    )
    assert.equal(
      tag({
        'standingInstruction.mode': 'REPEATED',
        'standingInstruction.type': 'INSTALLMENT',
        'standingInstruction.source': 'MIT',
      }),
      'M104',
    )
    assert.equal(tag({ recurringType: 'REPEATED' }), 'M103')
    assert.equal(tag({}), undefined)
    assert.equal(message('PA', { recurringType: 'REPEATED' }).fields.get(22), '100')
  })

  it('private data are read as they are written, and half a tag is none', () => {
    const values = new Map<Meaning, string>([
      ['address', privateText('10115 Straße 5')],
      ['cvv', '123'],
    ])
    const [[field, text]] = writePrivateData(values, ascii.privateData) as [[number, string]]
    assert.deepEqual([field, text], [48, '821410115 Stra e 59203123'])
    assert.deepEqual(readPrivateData(new Map([[48, text]]), ascii.privateData), values)
    assert.equal(readPrivateData(new Map([[48, text.slice(0, -1)]]), ascii.privateData).size, 0)
  })
})

describe('messages of each operation', () => {
  const rows: [OperationType, string, string][] = [
    ['PA', '0100', '000000'],
    ['DB', '0200', '000000'],
    ['CD', '0200', '200000'],
    ['CP', '0220', '000000'],
    ['RF', '0200', '200000'],
    ['RV', '0400', '000000'],
  ]
  for (const [type, indicator, processing] of rows) {
    it(`${type} is a ${indicator}, its repeat a ${indicator.slice(0, 3)}1 with the same trace`, () => {
      const first = message(type, {})
      const repeat = message(type, {}, { attempt: 2 })
      assert.equal(first.type, indicator)
      assert.equal(first.fields.get(3), processing)
      assert.equal(repeat.type, `${indicator.slice(0, 3)}1`)
      assert.deepEqual(repeat.fields, first.fields)
      for (const dialect of exampleNames.map(exampleDialect))
        bytesOf(messageOf(operationOf(type), { terminal: 'TERM0001', stan: '000009', at }, account, dialect), dialect)
    })
  }

  it('a partial reversal says what shall stand, a full one nothing', () => {
    const partial = message('RV', {}, { amount: 1000, remains: 8200 })
    assert.equal(partial.fields.get(4), '000000009200')
    assert.equal(partial.fields.get(95), `000000008200${'0'.repeat(12)}C00000000C00000000`)
    assert.equal(message('RV', {}, { remains: 0 }).fields.has(95), false)
  })

  it('after a partial capture the rest of the hold is released', () => {
    const operation: Operation = { ...operationOf('CP'), type: 'RV', releasing: 9200, amount: 5000 }
    const release = messageOf(operation, { terminal: 'TERM0001', stan: '000009', at }, account, ascii)
    assert.equal(release.type, '0420')
    assert.equal(release.fields.get(95)?.slice(0, 12), '000000005000')
    assert.equal(release.fields.get(90)?.slice(0, 10), '0100000001')
    const answered = reply('CP', [[39, '00']], { amount: 5000 })
    assert.equal(answered.leaves, 'release')
    assert.equal(reply('CP', [[39, '00']], {}).leaves, undefined)
  })

  it('an answer keeps what later messages need', () => {
    const answered = reply(
      'PA',
      [
        [39, '00'],
        [38, '123456'],
        [44, 'YM'],
        [48, '6315000000000000042'],
      ],
      { fields: new Map([['billing.postcode', '10115']]) },
    )
    assert.equal(answered.result, 'succeeded')
    assert.deepEqual([answered.avsResponse, answered.cvvResponse], ['F', 'M'])
    assert.deepEqual(answered.kept, {
      acquirer: 'north',
      type: '0100',
      stan: '000009',
      at: String(at),
      terminal: 'TERM0001',
      rrn: '632402000009',
      authorizationCode: '123456',
      networkTransactionId: '000000000000042',
    })
    assert.equal(answered.details.ConnectorTxID1, '632402000009')
  })

  it('a reversal by recovery is done whatever the host says', () => {
    const answered = reply('DB', [[39, '25']], { type: 'RV', recovering: true, reference: referenceOf('DB') })
    assert.equal(answered.result, 'succeeded')
    assert.equal(reply('RV', [[39, '25']], {}).result, 'declinedReferenceMismatch')
  })
})

// ---- What the tests are made of

const account: AcquirerAccountData = {
  acquirerId: '423935',
  merchantId: 'MERCHANT0000001',
  category: '5999',
  name: 'SHOP',
  city: 'SAO PAULO',
  state: 'SP',
  country: 'BR',
  statement: 'descriptor',
  facilitator: true,
}

function referenceOf(type: OperationType): NonNullable<Operation['reference']> {
  const indicator = type === 'PA' ? '0100' : '0200'
  return {
    paymentId: 'a'.repeat(32),
    type,
    amount: 9200,
    receivedAt: at,
    kept: { acquirer: 'north', type: indicator, stan: '000001', at: String(at), authorizationCode: '654321' },
  }
}

function operationOf(type: OperationType, fields: Record<string, string> = {}, more: Partial<Operation> = {}): Operation {
  return {
    type,
    merchantId: 'e'.repeat(32),
    paymentId: 'f'.repeat(32),
    mode: 'external',
    brand: 'VISA',
    amount: 9200,
    currency: 'BRL',
    receivedAt: at,
    attempt: 1,
    channel: { id: 'c'.repeat(32), settings: read(channelSettings, {}, 'test') },
    shopName: 'Shop',
    card: { number: '4242424242424242', expiryMonth: '12', expiryYear: '2028', cvv: '123' },
    fields: new Map(Object.entries(fields)),
    ...(type === 'CP' || type === 'RF' || type === 'RV' ? { reference: referenceOf(type === 'RF' ? 'DB' : 'PA') } : {}),
    ...more,
  }
}

function message(type: OperationType, fields: Record<string, string>, more: Partial<Operation> = {}): Message {
  return messageOf(operationOf(type, fields, more), { terminal: 'TERM0001', stan: '000009', at }, account, ascii)
}

const textOf = (type: OperationType, fields: Record<string, string>) => JSON.stringify([...message(type, fields).fields])

function reply(type: OperationType, answer: [number, string][], more: Partial<Operation>): Extract<Reply, { kind: 'answer' }> {
  const operation = operationOf(type, {}, more)
  const trace = { terminal: 'TERM0001', stan: '000009', at }
  const sent = messageOf(operation, trace, account, ascii)
  return replyOf(operation, sent, trace, { type: '0110', fields: new Map(answer) }, ascii, 'north', 'North') as Extract<
    Reply,
    { kind: 'answer' }
  >
}

/** Columns of the payment, not fields of the operation. */
const elsewhere = new Set(['paymentType', 'amount', 'currency'])
/** A parameter that only counts beside another. */
const context: Record<string, Record<string, string>> = {
  'standingInstruction.type': { 'standingInstruction.mode': 'INITIAL' },
  'standingInstruction.source': { 'standingInstruction.mode': 'INITIAL' },
}

function fitting({ content, length, prefix }: Field): string[] {
  const one = content === 'b' ? 'A5' : content === 'x' ? 'C' : content === 'n' || content === 'z' ? '7' : 'A'
  const longest = content === 'x' ? `C${'1'.repeat(length - 1)}` : one.repeat(length)
  return prefix === 0 ? [longest] : [one, longest, one.repeat(length - 1)]
}

function unfitting(field: Field): string[] {
  const [longest] = fitting(field).sort((a, b) => b.length - a.length)
  const wrong = field.content === 'b' ? 'xy'.repeat(field.length) : 'é'.repeat(field.length)
  return [
    `${longest}${field.content === 'b' ? '00' : longest!.at(-1)}`,
    wrong,
    ...(field.prefix === 0 ? [longest!.slice(field.content === 'b' ? 2 : 1)] : []),
  ]
}

function withSecondBitmap(bytes: Buffer): Buffer {
  const bitmap = Buffer.concat([bytes.subarray(4, 12), Buffer.alloc(8)])
  bitmap[0]! |= 0x80
  return Buffer.concat([bytes.subarray(0, 4), bitmap, bytes.subarray(12)])
}

const byNumber = ([a]: [number, string], [b]: [number, string]) => a - b
