// What a browser says of a passkey, checked as WebAuthn (W3C, level 3, 7.1 and 7.2) wants it, for keys without attestation: of whom they are is known because
// somebody who had just proven both factors made them. Pure.

import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'

/** Where we are, as browsers see it. */
export type RelyingParty = { readonly id: string; readonly origin: string }

/** As `toJSON` of a browser's credential writes it; all of it base64url but the algorithm. */
export type SentCredential = {
  readonly id: string
  readonly response: Readonly<Record<string, unknown>>
}
export type MadePasskey = {
  readonly id: string
  readonly algorithm: number
  /** SPKI. */
  readonly publicKey: Buffer
  readonly counter: number
}

/** Algorithms of COSE with the keys that they sign with, the one that we like best first. */
const algorithms: Readonly<Record<number, (key: KeyObject) => boolean>> = {
  [-7]: key => key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1',
  [-8]: key => key.asymmetricKeyType === 'ed25519',
  [-257]: key => key.asymmetricKeyType === 'rsa' && key.asymmetricKeyDetails!.modulusLength! >= 2048,
}
export const algorithmsTaken: readonly number[] = [-7, -8, -257]

const flag = { present: 0x01, verified: 0x04, attested: 0x40 } as const
/** Hash of the party, flags, counter; then, of a new key, what makes it and its id. */
const fixedLength = 37
const idLengthAt = 53

export const isPasskeyId = (text: string): boolean => /^[A-Za-z0-9_-]{16,1364}$/.test(text)

/** Of text that somebody sent; undefined when it is no credential. */
export function readCredential(text: string): SentCredential | undefined {
  let sent: unknown
  try {
    sent = JSON.parse(text)
  } catch {
    return undefined
  }
  const { id, response } = Object(sent) as Record<string, unknown>
  if (typeof id !== 'string' || !isPasskeyId(id)) return undefined
  return typeof response === 'object' && response !== null ? { id, response: response as SentCredential['response'] } : undefined
}

/** The challenge that it answers, whatever else is wrong with it: whether it is ours is for others to say. */
export function challengeOf(credential: SentCredential): string {
  const challenge = clientData(credential)?.challenge
  return typeof challenge === 'string' ? challenge : ''
}

/** A new key, with its device unlocked by its owner; undefined when anything is not as it must be. */
export function readMade(credential: SentCredential, challenge: string, party: RelyingParty): MadePasskey | undefined {
  const data = bytesOf(credential, 'authenticatorData')
  const spki = bytesOf(credential, 'publicKey')
  const algorithm = credential.response.publicKeyAlgorithm
  if (!spki || typeof algorithm !== 'number' || !algorithmsTaken.includes(algorithm)) return undefined
  if (!data || !isSaid(credential, 'webauthn.create', challenge, party) || !isUnlocked(data, party)) return undefined
  if ((data[32]! & flag.attested) === 0 || data.length < idLengthAt + 2) return undefined
  const length = data.readUInt16BE(idLengthAt)
  const id = data.subarray(idLengthAt + 2, idLengthAt + 2 + length).toString('base64url')
  if (id !== credential.id || !algorithms[algorithm]!(keyOf(spki) ?? ({} as KeyObject))) return undefined
  return { id, algorithm, publicKey: spki, counter: data.readUInt32BE(33) }
}

/** Its counter now when the key has signed this challenge, its device unlocked by its owner; undefined else. */
export function readSigned(
  credential: SentCredential,
  challenge: string,
  party: RelyingParty,
  { id, algorithm, publicKey, counter }: MadePasskey,
): number | undefined {
  const data = bytesOf(credential, 'authenticatorData')
  const signature = bytesOf(credential, 'signature')
  const said = bytesOf(credential, 'clientDataJSON')
  if (!data || !signature || !said || credential.id !== id) return undefined
  if (!isSaid(credential, 'webauthn.get', challenge, party) || !isUnlocked(data, party)) return undefined
  const signed = Buffer.concat([data, createHash('sha256').update(said).digest()])
  if (!verify(algorithm === -8 ? null : 'sha256', signed, keyOf(publicKey)!, signature)) return undefined
  const now = data.readUInt32BE(33)
  // A device that counts never says a number twice: another has a copy of its key.
  return now > counter || (now === 0 && counter === 0) ? now : undefined
}

function isSaid(credential: SentCredential, type: string, challenge: string, { origin }: RelyingParty): boolean {
  const said = clientData(credential)
  return said?.type === type && said.challenge === challenge && said.origin === origin && said.crossOrigin !== true
}

/** For us, with somebody there, who was known by the device: its PIN, a finger, a face. */
const isUnlocked = (data: Buffer, { id }: RelyingParty): boolean =>
  data.length >= fixedLength &&
  data.subarray(0, 32).equals(createHash('sha256').update(id).digest()) &&
  (data[32]! & flag.present) !== 0 &&
  (data[32]! & flag.verified) !== 0

function clientData(credential: SentCredential): Record<string, unknown> | undefined {
  try {
    return Object(JSON.parse(bytesOf(credential, 'clientDataJSON')?.toString('utf8') ?? '')) as Record<string, unknown>
  } catch {
    return undefined
  }
}

const bytesMost = 8192

function bytesOf({ response }: SentCredential, name: string): Buffer | undefined {
  const text = response[name]
  return typeof text === 'string' && text.length <= bytesMost && /^[A-Za-z0-9_-]+$/.test(text)
    ? Buffer.from(text, 'base64url')
    : undefined
}

function keyOf(spki: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}
