// Known weaknesses of what we depend on, as the registry knows them.

import { spawnSync } from 'node:child_process'

export type Advisories = { readonly findings: readonly string[] } | { readonly notAsked: string }

/** Asks the registry through npm. Where the network does not let it, that is said. */
export function askRegistry(project: string): Advisories {
  const { stdout, error } = spawnSync('npm', ['audit', '--json'], {
    cwd: project,
    encoding: 'utf8',
    timeout: 120_000,
    maxBuffer: 50_000_000,
  })
  return error ? { notAsked: error.message } : readAudit(stdout)
}

/** What `npm audit --json` printed. */
export function readAudit(text: string): Advisories {
  let report: { vulnerabilities?: Record<string, { severity?: string; range?: string }>; message?: string }
  try {
    report = JSON.parse(text)
  } catch {
    return { notAsked: 'npm printed no report' }
  }
  if (!report.vulnerabilities) return { notAsked: report.message ?? 'npm printed no report' }
  return {
    findings: Object.entries(report.vulnerabilities).map(
      ([name, { severity, range }]) => `${name} ${range ?? ''}: ${severity ?? 'unrated'}.`,
    ),
  }
}
