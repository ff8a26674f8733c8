// What a server writes beside its files while it runs. The file stays when it is killed, and goes along with a copy of the folder: it names a server, and proves none.

import { realpathSync } from 'node:fs'

export const serverFile = 'postmaster.pid'

/** `host`: the folder of its socket; empty while it starts. */
export type ServerFile = { readonly pid: number; readonly folder: string; readonly port: number; readonly host: string }

export function readServerFile(text: string): ServerFile {
  const [pid, folder = '', , port, host = ''] = text.split('\n') // the third line: since when
  return { pid: Number(pid), folder, port: Number(port), host }
}

/** False for one that came with a copy: it names the server of the original. */
export function isOfFolder({ folder }: ServerFile, cluster: string): boolean {
  try {
    return realpathSync(folder) === realpathSync(cluster)
  } catch {
    return false
  }
}
