// The configuration of an HAProxy (2.6 or newer) before several cells. A request goes to the cell that the map names for what it is known by, tried in an order;
// one that is known by nothing, or by something that no cell has, is answered here and reaches no cell.

import { limits } from '../contract/limits.ts'
import { type ResultName, results } from '../contract/results/results.ts'
import { callerHeader, ofMerchant } from '../http/address.ts'
import { networkUnfinishedMost } from '../http/connections.ts'
import { connectionsMost, networkConnectionsMost } from '../http/places.ts'
import { loadBytesMost } from '../http/xml/queryRequest.ts'
import { buildNumber } from '../platform/build.ts'
import { OperatorError } from '../platform/errors.ts'
import { olderCiphers, servedCurves } from '../platform/tls.ts'
import type { Cells } from './cells.ts'

export type ProxyOptions = {
  /** Where it listens, as HAProxy writes it: `:443`. */
  readonly bind: string
  /** A file with the certificate and its key; absent = plain HTTP. */
  readonly certificate?: string
  /** At a time: of all together, and of one network (an address of IPv4, a /48 of IPv6). 0 of one network = a balancer stands before it, and counts. */
  readonly connections?: number
  readonly perNetwork?: number
  /** A unix socket of its own by which a proxy that is loaded anew hears from the one before whose servers are merchants'; absent = it forgets. */
  readonly reloadSocket?: string
}

export const standardLimits = { connections: connectionsMost, perNetwork: networkConnectionsMost }

/** A whole body with its headers: what a request is known by may stand at its end. */
const bufferBytes = limits.bodyMaxBytes + 64 * 1024
/** For one client, at the system. What of it is free is told by thirds: 8 kB a second are seen within `timeout client`. */
const sendBytes = 256 * 1024
/** Of HTTP/2, of one connection: what waits to be sent has buffers for each. */
const streamsMost = 8
/** Measured with so many streams, where the client takes no answer. The windows of HTTP/2 change nothing of it. */
const connectionMegabytes = 3.3
/** As a gateway takes them. What is looked for in a longer one would cost time. */
const headerBytesMost = 16 * 1024
/** Requests of browsers that a gateway has at a time, a quarter of its places: what more of them come wait here. */
const pagesMost = connectionsMost / 4
/** Beside these, large bodies for the back office, which go on as they come: a gateway refuses a stranger's by its head, and a place is taken here until he has heard it. */
const uploadsMost = connectionsMost / 8
/** Of the reference, which is for developers, and so long that an answer keeps its place until it is taken. */
const referencesMost = connectionsMost / 16
/** Of HTTP/2, of a network of strangers in all its connections, once a sixteenth of all connections is there: four browsers that take nothing. */
const strangersStreamsMost = 4 * streamsMost
/** Of one network: 255 networks do not fill these places. */
const networkUploadsMost = 2
/** Of one network: 85 networks do not fill these places. */
const networkReferencesMost = 3
/** Bodies of one network that are large or do not say how large they are, from their first byte to their answer: each may fill a buffer. */
const networkBodiesMost = 128

const merchantPaths =
  '/v1/payments /v1/checkouts /v1/registrations /v1/threeDSecure /v1/query /v3/query /payment/query /reports/ /sandbox/'
/** What shoppers and the senders of their notices open; the address names the merchant. */
const shopperPaths = '/r/ /slip/ /pay/ /v1/form/ /simulators/'

const isFile = '{ var(txn.file) -m found }'
const noEntity = '!{ var(txn.entity) -m found }'
const noCell = '!{ var(txn.cell) -m found }'
/** The old interface names its entity in XML, of which a percent sign may stand for each byte. What is quoted once more is read as it stands. No part of the
 * pattern gives back what it took, and what follows the entity is taken as it is: a body can make it read each sign once, and no more. */
const ofXml = `bytes(0,${3 * loadBytesMost}),url_dec(1),regsub('^(?s)(?>.*?<Query)(?>[^>]*?[[:space:]]entity[[:space:]]*+=[[:space:]]*+[^0-9a-f>]([0-9a-f]{32})).*+','\\1')`

