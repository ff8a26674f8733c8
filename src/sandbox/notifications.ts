// What `tollgate listen` reads in a sandbox: the notifications of an endpoint of kind cursor. POST /sandbox/notifications with entityId and
//   name    the cursor to read; made at the first call, which is owed what happens from then on
//   after   position of the last notification that was taken: everything up to it is acknowledged
//   wait    seconds to wait for something to come, at most 5
// The answer has the endpoint and its secret, because a listener decrypts with it, and the notifications as they would be sent to a webhook.

import type { Recorder } from '../audit/chain.ts'
import { holdsCardData } from '../contract/cardNumbers.ts'
import { peek } from '../contract/form.ts'
import { resultAnswer } from '../http/answer.ts'
import { actorOf, authenticator, readCaller } from '../http/authenticate.ts'
import type { RequestFunction } from '../http/router.ts'
import { readCursor } from '../notifications/deliveries/cursor.ts'
import { fanOut } from '../notifications/deliveries/fanOut.ts'
import { createEndpoint, type Endpoint, secretsOf } from '../notifications/endpoints/endpoint.ts'
import { findEndpointByName, listEndpoints } from '../notifications/endpoints/store.ts'
import type { SandboxParts } from './parts.ts'

const atOnce = 100
const waitMost = 5
/** Cursors of a merchant: each is owed all that happens. */
const cursorsMost = 100

export function readNotifications(parts: SandboxParts): RequestFunction {
  const authenticate = authenticator(parts)
  return async request => {
    const called = await readCaller(parts, authenticate, request, 'listen')
    if (!('caller' in called)) return called
    const { form, caller } = called
    const { entityId, merchantId, entity } = caller
    const wrong = (name: string, message: string) =>
      resultAnswer(parts, request, 400, 'invalidParameter', { entityId, parameterErrors: [{ name, message }] })
    const name = peek(form, 'name') ?? 'listen'
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(name))
      return wrong('name', 'must be 1 to 64 letters, digits, dots, hyphens or underscores')
    if (holdsCardData(name)) return wrong('name', 'must hold no card number')
    const after = peek(form, 'after') ?? '0'
    if (!/^\d{1,15}$/.test(after)) return wrong('after', 'must be a position, 0 for the first time')
    const wait = peek(form, 'wait') ?? '0'
    if (!/^[0-5]$/.test(wait)) return wrong('wait', `must be 0 to ${waitMost} seconds`)
    const channelId = entity.kind === 'channel' ? entity.id : null
    const endpoint = await cursorCalled({ ...parts, by: actorOf(request, caller) }, merchantId, channelId, name)
    if (endpoint === 'tooMany')
      return wrong('name', `is not one of the ${cursorsMost} that the merchant has, and there can be no more`)
    if (!endpoint) return wrong('name', 'is the name of an endpoint that is called, not read, or of another channel')
    const until = parts.clock.real() + Number(wait) * 1000
    await fanOut(parts, { wait: true }) // what was answered before this reading can be read
    let read = await readCursor(parts, endpoint, Number(after), atOnce)
    while (read.length === 0 && parts.clock.real() < until) {
      await parts.clock.sleep(100)
      await fanOut(parts)
      read = await readCursor(parts, endpoint, 0, atOnce)
    }
    return resultAnswer(parts, request, 200, 'requestSucceeded', {
      entityId,
      more: {
        endpointId: endpoint.id,
        secret: secretsOf(parts.keys, endpoint)[0]!,
        notifications: read.map(({ position, id, sequence, headers, body }) => ({
          position: String(position),
          sequence: String(sequence),
          id,
          headers: { ...headers },
          body,
        })),
      },
    })
  }
}

async function cursorCalled(
  parts: SandboxParts & Recorder,
  merchantId: string,
  channelId: string | null,
  name: string,
): Promise<Endpoint | 'tooMany' | undefined> {
  const find = () => findEndpointByName(parts.database.work, merchantId, name)
  let found = await find()
  if (!found) {
    const cursors = await listEndpoints(parts.database.work, [merchantId], 'cursor')
    if (cursors.length >= cursorsMost) return 'tooMany'
    await createEndpoint(parts, { merchantId, kind: 'cursor', channelId, name })
    found = await find() // ours, or that of a twin which was faster
  }
  return found?.kind === 'cursor' && found.channelId === channelId ? found : undefined
}
