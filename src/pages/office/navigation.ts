// What stands in the menu of the back office: a page by its path below /office, for whoever may do its action.

import type { StaffAction } from '../../staff/permissions.ts'
import type { FrameWords } from './words.ts'

export type MenuEntry = { readonly path: string; readonly word: keyof FrameWords; readonly action: StaffAction }

export const menu: readonly MenuEntry[] = [
  { path: '/overview', word: 'overview', action: 'readOverview' },
  { path: '/reports', word: 'reports', action: 'readReports' },
]
