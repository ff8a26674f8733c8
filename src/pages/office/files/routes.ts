// Files of banks, store chains and acquirers, handed in by somebody of the staff: read as the commands read them, told line by line, and what came before.

import { type HandedInKind, type HandedInReport, handedInKinds, tellRefused } from '../../../clearing/handedIn.ts'
import type { LineResult } from '../../../clearing/import.ts'
import { type CameBefore, findImported, findLines } from '../../../clearing/store.ts'
import { visible } from '../../../platform/errors.ts'
import { type Html, html } from '../../html.ts'
import { fill } from '../../languages/texts.ts'
import { choiceField, message, tableOf } from '../fields.ts'
import type { OfficeParts } from '../parts.ts'
import { nothingHere, type OfficeAnswer, type OfficeRequest, type OfficeRoute } from '../route.ts'
import { frameWords, momentText, type OfficeLanguage } from '../words.ts'
import { type FileWords, fileWords } from './words.ts'

/** Larger ones are for the command line. */
const fileMax = 4 * 1024 * 1024
const filesShown = 30
const linesShown = 1000
/** The time of a list that begins with the latest. */
const farAway = 253_402_300_799_000

const outcomes = ['recorded', 'known', 'noted', 'refused'] as const satisfies readonly LineResult['kind'][]

export function fileRoutes(parts: OfficeParts): OfficeRoute[] {
  const { database } = parts
  const show = async (
    { language, values }: OfficeRequest,
    more: { above?: Html; status?: number } = {},
  ): Promise<OfficeAnswer> => {
    const words = fileWords(language)
    const before = /^\d{1,15}$/.test(values.get('before') ?? '') ? Number(values.get('before')) : farAway
    const files = await findImported(database.work, Math.min(before, farAway), filesShown)
    return {
      title: frameWords(language).files,
      ...(more.status && { status: more.status }),
      body: html`${more.above}
<h2>${words.handIn}</h2><div class="card"><form method="post" action="/office/files" enctype="multipart/form-data">
${choiceField(
  'what',
  words.what,
  handedInKinds(parts).map(kind => [nameOf(kind), kindText(kind, words)]),
  values.get('what') ?? '',
)}
<div class="field"><label for="file">${words.file}</label><input id="file" name="file" type="file" required aria-describedby="file-hint"><p class="hint" id="file-hint">${words.fileHint}</p></div>
<button>${words.read}</button></form></div>
<h2>${words.before}</h2>${
        files.length === 0
          ? message(words.none)
          : tableOf(
              words.before,
              [words.file, words.came, words.lines, words.outcome],
              files.map(one => rowOf(one, language)),
            )
      }
${files.length === filesShown && html`<p><a class="button plain" href="/office/files?before=${files.at(-1)!.receivedAt}" rel="next">${words.older}</a></p>`}`,
    }
  }
  return [
    { method: 'GET', path: '/files', action: 'importFiles', whole: true, proven: true, answer: request => show(request) },
    {
      method: 'POST',
      path: '/files',
      action: 'importFiles',
      whole: true,
      proven: true,
      takesFiles: true,
      bodyMax: fileMax + 8192,
      async answer(request, { by }) {
        const words = fileWords(request.language)
        const { files, values } = request
        const kind = handedInKinds(parts).find(one => nameOf(one) === values.get('what'))
        const file = files.get('file')
        if (!kind || !file || file.bytes.length === 0)
          return show(request, { status: 400, above: message(words.chooseFile, 'wrong') })
        const name = file.name === '' ? words.noName : file.name
        const lines: [at: number, result: LineResult][] = []
        const report = await kind.read({ ...parts, by }, name, file.bytes, (at, result) => void lines.push([at, result]))
        const { what, of } = kind
        if ('broken' in report)
          await tellRefused({ ...parts, by }, { what, ...(of !== undefined && { of }), name, why: report.broken })
        const status = 'broken' in report ? 400 : 200
        return show(request, { status, above: reportOf(name, report, lines, words) })
      },
    },
    {
      method: 'GET',
      path: '/files/{hash}',
      action: 'importFiles',
      whole: true,
      async answer({ language, values }, _, { hash = '' }) {
        const words = fileWords(language)
        const behind = /^\d{1,9}$/.test(values.get('behind') ?? '') ? Number(values.get('behind')) : 0
        const found = /^[0-9a-f]{64}$/.test(hash)
          ? await findLines(database.work, Buffer.from(hash, 'hex'), behind, linesShown)
          : []
        if (found.length === 0) return nothingHere(language)
        return {
          title: words.linesOf,
          body: html`${tableOf(
            words.lines,
            [words.line, words.outcome, ''],
            found.map(({ line, outcome, subject }) => [line, words[`is_${outcome}`], html`<code>${visible(subject)}</code>`]),
          )}
${found.length === linesShown && html`<p><a class="button plain" href="/office/files/${hash}?behind=${found.at(-1)!.line}" rel="next">${words.more}</a></p>`}`,
        }
      },
    },
  ]
}

const nameOf = ({ what, of }: HandedInKind): string => (of === undefined ? what : `${what}:${of}`)

const kindText = ({ what, of }: HandedInKind, words: FileWords): string =>
  of === undefined ? words[`kind_${what}`] : `${words[`kind_${what}`]}: ${of}`

function reportOf(
  name: string,
  report: HandedInReport,
  lines: readonly (readonly [number, LineResult])[],
  words: FileWords,
): Html {
  if ('broken' in report) return message(fill(words.broken, { name, why: report.broken }), 'wrong')
  const sums = outcomes.map(outcome => `${report[outcome]} ${words[`is_${outcome}`]}`).join(', ')
  // What somebody has to look at stands first.
  const shown = [...lines].sort((a, b) => Number(b[1].kind === 'refused') - Number(a[1].kind === 'refused')).slice(0, linesShown)
  return html`${message(`${fill(report.again ? words.wasRead : words.isRead, { name })} ${sums}.`, report.refused > 0 ? 'wrong' : 'plain')}
${
  shown.length > 0 &&
  tableOf(
    words.lines,
    [words.line, words.outcome, ''],
    shown.map(([at, result]) => [at, words[`is_${result.kind}`], visible(result.kind === 'refused' ? result.why : result.text)]),
  )
}${lines.length > shown.length && html`<p class="soft">${fill(words.others, { count: String(lines.length - shown.length) })}</p>`}`
}

function rowOf(
  { hash, name, kind, receivedAt, finishedAt, lines, refused, outcomes: counts }: CameBefore,
  language: OfficeLanguage,
) {
  const words = fileWords(language)
  const told = outcomes.filter(one => counts[one]).map(one => `${counts[one]} ${words[`is_${one}`]}`)
  const address = `/office/files/${hash.toString('hex')}`
  return [
    html`${told.length === 0 ? visible(name) : html`<a href="${address}">${visible(name)}</a>`}${kind !== null && html`<br><span class="soft">${kind}</span>`}`,
    momentText(language, receivedAt),
    lines ?? '',
    refused !== null
      ? fill(words.refusedWhole, { why: visible(refused) })
      : `${told.join(', ')}${finishedAt === null ? ` ${words.unfinished}` : ''}`,
  ]
}
