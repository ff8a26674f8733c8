// Forms with files: what browsers send is read to the byte, whatever is not exactly that is refused whole, and nothing takes long.

import assert from 'node:assert/strict'
import { describe, it, test } from 'node:test'
import fc from 'fast-check'
import { readMultipart } from '../src/http/multipart.ts'
import { costsMilliseconds } from './support/costs.ts'

const type = 'multipart/form-data; boundary=B'
const part = (headers: string, content = 'x') => `--B\r\n${headers}\r\n\r\n${content}\r\n`
const named = (name: string, more = '') => `Content-Disposition: form-data; name="${name}"${more}`
const file = (name: string) => `${named('file', `; filename="${name}"`)}\r\nContent-Type: text/plain`
const whole = [part(named('what'), 'return'), part(file('a.ret'), 'one\r\ntwo'), '--B--\r\n'].join('')

test('what a client of the platform sends is read to the byte', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), fc.string({ unit: 'grapheme', maxLength: 20 }), async (bytes, text) => {
      const form = new FormData()
      form.append('text', text)
      form.append('file', new Blob([new Uint8Array(bytes)]), 'C:\\of "Jane"/ção\u202e.ret')
      const sent = new Response(form)
      const contentType = sent.headers.get('content-type')!
      const read = readMultipart(contentType, Buffer.from(await sent.arrayBuffer()).toString('latin1'))!
      assert.deepEqual(read.pairs, [['text', text.replace(/\r\n|\r|\n/g, '\r\n')]])
      assert.deepEqual([read.files.get('file')!.name, [...read.files.get('file')!.bytes]], ['ção.ret', [...bytes]])
    }),
    { numRuns: 50 },
  )
})

describe('is read', () => {
  const cases: readonly (readonly [what: string, type: string, body: string])[] = [
    ['as browsers write it', type, whole],
    ['with a boundary in quotes', 'multipart/form-data; boundary="B"', whole],
    ['with other parameters', 'Multipart/Form-Data;charset=utf-8; boundary=B', whole],
    ['without the last line end', type, whole.slice(0, -2)],
    ['with spaces behind a boundary', type, whole.replace('--B\r\n', '--B \t\r\n')],
    ['with a coding that changes nothing', type, whole.replace('text/plain', 'text/plain\r\nContent-Transfer-Encoding: binary')],
  ]
  for (const [what, type, body] of cases)
    it(what, () => {
      const read = readMultipart(type, body)
      assert.deepEqual(read?.pairs, [['what', 'return']])
      assert.deepEqual(read?.files.get('file'), { name: 'a.ret', bytes: Buffer.from('one\r\ntwo') })
    })
})

describe('is refused whole', () => {
  const cases: readonly (readonly [what: string, type: string, body: string])[] = [
    ['another form', 'application/x-www-form-urlencoded', 'what=return'],
    ['no boundary', 'multipart/form-data', whole],
    ['a boundary of nothing', 'multipart/form-data; boundary=""', whole],
    [
      'a boundary that is too long',
      `multipart/form-data; boundary=${'B'.repeat(71)}`,
      whole.replaceAll('--B', `--${'B'.repeat(71)}`),
    ],
    ['two boundaries in a value', 'multipart/form-data; boundary="B', whole],
    ['a field as long as a file', type, whole.replace('\r\n\r\nreturn', `\r\n\r\n${'x'.repeat(8193)}`)],
    ['something before the first boundary', type, `x\r\n${whole}`],
    ['something behind the last one', type, `${whole}x`],
    ['no last boundary', type, whole.replace('--B--\r\n', '')],
    ['a body that was cut', type, whole.slice(0, -30)],
    ['nothing', type, ''],
    ['a line that begins as the boundary does', type, whole.replace('two', '--Bad')],
    ['a part without a name', type, part('Content-Disposition: form-data') + whole],
    ['a part without headers', type, `--B\r\n\r\nx\r\n${whole}`],
    ['a part without a content', type, `--B\r\n${named('x')}\r\n${whole}`],
    ['a header twice', type, part(`${named('x')}\r\n${named('y')}`) + whole],
    ['a header that is none', type, part(`${named('x')}\r\n folded`) + whole],
    ['headers that are too long', type, part(`${named('x')}\r\nX: ${'x'.repeat(1100)}`) + whole],
    ['a coding', type, part(`${named('x')}\r\nContent-Transfer-Encoding: base64`) + whole],
    ['another disposition', type, part('Content-Disposition: attachment; name="x"') + whole],
    ['a name of another way of writing', type, part(named('x', "; filename*=utf-8''x")) + whole],
    ['two files of one name', type, part(file('b.ret')) + whole],
    ['too many parts', type, part(named('x')).repeat(20) + whole],
    ['line ends of another kind', type, whole.replaceAll('\r\n', '\n')],
  ]
  for (const [what, type, body] of cases) it(what, () => assert.equal(readMultipart(type, body), undefined))
})

test('a hostile body is read in the time of its length', async () => {
  const size = 4_000_000
  const bodies = [
    `--B\r\n${named('x')}\r\n\r\n${'\r\n--'.repeat(size / 4)}`,
    `--B\r\n${'\r\n\r\n'.repeat(size / 4)}`,
    `--B${' '.repeat(size)}`,
    `--B\r\n${'A: b\r\n'.repeat(size / 6)}`,
  ]
  const headers = [
    `multipart/form-data;${' ;'.repeat(8000)}`,
    `multipart/form-data; ${' '.repeat(16_000)}`,
    `multipart/form-data; boundary=${'B'.repeat(16_000)}`,
  ]
  for (const [header, body] of [...bodies.map(body => [type, body] as const), ...headers.map(header => [header, whole] as const)])
    await costsMilliseconds(
      500,
      () => assert.equal(readMultipart(header, body), undefined),
      `${header.slice(0, 40)} ${body.slice(0, 20)}`,
    )
})

it('the name of a file is cut before no number that it ends with', () => {
  const long = `${'a'.repeat(190)}4539578763621486`
  const body = [`--B`, `Content-Disposition: form-data; name="file"; filename="${long}"`, '', 'x', '--B--', ''].join('\r\n')
  assert.equal(readMultipart(type, body)?.files.get('file')?.name, 'a'.repeat(190))
})
