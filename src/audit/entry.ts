// What the audit tells: who did what, on whose behalf, from where, with which result. Values and secrets are no part of it.

import { hostname, userInfo } from 'node:os'
import { knownBrands } from '../contract/brands.ts'
import { shortenCards } from '../contract/cardNumbers.ts'
import type { Connection } from '../platform/database/connect.ts'

/** `user` is somebody of the staff; `gateway` a process by itself; `stranger` a caller that proved nothing. */
export type ActorKind = 'token' | 'user' | 'commandLine' | 'gateway' | 'stranger'

/** Who acts: the id of a token or user, or the machine's user; and the address, or the machine. */
export type Actor = {
  readonly kind: ActorKind
  readonly id: string
  readonly address: string
  /** Where that can be taken away in the midst of a request: may this one act as when it began? Asked in a transaction, until whose end nobody takes it away. */
  isStill?(db: Connection): Promise<boolean>
}

/** All that is told of, and what a reader should know it by. */
export const actions = {
  logInFailed: 'attempts with a wrong credential, or for an entity of others, within a minute',
  actBegun:
    'what no transaction holds together with its row began: `act` names the row that tells its end, in which `begun` is the number of this one; without such a row it is under way, or was broken off',
  entityMade: 'a psp, division, merchant or channel was made, by a seed or by hand',
  entityChanged: 'its name or settings were changed, by a seed or by hand',
  tokenMade: 'an access token was made, by a seed or by hand',
  tokenChanged: 'the label or the entities of a token were changed by a seed',
  tokenRevoked: 'an access token was revoked, at once or from a time on',
  sealedAnew: 'what older keys had sealed was sealed under the newest',
  keyAdded: 'a key was made in its file, below the one that is written with',
  keyPreferred: 'a key was made the first in its file: gateways write with it from their next start on',
  keyRetired: 'a key that nothing needed was given up',
  credentialChanged: 'a certificate, key or token in a file is another than at the start before',
  searchRebuilt: 'what is searched was written anew by a command',
  erasedByHand: 'what was kept for its time was erased by a command',
  databaseRestored: 'the embedded database was made from a backup by a command',
  databaseUpgraded: 'the embedded database was moved to another major version of PostgreSQL by a command',
  endpointMade: 'an endpoint was made, and its secret shown',
  endpointTested: 'a webhook was sent the test notification, also by whoever wants it active; `status` is what came',
  endpointActivated: 'a webhook is active: it has answered the test',
  endpointClosed: 'an endpoint was disabled or deleted',
  secretRotated: 'a step of the rotation of an endpoint, with its secrets shown',
  secretShown: 'the secrets of an endpoint were shown',
  notificationsReplayed: 'notifications were sent again',
  registrationDeleted: 'a registration was deleted, and its card erased',
  backupMade: 'a backup of the embedded database was made',
  archiveWritten: 'old payments were written into a file of the archive',
  archiveErased: 'what such a file has was taken out of the database',
  archiveCancelled: 'such a file was given up before anything was taken out',
  archivedBroughtBack: 'a payment came back from such a file, with all that refers to it',
  clockMoved: "a sandbox's clock was moved",
  chargebackRecorded: 'a line of a report became a chargeback or the reversal of one',
  fileImported: 'a file of an acquirer, a bank or a store chain was read to its end, or refused',
  slipNumbersSkipped: 'numbers of slips were passed over, behind a backup that was restored',
  transferEntered: 'the bank details of a refund were entered',
  transferEnded: 'somebody said what became of the transfer of a refund',
  transfersReleased: 'files of transfers of an account are written again, behind a backup that was restored',
  capturesReleased: 'capture files to an acquirer are written again, behind a backup that was restored',
  captureAccepted: 'somebody said that an acquirer has a capture which waits for a file, behind a backup that was restored',
  ordersReleased: 'order files of an account are written again, behind a backup that was restored',
  caseClosed: 'an operator case was closed',
  caseNoted: 'somebody of the staff took an operator case, left it, or wrote a note on it',
  reportTaken: 'somebody of the staff took a report away as a file',
  scheduleMade: 'a report was scheduled for a server',
  scheduleEnded: 'a schedule of a report was ended',
  filesOwedAgain: 'files that were given up are tried again',
  exportAsked: 'somebody of the staff asked for a file that takes long',
  exportTaken: 'somebody of the staff took such a file away',
  exportEnded: 'such a file was cancelled, or deleted by hand',
  staffAdded: 'somebody of the staff was added, with a link to set a password',
  staffChanged: 'the role or the entities of somebody were changed',
  staffReset: 'the password and the second factor of somebody were taken away, with a new link',
  staffRemoved: 'somebody works here no more',
  staffLinkMade: 'somebody made a link to set other factors',
  staffFactorsSet: 'somebody set a password and a second factor by a link, and signed in',
  passkeyMade: 'somebody of the staff got a passkey, which signs in as both factors do',
  passkeyRemoved: 'somebody of the staff removed an own passkey',
  staffSignedIn: 'somebody signed in, or entered a sandbox by its link',
  staffSignedOut: 'a session was ended by hand',
  staffLocked: 'attempts to sign in for somebody are not looked at for a while',
  paymentsExported: 'somebody of the staff took payments away in a file',
  riskListed: 'somebody of the staff blocked or allowed a value for the risk check, and why',
  riskUnlisted: 'somebody of the staff took such a value from its list',
  followUpOrdered: 'somebody of the staff ordered a capture, a refund or a reversal, and why',
  approvalAsked: 'somebody of the staff ordered what a colleague has to approve',
  approvalDecided: 'a colleague approved or refused an order',
  merchantLeft: 'a merchant was handed over to another cell',
  merchantArrived: 'a merchant was taken over from another cell',
  merchantStayed: 'the move of a merchant to another cell failed or was given up, and it is served here as before',
  merchantForgotten: 'what a merchant who is served by another cell had left here was taken away',
  cellFollowed:
    'a reporting database was told to copy what this cell publishes, by a command that puts right what is there already',
  cellUnfollowed: 'a reporting database copies nothing more of this cell',
  tamperingFound: 'what the database had of the audit was not what this installation had left there',
} as const satisfies Record<string, string>
export type AuditAction = keyof typeof actions

