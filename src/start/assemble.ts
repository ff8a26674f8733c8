// A gateway without sockets: its parts, put together from a clock, chance, a database and a network that are given. `serve` gives it a server and
// workers; benches and tests use it as it is.

import { fileURLToPath } from 'node:url'
import { getHeapStatistics } from 'node:v8'
import { type AlertParts, type Alerts, alertMail, alertWork, countMails } from '../alerts/alerts.ts'
import { limitFailures } from '../audit/failures.ts'
import { checkoutErasure, eraseOldCheckout } from '../checkouts/create.ts'
import { findShopHosts, type MissedReturnParts, missedReturn } from '../checkouts/missedReturn.ts'
import type { CheckoutParts } from '../checkouts/parts.ts'
import { captureFile } from '../clearing/captures/write.ts'
import { type IntakeParts, pollReturns } from '../clearing/intake/poll.ts'
import { payInSandbox } from '../clearing/receipts/sandbox.ts'
import type { ReconciliationParts } from '../clearing/reconciliation/compare.ts'
import { compareDue, cutOver } from '../clearing/reconciliation/cutOver.ts'
import { type OrderFileParts, orderFile } from '../clearing/remittance/write.ts'
import { returnFolder } from '../clearing/returns/folder.ts'
import { type TransferFileParts, transferFile } from '../clearing/transfers/write.ts'
import type { Acquirer } from '../connectors/cards/acquirer.ts'
import type { Connector } from '../connectors/connector.ts'
import type { Transport } from '../connectors/transport.ts'
import { hearing, timeCalls, traceCalls, watchAll, watched } from '../connectors/watch.ts'
import { countRequests } from '../http/metrics.ts'
import { countUnderWay, requestsHold, type UnderWay } from '../http/underWay.ts'
import { type Directory, openDirectory } from '../merchants/directory.ts'
import type { ChannelRefusal } from '../merchants/refusals.ts'
import { type Deliver, deliverer } from '../notifications/deliveries/deliver.ts'
import { dueDeliveries } from '../notifications/deliveries/due.ts'
import { attemptLane } from '../notifications/deliveries/store.ts'
import { countAttempts } from '../notifications/metrics.ts'
import type { NotificationParts } from '../notifications/parts.ts'
import { buildForm, pinnedBuild } from '../pages/form/build.ts'
import { keepScripts } from '../pages/form/store.ts'
import type { SlipPageParts } from '../pages/slip/view.ts'
import { lateReplies } from '../payments/execute.ts'
import { foundReplies } from '../payments/foundReplies.ts'
import { countPayments } from '../payments/metrics.ts'
import type { PaymentParts } from '../payments/parts.ts'
import type { Payment } from '../payments/payment.ts'
import { announcedPending } from '../payments/read/pendingAnswers.ts'
import { capture, recover, release, reverse } from '../payments/recover.ts'
import { redirectExpiry } from '../payments/redirects/resume.ts'
import { readRiskRules } from '../payments/risk/rules.ts'
import { carriedKinds, findPaymentSides } from '../payments/sides.ts'
import { answerLane } from '../payments/store/answers.ts'
import { paymentLane } from '../payments/store/payments.ts'
import { buildFigure, buildNumber } from '../platform/build.ts'
import type { Clock, Random } from '../platform/clock.ts'
import type { Database } from '../platform/database/connect.ts'
import { areHeld } from '../platform/database/elsewhere.ts'
import { countBatches, figuresOfPools } from '../platform/database/metrics.ts'
import { hearSilences } from '../platform/due/silence.ts'
import { type DueSource, dueWork } from '../platform/due/source.ts'
import type { DueHandler, DueHandlers, Places, WorkerParts } from '../platform/due/worker.ts'
import type { PlaceCall } from '../platform/egress/call.ts'
import { OperatorError } from '../platform/errors.ts'
import type { Log } from '../platform/log.ts'
import { lookTogether } from '../platform/look.ts'
import { mailer } from '../platform/mail.ts'
import type { Figure } from '../platform/metrics.ts'
import type { RetentionParts } from '../platform/retention/erase.ts'
import { type OpenSftp, sftpOpener } from '../platform/sftp/open.ts'
import type { Tracer } from '../platform/traces.ts'
import { announcedRegistration } from '../registrations/announced.ts'
import { exportWork, makeExport } from '../reporting/exports/export.ts'
import { findFileHosts } from '../reporting/fileHosts.ts'
import { deliverReceipts, type ReceiptFileParts } from '../reporting/receiptFiles/deliver.ts'
import { deliverScheduled, type ScheduledReportParts } from '../reporting/schedules/deliver.ts'
import { scheduleWork } from '../reporting/schedules/schedule.ts'
import { passAuto } from '../sandbox/autoAnswer.ts'
import { slipNumbers } from '../slips/numbers.ts'
import { type AttemptLine, attemptLine } from '../staff/attempts.ts'
import type { Keys } from '../vault/keys.ts'
import { channelRefusal } from './channelRefusal.ts'
import type { Config } from './config.ts'
import { makeConnectors } from './connectors.ts'

