// Whose server a file goes to: those that are owed to one host share its places.

import type { Directory } from '../merchants/directory.ts'
import type { Database } from '../platform/database/connect.ts'
import type { DueSides } from '../platform/due/worker.ts'
import { nameOfHost } from '../platform/http.ts'
import { scheduleWork } from './schedules/schedule.ts'
import { findHosts } from './schedules/store.ts'

type FileHostParts = { readonly database: Pick<Database, 'work'>; readonly directory: Pick<Directory, 'merchant'> }

/** Of work that lays files down: the host of its server. All of a look are read at once. */
export const findFileHosts: DueSides<FileHostParts> = async ({ database, directory }, items) => {
  const scheduled = items.filter(({ kind }) => kind === scheduleWork)
  const hosts = scheduled.length > 0 ? await findHosts(database.work, scheduled) : new Map<string, string>()
  return new Map(
    items.flatMap(item => {
      const { kind, merchantId, subjectId } = item
      const host = kind === scheduleWork ? hosts.get(subjectId) : directory.merchant(merchantId)?.settings.receiptFiles?.host
      return host === undefined ? [] : [[item, nameOfHost(host)] as const]
    }),
  )
}
