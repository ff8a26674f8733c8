// Shops that pay without a pause, each payment with an Idempotency-Key, and keep what they were answered. What a client may repeat is repeated, at
// another gateway where there is one; everything else that is no approval counts as failed.

import { randomUUID } from 'node:crypto'
import { wait } from './programs.ts'

export type Account = { readonly entityId: string; readonly accessToken: string }
export type LoadResult = {
  /** Ids of payments that were answered as approved. */
  readonly approved: readonly string[]
  /** Answers that say how a payment ended, if not well: its answer was lost with the database, and it was taken back. */
  readonly takenBack: number
  /** Answers and errors that no client may repeat, by what they were. */
  readonly failed: Readonly<Record<string, number>>
  /** What was repeated with the same key, by why. */
  readonly repeated: Readonly<Record<string, number>>
  /** Milliseconds: the longest time between two approvals. */
  readonly longestPause: number
  readonly seconds: number
}

const card = {
  ...{ paymentBrand: 'VISA', 'card.number': '4200000000000000', 'card.holder': 'Jane Jones', 'card.cvv': '123' },
  ...{ 'card.expiryMonth': '05', 'card.expiryYear': '2034', amount: '1.00', currency: 'EUR', paymentType: 'DB' },
}

export function startLoad(urls: readonly string[], { entityId, accessToken }: Account, shops: number) {
  const approved: string[] = []
  const failed: Record<string, number> = {}
  const repeated: Record<string, number> = {}
  let takenBack = 0
  const began = Date.now()
  let last = began
  let longestPause = 0
  let paying = true
  const count = (counts: Record<string, number>, what: string) => {
    counts[what] = (counts[what] ?? 0) + 1
  }
  const shop = async (at: number): Promise<void> => {
    for (let turn = at; paying; ) {
      const key = randomUUID()
      for (let isAnswered = false; !isAnswered; turn++) {
        const outcome = await attempt(urls[turn % urls.length]!, key)
        if ('id' in outcome) {
          approved.push(outcome.id)
          longestPause = Math.max(longestPause, Date.now() - last)
          last = Date.now()
          isAnswered = true
        } else if (outcome.why.endsWith('900.100.301')) {
          takenBack++
          isAnswered = true
        } else if (outcome.mayRepeat) {
          count(repeated, outcome.why)
          await wait(100)
        } else {
          count(failed, outcome.why)
          isAnswered = true
        }
      }
      turn--
    }
  }
  const attempt = async (url: string, key: string): Promise<{ id: string } | { why: string; mayRepeat: boolean }> => {
    try {
      const answer = await fetch(`${url}/v1/payments`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${accessToken}`, 'Idempotency-Key': key },
        body: new URLSearchParams({ entityId, merchantTransactionId: key, ...card }),
        signal: AbortSignal.timeout(60_000),
      })
      const { id, result } = (await answer.json()) as { id: string; result: { code: string } }
      if (result.code === '000.100.110') return { id }
      // Not written, or written and not known yet: the same key asks for the same payment.
      return { why: `${answer.status} ${result.code}`, mayRepeat: answer.status === 503 || result.code === '000.200.000' }
    } catch (error) {
      const { cause, name } = error as { cause?: { code?: string }; name: string }
      return { why: cause?.code ?? name, mayRepeat: true }
    }
  }
  const shopping = Promise.all(Array.from({ length: shops }, (_, at) => shop(at)))
  return {
    approvals: () => approved.length,
    async stop(): Promise<LoadResult> {
      paying = false
      await shopping
      return { approved, takenBack, failed, repeated, longestPause, seconds: (Date.now() - began) / 1000 }
    },
  }
}