/** Nothing is read in such a body, here or by a gateway. */
const notAForm = [
  "{ req.fhdr(content-type) -m found } !{ req.fhdr(content-type) -m reg -i '^(application/x-www-form-urlencoded[[:space:]]*(;|$)|$)' }",
  "{ req.fhdr(content-encoding) -m found } !{ req.fhdr(content-encoding) -m reg -i '^(identity)?$' }",
]

/** Where gateways read it: the body of a POST, the query of all else, both of a DELETE. */
const entityIn: readonly (readonly [sample: string, condition: string])[] = [
  ['urlp(entityId),url_dec(1)', 'if of_merchants !METH_POST'],
  ['urlp(authentication.entityId),url_dec(1)', `if of_merchants !METH_POST ${noEntity}`],
  ['req.body_param(entityId),url_dec(1)', `if of_merchants sends_form ${noEntity}`],
  ['req.body_param(authentication.entityId),url_dec(1)', `if of_merchants sends_form ${noEntity}`],
  [`req.body_param(load),${ofXml}`, `if METH_POST { path /payment/query } ${noEntity}`],
]

/** Each is looked for in the map until one is there. */
const keys: readonly (readonly [sample: string, condition: string])[] = [
  ['var(txn.entity)', 'if { var(txn.entity) -m found }'],
  ['path,field(2,.),word(1,/)', `if { path_beg /v1/checkouts/ ${shopperPaths} } ${noCell}`],
  ['urlp(checkoutId),field(2,.)', `if ${noCell}`],
  ['http_auth_bearer,sha2(256),hex,lower', `if of_merchants ${noCell}`],
]

