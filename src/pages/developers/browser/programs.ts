// A request as a program that makes it, in the languages that shops are written in. Pure: pages write the first examples, a script those of what was changed.

export type SampleFields = readonly (readonly [name: string, value: string])[]

export type SampleRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Without a query. */
  readonly url: string
  /** Absent where nobody has to say who he is. */
  readonly token?: string | undefined
  readonly fields: SampleFields
}

/** One quoted text for JavaScript, Python and PHP. */
const quote = (text: string): string => `'${text.replace(/[\\']/g, '\\$&')}'`

const shellQuote = (text: string): string => (/^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

const pairs = (fields: SampleFields, between: string, indent: string): string =>
  fields.map(([name, value]) => `${indent}${quote(name)}${between}${quote(value)},`).join('\n')

function curl({ method, url, token, fields }: SampleRequest): string {
  const how = method === 'POST' ? 'curl' : method === 'GET' ? 'curl -G' : 'curl -G -X DELETE'
  const header = token === undefined ? [] : [`-H ${shellQuote(`Authorization: Bearer ${token}`)}`]
  const data = fields.map(([name, value]) => `--data-urlencode ${shellQuote(`${name}=${value}`)}`)
  return [`${how} ${shellQuote(url)}`, ...header, ...data].join(' \\\n  ')
}

function node({ method, url, token, fields }: SampleRequest): string {
  const form = fields.length === 0 ? '' : `const form = new URLSearchParams({\n${pairs(fields, ': ', '  ')}\n})\n`
  const inQuery = method !== 'POST' && fields.length > 0
  const options = [
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    ...(token === undefined ? [] : [`  headers: { Authorization: ${quote(`Bearer ${token}`)} },`]),
    ...(method === 'POST' ? ['  body: form,'] : []),
  ]
  const address = inQuery ? `${quote(`${url}?`)} + form` : quote(url)
  const more = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`
  return `${form}const response = await fetch(${address}${more})\nconsole.log(response.status, await response.json())`
}

function python({ method, url, token, fields }: SampleRequest): string {
  const form = `form = urllib.parse.urlencode({\n${pairs(fields, ': ', '    ')}\n})`
  const address = method !== 'POST' && fields.length > 0 ? `${quote(`${url}?`)} + form` : quote(url)
  const parts = [
    address,
    ...(method === 'POST' ? ['data=form.encode()'] : []),
    ...(method === 'DELETE' ? ["method='DELETE'"] : []),
    ...(token === undefined ? [] : [`headers={'Authorization': ${quote(`Bearer ${token}`)}}`]),
  ]
  return [
    ...['json', 'urllib.error', 'urllib.parse', 'urllib.request'].map(name => `import ${name}`),
    '',
    ...(fields.length === 0 ? [] : [form]),
    'request = urllib.request.Request(',
    ...parts.map(part => `    ${part},`),
    ')',
    'try:',
    '    response = urllib.request.urlopen(request)',
    'except urllib.error.HTTPError as refusal:  # it has an answer, too',
    '    response = refusal',
    'print(response.status, json.load(response))',
  ].join('\n')
}

function php({ method, url, token, fields }: SampleRequest): string {
  const form = `$form = http_build_query([\n${pairs(fields, ' => ', '    ')}\n]);`
  const address = method !== 'POST' && fields.length > 0 ? `${quote(`${url}?`)} . $form` : quote(url)
  const headers = [
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(method === 'POST' ? ['Content-Type: application/x-www-form-urlencoded'] : []),
  ]
  const options = [
    `    'method' => '${method}',`,
    `    'header' => [${headers.map(quote).join(', ')}],`,
    ...(method === 'POST' ? ["    'content' => $form,"] : []),
    "    'ignore_errors' => true, // a refusal has an answer, too",
  ]
  return [
    '<?php',
    ...(fields.length === 0 ? [] : [form]),
    "$context = stream_context_create(['http' => [",
    ...options,
    ']]);',
    `$answer = json_decode(file_get_contents(${address}, false, $context), true);`,
    'print_r($answer);',
  ].join('\n')
}

export const programs: Readonly<Record<string, (request: SampleRequest) => string>> = {
  curl,
  'Node.js': node,
  Python: python,
  PHP: php,
}
