// JSON Schemas of the files that operators write, for editors: a file may name its own as `$schema`. The gateway itself checks more.

import { toJsonSchema } from '@valibot/to-json-schema'
import { redirectMethodsSchema } from '../../src/connectors/bankTransfer/redirectMethods.ts'
import { cardBrandsSchema } from '../../src/connectors/cards/brandsFile.ts'
import { directorySchema, walletSchema } from '../../src/connectors/partners.ts'
import { slipsSchema } from '../../src/connectors/slips/accounts.ts'
import { seedSchema } from '../../src/merchants/seed.ts'
import { riskRulesSchema } from '../../src/payments/risk/rules.ts'
import type { Schema } from '../../src/platform/schema.ts'
import { acquirersSchema } from '../../src/start/acquirers.ts'
import { cellsSchema } from '../../src/start/cells.ts'

/** Every kind of file that operators write. */
export const schemas: Readonly<Record<string, readonly [setting: string, schema: Schema]>> = {
  seed: ['SEED_FILE', seedSchema()],
  acquirers: ['ACQUIRERS_FILE', acquirersSchema],
  cells: ['--cells', cellsSchema],
  'card-brands': ['CARD_BRANDS_FILE', cardBrandsSchema],
  'redirect-methods': ['REDIRECT_METHODS_FILE', redirectMethodsSchema],
  'risk-rules': ['RISK_RULES_FILE', riskRulesSchema()],
  slips: ['SLIPS_FILE', slipsSchema],
  'three-d-secure': ['THREE_D_SECURE_FILE', directorySchema],
  wallet: ['WALLET_FILE', walletSchema],
}

/** Name in the project → text. */
export const schemaFiles = (): [name: string, text: string][] =>
  Object.entries(schemas).map(([name, [setting, schema]]) => {
    const made = toJsonSchema(schema, { typeMode: 'input', errorMode: 'ignore', target: 'draft-2020-12' })
    // A map by names of the operator's own may name its schema as well.
    if (!made.properties)
      Object.assign(made, {
        properties: { $schema: { type: 'string' } },
        propertyNames: { anyOf: [made.propertyNames, { const: '$schema' }] },
      })
    return [`docs/reference/schemas/${name}.json`, `${JSON.stringify({ title: setting, ...made }, null, 2)}\n`]
  })
