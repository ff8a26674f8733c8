// A gateway says which database it works on, so that a file that names another one is found out.

import { systemClock } from '../platform/clock.ts'
import { boundAnswer, http } from '../platform/http.ts'

const patienceMilliseconds = 2000
const answerBytesMost = 16 * 1024

/** What the gateway at `host:port` says; undefined when it does not answer, or is of a release that does not say it. */
export const askDatabase = (gateway: string): Promise<string | undefined> =>
  new Promise(resolve => {
    const request = http.get(
      `http://${gateway}/health/ready`,
      { headers: { Host: 'localhost' }, agent: false, signal: systemClock.deadline(patienceMilliseconds) },
      response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        response.on('end', () => resolve(databaseIn(text)))
        response.on('close', () => resolve(undefined))
      },
    )
    boundAnswer(request, answerBytesMost)
    request.on('error', () => resolve(undefined))
  })

function databaseIn(text: string): string | undefined {
  try {
    const { database } = JSON.parse(text) as { database?: unknown }
    return typeof database === 'string' ? database : undefined
  } catch {
    return undefined
  }
}
