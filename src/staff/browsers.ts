// Browsers in which somebody of the staff has signed in before. A crowd of strangers keeps nobody waiting there, nor does a neighbour who uses up what their
// network may attempt. Such a browser proves nobody: name, password and code are asked for as ever, and attempts for a name are counted from everywhere. It speaks
// for the person who signed in, whose browsers have so many attempts together, as long as he works here.

import type { StaffParts } from './parts.ts'
import { makeProof, readProof } from './proofs.ts'

/** So long after a sign-in a browser is known. */
export const browserDays = 90

/** What the browser is to keep. */
export const makeBrowser = (parts: StaffParts, staffId: string): string =>
  makeProof(parts, 'browser', staffId, browserDays * 86_400_000)

/** Who signed in there; undefined when it is none of ours, or its time is over. */
export const personOfBrowser = (parts: StaffParts, kept: string): string | undefined => readProof(parts, 'browser', kept)?.said
