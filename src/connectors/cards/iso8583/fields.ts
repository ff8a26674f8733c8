// The data elements of ISO 8583, one row per field. A dialect is another table of rows made from these, not other code.

/** n digits · an letters and digits · ans printable characters · z track data · x a sign (C or D) and digits · b bytes, written as hex. */
export type Content = 'n' | 'an' | 'ans' | 'z' | 'x' | 'b'

export type Field = {
  readonly number: number
  readonly name: string
  readonly content: Content
  /** Characters (of `b`: bytes): exactly so many, or at most so many behind a length of `prefix` digits. */
  readonly length: number
  readonly prefix: 0 | 2 | 3
  readonly encoding: 'ascii' | 'bcd' | 'binary'
  readonly lengthEncoding: 'ascii' | 'bcd'
  /** Masked wherever a message is shown. */
  readonly secret: boolean
}

export type Fields = ReadonlyMap<number, Field>

/** `6` exactly six · `..19` at most 19 behind two digits of length · `...999` behind three. */
type FieldRow = readonly [number: number, name: string, content: Content, length: string, secret?: 'secret']

const rows1987: readonly FieldRow[] = [
  [2,  'card number',                       'n',   '..19', 'secret'],
  [3,  'processing code',                   'n',   '6'],
  [4,  'amount',                            'n',   '12'],
  [5,  'amount, settlement',                'n',   '12'],
  [6,  'amount, cardholder billing',        'n',   '12'],
  [7,  'transmission date and time',        'n',   '10'],
  [8,  'amount, cardholder billing fee',    'n',   '8'],
  [9,  'conversion rate, settlement',       'n',   '8'],
  [10, 'conversion rate, billing',          'n',   '8'],
  [11, 'system trace audit number',         'n',   '6'],
  [12, 'local time',                        'n',   '6'],
  [13, 'local date',                        'n',   '4'],
  [14, 'expiry',                            'n',   '4',    'secret'],
  [15, 'settlement date',                   'n',   '4'],
  [16, 'conversion date',                   'n',   '4'],
  [17, 'capture date',                      'n',   '4'],
  [18, 'merchant category code',            'n',   '4'],
  [19, 'acquirer country',                  'n',   '3'],
  [20, 'card country',                      'n',   '3'],
  [21, 'forwarder country',                 'n',   '3'],
  [22, 'entry mode',                        'n',   '3'],
  [23, 'card sequence number',              'n',   '3'],
  [24, 'network international id',          'n',   '3'],
  [25, 'point of service condition',        'n',   '2'],
  [26, 'PIN capture code',                  'n',   '2'],
  [27, 'authorization id length',           'n',   '1'],
  [28, 'amount, transaction fee',           'x',   '9'],
  [29, 'amount, settlement fee',            'x',   '9'],
  [30, 'amount, processing fee',            'x',   '9'],
  [31, 'amount, settlement processing fee', 'x',   '9'],
  [32, 'acquirer id',                       'n',   '..11'],
  [33, 'forwarder id',                      'n',   '..11'],
  [34, 'extended card number',              'ans', '..28', 'secret'],
  [35, 'track 2',                           'z',   '..37', 'secret'],
  [36, 'track 3',                           'z',   '...104', 'secret'],
  [37, 'retrieval reference number',        'an',  '12'],
  [38, 'authorization code',                'an',  '6'],
  [39, 'response code',                     'an',  '2'],
  [40, 'service restriction code',          'an',  '3'],
  [41, 'terminal',                          'ans', '8'],
  [42, 'merchant',                          'ans', '15'],
  [43, 'merchant name and place',           'ans', '40'],
  [44, 'additional response',               'ans', '..25'],
  [45, 'track 1',                           'ans', '..76', 'secret'],
  [46, 'additional data, ISO',              'ans', '...999'],
  [47, 'additional data, national',         'ans', '...999'],
  [48, 'additional data, private',          'ans', '...999', 'secret'],
  [49, 'currency',                          'n',   '3'],
  [50, 'currency, settlement',              'n',   '3'],
  [51, 'currency, billing',                 'n',   '3'],
  [52, 'PIN data',                          'b',   '8',    'secret'],
  [53, 'security control',                  'n',   '16'],
  [54, 'additional amounts',                'an',  '...120'],
  [55, 'chip data',                         'ans', '...999', 'secret'],
  [56, 'reserved, ISO',                     'ans', '...999'],
  [57, 'reserved, national 57',             'ans', '...999'],
  [58, 'reserved, national 58',             'ans', '...999'],
  [59, 'reserved, national 59',             'ans', '...999'],
  [60, 'reserved, private 60',              'ans', '...999'],
  [61, 'reserved, private 61',              'ans', '...999'],
  [62, 'reserved, private 62',              'ans', '...999'],
  [63, 'reserved, private 63',              'ans', '...999'],
  [64, 'message authentication code',       'b',   '8'],
  [66, 'settlement code',                   'n',   '1'],
  [67, 'extended payment code',             'n',   '2'],
  [68, 'receiver country',                  'n',   '3'],
  [69, 'settlement country',                'n',   '3'],
  [70, 'network code',                      'n',   '3'],
  [71, 'message number',                    'n',   '4'],
  [72, 'message number, last',              'n',   '4'],
  [73, 'action date',                       'n',   '6'],
  [74, 'credits, number',                   'n',   '10'],
  [75, 'credits, reversal number',          'n',   '10'],
  [76, 'debits, number',                    'n',   '10'],
  [77, 'debits, reversal number',           'n',   '10'],
  [78, 'transfer, number',                  'n',   '10'],
  [79, 'transfer, reversal number',         'n',   '10'],
  [80, 'inquiries, number',                 'n',   '10'],
  [81, 'authorizations, number',            'n',   '10'],
  [90, 'original data',                     'n',   '42'],
  [91, 'file update code',                  'an',  '1'],
  [95, 'replacement amounts',               'an',  '42'],
  [100, 'receiver id',                      'n',   '..11'],
  [102, 'account 1',                        'ans', '..28', 'secret'],
  [103, 'account 2',                        'ans', '..28', 'secret'],
  [128, 'message authentication code',      'b',   '8'],
]

