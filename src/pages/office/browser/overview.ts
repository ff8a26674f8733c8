// Asks for the figures of the overview again. What somebody opened stays open; a page that nobody looks at asks for nothing.

const everyMilliseconds = 5000
const figures = document.querySelector<HTMLElement>('#figures')!

async function again(): Promise<void> {
  if (document.hidden || figures.contains(document.activeElement)) return
  const response = await fetch(`/office/overview/figures${location.search}`)
  if (!response.ok) return void clearInterval(timer)
  const text = await response.text()
  const details = () => figures.querySelectorAll<HTMLDetailsElement>('details')
  const open = new Set([...details()].filter(one => one.open).map(({ dataset }) => dataset.name))
  figures.innerHTML = text
  for (const one of details()) one.open = open.has(one.dataset.name)
}

const look = () => void again().catch(() => {})
const timer = setInterval(look, everyMilliseconds)
document.addEventListener('visibilitychange', look)