/** Sections of its own begin with a capital, as no cell does. Throws an OperatorError where the map's path is none that HAProxy can be told. */
export function proxyConfiguration({ map, cells }: Cells, options: ProxyOptions): string {
  if (!/^[\w./-]+$/.test(map)) throw new OperatorError(`The path of the map must be letters, digits and ._/-: it is ${map}.`)
  const { bind, certificate, connections, perNetwork, reloadSocket } = { ...standardLimits, ...options }
  if (reloadSocket !== undefined && !/^\/[\w./-]{1,90}$/.test(reloadSocket))
    throw new OperatorError(
      `--reload-socket must be the path of a socket, at most 91 letters, digits and ._/-: it is ${reloadSocket}.`,
    )
  const names = cells.map(({ name }) => name)
  return `# Written by \`tollgate cells proxy\`, for HAProxy 2.6 or newer; docs/scale.md says what stands around it.
global
  maxconn ${2 * connections} # of sockets twice as many: a request of HTTP/2 whose answer is not taken keeps one to its gateway
  tune.bufsize ${bufferBytes} # a body of the interface is ${limits.bodyMaxBytes} bytes at most, and may name its entity at the end
  tune.sndbuf.client ${sendBytes} # who takes an answer slowly is seen to take it, however much the system would hold for him
  tune.h2.max-concurrent-streams ${streamsMost}
  hard-stop-after 5m
${perNetwork > 0 && reloadSocket !== undefined ? `  localpeer ${self}\n` : ''}
defaults
  mode http
  timeout connect 2s
  timeout client 10s # for a handshake of TLS, and for a client that neither sends nor takes what it should; none while a gateway works
  timeout server 75s
  timeout http-request 5s # for headers
  timeout http-keep-alive 10s # until the next request begins
  timeout queue 10s
  timeout check 5s
  option forwardfor # gateways believe it where TRUSTED_PROXY names this machine
  option redispatch
  option http-server-close # a payment never leaves on a connection that its gateway may be closing
  option idle-close-on-response # a reload answers what comes on connections that are open, and loses nothing
  retries 3 # of connections that did not come about: nothing was sent then

frontend Tollgate
  maxconn ${connections} # each takes up to ${connectionMegabytes} MB when it is hostile, ${Math.ceil(connections * connectionMegabytes)} MB in all: MemoryMax of the unit is the bound
  bind ${bind}${certificate === undefined ? '' : ` ssl crt ${certificate} alpn h2,http/1.1 ssl-min-ver TLSv1.2 ciphers ${olderCiphers} curves ${servedCurves}`}
  http-error ${answer(408, 'malformedRequest')}
  acl of_merchants path_beg ${merchantPaths}
  acl of_shoppers path_beg ${shopperPaths}
  acl of_reference path_beg /openapi.json /docs/
  acl of_office path /office
  acl of_office path_beg /office/
  acl sends_form method POST DELETE
  acl sends_body method POST DELETE PUT PATCH
  acl sends_body req.fhdr(content-length) -m reg [1-9]
  acl sends_body req.fhdr(transfer-encoding) -m found
  acl is_small req.fhdr(content-length) -m reg ^0*([0-9]{1,4}|1[0-5][0-9]{3})$ # as text: of a long number HAProxy compares the last 32 bits
${perNetwork === 0 ? '' : networkLimits(connections, perNetwork)}
  ${refusal(431, 'headersTooLarge')} if { url_len gt ${headerBytesMost} } or { req.hdrs,length gt ${headerBytesMost} }
  http-request set-path %[path,regsub(//+,/,g)] if { path_sub // }
  http-request set-var(txn.file) bool(true) if of_office sends_body !is_small
${perNetwork === 0 ? '' : largeOnes()}
  http-request set-header X-Forwarded-Proto https if { ssl_fc }
${perNetwork === 0 ? '' : merchantsMark}
  http-response del-header ${callerHeader}
${office(names, certificate !== undefined)}
${perNetwork === 0 ? '' : `  http-request wait-for-body time 2s if ${isTaken(connections, 1 / 2)} !${isFile} # many networks take all places`}
  http-request wait-for-body time 20s if !${isFile} # of each method; here it holds a place of its network, and none at a gateway
  ${refusal(413, 'bodyTooLarge')} if !of_office { req.body_size gt ${limits.bodyMaxBytes} }
  ${refusal(413, 'bodyTooLarge')} if !sends_body { req.body_size gt ${headerBytesMost} } # over HTTP/2 no header need say that there is one
${entityIn.map(([sample, condition]) => `  http-request set-var(txn.entity) "${sample}" ${condition}`).join('\n')}
${keys.map(([sample, condition]) => `  http-request set-var(txn.cell) ${sample},map_str(${map}) ${condition}`).join('\n')}
${notAForm.map(condition => `  ${refusal(415, 'wrongContentType')} if METH_POST of_merchants ${noEntity} ${noCell} ${condition}`).join('\n')}
  ${refusal(400, 'entityMissing')} if of_merchants !{ var(txn.cell) -m found } !{ var(txn.entity) -m found }
  use_backend Reference if of_reference # whatever else it names
  use_backend Uploads_%[var(txn.desk)] if ${isFile}
  use_backend Browsers_%[var(txn.desk)] if of_office
  use_backend %[var(txn.cell)] if of_merchants { var(txn.cell) -m found }
  use_backend Browsers_%[var(txn.cell)] if { var(txn.cell) -m found }
  use_backend Every if !of_merchants !of_shoppers
  default_backend Nowhere # also where the map names a cell that this file does not have

backend Nowhere
  ${page(404, '<title>404</title><p>This address is not known.')} if { path_beg ${shopperPaths} }
  ${refusal(403, 'entityNotTheTokens')}

# What is the same in every cell: scripts of the form, the reference, health.
backend Every
${pageServersOf(cells)}

# Long, and for developers: who does not take it keeps no place of a form's scripts.
backend Reference
${pageServersOf(cells, referencesMost)}

${cells
  .map(
    cell => `backend ${cell.name}
${silence()}
${checks}
${serversOf([cell])}

backend Browsers_${cell.name}
${silence()}
${pageServersOf([cell])}

backend Uploads_${cell.name}
${silence()}
${pageServersOf([cell], uploadsMost)}`,
  )
  .join('\n\n')}
${perNetwork === 0 ? '' : networkTables(connections, reloadSocket)}`
}

/** Whom a client is counted with, before TLS and before anything is read of it; and, where one connection carries many requests, by these. */
const counted = (of: string): string => `src,ipmask(32,48) table ${of}`
/**
 * The fuller it is the fewer one network may have: nobody who waits is sent away for a newcomer, so a few networks could keep all places. Ninety networks of strangers
 * do not come to seven eighths, however they come: what is left is for merchants' servers, which may come many at once. No merchant takes all of that either, and each network
 * has the four that a browser needs for a form inside of a shop's page.
 */
const tiers = [
  [1 / 2, 1 / 128, 1 / 16],
  [3 / 4, 1 / 512, 1 / 32],
  [7 / 8, 1 / 1024, 1 / 64],
  [15 / 16, 1 / 1024, 1 / 128],
  [31 / 32, 1 / 1024, 1 / 512],
] as const satisfies readonly (readonly [taken: number, ofStrangers: number, ofMerchants: number])[]

const isTaken = (connections: number, part: number): string => `{ fe_conn gt ${Math.ceil(connections * part)} }`

const networkLimits = (connections: number, perNetwork: number): string => {
  const isStranger = '!{ sc0_get_gpt0(Connections) gt 0 }'
  const isBeyond = (taken: number, share: number) =>
    `${isTaken(connections, taken)} { sc0_conn_cur(Connections) gt ${Math.min(perNetwork, Math.ceil(connections * share))} }`
  const rejections = tiers.flatMap(([taken, ofStrangers, ofMerchants]) => [
    `  tcp-request connection reject if ${isBeyond(taken, ofMerchants)}`,
    ...(ofStrangers < ofMerchants ? [`  tcp-request connection reject if ${isBeyond(taken, ofStrangers)} ${isStranger}`] : []),
  ])
  const [[half], [threeQuarters, few]] = tiers
  return `
  tcp-request connection track-sc0 ${counted('Connections')}
  tcp-request connection reject if { sc0_conn_cur(Connections) gt ${perNetwork} }
${rejections.join('\n')}
  http-after-response set-header Connection close if ${isTaken(connections, half)} # nobody keeps a place by asking now and then
  http-request reject if { fc_http_major 2 } ${isBeyond(threeQuarters, few)} ${isStranger} # HTTP/2 has no such header, and needs fewer
  http-request track-sc1 ${counted('Requests')}
  http-request set-priority-class sc1_conn_cur(Requests) # where requests wait for a place at a gateway
  ${refusal(429, 'tooManyAtOnce', 1)} if { sc1_conn_cur(Requests) gt ${networkUnfinishedMost} }
  ${refusal(429, 'tooManyAtOnce', 1)} if { fc_http_major 2 } ${isTaken(connections, 1 / 16)} { sc1_conn_cur(Requests) gt ${strangersStreamsMost} } ${isStranger} # each keeps a socket to a gateway until its answer is taken`
}

