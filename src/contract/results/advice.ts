// What a result code means for whoever receives it: how the request ended, who must act and whether to try again.
// The groups are the platform's own, by which clients judge a code too; in each table the first row that fits decides.

export type Outcome = 'success' | 'review' | 'pending' | 'rejected' | 'invalid' | 'error'
export type WhoMustAct = 'nobody' | 'shopper' | 'merchant' | 'developer' | 'operator' | 'issuer' | 'acquirer'
export type Retry = 'no' | 'later' | 'afterChange' | 'never'

type Rows<Value> = readonly (readonly [RegExp, Value])[]

/**
 * How the request ended. `success`, `review` (succeeded, but someone should look) and `pending` are the platform's groups.
 * `rejected`: bank, issuer, risk check, 3-D Secure or shopper said no. `invalid`: the request, what it refers to or the
 * configuration is wrong. `error`: communication or a system failed; this is also the answer for a code outside the list.
 */
export const outcome = (code: string): Outcome => first(outcomes, code)

/** Who must act so that it goes on. `operator` is whoever runs the gateway, `developer` writes the merchant's requests. */
export const actor = (code: string): WhoMustAct => exceptions.get(code)?.[0] ?? first(actors, code)

/**
 * Whether to try again. `no`: there is nothing to retry, it is done, under way or must be looked up first.
 * `later`: the same request may succeed later. `afterChange`: correct the data, the configuration or the authentication first.
 * `never`: do not retry with this card or this request, card schemes charge for it.
 */
export const retry = (code: string): Retry => exceptions.get(code)?.[1] ?? first(retries, code)

const outcomes: Rows<Outcome> = [
  [/^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)/,      'success'],
  [/^000\.500/,                                                   'success'],  // in no group; both its codes report a success
  [/^(000\.400\.0[^3]|000\.400\.100)/,                            'review'],
  [/^000\.200/,                                                   'pending'],  // for about half an hour
  [/^(800\.400\.5|100\.400\.500)/,                                'pending'],  // for days
  [/^000\.100\.2/,                                                'rejected'], // chargebacks: the bank takes the money back
  [/^(000\.400\.[1][0-9][1-9]|000\.400\.2|100\.390|800\.400\.2)/, 'rejected'], // 3-D Secure
  [/^(900\.|000\.400\.030)/,                                      'error'],    // communication
  [/^(800\.[56]|999\.|600\.1|800\.800\.[84])/,                    'error'],    // system
  [/^(800\.[17]00|800\.800\.[123]|300\.100\.100)/,                'rejected'], // bank, and its soft decline
  [/^100\.39[765]/,                                               'rejected'], // shopper or bank ended a redirect
  [/^(100\.400\.[0-3]|100\.3[78]0\.1(00|1)|100\.380\.[45])/,      'rejected'], // risk check
  [/^(800\.[32]|100\.100\.701)/,                                  'rejected'], // blacklist
  [/^(800\.1[123456]0|800\.400\.1)/,                              'rejected'], // velocity, address check
  [/^(100\.|200\.|500\.|600\.[23]|700\.|800\.121|800\.900)/,      'invalid'],
  [/^/,                                                           'error'],
]

