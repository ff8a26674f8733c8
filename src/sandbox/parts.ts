// What the sandbox's own requests need of a process.

import type { HttpParts } from '../http/parts.ts'
import type { NotificationParts } from '../notifications/parts.ts'

export type SandboxParts = HttpParts & NotificationParts
