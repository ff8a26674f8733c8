// A server of somebody else that speaks SFTP, over a folder. It can be as nasty as a test wants.

import {
  closeSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import ssh2, { type Connection, type SFTPWrapper } from 'ssh2'

/** What it does when it is asked: `stall` says nothing, `cut` closes the connection, `flood` asks without an end whether we are there, `keys` for new keys. */
export type Fault = 'stall' | 'cut' | 'flood' | 'keys'
export type Operation = 'connect' | 'list' | 'open' | 'read' | 'write' | 'close' | 'rename' | 'remove'

export type Question = 'OPENDIR' | 'READDIR' | 'STAT' | 'FSTAT' | 'OPEN' | 'READ' | 'WRITE' | 'CLOSE' | 'RENAME' | 'REMOVE'

export type SftpTestServer = {
  readonly port: number
  /** As an operator writes it down. */
  readonly hostKey: string
  /** The next of these fails; others go on. */
  readonly faults: Map<Operation, Fault>
  /** Pages of a list without end, and files that are said to be longer than they are. */
  readonly lies: Set<'endlessList' | 'emptyPages' | 'longer' | 'shorter' | 'bytewise'>
  /** Files that it gives to nobody. */
  readonly denied: Set<string>
  /** What it says that a file has, by its name, whatever it has. */
  readonly claimed: Map<string, number>
  /** What it does instead of answering a question of this name, as often as it is asked. */
  readonly odd: Map<Question, (channel: SFTPWrapper, id: number, ...asked: readonly unknown[]) => void>
  /** What it was asked, in order. */
  readonly asked: string[]
  /** How many are open. */
  connections(): number
  stop(): Promise<void>
}

const { STATUS_CODE, OPEN_MODE } = ssh2.utils.sftp

/** As servers ask whether anybody is there: the answer says that nobody knows the question. */
const ping = (client: Connection) => (client as unknown as { _protocol: { ping(): void } })._protocol.ping()

/** The library makes one pair in a hundred or so that nobody can read, itself included: of a public key it takes zeros at the beginning away. */
export function keyPair(): { private: string; public: string } {
  const made = ssh2.utils.generateKeyPairSync('ed25519')
  return ssh2.utils.parseKey(made.private) instanceof Error ? keyPair() : made
}

/** `publicKey`: whom it lets in. */
export async function startSftpServer(folder: string, publicKey: string, hostPair = keyPair()): Promise<SftpTestServer> {
  const faults: SftpTestServer['faults'] = new Map()
  const lies: SftpTestServer['lies'] = new Set()
  const denied: SftpTestServer['denied'] = new Set()
  const claimed: SftpTestServer['claimed'] = new Map()
  const odd: SftpTestServer['odd'] = new Map()
  const asked: string[] = []
  const clients = new Set<Connection>()
  const allowed = ssh2.utils.parseKey(publicKey)
  if (allowed instanceof Error) throw allowed
  const server = new ssh2.Server({ hostKeys: [hostPair.private] }, client => {
    clients.add(client)
    ;(client as unknown as { setNoDelay(on: true): void }).setNoDelay(true)
    client.on('error', () => {})
    client.on('close', () => clients.delete(client))
    client.on('authentication', context => {
      const fault = faults.get('connect')
      if (fault !== undefined) return void goWrong(fault, client)
      if (context.method !== 'publickey' || !context.key.data.equals(allowed.getPublicSSH())) return context.reject(['publickey'])
      const good = !context.signature || allowed.verify(context.blob!, context.signature, context.hashAlgo) === true
      if (good) context.accept()
      else context.reject()
    })
    client.on('session', accept => {
      accept().on('sftp', begin => serve(begin(), client))
    })
  })

  function goWrong(fault: Fault, client: Connection): void {
    const isOpen = () => clients.has(client)
    const flood = () => {
      for (let count = 0; count < 200 && isOpen(); count++) ping(client)
      if (isOpen()) setImmediate(flood)
    }
    const rekey = () => void (isOpen() && client.rekey(rekey))
    if (fault === 'cut') client.end()
    if (fault === 'flood') flood()
    if (fault === 'keys') rekey()
  }

  function serve(channel: SFTPWrapper, client: Connection): void {
    channel.on('end', () => client.end())
    const emit = channel.emit.bind(channel) as (event: string, ...given: unknown[]) => boolean
    channel.emit = (event: string, ...given: unknown[]): boolean => {
      const instead = odd.get(event as Question)
      if (!instead) return emit(event, ...given)
      instead(channel, ...(given as [number, ...unknown[]]))
      return true
    }
    let next = 0
    const handles = new Map<string, { file?: number; names?: string[] }>()
    const given = (handle: { file?: number; names?: string[] }): Buffer => {
      const name = String(next++)
      handles.set(name, handle)
      return Buffer.from(name)
    }
    /** Runs what is asked, unless it is to fail. */
    const on = (operation: Operation, what: string, id: number, work: () => void) => {
      asked.push(what === '' ? operation : `${operation} ${what}`)
      const fault = faults.get(operation)
      faults.delete(operation)
      if (fault !== undefined) return void goWrong(fault, client)
      try {
        work()
      } catch (error) {
        channel.status(id, (error as { code?: string }).code === 'ENOENT' ? STATUS_CODE.NO_SUCH_FILE : STATUS_CODE.FAILURE)
      }
    }
    const attributes = (path: string) => {
      const { mode, uid, gid, size, atimeMs, mtimeMs } = statSync(join(folder, path))
      const said = claimed.get(basename(path)) ?? size + (lies.has('longer') ? 10 : lies.has('shorter') ? -1 : 0)
      return { mode, uid, gid, size: said, atime: Math.floor(atimeMs / 1000), mtime: Math.floor(mtimeMs / 1000) }
    }
    channel.on('OPENDIR', (id, path) =>
      on('list', path, id, () => channel.handle(id, given({ names: readdirSync(join(folder, path)) }))),
    )
    channel.on('READDIR', (id, handle) => {
      const open = handles.get(handle.toString())!
      if (lies.has('emptyPages')) return channel.name(id, [])
      const names = lies.has('endlessList') ? Array.from({ length: 100 }, () => `file-${next++}`) : open.names!.splice(0, 100)
      if (names.length === 0) return channel.status(id, STATUS_CODE.EOF)
      const some = { mode: 0o100600, uid: 0, gid: 0, size: 1, atime: 0, mtime: 0 }
      const path = asked.findLast(one => one.startsWith('list '))!.slice(5)
      channel.name(
        id,
        names.map(filename => ({
          filename,
          longname: filename,
          attrs: lies.has('endlessList') ? some : attributes(join(path, filename)),
        })),
      )
    })
    for (const event of ['STAT', 'LSTAT'] as const)
      channel.on(event as 'STAT', (id, path) => {
        try {
          channel.attrs(id, attributes(path))
        } catch {
          channel.status(id, STATUS_CODE.NO_SUCH_FILE)
        }
      })
    channel.on('REALPATH', (id, path) =>
      channel.name(id, [{ filename: join('/', path), longname: path, attrs: attributes('.') }]),
    )
    channel.on('OPEN', (id, path, flags) =>
      on('open', path, id, () => {
        if (denied.has(basename(path))) return void channel.status(id, STATUS_CODE.PERMISSION_DENIED)
        const how = flags & OPEN_MODE.EXCL ? 'wx' : flags & OPEN_MODE.WRITE ? 'w' : 'r'
        const file = openSync(join(folder, path), how)
        channel.handle(id, given({ file }))
      }),
    )
    channel.on('FSTAT', (id, handle) => {
      const { file } = handles.get(handle.toString())!
      const { mode, size } = fstatSync(file!)
      const said = size + (lies.has('longer') ? 10 : lies.has('shorter') ? -1 : 0)
      channel.attrs(id, { mode, uid: 0, gid: 0, size: said, atime: 0, mtime: 0 })
    })
    channel.on('READ', (id, handle, offset, length) =>
      on('read', '', id, () => {
        const room = Buffer.alloc(length)
        const count = readSync(handles.get(handle.toString())!.file!, room, 0, lies.has('bytewise') ? 1 : length, offset)
        if (count === 0) channel.status(id, STATUS_CODE.EOF)
        else channel.data(id, room.subarray(0, count))
      }),
    )
    channel.on('WRITE', (id, handle, offset, data) =>
      on('write', '', id, () => {
        writeSync(handles.get(handle.toString())!.file!, data, 0, data.length, offset)
        channel.status(id, STATUS_CODE.OK)
      }),
    )
    channel.on('CLOSE', (id, handle) =>
      on('close', '', id, () => {
        const { file } = handles.get(handle.toString())!
        if (file !== undefined) closeSync(file)
        channel.status(id, STATUS_CODE.OK)
      }),
    )
    channel.on('RENAME', (id, from, to) =>
      on('rename', `${from} ${to}`, id, () => {
        if (existsSync(join(folder, to))) return channel.status(id, STATUS_CODE.FAILURE) // as version 3 says
        renameSync(join(folder, from), join(folder, to))
        channel.status(id, STATUS_CODE.OK)
      }),
    )
    channel.on('REMOVE', (id, path) =>
      on('remove', path, id, () => {
        unlinkSync(join(folder, path))
        channel.status(id, STATUS_CODE.OK)
      }),
    )
  }

  await new Promise<void>(ready => server.listen(0, '127.0.0.1', ready))
  return {
    port: (server.address() as { port: number }).port,
    hostKey: hostPair.public.trim().split(' ').slice(0, 2).join(' '),
    faults,
    lies,
    denied,
    claimed,
    odd,
    asked,
    connections: () => clients.size,
    stop: () =>
      new Promise(stopped => {
        server.close(() => stopped())
        for (const client of clients) client.end()
      }),
  }
}
