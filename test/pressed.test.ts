// Answers of text that travel compressed: scripts once for all, pages a few at a time.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { HttpAnswer, Request } from '../src/http/answer.ts'
import { pressed, pressedOnce } from '../src/pages/pressed.ts'

const asking = (encoding?: string) => ({ headers: { 'accept-encoding': encoding } }) as unknown as Request
const headers = { 'Content-Type': 'text/plain' }
const text = 'The same again and again. '.repeat(500)

const isPressed = ({ body, headers }: HttpAnswer): boolean =>
  headers?.['Content-Encoding'] === 'gzip' && Buffer.isBuffer(body) && gunzipSync(body).toString() === text
const isPlain = ({ body, headers }: HttpAnswer): boolean => headers?.['Content-Encoding'] === undefined && body === text

describe('an answer', () => {
  it('travels compressed for whoever takes that, and says that it differs by that', async () => {
    for (const press of [pressed, pressedOnce]) {
      const answers = await Promise.all([press(asking('br, gzip'), text, headers), press(asking(), text, headers)])
      assert.deepEqual(
        [answers.map(isPressed), answers.map(isPlain)],
        [
          [true, false],
          [false, true],
        ],
      )
      for (const answer of answers)
        assert.deepEqual([answer.headers?.Vary, answer.headers?.['Content-Type']], ['Accept-Encoding', 'text/plain'])
    }
  })

  it('travels as it stands for whoever says that compressed is not taken', async () => {
    const refusing = ['gzip;q=0', 'gzip;q=0;x=1', 'gzip;q=0, identity', 'br, gzip ; q=0.000 , deflate', 'GZIP;Q=0.0']
    const taking = ['gzip;q=0.001', 'gzip;q=1.0, identity;q=0', 'br;q=0, gzip', 'identity;q=0,gzip;q=0.5', 'GZIP']
    for (const press of [pressed, pressedOnce]) {
      for (const encoding of refusing) assert.ok(isPlain(await press(asking(encoding), text, headers)), encoding)
      for (const encoding of taking) assert.ok(isPressed(await press(asking(encoding), text, headers)), encoding)
    }
  })

  it('of a crowd is compressed for two at a time: the others get it as it stands', async () => {
    const crowd = () => Promise.all(Array.from({ length: 100 }, () => pressed(asking('gzip'), text, headers)))
    for (const answers of [await crowd(), await crowd()]) {
      assert.equal(answers.filter(isPressed).length, 2)
      assert.equal(answers.filter(isPlain).length, 98)
    }
    assert.ok(isPressed(await pressed(asking('gzip'), text, headers)), 'there is room again')
  })

  it('that many ask for is compressed once, and its bytes are shared', async () => {
    const press = async () => (await pressedOnce(asking('gzip'), text, headers)).body
    const bodies = new Set(await Promise.all(Array.from({ length: 100 }, press)))
    bodies.add(await press())
    assert.equal(bodies.size, 1)
  })

  it('is kept while it is one of the twenty that were asked for last', async () => {
    const press = async (name: string) => (await pressedOnce(asking('gzip'), name, headers)).body
    const [first, second] = [await press('first'), await press('second')]
    for (let at = 0; at < 18; at++) await press(`${at}`)
    assert.equal(await press('first'), first)
    await press('one more')
    assert.equal(await press('first'), first)
    assert.notEqual(await press('second'), second)
  })
})