const actors: Rows<WhoMustAct> = [
  [/^000\.100\.2/,                                                         'merchant'],  // contests the chargeback or accepts it
  [/^000\.400\.(060|070|091|1[12]0)/,                                      'nobody'],
  [/^000\.400\.(0|100)/,                                                   'merchant'],  // reviews by hand
  [/^000\.400\.(104|2)/,                                                   'operator'],
  [/^000\.400\.(106|113)/,                                                 'issuer'],
  [/^000\.400\.112/,                                                       'developer'],
  [/^000\.400\.1/,                                                         'shopper'],
  [/^000\./,                                                               'nobody'],

  [/^100\.100\.(100|104|50)/,                                              'developer'],
  [/^100\.(100|200)/,                                                      'shopper'],
  [/^100\.(150\.206|211\.104|350\.400)/,                                   'shopper'],
  [/^100\.(350\.31[12458]|360\.400|370\.111|380\.501)/,                    'operator'],
  [/^100\.3[78]0\.1(00|1)/,                                                'merchant'],  // risk check said no: offer another method
  [/^100\.(380\.4|39[0567])/,                                              'shopper'],   // but see the exceptions
  [/^100\.400\.(007|051|071|091|130|139|14[3-69]|15[0-2]|312|32[23457])/,  'operator'],  // risk system or its configuration
  [/^100\.400\.(0[46-8]3|123|243|304|311|31[34568]|32[018])/,              'developer'],
  [/^100\.400\.(00[015]|041|064|08[67]|12[12]|30[12356]|309|310|317|326)/, 'shopper'],
  [/^100\.400\.5/,                                                         'nobody'],
  [/^100\.400/,                                                            'merchant'],
  [/^100\.550\.31/,                                                        'shopper'],
  [/^100\.([78]00|900\.[1-4])/,                                            'shopper'],   // who typed name, address and contact
  [/^100\./,                                                               'developer'],

  [/^200\./,                                                               'developer'],
  [/^300\./,                                                               'shopper'],   // authenticates
  [/^600\.200\.(100|3|400|6|701|8)/,                                       'developer'],
  [/^[56]00\./,                                                            'operator'],
  [/^700\.(300\.[3-8]|400\.101|600)/,                                      'merchant'],
  [/^700\.601/,                                                            'shopper'],   // another card or method
  [/^700\./,                                                               'developer'],

  [/^800\.100\.(100|152|16[08]|17[0-26])/,                                 'issuer'],
  [/^800\.100\.(154|156|167|174|177|19[69])/,                              'developer'],
  [/^800\.100\.(169|173|175|190)/,                                         'operator'],
  [/^800\.100\.(164|191)/,                                                 'acquirer'],
  [/^800\.100\.(150|158|206|207|50)/,                                      'merchant'],
  [/^800\.100\.30[12]/,                                                    'issuer'],
  [/^800\.100\.3(00|1[135]|24)/,                                           'developer'],
  [/^800\.100\.3(17|30)/,                                                  'shopper'],
  [/^800\.100\.3/,                                                         'operator'],
  [/^800\.1(00|50)/,                                                       'shopper'],
  [/^800\.(110|120\.100|130|900)/,                                         'developer'],
  [/^800\.121/,                                                            'operator'],
  [/^800\.(1|300\.[1-4])/,                                                 'merchant'],  // velocity and blacklist are the merchant's settings
  [/^800\.400\.5/,                                                         'nobody'],
  [/^800\.(500\.100|800\.400)/,                                            'acquirer'],
  [/^800\.(500|800\.8)/,                                                   'operator'],
  [/^800\.(600|700\.100)/,                                                 'nobody'],    // waiting is enough
  [/^800\./,                                                               'shopper'],

  [/^900\.100\.(20[345]|310)/,                                             'operator'],
  [/^(900\.100|999\.999\.999)/,                                            'acquirer'],
  [/^900\.300/,                                                            'shopper'],
  [/^/,                                                                    'operator'],
]

