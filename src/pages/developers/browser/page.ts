// What the pages for developers do: send what a form says, write it as a program, copy a program, make an event happen.

import { programs, type SampleRequest } from './programs.ts'

const part = <Kind extends HTMLElement = HTMLElement>(id: string): Kind | null => document.querySelector<Kind>(`#${id}`)
const form = part<HTMLFormElement>('try')
const events = part('events')
const lastId = 'tollgate.lastId'

function tell(status: string, answer: string): void {
  part('status')!.textContent = status
  part('answer')!.textContent = answer
  part('answer-part')!.hidden = answer === ''
}

/** The answer as text, and what stands in it where it is JSON. */
type SentAnswer = { status: number; text: string; id: string | undefined; code: string | undefined }

async function sendSample({ method, url, token, fields }: SampleRequest): Promise<SentAnswer> {
  const values = new URLSearchParams(fields.map(([name, value]) => [name, value]))
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
  const response = await (method === 'POST'
    ? fetch(url, { method, headers, body: values })
    : fetch(values.size > 0 ? `${url}?${values}` : url, { method, headers }))
  const text = await response.text()
  try {
    const body = JSON.parse(text)
    return { status: response.status, text: JSON.stringify(body, null, 2), id: body.id, code: body.result?.code }
  } catch {
    return { status: response.status, text, id: undefined, code: undefined }
  }
}

const given = (id: string): string | undefined => part<HTMLInputElement>(id)?.value.trim()

/** The request as the form stands. Blank fields are left out. */
function sampleNow(): SampleRequest {
  const { method, url } = form!.dataset
  const own = [...form!.elements].filter(one => one instanceof HTMLInputElement && one.id.startsWith('field-'))
  const fields = own.map(one => [(one as HTMLInputElement).name, (one as HTMLInputElement).value] as const)
  const more = [given('more-name') ?? '', given('more-value') ?? ''] as const
  const id = given('id')
  const path = new URL(url!).pathname.replace(/%7Bid%7D|\{id\}/i, id ? encodeURIComponent(id) : '{id}')
  return {
    method: method as SampleRequest['method'],
    url: new URL(url!).origin + path,
    token: given('token'),
    fields: [...fields, more].filter(([name, value]) => name !== '' && value !== ''),
  }
}

if (form) {
  const id = part<HTMLInputElement>('id')
  if (id) id.value = sessionStorage.getItem(lastId) ?? ''
  const write = () => {
    for (const [at, make] of Object.values(programs).entries()) part(`program-${at}`)!.textContent = make(sampleNow())
  }
  write()
  form.addEventListener('input', write)
  form.addEventListener('submit', async event => {
    event.preventDefault()
    if (id && id.value.trim() === '') {
      tell('Fill in {id} first: an id that an earlier answer had.', '')
      return void id.focus()
    }
    tell('Sending …', '')
    const sample = sampleNow()
    // The address of this page is ours under whatever name the browser knows it.
    const url = location.origin + new URL(sample.url).pathname
    const answer = await sendSample({ ...sample, url }).catch((error: Error) => error.message)
    if (typeof answer === 'string') return void tell(`There was no answer: ${answer}`, '')
    if (answer.id !== undefined) sessionStorage.setItem(lastId, answer.id)
    tell(`HTTP ${answer.status}${answer.code === undefined ? '' : `, result ${answer.code}`}`, answer.text)
  })
}

for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]'))
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(part(button.dataset.copy!)!.textContent ?? '')
    button.textContent = 'Copied'
  })

type Step = { refers?: true; fields: Record<string, string> }

for (const button of events?.querySelectorAll<HTMLButtonElement>('button[data-steps]') ?? [])
  button.addEventListener('click', async () => {
    const { token, entity } = events!.dataset
    let [id, log] = ['', '']
    tell('Sending …', '')
    for (const { refers, fields } of JSON.parse(button.dataset.steps!) as Step[]) {
      const path = refers ? `/v1/payments/${id}` : '/v1/payments'
      const sent = Object.entries({ entityId: entity!, ...fields })
      const answer = await sendSample({ method: 'POST', url: location.origin + path, token, fields: sent }).catch(
        (error: Error) => error.message,
      )
      if (typeof answer === 'string') return void tell(`There was no answer: ${answer}`, log)
      id = answer.id ?? ''
      log += `POST ${path}\n${new URLSearchParams(sent)}\n\n${answer.text}\n\n`
      tell(`HTTP ${answer.status}, result ${answer.code}, payment ${id}`, log.trimEnd())
      sessionStorage.setItem(lastId, id)
    }
  })
