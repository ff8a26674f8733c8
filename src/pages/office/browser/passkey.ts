// Asks the browser for a passkey, or for a new one, and sends what it says with the form. Without it the form is not shown: nothing else can ask for a key.

const asking = document.querySelector<HTMLFormElement>('#passkey')!
const answer = asking.querySelector<HTMLInputElement>('[name=credential]')!
const failed = asking.querySelector<HTMLElement>('[role=alert]')!

async function askForKey(): Promise<void> {
  const options = JSON.parse(asking.dataset.options!)
  failed.hidden = true
  try {
    const credential =
      asking.dataset.kind === 'make'
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) })
    answer.value = JSON.stringify((credential as PublicKeyCredential).toJSON())
    asking.submit()
  } catch {
    failed.hidden = false
  }
}

if (typeof PublicKeyCredential === 'function' && 'parseRequestOptionsFromJSON' in PublicKeyCredential) asking.hidden = false
asking.addEventListener('submit', event => {
  event.preventDefault()
  void askForKey()
})