/** Whose token a gateway has found is no stranger for an hour: it says so, and nobody else hears it. */
const merchantsMark = `  http-response sc-set-gpt0(0) 1 if { res.hdr(${callerHeader}) -m str ${ofMerchant} }`

/** Judged by the path that gateways get. */
const largeOnes = (): string => `
  http-request track-sc2 ${counted('Bodies')} if sends_body of_merchants !is_small
  http-request track-sc2 ${counted('Uploads')} if ${isFile}
  http-request track-sc2 ${counted('References')} if of_reference
  ${refusal(429, 'tooManyAtOnce', 1)} if { sc2_conn_cur(Bodies) gt ${networkBodiesMost} } or { sc2_conn_cur(Uploads) gt ${networkUploadsMost} } or { sc2_conn_cur(References) gt ${networkReferencesMost} }`

const self = 'tollgate'

/** Of these the last are known in any hour of 70 new ones a second, in some 60 MB: whose servers were merchants' is not forgotten for a sale. */
const networksKnown = 262_144

/** Whoever may speak at the socket could make anybody a merchant's server: it is for the proxy's user alone. */
const networkTables = (connections: number, reloadSocket: string | undefined): string => {
  const passing = `${2 * connections} expire 10s store conn_cur`
  const known = `${networksKnown} expire 1h${reloadSocket === undefined ? '' : ' peers Reloads'} store conn_cur,gpt0`
  const tables = [
    ['Connections', known],
    ['Requests', passing],
    ['Bodies', passing],
    ['Uploads', passing],
    ['References', passing],
  ].map(([name, kept]) => `\nbackend ${name}\n  stick-table type ipv6 size ${kept}\n`)
  const peers = reloadSocket === undefined ? '' : `\npeers Reloads\n  bind unix@${reloadSocket} mode 600\n  server ${self}\n`
  return peers + tables.join('')
}

