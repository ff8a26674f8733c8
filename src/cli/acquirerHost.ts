// tollgate acquirer-host: the acquirer's host of the sandbox, run alone, for trying a dialect or a set-up of lines.

import type { Command } from 'commander'
import { dialects } from '../connectors/iso8583/dialects.ts'
import { runHost } from '../simulators/acquirerHost/main.ts'
import { refuse, told } from './open.ts'

type Options = { host: string; port: string; dialect: string; ledger?: string; delay: string }

export default (program: Command): void => {
  program
    .command('acquirer-host')
    .description('run the acquirer host of the sandbox alone; docs/operating-acquirer.md tells what it answers')
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <number>', 'port to listen on, 0 for any', '5001')
    .option('--dialect <name>', `one of ${Object.keys(dialects).join(', ')}`, '1987')
    .option('--ledger <file>', 'append-only file of its books; in memory when absent')
    .option('--delay <milliseconds>', 'every answer takes so long', '0')
    .action(({ host, port, dialect, ledger, delay }: Options) =>
      told(async () => {
        if (!Object.hasOwn(dialects, dialect))
          refuse(`There is no dialect ${dialect}: choose one of ${Object.keys(dialects).join(', ')}.`)
        if (![port, delay].every(text => /^\d{1,5}$/.test(text))) refuse('port and delay are whole numbers.')
        await runHost({
          host,
          port: Number(port),
          dialect,
          delay: Number(delay),
          child: false,
          ...(ledger !== undefined && { ledger }),
        })
      }),
    )
}