const retries: Rows<Retry> = [
  [/^000\.400\.(103|107|2)/,                                           'later'],
  [/^000\.400\.1(0[1-9]|1[1-3])/,                                      'afterChange'],
  [/^000\./,                                                           'no'],

  [/^100\.350\.(10|302|317)/,                                          'no'],
  [/^100\.(350\.315|370\.111|380\.501)/,                               'later'],
  [/^100\.3[78]0\.100/,                                                'never'],       // risk check
  [/^100\.390\.11[03]/,                                                'afterChange'],
  [/^100\.390\.118/,                                                   'never'],       // fraud check
  [/^100\.(380\.4|390)/,                                               'later'],       // with a fresh authentication
  [/^100\.395\.1/,                                                     'afterChange'],
  [/^100\.39[567]/,                                                    'later'],       // the shopper may begin again
  [/^100\.400\.(007|051|071|091|130|139|14[3-6]|149|15[0-2]|32[457])/, 'later'],       // risk system
  [/^100\.400\.(00[015]|041|0[468]3|064|08[67]|12[23]|243)/,           'afterChange'],
  [/^100\.400\.(30[1-9]|31[0-8]|32[0-368])/,                           'afterChange'],
  [/^100\.400\.(030|044|045|065|085|14[18]|241|5)/,                    'no'],          // a person or another system decides
  [/^100\.400/,                                                        'never'],
  [/^100\./,                                                           'afterChange'],

  [/^200\.(200|300\.405)/,                                             'no'],          // it exists already
  [/^500\.100\.40[13]|^600\.1/,                                        'later'],
  [/^700\.(300\.[356]|400\.4[12])/,                                    'no'],          // done already
  [/^700\.(300\.[1247]|300\.800|400\.(101|402|562)|500\.00[124])/,     'never'],
  [/^700\.600/,                                                        'later'],       // after the days that the description names
  [/^[23567]00\./,                                                     'afterChange'],

  // Card declines as the card schemes rule: category 1 never, category 2 sparingly later, category 3 after a correction.
  [/^800\.100\.(15[0149]|16[05]|17[0-2]|191|197)/,                     'never'],
  [/^800\.100\.(100|152|155|158|16[1-4]|168|17[689])/,                 'later'],
  [/^800\.100\.20[03]/,                                                'later'],
  [/^800\.100\.(20[2678]|403|50)/,                                     'never'],       // account closed or consent withdrawn
  [/^800\.100\.3(03|1[01]|2[127])/,                                    'later'],
  [/^800\.100\.3(0[129]|2[03])/,                                       'never'],
  [/^800\.(110|120\.402|310|400\.5|600|100\.314)/,                     'no'],          // the other transaction counts
  [/^800\.(120|140|300\.5|400\.2|500|700\.100|800\.[48])/,             'later'],
  [/^800\.[23]00/,                                                     'never'],       // blacklist
  [/^800\./,                                                           'afterChange'],
  [/^/,                                                                'later'],
]

/** Codes whose neighbours need other advice: who must act, and whether to try again. */
const exceptions: ReadonlyMap<string, readonly [WhoMustAct, Retry]> = new Map([
  ['000.100.227', ['operator',  'afterChange']],
  ['000.100.228', ['nobody',    'later']],
  ['100.100.701', ['shopper',   'never']],       // suspected fraud: another card
  ['100.390.101', ['developer', 'afterChange']],
  ['100.390.105', ['operator',  'later']],
  ['100.390.106', ['operator',  'afterChange']],
  ['100.390.108', ['operator',  'afterChange']],
  ['100.390.111', ['operator',  'later']],
  ['100.390.112', ['operator',  'later']],
  ['100.390.114', ['issuer',    'never']],
  ['100.390.115', ['developer', 'afterChange']],
  ['100.390.116', ['operator',  'afterChange']],
  ['100.390.117', ['developer', 'afterChange']],
  ['100.395.502', ['acquirer',  'later']],
  ['100.396.201', ['nobody',    'no']],          // the merchant wanted it
  ['100.397.102', ['acquirer',  'later']],
  ['700.400.000', ['operator',  'never']],
  ['700.400.400', ['developer', 'no']],
  ['700.400.570', ['nobody',    'later']],       // once the referenced payment is settled
  ['700.601.003', ['shopper',   'never']],
  ['800.120.402', ['nobody',    'no']],
  ['800.310.200', ['shopper',   'never']],
  ['800.400.105', ['operator',  'afterChange']],
  ['800.900.301', ['operator',  'afterChange']],
  ['900.100.202', ['developer', 'never']],
  ['900.100.300', ['acquirer',  'no']],          // may have succeeded: look it up, a second request could charge twice
  ['900.100.310', ['operator',  'afterChange']],
] as const)

const first = <Value>(rows: Rows<Value>, code: string): Value => rows.find(([group]) => group.test(code))![1]
