// Failed attempts to authenticate, limited by the minute of the clock. All processes count together: a failure is answered after it was counted
// in the database, which a success never waits for. When their minute is over, the failures become rows of the audit.

import type pg from 'pg'
import { inTransaction } from '../platform/database/connect.ts'
import { batchMax, groupCommit } from '../platform/database/groupCommit.ts'
import { networkOf, networkShare, networksAround } from '../platform/network.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { type Recorder, record, tamperingFound } from './chain.ts'
import type { Actor, AuditEntry } from './entry.ts'
import {
  countFailures,
  type FailureKind,
  findPlaces,
  findUsedUp,
  type KnownPlace,
  keepPlaces,
  type LogInFailure,
  type ProvenFailure,
  takeFailures,
} from './store.ts'

export type LogInAttempt = {
  readonly address: string
  /** What tells the credential apart: the id of a token that is known, or the start of a keyed hash. */
  readonly credential: string
  /** The start of a keyed hash of the user id, where there is one: passwords are chosen by people, tokens by chance. */
  readonly user?: string | undefined
}

export type Failures = {
  /** Counts a failure; true when there were too many before it. */
  count(attempt: LogInAttempt, now: number): Promise<boolean>
  /**
   * True when a right password has to wait because too many wrong ones came for its user, from its network, or from everywhere: else guessing had no bound. A
   * network from which the token has come before need not wait, at whatever process, and no token of chance ever has to: others' failures shut nobody out.
   */
  mustWait(tokenId: string, address: string, attempt: () => LogInAttempt, now: number): boolean
  /** Has the right password of a token come from there to this process? Then nothing is told by what is known of it. */
  cameFrom(tokenId: string, address: string): boolean
  /** Writes what the database did not take when it was counted. */
  writeLate(): Promise<void>
  /** Reads from where right passwords have come to other processes, and before the start of this one. */
  learn(now: number): Promise<void>
  /** Reads what others have counted to its end in this minute. */
  learnUsedUp(now: number): Promise<void>
}

/** Failures in a minute: of everybody, so that the database has an end of them; of one address; of one user id, from wherever; of one credential from one address. */
export const failuresMax: Readonly<Record<FailureKind, number>> = { all: 12_000, address: 300, user: 60, credential: 30 }

const minuteMilliseconds = 60_000
/** So long a failure waits for a slow database to be counted there. */
const patienceSeconds = 2
/** Counts that a process keeps, and of those that are used up as many again: floods of others push out none of these. */
const remembered = 50_000
/** Networks of one token that a process knows: whoever has a right password of his own pushes out nobody else's. */
const placesMost = 500
/** Counts that are kept for a database that does not take them; more of a minute are one sum. */
const lateMost = 10_000
const keyOf = ({ kind, subject }: Pick<LogInFailure, 'kind' | 'subject'>) => `${kind} ${subject}`

