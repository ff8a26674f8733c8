// The shop page's end of the talk with one frame. The frame greets; the answer carries a port, and goes to our own host alone.

import { type FormMessage, greeting, isFrameMessage } from '../messages.ts'

export type Talk = { tell(message: FormMessage): void; end(): void }

/** `hear` is called with what the frame says. A frame that loads anew greets anew. `silent`: it never greeted. */
export function talkTo(
  frame: HTMLIFrameElement,
  host: string,
  hear: (message: FormMessage) => void,
  opened: () => void,
  silent: () => void,
): Talk {
  let port: MessagePort | undefined
  const waiting = setTimeout(silent, 20_000)
  const listen = ({ source, origin, data }: MessageEvent) => {
    if (source !== frame.contentWindow || origin !== host || data !== greeting) return
    clearTimeout(waiting)
    port?.close()
    const { port1, port2 } = new MessageChannel()
    port = port1
    port.onmessage = event => isFrameMessage(event.data) && hear(event.data)
    frame.contentWindow!.postMessage(greeting, host, [port2])
    opened()
  }
  addEventListener('message', listen)
  return {
    tell: message => port?.postMessage(message),
    end() {
      clearTimeout(waiting)
      removeEventListener('message', listen)
      port?.close()
    },
  }
}
