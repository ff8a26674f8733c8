// Well-known test card numbers that the simulator approves, for documents and tests. Any future expiry and any CVV of the right length will do.

export const testCards: readonly (readonly [brand: string, number: string, cvvDigits: 3 | 4])[] = [
  ['VISA', '4200000000000000', 3],
  ['VISA', '4242424242424242', 3],
  ['VISA', '4111111111111111', 3],
  ['VISAELECTRON', '4917300800000000', 3],
  ['MASTER', '5454545454545454', 3],
  ['MASTER', '5105105105105100', 3],
  ['AMEX', '377777777777770', 4],
  ['DINERS', '30082246403846', 3],
  ['MAESTRO', '6799851000000032', 3],
]
