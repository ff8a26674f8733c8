// A database under a process that dies.

import type { Database } from '../../src/platform/database/connect.ts'

/** A process that dies before a statement: that one and all after it are never sent, and what was begun is rolled back. */
export function dyingAfter(database: Database, statements: number): Database {
  let sent = 0
  const dying = <One extends object>(one: One): One =>
    new Proxy(one, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        if (name !== 'query' && name !== 'connect') return value.bind(target)
        return async (...given: unknown[]) => {
          // The client itself rolls back, as the server does when a process is gone.
          if (name === 'query' && given[0] !== 'rollback' && sent++ >= statements) throw new Error('died')
          const result = await value.apply(target, given)
          return name === 'connect' ? dying(result) : result
        }
      },
    })
  return {
    ...database,
    work: dying(database.work),
    inChain: (merchantId, rootId, lock, work, inPlace) =>
      database.inChain(
        merchantId,
        rootId,
        client => lock(dying(client)),
        (client, locked) => work(dying(client), locked),
        inPlace,
      ),
  }
}

/** One that throws at every statement that is given a word. */
export const refusing = (database: Database, word: string, error: Error): Database => ({
  ...database,
  work: new Proxy(database.work, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'query') return value.bind(target)
      return (...given: unknown[]) =>
        Array.isArray(given[1]) && given[1].includes(word) ? Promise.reject(error) : value.apply(target, given)
    },
  }),
})
