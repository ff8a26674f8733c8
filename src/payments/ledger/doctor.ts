// The doctor: adds the journal up again and compares it, chain by chain, with what the rules compute from the operations. Two
// bookkeepings that must agree. It reads one snapshot and changes nothing.

import type pg from 'pg'
import { signedAmountText } from '../../contract/amounts.ts'
import { type Connection, inTransaction } from '../../platform/database/connect.ts'
import { cleared, isUndecided } from '../followUps/rules.ts'
import type { PaymentState } from '../payment.ts'
import {
  countStray,
  findFollowersOf,
  findForgotten,
  findGuards,
  findJournal,
  findOpenReversals,
  findPutOff,
  findRoots,
  findRootsAfter,
  findTakenBack,
  type JournalLine,
  type PaymentId,
} from './store.ts'

export type DoctorReport = {
  readonly payments: number
  readonly chains: number
  readonly lines: number
  /** A sentence each. */
  readonly findings: readonly string[]
}

const page = 500
/** Read whole, one after the other; each may have 8 MiB of followers. */
const chainsAtOnce = 50
const nobody = '0'.repeat(32)

/**
 * `before`: payments recorded before this moment (milliseconds) must be answered, or in somebody's hands, and what is to be done about any is due by itself soon after; 0 = that is not looked at. `only`: one merchant,
 * wherever it is served; otherwise all that are served here.
 */
export async function examine(pool: pg.Pool, before = 0, only: string | null = null): Promise<DoctorReport> {
  return inTransaction(pool, async db => {
    await db.query('set transaction isolation level repeatable read, read only')
    const findings: string[] = []
    let [payments, chains, lines] = [0, 0, 0]
    for (let [merchantId, id] = [nobody, nobody]; ; ) {
      const roots = await findRootsAfter(db, merchantId, id, chainsAtOnce, only)
      for (const [owner, ofOwner] of Map.groupBy(roots, root => root.merchantId)) {
        const examined = await examineFound(db, owner, ofOwner)
        findings.push(...[...examined.findings.values()].flat())
        payments += examined.payments
        lines += examined.lines
      }
      chains += roots.length
      const last = roots.at(-1)
      if (!last || roots.length < chainsAtOnce) break
      merchantId = last.merchantId
      id = last.id
    }
    const stray = await countStray(db, only)
    if (stray.answers > 0) findings.push(`${stray.answers} answers belong to no payment.`)
    if (stray.journal > 0) findings.push(`${stray.journal} journal lines belong to no payment.`)
    if (stray.events > 0) findings.push(`${stray.events} approved payments have no event.`)
    const named = (places: readonly PaymentId[], what: string) =>
      findings.push(...places.map(({ id, merchantId }) => `Payment ${id} of merchant ${merchantId}: ${what}.`))
    named(await findForgotten(db, before, page, only), 'it has no answer, and nothing is under way that would give it one')
    named(await findTakenBack(db, page, only), 'it was answered as approved and is being reversed')
    for (const { id, merchantId, attempts } of await findOpenReversals(db, before, page, only))
      named(
        [{ id, merchantId }],
        `money of it may be held or moved, and its reversal is not acknowledged after ${attempts} attempts`,
      )
    for (const { id, merchantId, kind, dueAt } of before === 0 ? [] : await findPutOff(db, before, page, only))
      named(
        [{ id, merchantId }],
        `what is to be done about it (${kind}) is due at ${new Date(dueAt).toISOString()}, which is later than anything puts it off: a wrong clock wrote it`,
      )
    return { payments, chains, lines, findings }
  })
}

/** Chains of one merchant by their first payments. */
export const examineChains = async (db: Connection, merchantId: string, roots: readonly string[]): Promise<ExaminedChains> =>
  examineFound(db, merchantId, await findRoots(db, merchantId, roots))

type ExaminedChains = {
  readonly payments: number
  readonly lines: number
  /** By the first payment; chains that are as they should be are not in it. */
  readonly findings: ReadonlyMap<string, readonly string[]>
}

async function examineFound(db: Connection, merchantId: string, roots: readonly PaymentState[]): Promise<ExaminedChains> {
  const ids = roots.map(({ id }) => id)
  const followers = await findFollowersOf(db, merchantId, ids)
  const payments = [...ids, ...followers.map(({ id }) => id)]
  const journal = await findJournal(db, merchantId, payments)
  const guards = new Map((await findGuards(db, merchantId, ids)).map(({ paymentId, captureId }) => [paymentId, captureId]))
  const byRoot = Map.groupBy(followers, ({ rootId }) => rootId)
  const byPayment = Map.groupBy(journal, ({ paymentId }) => paymentId)
  const findings = new Map<string, string[]>()
  for (const root of roots) {
    const chain = { root, followers: byRoot.get(root.id) ?? [] }
    const booked = [root, ...chain.followers].flatMap(payment => byPayment.get(payment.id) ?? [])
    const ofChain = examineChain(chain, booked, guards.get(root.id))
    if (ofChain.length > 0) findings.set(root.id, ofChain)
  }
  return { payments: payments.length, lines: journal.length, findings }
}