/** All parts of all rooms. Each room is given it as the few that it needs. */
export type Gateway = PaymentParts &
  CheckoutParts &
  NotificationParts &
  SlipPageParts &
  OrderFileParts &
  TransferFileParts &
  ReceiptFileParts &
  ScheduledReportParts &
  IntakeParts &
  AlertParts &
  ReconciliationParts &
  RetentionParts &
  WorkerParts &
  MissedReturnParts & {
    readonly figures: readonly Figure[]
    readonly channelRefusal: ChannelRefusal
    readonly officeUnderWay: UnderWay
    readonly attempts: AttemptLine
  }

/** Everything outside the process that a payment may reach. */
export type Network = {
  /** Calls to merchants' servers, guarded. */
  readonly call: PlaceCall
  /** Servers of merchants, and of banks and store chains, that take and give files; nobody can be reached where it is absent. */
  readonly sftp?: OpenSftp
  /** Calls to partners: wallets, banks, directory servers. */
  readonly transport: Transport
  /** The links to acquirers, which carry cards in the modes external and live. */
  readonly acquirers: readonly Connector[]
  /** The acquirers behind those, which tell and are told what a day was. */
  readonly links?: readonly Acquirer[]
  /** Ends mail that is under way when the gateway stops. */
  readonly stopping?: AbortSignal
  /** The simulators' server: its address for us, and for browsers; absent outside a sandbox. */
  readonly simulators?: { readonly url: string; readonly publicUrl: () => string }
}

export type Surroundings = {
  readonly config: Config
  readonly keys: Keys
  readonly clock: Clock
  readonly random: Random
  readonly database: Database
  readonly network: Network
  readonly log: Log
  /** Absent = nothing is traced. */
  readonly tracer?: Tracer
  /** Where shoppers and other servers reach us, without a slash at the end. */
  publicUrl(): string
  /** What the process may have of memory; absent = as much as its heap. */
  readonly heapBytes?: number | undefined
  /** Instead of those that store, for a bench. */
  readonly lanes?: Pick<Gateway, 'insertPayment' | 'insertAnswer'>
  onError(error: Error): void
}

export type Assembly = {
  readonly gateway: Gateway
  readonly deliver: Deliver
  /** What waits for a time, table by table. */
  readonly sources: readonly DueSource[]
  stop(): Promise<void>
}

/** Rules to begin with; no channel uses them unless its settings say so. */
const standardRiskRules = fileURLToPath(new URL('../../seeds/risk-rules.json', import.meta.url))

/** What is done with rows of many merchants, or says of a day what all of them did, waits while some are held: it would take them for gone. */
const unlessHeld =
  (handler: DueHandler<Gateway>): DueHandler<Gateway> =>
  async (parts, item) =>
    (await areHeld(parts.database.work)) ? { again: parts.clock.real() + 30_000, well: true } : handler(parts, item)