export function limitFailures(pool: pg.Pool, { keys, clock }: Recorder, onError: (error: Error) => void): Failures {
  let minute = 0
  const counted = new Map<string, number>()
  const spent = new Set<string>()
  let attempts = 0
  /** Of each token, by name the networks from which it came to this process, by hash those of all. */
  const cameBefore = new Map<string, Set<string>>()
  const knownPlaces = new Map<string, Set<string>>()
  let learnedAt: number | undefined

  const cameFrom = (tokenId: string, address: string): boolean => cameBefore.get(tokenId)?.has(networkOf(address)) === true

  const begin = (now: number) => {
    const current = now - (now % minuteMilliseconds)
    if (current === minute) return
    minute = current
    counted.clear()
    spent.clear()
  }
  const failuresOf = ({ address, credential, user }: LogInAttempt): LogInFailure[] => {
    const subjects: [FailureKind, string][] = [
      ['all', ''],
      ...networksAround(address).map((network): [FailureKind, string] => ['address', network]),
      ['credential', `${networkOf(address)} ${credential}`],
      ...(user === undefined ? [] : [['user', user] as [FailureKind, string]]),
    ]
    return subjects.map(([kind, subject]) => ({ kind, subject, minute, failures: 1 }))
  }
  const usedUp = (failure: LogInFailure) => spent.has(keyOf(failure))
  /** What was counted longest ago is forgotten first. */
  function remember(failure: LogInFailure, failures: number): void {
    const key = keyOf(failure)
    const count = Math.max(failures, counted.get(key) ?? 0)
    counted.delete(key)
    if (spent.has(key)) return
    if (count >= mostOf(failure)) spent.add(key)
    else counted.set(key, count)
    for (const keys of [counted, spent]) if (keys.size > remembered) keys.delete(keys.keys().next().value!)
  }

  async function store(failures: Iterable<LogInFailure>): Promise<ReadonlyMap<string, number>> {
    const totals = new Map<string, number>()
    const proven = [...failures].map(failure => ({ ...failure, proof: proofsOf(keys, failure)[0] }))
    for (const failure of await countFailures(pool, proven)) {
      totals.set(keyOf(failure), failure.failures)
      if (failure.minute === minute) remember(failure, failure.failures)
    }
    return totals
  }

  const late = new Map<string, LogInFailure>()
  const keep = (failure: LogInFailure) => {
    if (late.size < lateMost || late.has(minuteKeyOf(failure))) addTo(late, failure)
    else if (failure.kind === 'credential') addTo(late, { ...failure, subject: severalSubject })
  }

  const inDatabase = groupCommit<readonly LogInFailure[], ReadonlyMap<string, number>>({
    clock,
    patienceSeconds,
    key: () => String(attempts++), // the statement adds up what is counted twice
    async write(batch) {
      const sums = new Map<string, LogInFailure>()
      for (const failure of batch.flat()) addTo(sums, failure)
      const totals = await store(sums.values())
      return batch.map(() => totals)
    },
  })

  const hashesOf = (tokenId: string, network: string) => keyedHashes(keys, 'place of a password', `${tokenId} ${network}`)
  const kept = groupCommit<KnownPlace, void>({
    clock,
    patienceSeconds,
    key: ({ hash }) => hash.toString('base64'),
    async write(batch) {
      await keepPlaces(pool, batch, clock.real(), placesMost)
      return batch.map(() => undefined)
    },
  })

  /** Then what this process counted decides. */
  const failed = (error: Error): undefined => void onError(error)
  const notTaken = (failures: readonly LogInFailure[]) => (error: Error) => {
    failures.forEach(keep)
    return failed(error)
  }

  return {
    async count(attempt, now) {
      begin(now)
      const failures = failuresOf(attempt)
      const open = failures.filter(failure => !usedUp(failure))
      const isSpent = failures.some(failure => (failure.kind === 'all' || failure.kind === 'address') && usedUp(failure))
      for (const failure of isSpent ? failures.filter(({ kind }) => kind !== 'all') : failures)
        remember(failure, (counted.get(keyOf(failure)) ?? 0) + 1)
      // What is used up is not written any more: nobody can make the database busy without end, nor one network use up what is written of all.
      const totals = isSpent ? undefined : await inDatabase(open).catch(notTaken(open))
      return open.length < failures.length || open.some(failure => (totals?.get(keyOf(failure)) ?? 0) > mostOf(failure))
    },
    mustWait(tokenId, address, attempt, now) {
      if (cameFrom(tokenId, address)) return false
      const network = networkOf(address)
      begin(now)
      const hashes = hashesOf(tokenId, network)
      const known = knownPlaces.get(tokenId)
      const isKnown = known !== undefined && hashes.some(hash => known.has(hash.toString('base64')))
      if (!isKnown && failuresOf(attempt()).some(usedUp)) return true
      rememberPlace(cameBefore, tokenId, network)
      kept({ tokenId, hash: hashes[0]! }).catch(error => {
        // The next from there is let in as this one, and tries to keep it again.
        rememberPlace(knownPlaces, tokenId, hashes[0]!.toString('base64'))
        cameBefore.get(tokenId)?.delete(network)
        failed(error)
      })
      return false
    },
    cameFrom,
    async writeLate() {
      while (late.size > 0) {
        const some = [...late].slice(0, batchMax)
        for (const [key] of some) late.delete(key) // nobody else writes them, and more of them may come meanwhile
        try {
          await store(some.map(([, failure]) => failure))
        } catch (error) {
          for (const [, failure] of some) addTo(late, failure)
          throw error
        }
      }
    },
    async learn(now) {
      // A minute more: what another process wrote then may have been seen late, by another clock.
      const found = await findPlaces(pool, learnedAt === undefined ? 0 : learnedAt - minuteMilliseconds, placesMost)
      for (const { tokenId, hash } of found) rememberPlace(knownPlaces, tokenId, hash.toString('base64'))
      learnedAt = now
    },
    async learnUsedUp(now) {
      begin(now)
      for (const failure of await findUsedUp(pool, minute, failuresMax))
        if (failure.minute === minute && isOwn(keys, failure)) remember(failure, failure.failures)
    },
  }
}

