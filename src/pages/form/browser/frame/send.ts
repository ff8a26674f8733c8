// The pressed button: one request at a time, and what becomes of it.

export type PayAnswer = {
  readonly result: {
    readonly code: string
    readonly description: string
    readonly parameterErrors?: readonly { readonly name: string }[]
  }
  readonly redirect?: { readonly url: string }
  /** Complete, when the shopper is to go back to the shop. */
  readonly shopperResultUrl?: string
}

/** Undefined when the connection broke: then nobody here knows what became of it. */
export async function sendPayment(path: string, fields: Readonly<Record<string, string>>): Promise<PayAnswer | undefined> {
  try {
    const response = await fetch(path, {
      method: 'POST',
      headers: { Accept: 'application/json' },
      body: new URLSearchParams(fields),
      signal: AbortSignal.timeout(90_000),
    })
    const answer = (await response.json()) as PayAnswer
    return typeof answer.result?.code === 'string' ? answer : undefined
  } catch {
    return undefined
  }
}

/** How the form stands by now, and what a shopper is told about a result; nothing of a success. */
export type FormState = { readonly state: 'open' | 'over'; readonly advice?: string; readonly text?: string }

export async function askState(path: string, code = ''): Promise<FormState | undefined> {
  try {
    const response = await fetch(`${path}&code=${code}`, {
      headers: { Accept: 'application/json' },
      signal: AbortSignal.timeout(10_000),
    })
    return (await response.json()) as FormState
  } catch {
    return undefined
  }
}

/** Asks again and again, for half a minute. */
export async function stateAfterLoss(path: string): Promise<FormState | undefined> {
  for (let tries = 0; tries < 10; tries++) {
    await new Promise(resolve => setTimeout(resolve, tries === 0 ? 500 : 3000))
    const found = await askState(path)
    if (found) return found
  }
  return undefined
}

/** What 3-D Secure wants to know of the browser. */
export const browserFields = (): Record<string, string> => ({
  'customer.browser.language': navigator.language.slice(0, 8).replace(/@.*/, ''),
  'customer.browser.screenHeight': String(screen.height),
  'customer.browser.screenWidth': String(screen.width),
  'customer.browser.screenColorDepth': String(screen.colorDepth),
  'customer.browser.timezone': String(new Date(performance.timeOrigin).getTimezoneOffset()),
  'customer.browser.javaEnabled': 'false',
  'customer.browser.javascriptEnabled': 'true',
})