export const dueHandlers: DueHandlers<Gateway> = new Map<string, DueHandler<Gateway>>([
  ['recover', recover],
  ['reverse', reverse],
  ['release', release],
  ['capture', capture],
  ['missedReturn', missedReturn],
  ['redirectExpiry', redirectExpiry],
  [checkoutErasure, eraseOldCheckout],
  ['cutOver', unlessHeld(cutOver)],
  ['compareDay', unlessHeld(compareDue)],
  ['captureFile', unlessHeld(captureFile)],
  ['transferFile', unlessHeld(transferFile)],
  ['receiptFiles', unlessHeld(deliverReceipts)],
  [scheduleWork, unlessHeld(deliverScheduled)],
  [exportWork, makeExport],
  ['returnServer', unlessHeld(pollReturns)],
  ['orderFile', unlessHeld(orderFile)],
  ['returnFolder', unlessHeld(returnFolder)],
  [alertWork, alertMail],
])

/** Work that calls servers of shops. */
const calls: Places<Gateway> = {
  kinds: ['missedReturn'],
  taking: 'all',
  most: 256,
  mostOfOne: 4,
  mostOfSide: 6,
  findSides: findShopHosts,
  silentMerchants: ({ silentShops }) => silentShops,
}
/** Work that lays files down on the servers of others, as slow as those like. */
const files: Places<Gateway> = {
  kinds: ['receiptFiles', scheduleWork],
  taking: 'all',
  most: 128,
  mostOfOne: 4,
  mostOfSide: 6,
  findSides: findFileHosts,
}
/** What banks and store chains lay down for us; all of it belongs to nobody. */
const fetched: Places<Gateway> = { kinds: ['returnServer'], taking: 'all', most: 12, mostOfOne: 12, mostOfSide: 12 }
/** What people wait for takes as long as it is long; those who act for the same have one place together. One connection of searches stays for others. */
const exported: Places<Gateway> = { kinds: [exportWork], taking: 'all', most: 2, mostOfOne: 1, mostOfSide: 2 }
/** Work about money that calls a bank or a wallet: of one that says nothing no more is under way than it has a share of. */
const carried: Places<Gateway> = { kinds: carriedKinds, taking: 'sides', most: 60, mostOfOne: 15, mostOfSide: 8 }

const errands = [calls, files, fetched, exported].flatMap(({ kinds }) => kinds)
/** All other work: what is done about money waits for no server of merchants, shoppers, banks or wallets. */
const own: Places<Gateway> = {
  kinds: [...dueHandlers.keys()].filter(kind => !errands.includes(kind)),
  taking: 'own',
  most: 20,
  mostOfOne: 15,
  mostOfSide: 20,
  findSides: findPaymentSides,
}

/** A worker for each. */
export const duePlaces: readonly Places<Gateway>[] = [own, carried, calls, files, fetched, exported]

