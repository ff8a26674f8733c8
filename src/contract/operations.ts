// The routes of the interface as data, for people and tools: what each is for, what it takes and how it can end.
// A test compares this table with the route table of `http`.

import { limits } from './limits.ts'
import { hex32 } from './parameters/common.ts'
import { type RequestKind, requests, shoppersNames } from './requests.ts'

export type ApiOperation = {
  readonly method: 'get' | 'post' | 'delete'
  readonly path: string
  readonly id: string
  readonly says: string
  readonly more?: string
  /** The form in the body of a POST. */
  readonly form?: RequestKind
  /** The fields of a POST that is no request of the interface, as patterns. */
  readonly fields?: Readonly<Record<string, string>>
  /** Rows of the table that a GET or DELETE reads from its query, required ones with an exclamation mark. */
  readonly query?: readonly string[]
  /** The group whose rows they are, beside the common ones; `query` when absent. */
  readonly queryGroup?: 'reporting'
  readonly pathId?: string
  readonly answers: Readonly<Record<number, AnswerSchema>>
  /** Answered without credentials. */
  readonly open?: true
  /** A shopper's browser asks, with an id that it was given and no credentials. */
  readonly byBrowser?: true
}
const checkoutId = 'The id of the checkout, as its creation answered it.'
const registrationId = 'The id of the registration.'

/** JSON, where no other type is named. */
export type AnswerSchema = readonly [says: string, schema: string, contentType?: 'text/xml']

const who = ['entityId', 'authentication.entityId', 'authentication.userId', 'authentication.password']

// Every request can end like this; statuses of an operation's own stand in its row.
export const always: Readonly<Record<number, AnswerSchema>> = {
  404: ['There is nothing at this path, or a part of the interface that is not built yet.', 'Error'],
  405: ['The path exists, but not with this method; the header Allow names those that it takes.', 'Error'],
  408: ['The request did not come whole in time.', 'Error'],
  431: ['The headers or the URL are too large.', 'Error'],
  500: ['The gateway failed; its log names the cause by the number at the end of ndc.', 'Error'],
  503: ['The gateway is shutting down; send the request again.', 'Error'],
}
export const authenticated: Readonly<Record<number, AnswerSchema>> = {
  401: ['The Authorization header is missing or malformed.', 'Error'],
  403: ['The access token is not valid, or may not act for this entity.', 'Error'],
  429: [
    `Too many failed attempts to authenticate (${limits.failuresPerAddress} a minute from one address, ` +
      `${limits.failuresPerUser} for one user id, ${limits.failuresPerCredential} with one credential), too many reads of one payment where the channel ` +
      'limits them, too many requests of a token where the merchant limits them, or too many searches at a time. Retry-After says when to come again.',
    'Error',
  ],
}
export const posted: Readonly<Record<number, AnswerSchema>> = {
  413: [`The body is larger than ${limits.bodyMaxBytes} bytes, a shopper’s form than ${limits.shoppersBodyMaxBytes}.`, 'Error'],
  415: ['The body is not application/x-www-form-urlencoded in UTF-8, ISO-8859-1 or windows-1252, or it is encoded.', 'Error'],
}
const wrong = 'A parameter is wrong: result.parameterErrors names every wrong one.'