type ChainOf = { readonly root: PaymentState; readonly followers: readonly PaymentState[] }

/** What one chain should have in the books, and what it has. */
export function examineChain({ root, followers }: ChainOf, booked: readonly JournalLine[], guard: string | undefined): string[] {
  const approved = (type: string) => sum(followers.filter(one => one.type === type && one.answer?.approved))
  const pending = (type: string) => sum(followers.filter(one => one.type === type && isUndecided(one)))
  const isSlip = root.record.slip === true
  const isHold = root.type === 'PA' && !isSlip
  const stands = root.answer?.approved === true
  const captures = followers.filter(({ type, answer }) => type === 'CP' && answer?.approved)
  const open = followers.filter(one => one.type === 'CP' && isUndecided(one))
  const reversed = isSlip ? 0 : approved('RV') // nobody held or cleared a slip that is written off
  const reserved = isSlip ? 0 : pending('RV')
  const [collector, other] = isSlip ? ['bank', 'acquirer'] : ['acquirer', 'bank']
  const chargedBack = approved('CB') - approved('CR')
  const credited = root.type === 'CD' && stands ? root.amount : 0

  const expected: readonly [what: string, expected: number, found: number][] = [
    ['held', isHold && stands && captures.length === 0 ? root.amount - reversed : 0, balance(booked, 'held', 'posted')],
    [
      'cleared',
      cleared(root, followers) - approved('RF') - (isHold ? 0 : reversed) - credited - chargedBack,
      balance(booked, collector, 'posted'),
    ],
    ['reserved of the hold', isHold ? -reserved : 0, outstanding(booked, 'held')],
    ['reserved of cleared money', -pending('RF') - (isHold ? 0 : reserved), outstanding(booked, collector)],
    ['where such payments have none', 0, balance(booked, other, 'posted') + outstanding(booked, other)],
  ]
  const findings = expected
    .filter(([, wanted, found]) => wanted !== found)
    .map(
      ([what, wanted, found]) =>
        `the operations make ${signedAmountText(wanted)} ${what}, the journal ${signedAmountText(found)}`,
    )
  if (captures.length > 1) findings.push(`it was captured ${captures.length} times`)
  const holder = captures[0] ?? open[0]
  if (holder?.id !== guard) findings.push(`its capture is ${holder?.id ?? 'none'}, the guard row says ${guard ?? 'none'}`)
  if (isHold && cleared(root, followers) > root.amount - reversed) findings.push('more was captured than was held')
  if (approved('RF') + (isHold ? 0 : reversed) > cleared(root, followers)) findings.push('more was given back than was cleared')
  // Refunds and chargebacks together may be above it: an issuer does not look at refunds.
  if (chargedBack > cleared(root, followers) - (isHold ? 0 : reversed)) findings.push('more was charged back than was cleared')
  if (chargedBack < 0) findings.push('more chargebacks were reversed than there are')
  for (const { currency, mode } of booked) {
    if (currency !== root.currency || mode !== root.mode)
      findings.push(`it is in ${root.currency} and ${root.mode}, a journal line in ${currency} and ${mode}`)
  }
  return findings.map(finding => `Payment ${root.id} of merchant ${root.merchantId}: ${finding}.`)
}

/** What an account has received less what it gave, of the lines in a state. */
function balance(lines: readonly JournalLine[], account: string, state: JournalLine['state']): number {
  return lines
    .filter(line => line.state === state)
    .reduce((total, { debit, credit, amount }) => total + (debit === account ? amount : 0) - (credit === account ? amount : 0), 0)
}

/** Reservations that no later line has posted or voided. */
function outstanding(lines: readonly JournalLine[], account: string): number {
  const settled = new Set(lines.filter(({ state }) => state !== 'pending').map(({ paymentId }) => paymentId))
  return balance(
    lines.filter(({ paymentId }) => !settled.has(paymentId)),
    account,
    'pending',
  )
}

const sum = (payments: readonly PaymentState[]): number => payments.reduce((total, { amount }) => total + amount, 0)
