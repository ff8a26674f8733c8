// The lines of the README do what the README says of them, one after the other, in a gateway of their own.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { type Body, type TestGateway, testGateway } from './support/gateway.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const commands = [...readme.matchAll(/^ {4}(curl .*)$/gm)].map(([, line]) => line!)

let gateway: TestGateway
before(async () => {
  gateway = await testGateway()
})
after(() => gateway.stop())

/** Does what `curl` would do with the line. */
async function run(line: string, words: Record<string, string> = {}): Promise<Body> {
  const filled = line.replace(/\$([A-Z]+)/g, (_, name: string) => words[name] ?? assert.fail(`${name} of ${line}`))
  const url = /https?:\/\/[^\s'"]+/.exec(filled)![0].replace('http://127.0.0.1:8080', gateway.baseUrl)
  const options = [...filled.matchAll(/ -([Hd]) '([^']*)'/g)]
  const body = options.filter(([, option]) => option === 'd').map(([, , text]) => text)
  const response = await fetch(url, {
    headers: {
      ...Object.fromEntries(options.filter(([, option]) => option === 'H').map(([, , text]) => text!.split(': '))),
      ...(body.length > 0 && { 'Content-Type': 'application/x-www-form-urlencoded' }),
    },
    ...(body.length > 0 && { method: 'POST', body: body.join('&') }),
  })
  return response.json()
}

describe('the lines of the README', () => {
  it('pay, refund and show both; a debit that the clock has left behind is not reversed', async () => {
    const [pay, refund, query, advance, reverse, ...others] = commands as [string, string, string, string, string, ...string[]]
    assert.deepEqual(others, [])
    const first = await run(pay)
    assert.equal(first.result.code, '000.100.110')
    const refunded = await run(refund, { ID: first.id })
    assert.equal(`${refunded.result.code} ${refunded.amount}`, '000.100.110 46.00')
    const { records } = await run(query, { ID: first.id })
    assert.deepEqual(
      records.map(({ id, paymentType }: Body) => [id, paymentType]),
      [
        [first.id, 'DB'],
        [refunded.id, 'RF'],
      ],
    )
    const debit = await run(pay)
    assert.equal((await run(advance)).result.code, '000.000.100')
    assert.equal((await run(reverse, { DEBIT: debit.id })).result.code, '700.300.700')
  })
})
