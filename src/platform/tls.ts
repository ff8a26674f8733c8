// TLS as it is spoken here, by the gateway and towards others: 1.2 and 1.3, keys by ECDHE, ciphers that authenticate (AEAD) and no others. And the
// files that a connection with a certificate of our own takes.

import { constants, X509Certificate } from 'node:crypto'
import { resolve } from 'node:path'
import { createSecureContext, DEFAULT_CIPHERS } from 'node:tls'
import { othersMayRead, readPlainFile, whoMayReplace } from './files.ts'
import { filled, type Output, object, optional } from './schema.ts'

/** Those of TLS 1.2. */
export const olderCiphers = ['ECDSA', 'RSA']
  .flatMap(by => [`ECDHE-${by}-AES256-GCM-SHA384`, `ECDHE-${by}-CHACHA20-POLY1305`, `ECDHE-${by}-AES128-GCM-SHA256`])
  .join(':')
const ciphers = `TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:${olderCiphers}`

/** Nobody begins the handshake of a connection anew: TLS 1.2 would let both sides do so as often as they like, at our cost. */
const secureOptions = constants.SSL_OP_NO_RENEGOTIATION

const curves = 'X25519:P-256:X448:P-384:P-521'
/** From OpenSSL 3.5 on also against what quantum computers may read one day; keys of the two that begin with a star are offered at once. */
const curvesOfToday = `*X25519MLKEM768:*${curves}`

/**
 * Keys are made with these and no others. TLS 1.3 has groups of DHE too, which are chosen by the other side: older OpenSSL offers all, and one of 8192 bits
 * costs us fifty times as much.
 */
const ecdhCurve = isKnown(curvesOfToday) ? curvesOfToday : curves

/** For callers, of whom one of strangers can begin as many as it likes: all speak these two, and a key of another costs five to fifteen times as much. */
export const servedCurves = 'X25519:P-256'

export const spokenTls = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3', ciphers, ecdhCurve, secureOptions } as const
export const servedTls = { ...spokenTls, ecdhCurve: ecdhCurve.replace(curves, servedCurves) } as const

/**
 * For servers of merchants, of whatever age: what Node speaks, but for DHE. There the other side chooses the group, and one of ten thousand bits costs us a second of
 * the event loop, and it nothing.
 */
export const receiversTls = { ciphers: `${DEFAULT_CIPHERS}:!kDHE`, ecdhCurve, secureOptions } as const

/** Names of PEM files: whom we trust, and who we are when the other side asks. */
export const tlsFiles = object({
  ca: optional(filled),
  cert: optional(filled),
  key: optional(filled),
  serverName: optional(filled),
})

export type ClientTls = { readonly ca?: Buffer; readonly cert?: Buffer; readonly key?: Buffer; readonly servername?: string }

function isKnown(groups: string): boolean {
  try {
    createSecureContext({ ecdhCurve: groups })
    return true
  } catch {
    return false
  }
}

/** Can TLS be spoken with them: PEM, and a key that belongs to its certificate? */
export function isUsable(given: ClientTls): boolean {
  try {
    createSecureContext({ ...spokenTls, ...given })
    return true
  } catch {
    return false
  }
}

/**
 * All that it begins must be whole: OpenSSL complains of no text of authorities, and where it holds none nobody is trusted, which only shows when somebody is called. As
 * there, one begins with its line: what stands behind `#` or a quotation mark does not count.
 */
function holdsCertificates(pem: Buffer): boolean {
  const label = '(?:X509 |TRUSTED )?CERTIFICATE-----'
  const text = pem.toString('utf8').replace(/^\uFEFF/, '')
  const found = text.match(new RegExp(`^-----BEGIN ${label}(?:[^-]*-----END ${label})?`, 'gm'))
  try {
    return found?.map(one => new X509Certificate(one)) !== undefined
  } catch {
    return false
  }
}

/** Names are relative to the folder of the file that names them. `strict`: nobody else may replace them. `fail` is told what is wrong with which. */
export function readTlsFiles(
  files: Output<typeof tlsFiles>,
  folder: string,
  strict: boolean,
  fail: (mistake: string) => void,
): ClientTls {
  const read = (name: 'ca' | 'cert' | 'key'): { [name: string]: Buffer } => {
    if (files[name] === undefined) return {}
    const path = resolve(folder, files[name])
    if (name === 'key' && othersMayRead(path)) fail(`tls.key names ${path}, which others may read: set its mode to 0600`)
    const who = strict ? whoMayReplace(path) : undefined
    if (who !== undefined) fail(`tls.${name} names ${path}, which ${who}`)
    try {
      return { [name]: readPlainFile(path) }
    } catch {
      fail(`tls.${name} names ${path}, which cannot be read`)
      return {}
    }
  }
  if ((files.cert === undefined) !== (files.key === undefined)) fail('tls.cert and tls.key are needed together')
  const given: ClientTls = { ...read('ca'), ...read('cert'), ...read('key') }
  if (given.ca !== undefined && !holdsCertificates(given.ca))
    fail(`tls.ca names ${resolve(folder, files.ca!)}, which holds no certificate, or one that is cut short: PEM is wanted`)
  if (!isUsable(given)) fail('tls names files that hold no certificates, or a key of another one')
  return {
    ...given,
    ...(files.serverName !== undefined && { servername: files.serverName }),
  }
}
