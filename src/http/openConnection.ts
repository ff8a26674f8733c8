// A connection as its end at ours is seen: what is under way on it, what it holds, and whose place it has.

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Crowd, Crowds } from './crowds.ts'
import type { CallerNetwork } from './networks.ts'
import { isProxys, type NetworkNames } from './rates.ts'

/** The places of one kind, and who has them. */
export type PlacesOfKind = { readonly most: number; readonly crowds: Crowds<OpenConnection> }
export type ConnectionPlace = { readonly among: PlacesOfKind; readonly crowds: readonly Crowd<OpenConnection>[] }

export type OpenConnection = {
  socket: Socket
  /** Of its address: of trusted proxies those of all their callers. */
  readonly names: NetworkNames
  place: ConnectionPlace
  /** Who asked last. */
  caller: CallerNetwork<OpenConnection>
  /** Bytes of requests that have not begun, and since when there are any. */
  kept: number
  keptSince: number
  /** Bytes of answers that are made, and since when it has taken none of them. */
  untaken: number
  untakenSince: number
  /** Whose answers are not gone. */
  readonly unfinished: Map<IncomingMessage, HeldRequest>
  /** Of these, those that came without a token. */
  tokenless: number
  /** Of these, those of merchants' servers whose answers are not made, or the next to be taken. */
  serving: number
  requests: number
  /** Of TLS since it was answered last, by what they lack. */
  pieces: number
  idleSince: number
  stuckSince: number | undefined
  endsBefore: number | undefined
}

export type HeldRequest = {
  readonly outgoing: ServerResponse
  kept: number
  untaken: number
  body?: string
  /** It came with a token by chance, of whomever. */
  readonly hasToken: boolean
  /** A merchant's server waits for it: its token was found. */
  isServers?: true
  isCut?: true
  leave?: () => void
}

/** A request of which nothing more can come never ends: no answer is owed to it before it has come whole, or was cut. */
export function isOwed({ unfinished }: OpenConnection): boolean {
  for (const [{ complete }, { isCut }] of unfinished) if (complete || isCut) return true
  return false
}

/** Nothing has begun there that a merchant's server waits for. */
export const isSpared = ({ serving }: OpenConnection): boolean => serving === 0

/** Somebody waits for an answer there, and takes it. */
export const isWaitedFor = (one: OpenConnection): boolean => isOwed(one) && one.stuckSince === undefined

/** A trusted proxy's: many callers ask on it. */
export const isOfProxy = ({ names }: OpenConnection): boolean => isProxys(names)
