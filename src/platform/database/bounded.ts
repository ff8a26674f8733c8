// Connections to a server that is trusted with what is read there, and with nothing of the gateway's: whatever it sends, it takes neither the memory nor the time
// of whoever pays. The package `pg` keeps all of an answer until its end.

import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { clientFor } from './servers.ts'

/** Of one answer, or without a question. */
const noticesMost = 10

/** The server sent more than it may, and the connection is ended. */
export class TooMuch extends Error {
  constructor(what: string) {
    super(`Connection terminated: the server sends ${what} for one answer`)
  }
}

/** The part of the package's own connection that hears the server: once when it connects, and anew when that is encrypted. */
type Wire = { readonly stream: Duplex; attachListeners(stream: Duplex): void }

/** The kind of client that reaches a database and takes so many bytes for an answer. */
export function boundedClient(options: pg.PoolConfig, bytesMost: number): typeof pg.Client {
  return class extends clientFor(options) {
    #bytes = 0
    #notices = 0

    constructor(config: pg.ClientConfig = {}) {
      super(config)
      const { connection } = this as unknown as { readonly connection: Wire }
      const attach = connection.attachListeners.bind(connection)
      connection.attachListeners = stream => {
        stream.on('data', (part: Buffer) => {
          this.#bytes += part.length
          if (this.#bytes > bytesMost) stream.destroy(new TooMuch(`more than ${bytesMost} bytes`))
        })
        attach(stream)
      }
      this.on('notice', () => {
        this.#notices += 1
        if (this.#notices > noticesMost) connection.stream.destroy(new TooMuch(`more than ${noticesMost} notices`))
      })
    }

    // biome-ignore lint/suspicious/noExplicitAny: the many ways in which a client is asked, passed on as they come
    override query(...asked: any[]): any {
      this.#bytes = 0
      this.#notices = 0
      return super.query(...(asked as [string]))
    }
  }
}