/** Where the edition of 1993 differs: longer times, entry mode and codes, and the original data in another place. */
const rows1993: readonly FieldRow[] = [
  [12, 'local date and time',               'n',   '12'],
  [22, 'entry mode',                        'an',  '12'],
  [24, 'function code',                     'n',   '3'],
  [25, 'message reason',                    'n',   '4'],
  [30, 'amounts, original',                 'n',   '24'],
  [39, 'action code',                       'n',   '3'],
  [44, 'additional response',               'ans', '..99'],
  [56, 'original data',                     'n',   '..35'],
]

export const fields1987: Fields = table(rows1987)
export const fields1993: Fields = new Map([...fields1987, ...table(rows1993)].filter(([number]) => number !== 13))

/** The same rows with digits packed two to a byte, lengths too. */
export function packed(fields: Fields): Fields {
  return new Map(
    [...fields].map(([number, field]) => [
      number,
      { ...field, lengthEncoding: 'bcd', ...(field.content === 'n' || field.content === 'z' ? { encoding: 'bcd' } : {}) },
    ]),
  )
}

function table(rows: readonly FieldRow[]): Fields {
  return new Map(
    rows.map(([number, name, content, length, secret]) => {
      const prefix = length.startsWith('...') ? 3 : length.startsWith('..') ? 2 : 0
      return [
        number,
        {
          number,
          name,
          content,
          length: Number(length.replaceAll('.', '')),
          prefix,
          encoding: content === 'b' ? 'binary' : 'ascii',
          lengthEncoding: 'ascii',
          secret: secret !== undefined,
        },
      ]
    }),
  )
}
