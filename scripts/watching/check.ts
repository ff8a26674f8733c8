// Has Prometheus itself look at its configuration and rules, and try the rules with data.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { packaged } from './expressions.ts'

const file = (name: string): string => fileURLToPath(packaged(`prometheus/${name}`))

export const hasPromtool = spawnSync('promtool', ['--version']).status === 0

/** What promtool says to what is wrong; nothing when all is right. */
export const wrongRules = (): string[] =>
  [
    ['check', 'config', file('prometheus.yml')],
    ['check', 'rules', '--lint=all', '--lint-fatal', file('rules.yml')],
    ['test', 'rules', file('rules.test.yml')],
  ].flatMap(words => {
    const { status, stdout, stderr } = spawnSync('promtool', words, { encoding: 'utf8' })
    return status === 0 ? [] : [`promtool ${words.join(' ')}:\n${stdout}${stderr}`]
  })
