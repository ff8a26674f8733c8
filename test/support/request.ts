// A request as functions of the interface are given it, without a server.

import type { Request } from '../../src/http/answer.ts'
import { networksAround } from '../../src/platform/network.ts'

export const requestFrom = (address: string): Request => ({
  method: 'GET',
  path: '/slow',
  query: '',
  headers: {},
  body: '',
  charset: 'utf-8',
  address,
  networks: networksAround(address),
  lines: networksAround(address),
  publicUrl: '',
  number: '0'.repeat(32),
  isGone: () => false,
  isServers: () => {},
  inTurn: work => work(),
  whenAnswered: [],
  seen: {},
})