const minuteKeyOf = (failure: LogInFailure) => `${failure.minute} ${keyOf(failure)}`

function addTo(sums: Map<string, LogInFailure>, failure: LogInFailure): void {
  const key = minuteKeyOf(failure)
  sums.set(key, { ...failure, failures: failure.failures + (sums.get(key)?.failures ?? 0) })
}

/** Of whom it tells, not how often: several processes add to one row. */
const proofsOf = (keys: Keys, { minute, kind, subject }: LogInFailure) =>
  keyedHashes(keys, 'failure', `${minute} ${kind} ${subject}`)

const isOwn = (keys: Keys, failure: ProvenFailure): boolean => proofsOf(keys, failure).some(proof => proof.equals(failure.proof))

function rememberPlace(places: Map<string, Set<string>>, tokenId: string, place: string): void {
  const own = places.get(tokenId) ?? new Set()
  places.set(tokenId, own.add(place))
  if (own.size > placesMost) own.delete(own.keys().next().value!)
}

const mostOf = ({ kind, subject }: Pick<LogInFailure, 'kind' | 'subject'>): number =>
  failuresMax[kind] * (kind === 'address' ? networkShare(subject) : 1)

const toldEach = 20
const everyMilliseconds = 5_000

/** Tells the audit of the minutes that are over. Each failure is told by one process, however many look. */
export async function tellFailures(pool: pg.Pool, recorder: Recorder): Promise<void> {
  await inTransaction(pool, async db => {
    const now = recorder.clock.real()
    const taken = await takeFailures(db, now - (now % minuteMilliseconds))
    const own = taken.filter(one => isOwn(recorder.keys, one))
    const others = taken.length - own.length
    const found = { what: `${others} failed attempts were not counted by this installation` }
    await record(db, recorder, [...entriesOf(own), ...(others === 0 ? [] : [tamperingFound(found)])])
  })
}

export function startTelling(
  pool: pg.Pool,
  failures: Failures,
  recorder: Recorder,
  onError: (error: Error) => void,
): { stop(): Promise<void> } {
  let running: Promise<void> | undefined
  const timer = recorder.clock.every(everyMilliseconds, () => {
    const work = [
      () => failures.writeLate(),
      () => tellFailures(pool, recorder),
      () => failures.learn(recorder.clock.real()),
      () => failures.learnUsedUp(recorder.clock.real()),
    ]
    running ??= Promise.all(work.map(one => one().catch(onError)))
      .then(() => {})
      .finally(() => (running = undefined))
  })
  return {
    async stop() {
      timer.cancel()
      await running
      await failures.writeLate().catch(onError)
    },
  }
}

/** Of each minute the worst by name, and the others in one row: an attacker does not fill the table. Where a bound was met there were more. */
function entriesOf(failures: readonly LogInFailure[]): AuditEntry[] {
  const minutes = new Map<number, LogInFailure[]>()
  const spent = new Set(failures.filter(one => one.failures >= mostOf(one)).map(({ minute }) => minute))
  for (const failure of failures.filter(({ kind }) => kind === 'credential'))
    minutes.set(failure.minute, [...(minutes.get(failure.minute) ?? []), failure])
  return [...minutes]
    .sort(([a], [b]) => a - b)
    .flatMap(([minute, some]) => {
      const worst = some.sort((a, b) => b.failures - a.failures)
      const others = worst.slice(toldEach)
      return [
        ...worst
          .slice(0, toldEach)
          .map(one =>
            entryOf(one.minute, actorOf(one), { failures: one.failures, ...(one.failures >= mostOf(one) && { more: true }) }),
          ),
        ...(others.length === 0
          ? []
          : [entryOf(minute, severalStrangers, { ...summed(others), ...(spent.has(minute) && { more: true }) })]),
      ]
    })
}

const severalStrangers: Actor = { kind: 'stranger', id: 'several', address: 'several' }
const severalSubject = 'several several'

const entryOf = (minute: number, actor: Actor, details: object): AuditEntry => ({
  actor,
  action: 'logInFailed',
  result: 'refused',
  details: { minute: new Date(minute).toISOString(), ...details },
})

function actorOf({ subject }: LogInFailure): Actor {
  const [address, credential] = subject.split(' ') as [string, string]
  return { kind: credential.length === 32 ? 'token' : 'stranger', id: credential, address }
}

const summed = (failures: readonly LogInFailure[]) => ({
  failures: failures.reduce((total, one) => total + one.failures, 0),
  addresses: new Set(failures.map(one => actorOf(one).address)).size,
  credentials: failures.length,
})
