// What the console's page runs: takes the panels as they change, and copies what somebody wants to paste. Without it the page shows what was there when it
// was asked for.

export const consoleScript = `
const state = document.getElementById('live')
const source = new EventSource('/office/console/changes')
source.onopen = () => { state.textContent = state.dataset.live }
source.onerror = () => { state.textContent = state.dataset.away }
source.addEventListener('panel', event => {
  const { name, html } = JSON.parse(event.data)
  const panel = document.getElementById(name)
  if (panel.contains(document.activeElement) && document.activeElement.matches('button')) return
  const open = [...panel.querySelectorAll('details[open]')].map(one => one.id)
  panel.innerHTML = html
  for (const id of open) document.getElementById(id)?.setAttribute('open', '')
})
document.addEventListener('click', async event => {
  const button = event.target.closest('[data-copy]')
  if (!button) return
  await navigator.clipboard.writeText(button.dataset.copy)
  for (const one of document.querySelectorAll('[data-copy]')) one.textContent = one === button ? one.dataset.done : one.dataset.again
})
`
