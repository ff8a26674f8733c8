// What a shopper can do about a result: few kinds of advice, each with one text in every language. Why a bank or a risk check said no is
// not told: a card that was stolen reads like one that is merely declined.

export type ShopperAdvice =
  | 'askShop'
  | 'begunAgain'
  | 'cardExpired'
  | 'checkDetails'
  | 'confirmWithBank'
  | 'contactBank'
  | 'lookInShop'
  | 'notEnoughMoney'
  | 'payOtherWay'
  | 'timeRanOut'
  | 'tryAgainLater'
  | 'useOtherCard'
  | 'waitForShop'

/** The advice about a code; nothing about a success, and what is unknown is looked up before anybody pays again. */
export const shopperAdvice = (code: string): ShopperAdvice | undefined => rows.find(([group]) => group.test(code))?.[1]

/** The first row that fits decides. */
const rows: readonly (readonly [RegExp, ShopperAdvice | undefined])[] = [
  [/^(000\.400\.(030|200)|800\.110|900\.100\.300)/,                       'lookInShop'],
  [/^000\.400\.10[1-9]|^000\.400\.11[1-3]|^000\.400\.2/,                  'confirmWithBank'],
  [/^(000\.200|800\.400\.5|100\.400\.5|800\.[67]00\.100|800\.120\.402)/,  'waitForShop'],
  [/^000\.100\.2/,                                                        'askShop'],        // a chargeback
  [/^000\./,                                                              undefined],

  [/^(100\.100\.303|800\.100\.330)/,                                      'cardExpired'],
  [/^100\.100\.(5|701)/,                                                  'payOtherWay'],
  [/^100\.(1[05]0\.[1-467]|150|2(00|1[012])\.|350\.400)/,                 'checkDetails'],
  [/^100\.3[78]0\.1/,                                                     'payOtherWay'],    // risk check
  [/^(100\.(380\.[45]|390)|300\.100|700\.601\.001|800\.400\.2)/,          'confirmWithBank'],
  [/^100\.(395\.50|396\.103)/,                                            'timeRanOut'],
  [/^100\.(396\.(10[1246]|201)|397\.101)/,                                'begunAgain'],
  [/^100\.39/,                                                            'payOtherWay'],
  [/^100\.400/,                                                           'payOtherWay'],
  [/^100\.550\.31[01]/,                                                   'notEnoughMoney'],
  [/^100\.([78]00|900\.[1-4])/,                                           'checkDetails'],

  [/^(600\.1|500\.100\.40)/,                                              'tryAgainLater'],
  [/^600\.200\.([1238]|500)/,                                             'payOtherWay'],
  [/^700\.60/,                                                            'useOtherCard'],

  [/^800\.100\.(15[137]|192|195|19[89]|201|402)/,                         'checkDetails'],
  [/^800\.100\.(155|162|179|203)/,                                        'notEnoughMoney'],
  [/^800\.100\.(152|16[0168]|172|178|200)/,                               'contactBank'],
  [/^800\.100\.(158|164|169|17[03457]|190|208)/,                          'payOtherWay'],
  [/^800\.100\.(176|163|191)/,                                            'tryAgainLater'],
  [/^800\.100/,                                                           'useOtherCard'],
  [/^800\.(120\.100|500|800\.[48])/,                                      'tryAgainLater'],
  [/^800\.(1[2456]0|121|[23]00|310)/,                                     'payOtherWay'],    // limits and lists of the shop, not told apart
  [/^800\.400\.1/,                                                        'checkDetails'],
  [/^800\.[78]00/,                                                        'checkDetails'],

  [/^900\.300/,                                                           'timeRanOut'],
  [/^9(00|99)\./,                                                         'tryAgainLater'],
  [/^/,                                                                   'askShop'],        // requests and settings, which a shopper cannot mend
]
