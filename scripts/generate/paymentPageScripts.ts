// docs/reference/payment-page-scripts.json: every script that our payment pages run, with what it is for and its hash (PCI DSS 6.4.3 and 11.6.1).

import { buildForm } from '../../src/pages/form/build.ts'

const purposes = {
  widget: {
    runsOn: "the shop's page",
    purpose:
      "puts the form's frame into the shop's page, passes on its options and callbacks, and sends the browser on; it never sees card data",
  },
  form: {
    runsOn: "the form's frame and /pay",
    purpose: 'reads what the shopper types, checks it, and sends it to the gateway that served it; it loads nothing else',
  },
} as const

export function paymentPageScripts(): string {
  const built = buildForm()
  const scripts = (['widget', 'form'] as const).map(kind => {
    const { name, content, hash, integrity } = built[kind]
    return {
      name,
      path: kind === 'widget' ? '/v1/paymentWidgets.js?checkoutId=…' : `/v1/static/${hash}/${name}`,
      ...purposes[kind],
      author: 'this project, src/pages/form/browser',
      bytes: Buffer.byteLength(content),
      build: hash,
      integrity,
    }
  })
  return `${JSON.stringify({ generatedBy: 'npm run generate', scripts }, null, 2)}\n`
}
