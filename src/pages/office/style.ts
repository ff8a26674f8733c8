// How the back office looks: light and dark, wide and on a phone.

export const officeStyle = `
:root { --ink: #1b2430; --soft: #55616f; --paper: #fff; --ground: #eef1f5; --line: #d5dce5; --accent: #1d5fd1; --on-accent: #fff; --good: #14683a; --wrong: #b3261e; --warn: #8a4b00; --warn-ground: #fff3dc; --warn-line: #d9a441; --mark: #e4edfc; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf4; --soft: #a9b5c4; --paper: #1c232d; --ground: #11161d; --line: #344052; --accent: #7fb0ff; --on-accent: #0c1a30; --good: #7fd6a2; --wrong: #ffb4ab; --warn: #ffd591; --warn-ground: #2c2110; --warn-line: #8a6420; --mark: #223350; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; -webkit-text-size-adjust: 100%; }
a { color: var(--accent); }
.skip { position: absolute; left: -999rem; }
.skip:focus { left: 1rem; top: .5rem; padding: .5rem 1rem; background: var(--paper); z-index: 2; }
.notice { margin: 0; padding: .35rem 1rem; background: var(--warn-ground); color: var(--warn); border-bottom: 1px solid var(--warn-line); text-align: center; font-weight: 600; font-size: .88rem; }
.top { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.25rem; padding: .5rem 1.25rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.brand { font-weight: 700; font-size: 1.1rem; color: var(--ink); text-decoration: none; }
nav ul { display: flex; flex-wrap: wrap; gap: .15rem; margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: .35rem .7rem; color: var(--ink); text-decoration: none; border-radius: 7px; }
nav a:hover { background: var(--ground); }
nav a[aria-current] { background: var(--mark); font-weight: 600; }
nav.wide { flex-basis: 100%; margin: 0 -.7rem; }
details.menu { display: none; }
.who { display: flex; align-items: center; gap: .75rem; margin-left: auto; }
.who form { margin: 0; }
.who a { color: var(--ink); overflow-wrap: anywhere; }
.role { margin-left: .5rem; padding: .1rem .5rem; color: var(--soft); border: 1px solid var(--line); border-radius: 99px; font-size: .82rem; white-space: nowrap; }
h1::first-letter, td a::first-letter { text-transform: uppercase; }
main { max-width: 84rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; outline: none; }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 .6rem; font-size: 1.1rem; }
p { margin: 0 0 1rem; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--wrong); }
.card { margin: 0 0 1.25rem; padding: 1.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
.card > :last-child { margin-bottom: 0; }
.card form + form { margin-top: .5rem; }
.narrow { max-width: 30rem; }
.scroll { overflow-x: auto; margin: 0 0 1.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 12px; }
table { width: 100%; border-collapse: collapse; font-size: .93rem; }
th, td { padding: .5rem .8rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: minmax(8rem, auto) minmax(0, 1fr); gap: .35rem 1.25rem; margin: 0 0 1rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
code, .code { font: .87rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
pre { margin: 0 0 1rem; padding: .75rem; overflow-x: auto; white-space: pre-wrap; background: var(--ground); border-radius: 8px; }
form.line { display: flex; flex-wrap: wrap; align-items: end; gap: .6rem; margin: 0 0 1rem; }
label { display: block; margin: 0 0 .25rem; font-weight: 600; font-size: .9rem; }
.field { margin: 0 0 1rem; }
.hint { margin: .25rem 0 0; color: var(--soft); font-size: .88rem; }
input:not([type=checkbox], [type=radio], [type=hidden], [type=file]), select, textarea { width: 100%; min-height: 2.5rem; padding: .4rem .65rem; font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--soft); border-radius: 8px; }
[aria-invalid=true] { border-color: var(--wrong) !important; } p.wrong { margin: .25rem 0 0; color: var(--wrong); font-weight: 600; font-size: .9rem; }
form.line .field { margin: 0; }
form.line input, form.line select { width: auto; }
textarea { min-height: 8rem; font: .87rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
button, a.button { display: inline-block; min-height: 2.5rem; padding: .4rem 1rem; font: inherit; font-weight: 600; text-decoration: none; cursor: pointer; color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: 8px; }
button.plain, a.plain { color: var(--ink); background: transparent; border-color: var(--soft); }
button.danger { color: var(--wrong); background: transparent; border-color: var(--wrong); }
button.quiet { min-height: 1.75rem; padding: .1rem .4rem; color: var(--soft); background: transparent; border-color: transparent; font-weight: 400; text-decoration: underline; }
button[aria-pressed=true] { text-decoration: none; font-weight: 600; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.message { margin: 0 0 1.25rem; padding: .75rem 1rem; background: var(--paper); border: 1px solid var(--line); border-left: 4px solid var(--accent); border-radius: 8px; }
.message.wrong { border-left-color: var(--wrong); color: var(--wrong); font-weight: 600; }
.message.secret { border-left-color: var(--warn-line); }
.qr { display: inline-block; padding: 16px; background: #fff; border-radius: 8px; }
.qr svg { display: block; width: 11rem; height: 11rem; }
footer { max-width: 84rem; margin: 0 auto; padding: 0 1.25rem 2rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 1rem; margin: 0 0 1.25rem; }
.tile { margin: 0; } .tile h2 { margin: 0; color: var(--soft); font-size: .9rem; } .tile p { margin: 0; }
.figure { font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; } .figure span { display: block; }
.whole { white-space: nowrap; }
a.button[aria-current] { background: var(--mark); }
figure { margin-inline: 0; }
.plot { display: block; width: 100%; height: 12rem; }
.ends { display: flex; justify-content: space-between; margin: .25rem 0 .5rem; font-size: .85rem; }
@media (max-width: 52rem) {
  nav.wide { display: none; }
  details.menu { display: block; order: 3; flex-basis: 100%; }
  details.menu summary { padding: .35rem 0; cursor: pointer; font-weight: 600; }
  details.menu ul { flex-direction: column; }
  main { padding: 1rem .8rem 2rem; }
  .top { padding: .5rem .8rem; }
}
@media (max-width: 36rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin: 0 0 .5rem; }
  form.line > * { flex: 1 1 100%; } form.line input, form.line select { width: 100%; }
}
`
