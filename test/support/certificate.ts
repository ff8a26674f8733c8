// Certificates for localhost, signed by themselves.

import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync } from 'node:fs'
import { join } from 'node:path'

export const hasOpenssl = spawnSync('openssl', ['version']).status === 0

/** Names of PEM files in the folder; nobody else may read the key. */
export function makeCertificate(folder: string, name: string): { cert: string; key: string } {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const asked = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, '-keyout', key, '-out', cert]
  execFileSync('openssl', asked, { stdio: 'ignore' })
  chmodSync(key, 0o600)
  return { cert, key }
}
