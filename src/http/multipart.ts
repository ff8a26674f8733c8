// Forms with files (multipart/form-data, RFC 7578), as browsers send them. Whatever is not exactly that is refused whole: nothing is guessed of a file.

import { beginningOf } from '../contract/cardNumbers.ts'

export type UploadedFile = {
  /** Without the folders that some browsers tell. */
  readonly name: string
  readonly bytes: Buffer
}
export type MultipartForm = {
  readonly pairs: readonly (readonly [name: string, value: string])[]
  readonly files: ReadonlyMap<string, UploadedFile>
}

const partsMost = 20
/** Of one field that is no file. */
const fieldMost = 8192
/** Of one part, all its headers. */
const headersMost = 1024

/** RFC 2046, 5.1.1: up to 70 characters, the last of which is no space. */
const boundaryIn =
  /^multipart\/form-data\s*;(?:[^"]*;)?\s*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))\s*(?:;|$)/i

/** `body`: one character a byte, not larger than its route allows. */
export function readMultipart(contentType: string, body: string): MultipartForm | undefined {
  const [, quoted, plain] = boundaryIn.exec(contentType) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined || !body.startsWith(`--${boundary}`)) return undefined
  const delimiter = `\r\n--${boundary}`
  const pairs: [string, string][] = []
  const files = new Map<string, UploadedFile>()
  let at = delimiter.length - 2
  for (let count = 0; ; count++) {
    if (/^--[ \t]*(\r\n)?$/.test(body.slice(at, at + 100))) return { pairs, files }
    const begin = body.indexOf('\r\n', at)
    if (count === partsMost || begin < 0 || begin - at > 100 || !/^[ \t]*$/.test(body.slice(at, begin))) return undefined
    const headersEnd = body.indexOf('\r\n\r\n', begin)
    const end = headersEnd < 0 ? -1 : body.indexOf(delimiter, headersEnd + 2)
    if (end < headersEnd + 4 || headersEnd - begin > headersMost) return undefined
    const named = nameOf(body.slice(begin + 2, headersEnd))
    if (!named) return undefined
    const bytes = Buffer.from(body.slice(headersEnd + 4, end), 'latin1')
    const { name, fileName } = named
    if (fileName === undefined && bytes.length > fieldMost) return undefined
    if (fileName === undefined) pairs.push([name, bytes.toString('utf8')])
    else if (files.has(name)) return undefined
    else files.set(name, { name: fileName, bytes })
    at = end + delimiter.length
  }
}

/** Of the headers of a part, each once: the name of its field, and of its file. */
function nameOf(headers: string): { name: string; fileName?: string } | undefined {
  const lines = headers.split('\r\n').map(line => /^([\w-]+):[ \t]*(.*)$/.exec(line))
  const known = new Map(lines.flatMap(found => (found ? [[found[1]!.toLowerCase(), found[2]!] as const] : [])))
  if (known.size !== lines.length) return undefined
  // Nothing has to be decoded, and nothing is.
  if (!/^(7bit|8bit|binary)?$/i.test(known.get('content-transfer-encoding') ?? '')) return undefined
  const [, name, fileName] =
    /^form-data;[ \t]*name="([^"\r\n]{1,200})"(?:;[ \t]*filename="([^"\r\n]*)")?[ \t]*$/i.exec(
      known.get('content-disposition') ?? '',
    ) ?? []
  if (name === undefined) return undefined
  return { name: textOf(name), ...(fileName !== undefined && { fileName: lastOf(textOf(fileName)) }) }
}

/** UTF-8; three signs stand there in percent (WHATWG, multipart/form-data encoding algorithm). */
const textOf = (raw: string): string =>
  Buffer.from(raw, 'latin1')
    .toString('utf8')
    .replace(/%(22|0D|0A)/gi, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))

/** Stands in lists and logs: without what moves a cursor or hides, and not longer than names are. */
const lastOf = (path: string): string =>
  beginningOf(path.replace(/^.*[\\/]/s, '').replace(/[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/gu, ''), 200)
