// What the back office needs of a process.

import type { HandedInParts } from '../../clearing/handedIn.ts'
import type { UnderWay } from '../../http/underWay.ts'
import type { ChannelRefusal } from '../../merchants/refusals.ts'
import type { NotificationParts } from '../../notifications/parts.ts'
import type { StaffParts } from '../../staff/parts.ts'
import type { PageParts } from '../parts.ts'

export type OfficeParts = PageParts &
  NotificationParts &
  StaffParts &
  HandedInParts & {
    /** Why no process would serve a channel with such settings. */
    readonly channelRefusal: ChannelRefusal
    /** Requests of those who are signed in. */
    readonly officeUnderWay: UnderWay
  }
