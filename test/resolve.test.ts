// How names are resolved for calls to merchants' servers, with a name server of the test's own: silent ones hold nobody up.

import assert from 'node:assert/strict'
import dgram from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Resolve } from '../src/platform/egress/address.ts'
import { resolver } from '../src/platform/egress/resolve.ts'
import { eventually } from './support/gateway.ts'

/** Names that the server knows; it says that others do not exist, and nothing to those that begin with slow. */
const known: Readonly<Record<string, string>> = { 'shop.example': '192.0.2.7' }
const asked: string[] = []
const server = dgram.createSocket('udp4')
const folder = mkdtempSync(join(tmpdir(), 'tollgate-names-'))
const hostsFile = join(folder, 'hosts')
const bySystem: string[] = []
const system: Resolve = async name => {
  bySystem.push(name)
  return [{ address: '10.1.2.3', family: 4 }]
}
const answering = () => [`127.0.0.1:${(server.address() as AddressInfo).port}`]
let resolve: Resolve

before(async () => {
  writeFileSync(
    hostsFile,
    '# ours\n127.0.0.1 localhost Receiver.local # the receiver\n::1 localhost\n192.0.2.9 slow-no-more.example\nnonsense\n',
  )
  server.on('message', (query, { port, address }) => {
    const labels: string[] = []
    let at = 12
    for (; query[at] !== 0; at += query[at]! + 1) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
    const question = query.subarray(12, at + 5)
    const name = labels.join('.').toLowerCase()
    asked.push(name)
    if (name.startsWith('slow')) return
    const isFour = query.readUInt16BE(at + 1) === 1
    const found = isFour ? known[name] : undefined
    const head = Buffer.alloc(12)
    query.copy(head, 0, 0, 2)
    head.writeUInt16BE(found || known[name] ? 0x8180 : 0x8183, 2) // an answer, or no such name
    head.writeUInt16BE(1, 4)
    head.writeUInt16BE(found ? 1 : 0, 6)
    const record = found
      ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...found.split('.').map(Number)])
      : Buffer.alloc(0)
    server.send(Buffer.concat([head, question, record]), port, address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  resolve = resolver({ servers: answering, hostsFile, system })
})
after(() => {
  server.close()
  rmSync(folder, { recursive: true })
})

test('a name comes from the hosts file, else from the name servers, else from the system', async () => {
  assert.deepEqual(await resolve('localhost'), [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ])
  assert.deepEqual(await resolve('receiver.LOCAL'), [{ address: '127.0.0.1', family: 4 }])
  assert.deepEqual(asked, [])
  assert.deepEqual(await resolve('shop.example'), [{ address: '192.0.2.7', family: 4 }])
  assert.deepEqual(bySystem, [])
  assert.deepEqual(await resolve('only-here'), [{ address: '10.1.2.3', family: 4 }])
  assert.deepEqual(bySystem, ['only-here'])
})

test('names whose servers are silent hold up no other, take no thread, and end in time', { timeout: 60_000 }, async () => {
  const before = bySystem.length
  const slow = Array.from({ length: 50 }, (_, at) =>
    resolve(`slow-${at}.example`).then(
      () => 'found',
      ({ code }) => code,
    ),
  )
  const twins = Array.from({ length: 50 }, () => resolve('slow-0.example').catch(() => {}))
  await eventually(async () => asked.includes('slow-49.example'), 'all of them are asked')
  assert.equal(asked.filter(name => name === 'slow-0.example').length, 2, 'one name is asked for once, in both families')
  assert.deepEqual(await resolve('shop.example'), [{ address: '192.0.2.7', family: 4 }])
  assert.deepEqual(await resolve('slow-no-more.example'), [{ address: '192.0.2.9', family: 4 }])
  assert.deepEqual(new Set(await Promise.all(slow)), new Set(['ETIMEOUT']))
  await Promise.all(twins)
  assert.equal(bySystem.length, before)
})

test('the system is asked for one name at a time', async () => {
  const running = new Set<string>()
  const release: (() => void)[] = []
  const slowly: Resolve = async name => {
    running.add(name)
    await new Promise<void>(done => release.push(done))
    running.delete(name)
    return []
  }
  const find = resolver({ servers: answering, hostsFile, system: slowly })
  const all = ['one', 'two', 'three'].map(name => find(name))
  for (let at = 0; at < all.length; at++) {
    await eventually(async () => release.length > at, 'the next is asked')
    assert.equal(running.size, 1)
    release[at]!()
  }
  await Promise.all(all)
})

test('a name that the system knew before does not wait for names that nobody knows', async () => {
  let asked = 0
  const silent: Resolve = name =>
    name === 'inside.example' ? Promise.resolve([{ address: '10.0.0.7', family: 4 }]) : new Promise(() => asked++)
  const find = resolver({ servers: answering, hostsFile, system: silent })
  await find('inside.example')
  for (let at = 0; at < 20; at++) find(`nobody-${at}.example`).catch(() => {})
  await eventually(async () => asked === 1, 'one of them is asked')
  assert.deepEqual(await find('inside.example'), [{ address: '10.0.0.7', family: 4 }])
  assert.equal(asked, 1)
})

test('name servers are read again when their file is another, and at no other time', async () => {
  const [serversFile, next] = [join(folder, 'resolv.conf'), join(folder, 'next')]
  const nobody = dgram.createSocket('udp4').bind(0, '127.0.0.1')
  await once(nobody, 'listening')
  let reads = 0
  const servers = () => {
    reads++
    return readFileSync(serversFile, 'utf8').trim().split(' ')
  }
  writeFileSync(serversFile, `127.0.0.1:${nobody.address().port}\n`)
  const find = resolver({ servers, serversFile, hostsFile, system })
  const silent = find('silent.example')
  const refused = assert.rejects(silent, { code: 'ETIMEOUT' })
  await once(nobody, 'message')
  // In place, in its place with the time of the one before, and while there is none.
  const { atime, mtime } = statSync(serversFile)
  writeFileSync(serversFile, `${answering()} ${answering()}\n`)
  for (const name of ['shop.example', 'shop.example', 'SHOP.example'])
    assert.deepEqual(await find(name), [{ address: '192.0.2.7', family: 4 }])
  assert.equal(reads, 2)
  writeFileSync(next, `${answering()} ${answering()}\n`)
  utimesSync(next, atime, mtime)
  utimesSync(serversFile, atime, mtime)
  await find('shop.example')
  assert.equal(reads, 3)
  renameSync(next, serversFile)
  await find('shop.example')
  assert.equal(reads, 4)
  rmSync(serversFile)
  assert.deepEqual(await find('shop.example'), [{ address: '192.0.2.7', family: 4 }])
  assert.equal(reads, 4)
  await refused
  nobody.close()
})
