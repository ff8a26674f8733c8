// What stands in the menu of the back office: a page by its path below /office, for whoever may do its action.

import type { StaffAction } from '../../staff/permissions.ts'
import type { SignedIn } from '../../staff/sessions.ts'
import type { FrameWords } from './words.ts'

export type MenuEntry = {
  readonly path: string
  readonly word: keyof FrameWords
  readonly action: StaffAction
  /** For those alone who act for a PSP. */
  readonly whole?: true
  readonly onlySandbox?: true
}

/** What somebody has in the menu, in its order. */
export const menuFor = ({ may, isWhole }: Pick<SignedIn, 'may' | 'isWhole'>, sandbox: boolean): readonly MenuEntry[] =>
  menu.filter(({ action, whole, onlySandbox }) => may(action) && (isWhole || !whole) && (sandbox || !onlySandbox))

// biome-ignore format: one line a page
const menu: readonly MenuEntry[] = [
  { path: '/console',    word: 'console',    action: 'useSandbox', onlySandbox: true },
  { path: '/overview',   word: 'overview',   action: 'readOverview' },
  { path: '/payments',   word: 'payments',   action: 'readPayments' },
  { path: '/reports',    word: 'reports',    action: 'readReports' },
  { path: '/exports',    word: 'exports',    action: 'export' },
  { path: '/schedules',  word: 'schedules',  action: 'readSettings' },
  { path: '/cases',      word: 'cases',      action: 'readCases' },
  { path: '/files',      word: 'files',      action: 'importFiles', whole: true },
  { path: '/approvals',  word: 'approvals',  action: 'approve' },
  { path: '/deliveries', word: 'deliveries', action: 'readNotifications' },
  { path: '/work',       word: 'work',       action: 'readWork' },
  { path: '/webhooks',   word: 'webhooks',   action: 'readNotifications' },
  { path: '/risk',       word: 'risk',       action: 'readRiskLists' },
  { path: '/entities',   word: 'entities',   action: 'readSettings' },
  { path: '/staff',      word: 'staff',      action: 'readStaff' },
  { path: '/audit',      word: 'audit',      action: 'readAudit' },
]