export type AuditEntry = {
  /** Absent: whoever the recorder says. */
  readonly actor?: Actor
  readonly action: AuditAction
  readonly entityId?: string | undefined
  /** Id of what it was done to. */
  readonly subject?: string
  readonly result?: 'done' | 'refused'
  readonly details?: Readonly<Record<string, unknown>>
}

/** An entry in its place, as it is stored. */
export type AuditRow = {
  readonly sequence: number
  /** Real time, milliseconds. */
  readonly recordedAt: number
  readonly actorKind: ActorKind
  readonly actor: string
  readonly address: string
  readonly action: string
  readonly entityId: string | null
  readonly subject: string
  readonly result: 'done' | 'refused'
  readonly details: string
  readonly hash: Buffer
}

/** Characters of what the environment says of who is behind a process. */
const claimMax = 64

/**
 * The machine's user behind this process: who works at the command line, or as whom the gateway runs. Whom `sudo` writes into the environment stands behind, as a
 * claim: everybody can write it there, and card numbers too, which are looked for first: half a one is not seen.
 */
export function thisProcess(kind: 'commandLine' | 'gateway'): Actor {
  const claim = process.env.SUDO_USER
  const behind = claim === undefined ? '' : ` (SUDO_USER: ${shortenCards(claim, knownBrands).slice(0, claimMax)})`
  return { kind, id: `${ownName()}${behind}`, address: hostname() }
}

function ownName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.()}` // a uid without an entry in the user table, as containers have
  }
}