/** As a gateway answers it: a merchant's program reads no other. */
function answer(status: number, name: ResultName): string {
  const { code, description } = results[name]
  const result = { code, description: description.replaceAll("'", '') }
  const time = '%[date,utime(%Y-%m-%d %H:%M:%S+0000)]'
  const record = { result, buildNumber: buildNumber(), timestamp: time, ndc: '%[uuid,regsub(-,,g)]' }
  return `status ${status} content-type "application/json;charset=UTF-8" lf-string '${JSON.stringify(record)}'`
}

const refusal = (status: number, name: ResultName, retryAfter?: number): string =>
  `http-request return ${answer(status, name)}${retryAfter === undefined ? '' : ` hdr Retry-After ${retryAfter}`}`

/** The proxy has no answer of a gateway, or lost it. In a section of defaults HAProxy 2.6.12 dies of these lines. */
const silence = (): string =>
  [502, 503, 504].map(status => `  http-error ${answer(status, 'databaseUnavailable')} hdr Retry-After 5`).join('\n')

const page = (status: number, html: string): string =>
  `http-request return status ${status} content-type "text/html;charset=utf-8" string '<!doctype html>${html}'`

const officePage = (names: readonly string[]): string =>
  `<title>Tollgate</title><p>Back office of ${names.map(name => `<a href="?cell=${name}">${name}</a>`).join(', ')}`

/** Who works in the back office of a cell says so once, by ?cell=NAME. Address and cookies are read once, however many cells there are. */
const office = (names: readonly string[], secure: boolean): string => `  http-request set-var(txn.door) urlp(cell) if of_office
  http-request set-var(txn.desk) req.cook(tollgate-cell) if of_office
${['door', 'desk'].flatMap(at => names.map(name => `  acl has_${at} var(txn.${at}) -m str ${name}`)).join('\n')}
  http-request return status 303 hdr Location %[path] hdr Set-Cookie "tollgate-cell=%[var(txn.door)]; Path=/office; HttpOnly; SameSite=Lax${secure ? '; Secure' : ''}" if of_office has_door
  ${page(200, officePage(names))} if of_office !has_desk`

/** A gateway that stops, or whose database is gone, says so itself; one that is only slow is waited for as long as `timeout check` says, whatever else fails
 * meanwhile. A sandbox answers to localhost. */
const checks = `  option httpchk
  http-check send meth GET uri /health/ready hdr Host localhost
  http-check expect status 200
  default-server check inter 2s fastinter 1s fall 3 rise 1`

const serversOf = (cells: Cells['cells'], more = (_: string) => ''): string =>
  cells
    .flatMap(({ name, gateways }) =>
      gateways.map((gateway, at) => `  server ${name}-${at + 1} ${gateway}${more(`${name}/${name}-${at + 1}`)}`),
    )
    .join('\n')

/** Those of the cell, which are looked at there. */
const pageServersOf = (cells: Cells['cells'], most = pagesMost): string =>
  serversOf(cells, server => ` track ${server} maxconn ${most}`)
