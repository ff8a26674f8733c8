// Ten receivers in a process of their own, for scripts/bench/notifications.ts. The path says which one is called and how often it fails:
// /3/0.2 is the fourth and refuses a fifth of its calls, /9/hang never answers. It counts what it acknowledged and tells when it is asked.

import http from 'node:http'
import type { AddressInfo } from 'node:net'

const seen = new Map<string, Set<string>>()
const acknowledged = new Map<string, Set<string>>()
const add = (map: Map<string, Set<string>>, key: string, id: string) => {
  if (!map.has(key)) map.set(key, new Set())
  map.get(key)!.add(id)
}
let armed = false

const server = http.createServer((request, response) => {
  const [, which, how] = request.url!.split('/') as [string, string, string]
  const id = String(request.headers['webhook-id'])
  request.resume()
  request.on('end', () => {
    if (!armed) return response.writeHead(200).end() // the test notifications of the activation
    add(seen, which, id)
    if (how === 'hang') return
    const good = Math.random() >= Number(how)
    if (good) add(acknowledged, which, id)
    response.writeHead(good ? 200 : 503).end(good ? 'ok' : 'busy')
  })
})
server.listen(0, '127.0.0.1', () => process.send!({ port: (server.address() as AddressInfo).port }))
process.on('message', question => {
  if (question === 'arm') armed = true
  else
    process.send!({
      seen: [...seen].map(([which, ids]) => [which, [...ids]]),
      acknowledged: [...acknowledged].map(([which, ids]) => [which, [...ids]]),
    })
})
process.on('disconnect', () => process.exit())
