// Who works with the back office: added, changed, given a new link, removed. There is no account to begin with.

import { type Recorder, record } from '../audit/chain.ts'
import { isId, timeOrderedId } from '../platform/clock.ts'
import { type Connection, inTransaction } from '../platform/database/connect.ts'
import { lockCounted } from '../platform/database/locks.ts'
import { attemptsOf, nameOfStaff } from './factors.ts'
import { dropFiltersOf } from './filters/store.ts'
import { makeStaffLink } from './links.ts'
import type { StaffParts } from './parts.ts'
import { mayInvite, type Role } from './permissions.ts'
import {
  changePerson,
  countPeople,
  dropLinksBy,
  dropLinksOf,
  endSessionsOf,
  forgetAttempts,
  insertPerson,
  lockPeople,
  type Person,
  removePerson,
  setFactors,
} from './store.ts'

/** `tell`: gives a link to whoever asked for it, before anything is stored. When that fails nothing is. */
type PeopleParts = Pick<StaffParts, 'random' | 'database' | 'directory'> &
  Recorder & { readonly tell?: (link: string) => Promise<void> }

/** Who sees the link, where that is one of the staff: who came by the sandbox's door is none. */
const makerOf = ({ by }: PeopleParts): string | null => (by?.kind === 'user' && isId(by.id) ? by.id : null)

/** Two who change each other at a time come one after the other: who asks is locked with whom it is about. */
const askedBy = (parts: PeopleParts): readonly string[] => {
  const maker = makerOf(parts)
  return maker === null ? [] : [maker]
}

/** A sentence for whoever asked. */
export type StaffRefusal = { readonly refused: string }
export type StaffLink = { readonly id: string; readonly link: string }

/** Who acts for one of some entities, or did: their pages list them. */
export const peopleMost = 1000

/** Every letter is seen: two names that look the same would be two people. Blank braille is a letter by its class. */
const shownName = /^(?!.*[\p{C}\p{Default_Ignorable_Code_Point}\u2800])[^\s@]{1,64}@[^\s@]{1,189}$/u

/** A link that lets the new one set a password and a second factor. */
export async function addPerson(
  parts: PeopleParts,
  wanted: { readonly name: string; readonly role: Role; readonly entities: readonly string[] },
): Promise<StaffLink | StaffRefusal> {
  const { clock, random, database } = parts
  const name = nameOfStaff(wanted.name)
  if (!shownName.test(name)) return { refused: 'The name must be an e-mail address, of letters that are seen.' }
  const refused = entitiesRefusal(parts, wanted.entities)
  if (refused) return { refused }
  const { role, entities } = wanted
  const now = clock.real()
  const id = timeOrderedId(now, random)
  return inTransaction(database.work, async db => {
    await lockPeople(db, askedBy(parts))
    const full = await fullRefusal(db, entities)
    if (full) return full
    const person = { id, name, role, entities, password: null, sealedTotp: null, factorsBy: null, madeAt: now }
    if (!(await insertPerson(db, person))) return { refused: `${name} works here already.` }
    const link = await makeStaffLink(db, parts, id, makerOf(parts))
    await record(db, parts, [{ action: 'staffAdded', entityId: entities[0], subject: id, details: { name, role, entities } }])
    await parts.tell?.(link)
    return { id, link }
  })
}

/** Their next request counts by the new role: sessions need not end. */
export async function changeRole(
  parts: PeopleParts,
  asked: Person,
  role: Role,
  entities: readonly string[],
): Promise<{ readonly id: string } | StaffRefusal> {
  const refused = entitiesRefusal(parts, entities)
  if (refused) return { refused }
  return changed(parts, asked, async (db, person) => {
    const { id } = person
    const full = await fullRefusal(
      db,
      entities.filter(one => !person.entities.includes(one)),
    )
    if (full) return full
    await changePerson(db, id, role, entities)
    // Whoever saw a link to the one could come in as the other; and what somebody gave away when he might, he may not give now.
    await dropLinksOf(db, id)
    if (!mayInvite(parts.directory, { role, entities }, person.entities)) await dropLinksBy(db, id)
    const details = { name: person.name, role: [person.role, role], entities: [person.entities, entities] }
    await record(db, parts, [{ action: 'staffChanged', entityId: entities[0], subject: id, details }])
    return { id }
  })
}

/** Takes both factors away and ends all sessions: for who lost the device, or may have lost the password. */
export const resetPerson = (parts: PeopleParts, asked: Person): Promise<StaffLink | StaffRefusal> =>
  changed(parts, asked, async (db, { id, name, entities }) => {
    await dropLinksOf(db, id)
    await dropLinksBy(db, id)
    await setFactors(db, id)
    await endSessionsOf(db, id)
    await forgetAttempts(db, attemptsOf(parts, name))
    const link = await makeStaffLink(db, parts, id, makerOf(parts))
    await record(db, parts, [{ action: 'staffReset', entityId: entities[0], subject: id, details: { name } }])
    await parts.tell?.(link)
    return { id, link }
  })

/** The row stays, so that traces keep their name, and so that it is known whose guest somebody was. */
export const dismissPerson = (parts: PeopleParts, asked: Person): Promise<{ readonly id: string } | StaffRefusal> =>
  changed(parts, asked, async (db, { id, name, entities }) => {
    await dropLinksOf(db, id)
    await dropLinksBy(db, id)
    await setFactors(db, id)
    await endSessionsOf(db, id)
    await dropFiltersOf(db, id)
    await removePerson(db, id, parts.clock.real())
    await record(db, parts, [{ action: 'staffRemoved', entityId: entities[0], subject: id, details: { name } }])
    return { id }
  })

/** `asked`: as whoever asks found them, and may change them. Who has become somebody else meanwhile may be out of reach. */
function changed<Value>(
  parts: PeopleParts,
  { id, name, role, entities }: Person,
  change: (db: Connection, person: Person) => Promise<Value>,
): Promise<Value | StaffRefusal> {
  return inTransaction(parts.database.work, async db => {
    const person = (await lockPeople(db, [id, ...askedBy(parts)])).find(one => one.id === id)
    if (!person) return { refused: 'There is nobody with this id.' }
    const isStill = person.role === role && person.entities.join() === entities.join()
    return isStill ? change(db, person) : { refused: `${name} was given another role meanwhile: look again.` }
  })
}

/** Until the transaction ends nobody else is added there. */
async function fullRefusal(db: Connection, entities: readonly string[]): Promise<StaffRefusal | undefined> {
  if (entities.length === 0) return undefined
  await lockCounted(db, 'people', entities)
  if ((await countPeople(db, entities)) < peopleMost) return undefined
  return { refused: `${peopleMost} people are, or were, at work there: nobody can be added.` }
}

function entitiesRefusal({ directory }: PeopleParts, entities: readonly string[]): string | undefined {
  if (entities.length === 0) return 'Name at least one entity.'
  const wrong = entities.find(id => (directory.entity(id)?.kind ?? 'channel') === 'channel')
  return wrong === undefined ? undefined : `${wrong} is no PSP, division or merchant.`
}
