// The rows of a table from one server to another by COPY, a piece at a time: what `pg` leaves to others to build on its connection.

import type { Socket } from 'node:net'
import type pg from 'pg'

/** What of `pg`'s connection a COPY speaks to. */
type CopyConnection = {
  readonly stream: Socket
  query(text: string): void
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
  sendCopyFail(message: string): void
}

/** A statement as `pg` asks for one. It is over when the server is ready for the next. */
class Copy implements pg.Submittable {
  readonly done: Promise<void>
  readonly #text: string
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers()
  #failed: Error | undefined

  constructor(text: string) {
    this.#text = text
    this.done = this.#end.promise
    this.done.catch(() => {}) // whoever waits for it is told
  }

  submit(connection: unknown): void {
    ;(connection as CopyConnection).query(this.#text)
  }

  handleError(error: Error): void {
    this.#failed = error
    this.#end.reject(error)
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    if (this.#failed === undefined) this.#end.resolve()
  }
}

class CopyIn extends Copy {
  readonly #begun: PromiseWithResolvers<CopyConnection> = Promise.withResolvers()
  readonly begun: Promise<CopyConnection> = this.#begun.promise

  handleCopyInResponse(connection: CopyConnection): void {
    this.#begun.resolve(connection)
  }

  override handleError(error: Error): void {
    this.#begun.reject(error)
    super.handleError(error)
  }
}

class CopyOut extends Copy {
  readonly #take: (chunk: Buffer, from: CopyConnection) => void

  constructor(text: string, take: (chunk: Buffer, from: CopyConnection) => void) {
    super(text)
    this.#take = take
  }

  handleCopyData({ chunk }: { chunk: Buffer }, connection: CopyConnection): void {
    this.#take(chunk, connection)
  }
}

/** `table` with its columns, as SQL writes them. */
export async function copyTable(from: pg.Client, to: pg.Client, table: string): Promise<void> {
  const into = to.query(new CopyIn(`copy ${table} from stdin`))
  const target = await into.begun
  const out = from.query(
    new CopyOut(`copy ${table} to stdout`, (chunk, source) => {
      target.sendCopyFromChunk(chunk)
      if (!target.stream.writableNeedDrain || source.stream.isPaused()) return
      source.stream.pause() // no more is held in memory than the slower one has not taken
      target.stream.once('drain', () => source.stream.resume())
    }),
  )
  await out.done.catch((error: Error) => {
    target.sendCopyFail(error.message)
    throw error
  })
  target.endCopyFrom()
  await into.done
}
