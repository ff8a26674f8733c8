// Asks how far an export is, until it is made. What has the focus is not taken away.

const everyMilliseconds = 1000
const progress = document.querySelector<HTMLElement>('#progress')!
const isMaking = () => progress.querySelector('[data-state=making]') !== null

async function look(): Promise<void> {
  if (!isMaking()) return clearInterval(timer)
  if (document.hidden || progress.contains(document.activeElement)) return
  const response = await fetch(`${location.pathname}/progress`)
  if (response.ok) progress.innerHTML = await response.text()
  else clearInterval(timer)
}

const timer = setInterval(() => void look().catch(() => {}), everyMilliseconds)
