// What a gateway proves itself with or is asked for, and that stands in files beside the keys: certificates, the key for SFTP, the token of the figures. They are
// read at the start; one that is another than at the start before leaves a row in the audit.

import { X509Certificate } from 'node:crypto'
import { hostname } from 'node:os'
import type pg from 'pg'
import { type Recorder, record } from '../audit/chain.ts'
import type { Clock } from '../platform/clock.ts'
import { inTransaction } from '../platform/database/connect.ts'
import type { Figure } from '../platform/metrics.ts'
import { keyFingerprint } from '../platform/sftp/server.ts'
import type { ClientTls } from '../platform/tls.ts'
import { type Keys, keyedHashes } from '../vault/keys.ts'
import { readAcquirers } from './acquirers.ts'
import type { Config } from './config.ts'
import { keepCredential, readCredentials } from './store.ts'

export type Credential = {
  /** The setting, and which of several in its file. */
  readonly name: string
  /** SHA-256 of a certificate, or of the public part of a key; of a token a keyed hash, under every lookup key. The newest first. */
  readonly fingerprints: readonly [newest: string, ...older: string[]]
  readonly endsAt: number | null
}

type CertificatePlace = readonly [name: string, tls: Pick<ClientTls, 'cert'> | undefined]

export async function credentialsOf(config: Config, keys: Keys): Promise<readonly Credential[]> {
  const partners = (
    name: string,
    modes: Readonly<Record<string, { readonly tls?: ClientTls } | undefined>>,
  ): CertificatePlace[] => Object.entries(modes).map(([mode, partner]) => [`${name} ${mode}`, partner?.tls])
  const acquirers = config.acquirersFile === undefined ? [] : readAcquirers(config.acquirersFile, config.mode)
  const places: readonly CertificatePlace[] = [
    ['TLS_CERT', config.tls],
    ...partners('WALLET_FILE', config.wallets),
    ...partners('THREE_D_SECURE_FILE', config.directories),
    ...config.redirectMethods.flatMap(({ brand, endpoints }) => partners(`REDIRECT_METHODS_FILE ${brand}`, endpoints)),
    ...acquirers.map(({ name, tls }): CertificatePlace => [`ACQUIRERS_FILE ${name}`, tls as ClientTls | undefined]),
  ]
  const { sftpKey, metricsToken } = config
  const tokens = metricsToken === undefined ? [] : keyedHashes(keys, 'metrics token', metricsToken)
  const [newest, ...older] = tokens.map(hash => hash.toString('hex').slice(0, 16))
  return [
    ...places.flatMap(([name, tls]) => (tls?.cert ? [certificate(name, tls.cert)] : [])),
    ...(sftpKey === undefined ? [] : [credential('SFTP_KEY_FILE', await keyFingerprint(sftpKey))]),
    ...(newest === undefined ? [] : [{ ...credential('METRICS_TOKEN_FILE', newest), fingerprints: [newest, ...older] as const }]),
  ]
}

const credential = (name: string, fingerprint: string, endsAt: number | null = null): Credential => ({
  name,
  fingerprints: [fingerprint],
  endsAt,
})

function certificate(name: string, pem: Buffer): Credential {
  const { fingerprint256, validTo } = new X509Certificate(pem)
  return credential(name, fingerprint256, Date.parse(validTo))
}

/** Called once at a start. Of each machine for itself: certificates of two may differ. */
export const noteCredentials = (pool: pg.Pool, recorder: Recorder, credentials: readonly Credential[]): Promise<void> =>
  inTransaction(pool, async db => {
    const machine = hostname()
    const known = await readCredentials(db, machine)
    for (const { name, fingerprints, endsAt } of credentials) {
      const before = known.get(name)
      const [now] = fingerprints
      if (before !== now) await keepCredential(db, machine, name, now, recorder.clock.real())
      if (before === undefined || fingerprints.includes(before)) continue
      const details = { before, now, ...(endsAt !== null && { endsAt: new Date(endsAt).toISOString() }) }
      await record(db, recorder, [{ action: 'credentialChanged', subject: name, details }])
    }
  })

/** How long each certificate is still good. */
export const figureOfCredentials = (credentials: readonly Credential[], clock: Pick<Clock, 'real'>): Figure => ({
  kind: 'gauge',
  name: 'tollgate_certificate_ends_seconds',
  help: 'How long a certificate of ours is still good, as it was read at the start.',
  across: 'min',
  read: () =>
    credentials.flatMap(({ name, endsAt }) => (endsAt === null ? [] : [[{ credential: name }, (endsAt - clock.real()) / 1000]])),
})