export async function assemble(surroundings: Surroundings): Promise<Assembly> {
  const { config, keys, clock, random, network, log, tracer, publicUrl, onError } = surroundings
  const database = tracer ? tracedDatabase(surroundings.database, tracer) : surroundings.database
  const directory = await openDirectory(database, keys, clock, onError)
  refuseUnauthenticated(directory, config)
  const numbers = slipNumbers(database.work, config.slips, clock, onError)
  const figures: Figure[] = [...figuresOfPools(database), buildFigure()]
  const batches = countBatches(figures)
  const watch = watchAll([timeCalls(figures, clock), ...(tracer ? [traceCalls(tracer)] : [])])
  const {
    connectors: made,
    methods,
    figures: ofConnectors,
  } = makeConnectors(config, network, clock, random, log, {
    numbers,
    publicUrl,
  })
  figures.push(...ofConnectors)
  const silences = hearSilences(clock)
  const connectors = new Map([...made].map(([name, one]) => [name, hearing(watched(one, watch), silences)]))
  const builtForm = buildForm()
  await keepScripts(database.work, Object.values(builtForm), clock.real())
  const gateway: Gateway = {
    clock,
    random,
    keys,
    directory,
    database,
    lookTogether: lookTogether(clock),
    failures: limitFailures(database.work, { keys, clock }, onError),
    attempts: attemptLine(clock),
    connectors,
    methods,
    egress: config.egress,
    call: network.call,
    silences,
    silentShops: hearSilences(clock),
    sftp: network.sftp ?? sftpOpener(clock, undefined, config.egress, async () => []),
    acquirers: new Map((network.links ?? []).map(one => [one.options.name, one])),
    riskRules: readRiskRules(config.riskRulesFile ?? standardRiskRules),
    cardBrands: config.cardBrands,
    retention: config.retention,
    log,
    figures,
    pendingPayload: event =>
      event.type === 'REGISTRATION' ? announcedRegistration(gateway, event) : announcedPending(gateway, event),
    officeUnderWay: countUnderWay(),
    held: requestsHold(surroundings.heapBytes ?? getHeapStatistics().heap_size_limit),
    count: { ...countPayments(figures), ...countRequests(figures), ...countAttempts(figures) },
    ...(surroundings.lanes ?? {
      insertPayment: tracedWrite(tracer, 'write payment', paymentLane(database.paymentLane, clock, batches('payments'))),
      insertAnswer: tracedWrite(tracer, 'write answer', answerLane(database.answerLane, clock, batches('answers'))),
    }),
    build: buildNumber(),
    builtForm,
    formBuild: () => pinnedBuild(builtForm),
    publicUrl,
    sandbox: config.mode === 'sandbox',
    ...(config.alertMail && { alerts: alertsOf(config.alertMail, figures, network.stopping) }),
    slipAccounts: config.slips,
    channelRefusal: channelRefusal(config),
    ...(config.mode === 'sandbox' && {
      passOn: passAuto,
      paySlip: slip => payInSandbox(gateway, slip, { key: `page ${slip.paymentId}` }),
    }),
  }
  for (const connector of connectors.values()) connector.start?.(lateReplies(gateway), foundReplies(gateway))
  const deliver = deliverer(gateway, attemptLane(database.work, clock, batches('attempts')))
  return {
    gateway,
    deliver,
    sources: [dueWork(gateway, dueHandlers), dueDeliveries(gateway, deliver)],
    async stop() {
      for (const connector of connectors.values()) await connector.stop?.()
      await directory.close()
    },
  }
}

/** One row among those that are written together: its span holds the wait for the batch before. */
const tracedWrite = <Row extends { readonly payment: Payment }, Outcome>(
  tracer: Tracer | undefined,
  name: string,
  write: (row: Row) => Promise<Outcome>,
): ((row: Row) => Promise<Outcome>) =>
  tracer
    ? row => tracer.step({ name, kind: 'client', attributes: { 'tollgate.payment': row.payment.id } }, () => write(row))
    : write

const tracedDatabase = (database: Database, tracer: Tracer): Database => ({
  ...database,
  inChain: (merchantId, rootId, lock, work, inPlace) =>
    // Its root may be a checkout, whose id lets its holder pay.
    tracer.step({ name: 'write in chain', kind: 'client' }, () => database.inChain(merchantId, rootId, lock, work, inPlace)),
})

function alertsOf(
  { server, from, to }: NonNullable<Config['alertMail']>,
  figures: Figure[],
  stopping: AbortSignal = new AbortController().signal,
): Alerts {
  const send = mailer(server)
  return { from, to, send: (mail, signal) => send(mail, AbortSignal.any([signal, stopping])), count: countMails(figures) }
}

function refuseUnauthenticated(directory: Directory, config: Config): void {
  const refusal = channelRefusal(config)
  const refused = directory.channels().flatMap(({ id, name, settings }) => {
    const why = refusal(settings)
    return why === undefined ? [] : [`${name} (${id}): ${why}.`]
  })
  if (refused.length > 0) throw new OperatorError(`MODE=live: ${refused.join(' ')}`)
}
