// tollgate staff: who works with the back office. There is no account to begin with: the first administrator is added here. A password never stands in
// the arguments; a link that works once lets its owner set one.

import type { Command } from 'commander'
import { inTransaction } from '../platform/database/connect.ts'
import { nameOfStaff } from '../staff/factors.ts'
import { linkHours, makeStaffLink } from '../staff/links.ts'
import { addPerson, dismissPerson, resetPerson, type StaffRefusal } from '../staff/people.ts'
import { type Role, roles } from '../staff/permissions.ts'
import { findPerson, listStaff, type Person } from '../staff/store.ts'
import { choice } from './choices.ts'
import { freeText } from './freeText.ts'
import { type CommandParts, looksLikeId, refuseCommand, refuseWords, table, timeText, withOpened } from './open.ts'
import { printOnce } from './output.ts'
import { type ReadOptions, reads, show, timeField } from './reads.ts'
import { readSandbox } from './sandbox.ts'

const say = (sentence: string) => void process.stderr.write(`${sentence}\n`)

export default (program: Command): void => {
  const staff = program.command('staff').description('who works with the back office')

  staff
    .command('add <email>')
    .description('adds somebody, and prints a link that sets a password and a second factor')
    .addOption(choice('--role <role>', 'what somebody may do', roles).makeOptionMandatory())
    .requiredOption('--entity <id...>', 'for which, and for all below: a PSP, division or merchant')
    .action((email: string, { role, entity }: { role: Role; entity: string[] }) =>
      withOpened(async opened => {
        const name = freeText(opened, 'The e-mail address', email, 254)
        for (const id of entity) if (!looksLikeId(id)) refuseWords('--entity must be 32 lower-case hex characters.')
        granted(await addPerson(telling(opened), { name, role, entities: [...new Set(entity)] }))
        sayOfLink()
      }),
    )

  reads(staff.command('list').description('everybody with role and entities'), {
    'staff[]': 'id name role entities factorsBy isReady madeAt',
  }).action((options: ReadOptions) =>
    withOpened(async ({ database }) => {
      const people = (await listStaff(database.work)).map(({ password, sealedTotp: _, madeAt, ...person }) => ({
        ...person,
        isReady: password !== null,
        madeAt: timeField(madeAt),
      }))
      show(options, { staff: people }, () =>
        table([
          ['id', 'name', 'role', 'acts for', 'password', 'added'],
          ...people.map(one => [
            one.id,
            one.name,
            one.role,
            one.entities.join(' '),
            one.isReady ? 'set' : 'not yet',
            timeText(Date.parse(one.madeAt!)),
          ]),
        ]),
      )
    }),
  )

  staff
    .command('reset <email>')
    .description('takes the password and the second factor away, ends all sessions, and prints a new link')
    .action((name: string) =>
      withOpened(async opened => {
        granted(await resetPerson(telling(opened), await named(opened, name)))
        sayOfLink()
      }),
    )

  staff
    .command('remove <email>')
    .description('somebody works here no more: all sessions end at once')
    .action((name: string) =>
      withOpened(async opened => {
        const { id } = granted(await dismissPerson(opened, await named(opened, name)))
        process.stdout.write(`${name} (${id}) works here no more.\n`)
      }),
    )

  staff
    .command('enter')
    .description('prints a link that signs you in at a sandbox without an account: once, and on this machine alone')
    .action(() =>
      withOpened(async opened => {
        if (opened.config.mode === 'live')
          refuseCommand('A live installation has no such door: add somebody with tollgate staff add.')
        await inTransaction(opened.database.work, async db => {
          const token = await makeStaffLink(db, opened, null)
          await printOnce(`${addressOfOffice(opened)}/office/enter/${token}`, 'The link')
        })
      }),
    )
}

const granted = <Value extends object>(answer: Value | StaffRefusal): Value =>
  'refused' in answer ? refuseCommand(answer.refused) : answer

async function named({ database }: CommandParts, name: string): Promise<Person> {
  return (await findPerson(database.work, 'name', nameOfStaff(name))) ?? refuseCommand(`Nobody called ${name} works here.`)
}

/** Out first, valid then. */
const telling = (opened: CommandParts) => ({
  ...opened,
  tell: (link: string) => printOnce(`${addressOfOffice(opened)}/office/invitation/${link}`, 'The link'),
})

function sayOfLink(): void {
  say(`It works once, within ${linkHours} hours. Whoever has it sets the password: give it to nobody else.`)
}

const addressOfOffice = ({ config }: CommandParts): string => (config.mode === 'live' ? config.publicUrl : readSandbox().baseUrl)
