// tollgate endpoints: who is told of what. Secrets are printed only when they are made, or when they are asked for by `secret`.

import type { Command } from 'commander'
import type { Directory } from '../merchants/directory.ts'
import {
  activateEndpoint,
  closeEndpoint,
  createEndpoint,
  type Endpoint,
  rotateSecret,
  secretsOf,
  showSecrets,
  testEndpoint,
} from '../notifications/endpoints/endpoint.ts'
import { findEndpointOfAny, listEndpoints } from '../notifications/endpoints/store.ts'
import type { FieldChoice, Wrapper } from '../notifications/notification.ts'
import { signingSecret } from '../notifications/signature.ts'
import { type CallResult, isAcknowledged } from '../platform/egress/call.ts'
import { choice } from './choices.ts'
import { freeText } from './freeText.ts'
import { type CommandParts, looksLikeId, readSecret, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'

const print = (text: string) => process.stdout.write(`${text}\n`)

type CreateOptions = {
  entity: string
  url?: string
  types?: string
  fields: string
  wrapper: string
  name?: string
  alert?: string
  cursor?: true
  secretFile?: string
}

export default (program: Command): void => {
  const endpoints = program.command('endpoints').description('who is told of payments, and how')

  endpoints
    .command('create')
    .description('makes an endpoint; a webhook is inactive until `activate` succeeded')
    .requiredOption('--entity <id>', 'the merchant, or one of its channels')
    .option('--url <url>', 'where notifications are sent')
    .option('--cursor', 'an endpoint that is read by `tollgate listen` instead of being called')
    .option('--name <name>', 'a name of its own')
    .option('--types <list>', 'PAYMENT, REGISTRATION or both, separated by commas')
    .addOption(choice('--fields <which>', 'how much is told', ['all', 'withoutCustomerData']).default('all'))
    .addOption(
      choice('--wrapper <kind>', 'none is hex, json is {"encryptedBody"}, plain is signed JSON', [
        'none',
        'json',
        'plain',
      ]).default('none'),
    )
    .option('--alert <address>', 'whom to write to when it stops answering; shown to operators')
    .option('--secret-file <path>', 'a file with the 64 hex characters that receivers know already, or - for standard input')
    .action((options: CreateOptions) =>
      withOpened(async opened => {
        const made = await createEndpoint(opened, {
          ...merchantAndChannel(opened.directory, options.entity),
          kind: options.cursor ? 'cursor' : 'webhook',
          fields: options.fields as FieldChoice,
          wrapper: options.wrapper as Wrapper,
          ...(options.url !== undefined && { url: options.url }),
          ...(options.name !== undefined && { name: freeText(opened, '--name', options.name, 100) }),
          ...(options.types !== undefined && { types: options.types.split(',').map(type => type.trim()) }),
          ...(options.alert !== undefined && { alertAddress: freeText(opened, '--alert', options.alert, 254) }),
          ...(options.secretFile !== undefined && { secret: readSecret(options.secretFile, '--secret-file') }),
        })
        if ('refused' in made) return refuseCommand(made.refused)
        print(`endpoint  ${made.endpoint.id} (${made.endpoint.state})`)
        process.stdout.write(secretsText([made.secret]))
        if (made.endpoint.state === 'inactive') print(`\nNext: tollgate endpoints activate ${made.endpoint.id}`)
      }),
    )

  const list = endpoints
    .command('list')
    .description('all endpoints with their state')
    .option('--entity <id>', 'only those of one merchant')
  reads(list, {
    'endpoints[]':
      'merchantId id kind channelId name url types fields wrapper alertAddress state secrets emitted createdAt activatedAt',
  }).action((options: ReadOptions & { entity?: string }) =>
    withOpened(async opened => {
      const { entity } = options
      const merchants = entity === undefined ? null : [merchantAndChannel(opened.directory, entity).merchantId]
      const found = await listEndpoints(opened.database.work, merchants)
      const rows = found.map(one => [
        one.id,
        one.kind,
        one.state,
        secretsOf(opened.keys, one).length,
        one.channelId === null ? 'all channels' : one.channelId,
        one.types.join(','),
        one.fields,
        one.wrapper,
        one.url ?? one.name,
        one.alertAddress,
        timeText(one.activatedAt),
      ])
      const endpoints = found.map(({ sealedSecrets, createdAt, activatedAt, ...one }) => ({
        ...one,
        secrets: secretsOf(opened.keys, { ...one, sealedSecrets }).length,
        createdAt: timeField(createdAt),
        activatedAt: timeField(activatedAt),
      }))
      show(options, { endpoints }, () =>
        table([
          ['id', 'kind', 'state', 'secrets', 'channel', 'types', 'fields', 'wrapper', 'url or name', 'alert', 'active since'],
          ...rows,
        ]),
      )
    }),
  )

  endpoints
    .command('test <id>')
    .description('sends the test notification')
    .action((id: string) =>
      withOpened(async opened => {
        const endpoint = await find(opened, id)
        if (endpoint.kind !== 'webhook') return refuseCommand('Only a webhook can be called.')
        printCall(await testEndpoint(opened, endpoint))
      }),
    )

  endpoints
    .command('activate <id>')
    .description('sends the test notification and, when it got a 2xx, activates the endpoint')
    .action((id: string) =>
      withOpened(async opened => {
        const { merchantId } = await find(opened, id)
        const called = await activateEndpoint(opened, merchantId, id, opened.directory.businessTime(merchantId))
        if ('refused' in called) return refuseCommand(called.refused)
        printCall(called)
        print(
          isAcknowledged(called)
            ? 'The endpoint is active: it is told what happens from now on.'
            : 'The endpoint was not activated.',
        )
      }),
    )

  endpoints
    .command('rotate <id>')
    .description('makes a second secret, valid beside the first; with --finish ends the first')
    .option('--finish', 'the receiver knows the new secret: the old one ends')
    .action((id: string, { finish }: { finish?: true }) =>
      withOpened(async opened => {
        const rotated = await rotateSecret(opened, (await find(opened, id)).merchantId, id, finish ? 'finish' : 'begin')
        if ('refused' in rotated) return refuseCommand(rotated.refused)
        process.stdout.write(secretsText(rotated.secrets))
      }),
    )

  reads(
    endpoints.command('secret <id>').description('prints the valid secrets of an endpoint'),
    {
      'secrets[]': 'secret signing',
    },
    () => true,
  ).action((id: string, options: ReadOptions) =>
    withOpened(async opened => {
      const secrets = await showSecrets(opened, await find(opened, id))
      const document = { secrets: secrets.map(secret => ({ secret, signing: signingSecret(Buffer.from(secret, 'hex')) })) }
      show(options, document, () => secretsText(secrets))
    }),
  )

  for (const [verb, state, description] of [
    ['delete', 'deleted', 'ends an endpoint for good; what it was still owed is given up'],
    ['disable', 'disabled', 'ends an endpoint until it is activated again; what it was still owed is given up'],
  ] as const) {
    endpoints
      .command(`${verb} <id>`)
      .description(description)
      .action((id: string) =>
        withOpened(async opened => {
          const { merchantId } = await find(opened, id)
          const now = opened.directory.businessTime(merchantId)
          const closed = await closeEndpoint(opened, merchantId, id, state, now, () => true)
          if ('refused' in closed) return refuseCommand(closed.refused)
          print(`The endpoint is ${state}; ${closed.givenUp} notifications were given up.`)
        }),
      )
  }
}

/** The merchant that an option names, by its own id or by that of one of its channels. */
export function merchantAndChannel(directory: Directory, entityId: string): { merchantId: string; channelId: string | null } {
  const entity = directory.entity(entityId)
  if (entity?.kind === 'channel') return { merchantId: entity.merchantId, channelId: entity.id }
  if (entity?.kind === 'merchant') return { merchantId: entity.id, channelId: null }
  return refuseCommand(`${entityId} is no merchant and no channel.`)
}

/** An endpoint by its id alone: operators see all merchants. */
export async function find({ database }: CommandParts, id: string): Promise<Endpoint> {
  if (!looksLikeId(id)) return refuseWords(`${id} is not the id of an endpoint.`)
  return (await findEndpointOfAny(database.work, id)) ?? refuseCommand(`There is no endpoint ${id}.`)
}

/** Each as it decrypts, and as it signs. */
export const secretsText = (secrets: readonly string[]): string =>
  secrets
    .map((secret, at) => {
      const name = secrets.length === 1 ? 'secret  ' : at === 0 ? 'old     ' : 'new     '
      return `${name}  ${secret}\n  signing ${signingSecret(Buffer.from(secret, 'hex'))}\n`
    })
    .join('')

function printCall(called: CallResult): void {
  print(
    `${called.status === undefined ? called.failure : `HTTP ${called.status}`} after ${called.milliseconds} ms ${called.answer}`.trimEnd(),
  )
  if (!isAcknowledged(called)) process.exitCode = 1
}
