// Shops that each pay one payment after the other through one address, and keep what they were answered. What a client may repeat is repeated with the same
// Idempotency-Key until it is answered; anything else that is no approval counts as failed.

import { randomUUID } from 'node:crypto'
import { wait } from '../highAvailability/programs.ts'
import type { Shop } from './shops.ts'

export type ShopResult = {
  readonly shop: Shop
  /** Id of each payment that was approved, by its key. */
  readonly approved: ReadonlyMap<string, string>
  /** Keys whose payment was answered as ended otherwise: its answer was lost with the process, and it was taken back. */
  readonly takenBack: readonly string[]
  /** Attempts that were not answered with an outcome, by what they were instead, since the counts were last taken. */
  takeRefused(): Readonly<Record<string, number>>
  /** Answers that no client may repeat. */
  readonly failed: readonly string[]
  /** Seconds: the longest time between two approvals since it was last taken. */
  takeLongestPause(): number
}

const card = {
  ...{ paymentBrand: 'VISA', 'card.number': '4200000000000000', 'card.holder': 'Jane Jones', 'card.cvv': '123' },
  ...{ 'card.expiryMonth': '05', 'card.expiryYear': '2034', amount: '1.00', currency: 'EUR', paymentType: 'DB' },
}

/** Each shop thinks for so many milliseconds between two payments. */
export function startShops(url: string, shops: readonly Shop[], thinkMilliseconds: number) {
  let paying = true
  const paid = shops.map(shop => openShop(url, shop))
  const ended = Promise.all(
    paid.map(async ({ pay }, at) => {
      await wait((at * thinkMilliseconds) / shops.length)
      while (paying) {
        await pay()
        await wait(thinkMilliseconds)
      }
    }),
  )
  return {
    results: paid.map(({ result }): ShopResult => result),
    async stop(): Promise<void> {
      paying = false
      await ended
    },
  }
}

function openShop(url: string, shop: Shop) {
  const approved = new Map<string, string>()
  const takenBack: string[] = []
  const failed: string[] = []
  let refused: Record<string, number> = {}
  let last = performance.now()
  let longest = 0

  const attempt = async (key: string): Promise<{ readonly id?: string; readonly why: string; readonly mayRepeat: boolean }> => {
    try {
      const answer = await fetch(`${url}/v1/payments`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${shop.token}`, 'Idempotency-Key': key },
        body: new URLSearchParams({ entityId: shop.channelId, merchantTransactionId: key, ...card }),
        signal: AbortSignal.timeout(60_000),
      })
      const { id, result } = (await answer.json()) as { id?: string; result: { code: string; description: string } }
      const why = `${answer.status}, ${result.description.split(':')[0]}`
      if (result.code === '000.100.110') return { id: id!, why, mayRepeat: false }
      if (result.code === '900.100.301') return { why: 'taken back', mayRepeat: false }
      return { why, mayRepeat: [502, 503, 504].includes(answer.status) || result.code === '000.200.000' }
    } catch (error) {
      const { cause, name } = error as { cause?: { code?: string }; name: string }
      return { why: cause?.code ?? name, mayRepeat: true }
    }
  }

  async function pay(): Promise<void> {
    const key = randomUUID().replace(/\d/g, digit => 'ghijklmnop'[Number(digit)]!) // digits may pass for a card's, and are masked then
    for (;;) {
      const { id, why, mayRepeat } = await attempt(key)
      if (id !== undefined) {
        approved.set(key, id)
        const now = performance.now()
        longest = Math.max(longest, now - last)
        last = now
        return
      }
      if (why === 'taken back') return void takenBack.push(key)
      refused[why] = (refused[why] ?? 0) + 1
      if (!mayRepeat) return void failed.push(why)
      await wait(100)
    }
  }

  const result: ShopResult = {
    shop,
    approved,
    takenBack,
    failed,
    takeRefused() {
      const taken = refused
      refused = {}
      return taken
    },
    takeLongestPause() {
      const taken = Math.max(longest, performance.now() - last)
      longest = 0
      return taken / 1000
    },
  }
  return { result, pay }
}