export const operations: readonly ApiOperation[] = [
  {
    method: 'post',
    path: '/v1/payments',
    id: 'pay',
    says: 'Begins a payment',
    more:
      'A preauthorization (PA), a debit (DB), a stand-alone credit (CD), or a preauthorization that is captured at once (PA.CP). ' +
      'All parameters go into the body. Parameters that are not known are ignored.',
    form: requests.payment,
    answers: {
      200: ['The payment succeeded, or its outcome is not known yet and the payment is pending.', 'Payment'],
      400: [
        `The payment failed, for example it was declined: the record has an id. Or it was never begun: ${wrong}`,
        'PaymentOrError',
      ],
    },
  },
  {
    method: 'get',
    path: '/v1/payments',
    id: 'listPayments',
    says: 'Lists payments by merchantTransactionId',
    query: [...who, 'merchantTransactionId!', 'paymentTypes', 'paymentMethods'],
    answers: {
      200: ['The payments with this merchantTransactionId.', 'PaymentList'],
      400: [`None has it. Or: ${wrong}`, 'Error'],
    },
  },
  {
    method: 'post',
    path: '/v1/payments/{id}',
    id: 'followUpPayment',
    says: 'Captures, refunds or reverses a payment',
    more:
      'paymentType is CP, RF or RV. Amount and currency are required for CP and RF; a reversal without them is a full one. ' +
      `A preauthorization is captured once. A debit is reversed within ${limits.releaseHours} hours, later it is refunded.`,
    form: requests.followUp,
    pathId: 'The id of the payment that is captured, refunded or reversed.',
    answers: {
      200: ['The operation succeeded, or its outcome is not known yet and the payment is pending.', 'Payment'],
      400: [
        `A rule forbids it or it was declined: the record has an id of its own. Or it was never begun: ${wrong}`,
        'PaymentOrError',
      ],
      404: ['This merchant has no payment with this id.', 'Error'],
    },
  },
  {
    method: 'get',
    path: '/v1/payments/{id}',
    id: 'readPayment',
    says: 'Reads a payment',
    query: who,
    pathId: 'The id of the payment.',
    answers: {
      200: ['The payment as it stands now, whatever its outcome.', 'Payment'],
      400: [wrong, 'Error'],
      404: ['This merchant has no payment with this id.', 'Error'],
    },
  },
  {
    method: 'post',
    path: '/v1/threeDSecure',
    id: 'authenticate',
    says: 'Authenticates a cardholder without a payment',
    more: 'Answers at once, or pending with a redirect. The result can go into a later payment as threeDSecure.*. No money moves.',
    form: requests.threeDSecure,
    answers: {
      200: ['The cardholder was authenticated, or the shopper has to be sent to redirect.url.', 'Payment'],
      400: [`Authentication was not possible or failed: the record has an id. Or it was never begun: ${wrong}`, 'PaymentOrError'],
    },
  },
  {
    method: 'get',
    path: '/v1/threeDSecure/{id}',
    id: 'readAuthentication',
    says: 'Reads an authentication',
    query: who,
    pathId: 'The id of the authentication.',
    answers: {
      200: ['The authentication as it stands now, whatever its outcome.', 'Payment'],
      400: [wrong, 'Error'],
      404: ['This merchant has no authentication with this id.', 'Error'],
    },
  },
  {
    method: 'post',
    path: '/v1/checkouts',
    id: 'createCheckout',
    says: 'Begins a checkout, which its shopper pays in the hosted form',
    more:
      'Takes the parameters of a payment but those that the shopper gives in the form. Without paymentType, and with createRegistration=true, payment ' +
      `details are stored and nothing is paid. A checkout lives for ${limits.checkoutMinutes} minutes; validMinutes asks for more where the channel allows it, ` +
      'and then the answer has a link to send. overridePaymentType[brand] is accepted here only.',
    form: requests.checkout,
    answers: {
      200: ['The checkout stands; ndc is its id.', 'Checkout'],
      400: [wrong, 'Error'],
    },
  },
  {
    method: 'post',
    path: '/v1/checkouts/{id}',
    id: 'updateCheckout',
    says: 'Changes a checkout',
    more: 'What is sent replaces what was; the rest stays. Not while a payment of it is under way or has succeeded.',
    form: requests.checkoutUpdate,
    pathId: checkoutId,
    answers: { 200: ['It is changed.', 'Checkout'], 400: [`It is over, or being paid. Or: ${wrong}`, 'Error'] },
  },
  {
    method: 'delete',
    path: '/v1/checkouts/{id}',
    id: 'deleteCheckout',
    says: 'Deletes a checkout that nobody has paid',
    query: who,
    pathId: checkoutId,
    answers: { 200: ['It is deleted.', 'Checkout'], 400: [`It is over, or being paid. Or: ${wrong}`, 'Error'] },
  },
  ...(['payment', 'registration'] as const).flatMap((kind): ApiOperation[] => [
    {
      method: 'get',
      path: `/v1/checkouts/{id}/${kind}`,
      id: kind === 'payment' ? 'readCheckoutPayment' : 'readCheckoutRegistration',
      says: `Reads what became of a checkout that ${kind === 'payment' ? 'is paid' : 'stores payment details'}`,
      more:
        'Pending before the shopper has done anything. Afterwards the record of the last attempt. A success is told once; then the checkout is over, and ' +
        'the payment is found by its own id or merchantTransactionId.',
      query: who,
      pathId: checkoutId,
      answers: {
        200: ['As it stands now, whatever its outcome.', kind === 'payment' ? 'PaymentOrError' : 'Registration'],
        400: ['Its success was read, its time is over, or this merchant has no such checkout.', 'Error'],
      },
    },
    {
      method: 'post',
      path: `/v1/checkouts/{id}/${kind}`,
      id: kind === 'payment' ? 'payCheckout' : 'storeCheckout',
      says: 'The shopper presses pay in the form; called by a browser, without credentials',
      more:
        `Takes the names of a shopper alone: ${shoppersNames}. All else is the merchant's. With Accept: application/json the result comes with a redirect or, ` +
        'when the shopper is to go back, with shopperResultUrl; otherwise the browser is sent on. One attempt at a time: the same form again gets the ' +
        'answer of the first.',
      form: requests.checkoutPayment,
      byBrowser: true,
      pathId: checkoutId,
      answers: {
        200: ['Paid or stored, or the shopper has to go on elsewhere.', 'FormAnswer'],
        303: ['To a browser that asked for no JSON: the page that comes next.', 'FormAnswer'],
        400: [`Declined, or the checkout is over. Or: ${wrong}`, 'FormAnswer'],
        403: ['A page of another site asked for JSON.', 'Error'],
        429: ['The checkout was tried too often.', 'Error'],
      },
    },
  ]),
  {
    method: 'post',
    path: '/v1/registrations',
    id: 'register',
    says: 'Stores payment details without a payment',
    form: requests.registration,
    answers: { 200: ['They are stored.', 'Registration'], 400: [`They cannot be stored. Or: ${wrong}`, 'Error'] },
  },
  {
    method: 'get',
    path: '/v1/registrations/{id}',
    id: 'readRegistration',
    says: 'Reads a registration',
    query: who,
    pathId: registrationId,
    answers: {
      200: ['The registration.', 'Registration'],
      400: [`It was deleted, or the payment that it was made with failed. Or: ${wrong}`, 'Error'],
      404: ['This merchant has no registration with this id.', 'Error'],
    },
  },
  {
    method: 'delete',
    path: '/v1/registrations/{id}',
    id: 'deleteRegistration',
    says: 'Deletes a registration: its card is erased, its payments stay',
    more: 'That of a division is deleted by whoever may make one for it, and by none of its merchants.',
    query: who,
    pathId: registrationId,
    answers: {
      200: ['It is deleted.', 'Registration'],
      400: [`It was deleted before. Or: ${wrong}`, 'Error'],
      404: ['This merchant has no registration with this id.', 'Error'],
    },
  },
  {
    method: 'post',
    path: '/v1/registrations/{id}/payments',
    id: 'payByRegistration',
    says: 'Begins a payment with stored payment details',
    more: 'On any channel of the merchant. The network is told of the agreement that the registration began.',
    form: requests.registrationPayment,
    pathId: registrationId,
    answers: {
      200: ['The payment succeeded, or it is pending.', 'Payment'],
      400: [`The payment failed, or nothing can be paid with the registration. Or: ${wrong}`, 'PaymentOrError'],
      404: ['This merchant has no registration with this id.', 'Error'],
    },
  },
  {
    method: 'get',
    path: '/v1/query',
    id: 'queryPayments',
    says: 'Lists payments by merchantTransactionId',
    query: [...who, 'merchantTransactionId!', 'paymentTypes', 'paymentMethods'],
    answers: {
      200: ['The payments with this merchantTransactionId.', 'PaymentList'],
      400: [`None has it. Or: ${wrong}`, 'Error'],
    },
  },
  {
    method: 'get',
    path: '/v1/query/{id}',
    id: 'queryPayment',
    says: 'Reads a payment',
    query: who,
    pathId: 'The id of the payment.',
    answers: {
      200: ['The payment as it stands now.', 'Payment'],
      400: [`This merchant has no payment with this id. Or: ${wrong}`, 'Error'],
    },
  },
  {
    method: 'get',
    path: '/v3/query',
    id: 'searchPayments',
    says: 'Searches payments by time, type or merchantTransactionId, page by page',
    more:
      'Bare days are whole days in UTC. Both dates, or merchantTransactionId, are required. A page whose records have more than ' +
      `${limits.pageMaxBytes} bytes together is refused; ask for fewer at a time. Searches of one token come one after the other, and so do those of one merchant.`,
    query: [
      ...who,
      'date.from',
      'date.to',
      'merchantTransactionId',
      'paymentTypes',
      'paymentMethods',
      'includeLinkedTransactions',
      'limit',
      'pageNo',
    ],
    answers: { 200: ['One page of records, oldest first.', 'RecordPage'], 400: [`None was found. Or: ${wrong}`, 'Error'] },
  },
  {
    method: 'get',
    path: '/v3/query/{id}',
    id: 'searchPayment',
    says: 'Reads a payment, with all that refers to it when asked',
    query: [...who, 'paymentTypes', 'paymentMethods', 'includeLinkedTransactions'],
    pathId: 'The id of the payment.',
    answers: {
      200: ['The payment and, when asked for, its chain.', 'RecordPage'],
      400: [`This merchant has no payment with this id, or none of the types and methods asked for. Or: ${wrong}`, 'Error'],
    },
  },
  {
    method: 'get',
    path: '/reports/v1/reconciliations/aggregations',
    id: 'reportSettlement',
    says: 'Sums up what was cleared, given back and charged back, by day and currency',
    more:
      'Days are those of the journal, whole in UTC. A channel reports itself, a merchant all of its channels. Without testMode a test channel reports ' +
      'the simulator, any other live payments. With Accept: text/csv the same as a file.',
    query: [...who, 'date.from!', 'date.to!', 'currency', 'testMode'],
    queryGroup: 'reporting',
    answers: {
      200: ['The aggregations, the oldest day first; none is an answer too.', 'AggregationList'],
      400: [wrong, 'Error'],
    },
  },
  ...([1, 2] as const).map(
    (version): ApiOperation => ({
      method: 'get',
      path: `/reports/v${version}/reconciliations/aggregations/{id}`,
      id: `reportSettlementV${version}`,
      says: version === 1 ? 'Lists all records of an aggregation' : 'Lists the records of an aggregation, page by page',
      more:
        'The signed amounts of all records make the amount of the aggregation. matchedTransactions says MATCHED once a settlement file of the acquirer had ' +
        'the payment with this amount. With Accept: text/csv the same as a file.',
      query: [...who, 'reconciliationType', 'sortValue', 'sortOrder', ...(version === 2 ? ['pageNo'] : [])],
      queryGroup: 'reporting',
      pathId: 'The id of the aggregation.',
      answers: {
        200: ['Its records, and on v2 how many pages there are.', 'ReconciliationPage'],
        400: [`This entity has no aggregation with this id. Or: ${wrong}`, 'Error'],
      },
    }),
  ),
  {
    method: 'get',
    path: '/v1/resultcodes',
    id: 'listResultCodes',
    says: 'Lists all result codes with their descriptions',
    open: true,
    answers: { 200: ['The codes of the interface.', 'ResultCodeList'] },
  },
  {
    method: 'get',
    path: '/health',
    id: 'health',
    says: 'Tells a load balancer whether the process and its database answer',
    open: true,
    answers: { 200: ['Both answer.', 'ResultOnly'] },
  },
  {
    method: 'get',
    path: '/health/live',
    id: 'live',
    says: 'Tells whether the process answers, whatever becomes of its database',
    open: true,
    answers: { 200: ['It does.', 'ResultOnly'] },
  },
  {
    method: 'get',
    path: '/health/ready',
    id: 'ready',
    says: 'Tells whether all is there that requests need: every pool of connections, the schema, the keys and the right time',
    open: true,
    answers: { 200: ['It is.', 'ResultOnly'] },
  },
  {
    method: 'post',
    path: '/payment/query',
    id: 'queryXml',
    says: 'Finds payments by the query of the old XML interface',
    more:
      'The field load is an XML document: <Request><Query mode level entity type="STANDARD"> with <User login pwd/> (or an access token in the header), ' +
      '<Period from to/>, <Types><Type code/></Types>, or <Identification> with a <UniqueID> or a <TransactionID>. docs/slips.md has examples.',
    fields: { load: '^[\\s\\S]{1,4096}$' },
    answers: {
      200: ['The payments that were found, perhaps none.', 'Xml', 'text/xml'],
      400: ['The document cannot be read, or asks for too much: the element Error says what.', 'Xml', 'text/xml'],
      401: ['There is neither a header nor a user.', 'Xml', 'text/xml'],
      403: ['The credentials are not valid, or may not read this entity.', 'Xml', 'text/xml'],
      429: ['Too many failed attempts, too many requests, or too many searches at a time.', 'Xml', 'text/xml'],
    },
  },
  {
    method: 'post',
    path: '/sandbox/clock',
    id: 'advanceClock',
    says: "Moves a merchant's clock forward; exists in a sandbox only",
    more: 'Form fields: entityId, and advance, a number and ms, s, m, h or d, for example 29m. Whatever falls due in between is done.',
    fields: { entityId: hex32.pattern.source, advance: '^\\d{1,9}(ms|s|m|h|d)$' },
    answers: { 200: ['The time of the merchant after the move.', 'ClockMoved'], 400: [wrong, 'Error'] },
  },
  {
    method: 'post',
    path: '/sandbox/notifications',
    id: 'readNotifications',
    says: 'Reads notifications instead of receiving them; exists in a sandbox only',
    more:
      'Form fields: entityId; name, the cursor to read; after, the position of the last notification taken, which acknowledges all up to it; ' +
      'wait, 0 to 5 seconds. Each is given as it would be sent to a webhook, and secret is what decrypts it.',
    fields: { entityId: hex32.pattern.source, name: '^[A-Za-z0-9._-]{1,64}$', after: '^\\d{1,15}$', wait: '^[0-5]$' },
    answers: { 200: ['What follows, oldest first.', 'NotificationsRead'], 400: [wrong, 'Error'] },
  },
]
