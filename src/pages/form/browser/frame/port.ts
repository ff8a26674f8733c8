// The frame's end of the talk with the shop's page. The page that answers the greeting must be the one that holds the frame, of an origin that may
// hold it; then everything goes over its port.

import { type FormMessage, greeting, isShopMessage } from '../messages.ts'
import { formData } from './page.ts'

let shopPort: MessagePort | undefined
const asked = new Map<number, (answer: FormMessage) => void>()

export const tellShop = (message: FormMessage): void => shopPort?.postMessage(message)

/** Asks the shop's page whether to go on. Without a shop's page around the form nobody has anything against it. */
export function askShop(message: FormMessage): Promise<FormMessage> {
  const { door } = formData
  if (door === 'page' || !shopPort) return Promise.resolve({ kind: 'answer', go: door === 'page', fields: {} })
  return new Promise(resolve => {
    const number = asked.size + 1
    asked.set(number, resolve)
    tellShop({ ...message, number })
  })
}

export function listenToShop(hear: (message: FormMessage) => void): void {
  if (formData.door === 'page') return
  addEventListener('message', ({ source, origin, data, ports }) => {
    const { origins } = formData
    if (shopPort || source !== parent || data !== greeting || ports.length !== 1) return
    if (origins.length > 0 && !origins.includes(origin)) return
    shopPort = ports[0]!
    shopPort.onmessage = ({ data: message }) => {
      if (!isShopMessage(message)) return
      if (message.kind !== 'answer') return hear(message)
      asked.get(message.number as number)?.(message)
      asked.delete(message.number as number)
    }
  })
  // It says nothing but that a form is here, so that any page may read it.
  parent.postMessage(greeting, '*')
}

/** To the shop, or wherever the payment goes on: the whole window goes, never the frame alone. */
export function leaveTo(url: string): void {
  if (formData.door === 'page') location.assign(url)
  else tellShop({ kind: 'leave', url })
}
