// Who of the staff may do what: one table, which routes, pages and tests read.

import type { Directory } from '../merchants/directory.ts'

export const roles = ['viewer', 'support', 'finance', 'developer', 'admin'] as const
export type Role = (typeof roles)[number]

type Permission = readonly [action: string, what: string, roles: string]

// biome-ignore format: one line an action
const rows = [
  ['own',                 'the own sessions, language and second factor',                    'viewer support finance developer admin'],
  ['readPayments',        'payments, their chains and what became of them; searches',        'viewer support finance developer admin'],
  ['readOverview',        'figures and plots of a day',                                      'viewer support finance developer admin'],
  ['readRequests',        'requests as they were sent, masked, and messages to processors',  '       support         developer admin'],
  ['readNotifications',   'notifications with their attempts',                               'viewer support finance developer admin'],
  ['replayNotifications', 'to tell merchants again',                                         '       support         developer admin'],
  ['capture',             'to capture what was authorized',                                  '       support finance           admin'],
  ['refund',              'to give money back: refunds and reversals',                       '       support finance           admin'],
  ['approve',             'to approve what a colleague asked for',                           '               finance           admin'],
  ['enterTransfers',      'to say to which account a refund is transferred',                 '               finance           admin'],
  ['readReports',         'transactions, settlement and chargebacks',                        'viewer         finance           admin'],
  ['export',              'to take payments and reports away in files',                      '               finance           admin'],
  ['readCases',           'what the gateway would not guess',                                'viewer support finance           admin'],
  ['closeCases',          'to take cases over and to decide them',                           '               finance           admin'],
  ['importFiles',         'to hand in files of banks and acquirers, and to see what came',   '               finance           admin'],
  ['readRiskLists',       'whom the risk check blocks and allows',                           '       support finance           admin'],
  ['changeRiskLists',     'to block and to allow, and to take that back',                    '               finance           admin'],
  ['readSettings',        'entities, tokens by name, webhooks',                              '       support         developer admin'],
  ['changeSettings',      'names and settings of entities',                                  '                                 admin'],
  ['makeEntities',        'to make divisions, merchants and channels',                       '                                 admin'],
  ['changeTokens',        'to make and revoke access tokens',                                '                                 admin'],
  ['changeWebhooks',      'to make, test, rotate and end webhooks',                          '                       developer admin'],
  ['readStaff',           'who works here, with which role',                                 '                                 admin'],
  ['changeStaff',         'to add people, to change their roles, to remove them',            '                                 admin'],
  ['readAudit',           'who did what',                                                    '                                 admin'],
  ['readWork',            'work that waits for its time, and fails',                         '       support         developer admin'],
  ['useSandbox',          'clock, triggers and try-it of a sandbox',                         '       support         developer admin'],
] as const satisfies readonly Permission[]

export type StaffAction = (typeof rows)[number][0]

const allowed: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  rows.map(([action, , roles]) => [action, new Set(roles.split(' '))]),
)

/** Every action with what it is, in words. */
export const staffActions: readonly { readonly action: StaffAction; readonly what: string }[] = rows.map(([action, what]) => ({
  action,
  what,
}))

export const roleMay = (role: Role, action: StaffAction): boolean => allowed.get(action)!.has(role)

/** May somebody make links for whoever acts for these? */
export const mayInvite = (
  { lineage }: Pick<Directory, 'lineage'>,
  { role, entities }: { readonly role: Role; readonly entities: readonly string[] },
  wanted: readonly string[],
): boolean => roleMay(role, 'changeStaff') && wanted.every(id => lineage(id).some(one => entities.includes(one)))
