// A line to a database that is cut in the middle: what was asked arrives, what is answered does not.

import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type pg from 'pg'

/** `isLast`: of what a client sends, may nothing be answered to it any more? */
export async function cutting(
  { host, port, user, database }: pg.PoolConfig,
  isLast: (sent: string) => boolean,
): Promise<{ readonly url: string; stop(): void }> {
  const open = new Set<Socket>()
  const server = createServer(client => {
    const there = connect(`${host}/.s.PGSQL.${port}`)
    let isCut = false
    for (const one of [client, there]) {
      open.add(one)
      one
        .on('error', () => {})
        .on('close', () => {
          client.destroy()
          there.destroy()
        })
    }
    client.on('data', bytes => {
      isCut ||= isLast(bytes.toString('latin1'))
      there.write(bytes)
    })
    there.on('data', bytes => {
      if (isCut) client.resetAndDestroy()
      else client.write(bytes)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `postgresql://${user}@127.0.0.1:${(server.address() as AddressInfo).port}/${database}?sslmode=disable`,
    stop() {
      server.close()
      for (const one of open) one.destroy()
    },
  }
}
