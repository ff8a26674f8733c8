// Every scenario file, played against a gateway of its own, or against BASE_URL.

import { readdirSync } from 'node:fs'
import { after, before, describe, it } from 'node:test'
import { sandbox, type TestGateway, testGateway } from './support/gateway.ts'
import { play, readScenarios, type Target } from './support/scenario.ts'

const folder = new URL('./scenarios/', import.meta.url)
let gateway: TestGateway | undefined
let target: Target

const card = (brand: string, number: string, cvv: string) =>
  `paymentBrand=${brand} card.number=${number} card.holder="Jane Jones" card.expiryMonth=05 card.expiryYear=2034 card.cvv=${cvv}`

before(async () => {
  const given = process.env.BASE_URL
  if (given === undefined) gateway = await testGateway()
  const accessToken = process.env.ACCESS_TOKEN ?? sandbox.accessToken
  const entityId = process.env.ENTITY_ID ?? sandbox.entityId
  const lenientEntityId = process.env.LENIENT_ENTITY_ID ?? sandbox.lenientEntityId
  target = {
    baseUrl: given ?? gateway!.baseUrl,
    accessToken,
    words: {
      channel: `entityId=${entityId}`,
      lenient: `entityId=${lenientEntityId}`,
      entityId,
      lenientEntityId,
      merchantId: sandbox.merchantId,
      divisionId: sandbox.divisionId,
      userId: sandbox.userId,
      password: sandbox.password,
      accessToken,
      visa: card('VISA', '4200000000000000', '123'),
      challenge: `${card('VISA', '4200000000000018', '123')} customParameters[3DS2_enrolled]=true`,
      master: card('MASTER', '5454545454545454', '123'),
      amex: card('AMEX', '377777777777770', '1234'),
      expiry: 'card.expiryMonth=05 card.expiryYear=2034',
      run: Math.random().toString(36).slice(2, 10).padEnd(8, 'x'),
    },
  }
})
after(() => gateway?.stop())

for (const file of readdirSync(folder)
  .filter(name => name.endsWith('.http'))
  .sort()) {
  describe(file, () => {
    for (const scenario of readScenarios(new URL(file, folder).pathname)) {
      it(`${scenario.title} (${file}:${scenario.line})`, () => play(scenario, target))
    }
  })
}
