// What the shop's page and the form's frame say to each other, over a port that is handed over once. Card data is in no message.
// A page keeps the build that it began with while the frame is always the present one: kinds and fields may be added, never changed.

type MessageShape = Readonly<Record<string, 'string' | 'number' | 'boolean' | 'texts' | 'list'>>

/** From the frame to the shop's page. `container`: card, registration, or a brand that is no card. */
const fromFrame: Readonly<Record<string, MessageShape>> = {
  ready: { container: 'string', method: 'string', cards: 'list' },
  height: { pixels: 'number' },
  focus: { field: 'string' },
  blur: { field: 'string', valid: 'boolean' },
  brands: { brands: 'list', active: 'string' },
  before: { number: 'number', container: 'string', method: 'string', brand: 'string' },
  sent: { container: 'string' },
  leave: { url: 'string' },
  failed: { name: 'string', brand: 'string', text: 'string' },
}

/** From the shop's page to the frame. */
const fromShop: Readonly<Record<string, MessageShape>> = {
  options: { flags: 'texts', texts: 'texts', variables: 'texts', shopperResultUrl: 'string' },
  answer: { number: 'number', go: 'boolean', fields: 'texts' },
  pay: { container: 'string' },
  brand: { brand: 'string' },
}

export type FormMessage = { readonly kind: string } & Readonly<Record<string, unknown>>

const fits: Readonly<Record<MessageShape[string], (value: unknown) => boolean>> = {
  string: value => typeof value === 'string' && value.length <= 4096,
  number: value => typeof value === 'number' && Number.isFinite(value),
  boolean: value => typeof value === 'boolean',
  list: value => Array.isArray(value) && value.length <= 100 && value.every(fits.string),
  texts: value => typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(fits.string),
}

function isShaped(shapes: Readonly<Record<string, MessageShape>>, value: unknown): value is FormMessage {
  if (typeof value !== 'object' || value === null) return false
  const message = value as FormMessage
  if (typeof message.kind !== 'string' || !Object.hasOwn(shapes, message.kind)) return false
  return Object.entries(shapes[message.kind]!).every(([name, type]) => fits[type](message[name]))
}

export const isFrameMessage = (value: unknown): value is FormMessage => isShaped(fromFrame, value)
export const isShopMessage = (value: unknown): value is FormMessage => isShaped(fromShop, value)

/** The first words, which go by window: the frame's greeting, and the shop page's answer with the port. */
export const greeting = 'tollgate form 1'
