// Fields with the text beside them that says what is wrong: on leaving a field, on paying, and while typing where that helps.

import type { Problem } from '../checks.ts'
import { element, textOf } from './page.ts'
import { tellShop } from './port.ts'

export type FormField = {
  /** As callbacks of shops know it. */
  readonly name: string
  readonly input: HTMLInputElement
  problem(): Problem | undefined
}

/** Shows what is wrong with a field, or that nothing is. */
export function showProblem({ input }: FormField, problem: Problem | undefined): void {
  const beside = element(`${input.id}-error`)!
  const text = problem ? textOf(problem) : ''
  if (beside.textContent !== text) beside.textContent = text
  beside.hidden = problem === undefined
  if (problem) input.setAttribute('aria-invalid', 'true')
  else input.removeAttribute('aria-invalid')
  input.closest('.field')!.classList.toggle('wrong', problem !== undefined)
}

/** A field that was found wrong is right as soon as it is; one that was left empty is not complained of before paying. */
export function watchField(field: FormField): void {
  const { name, input } = field
  input.addEventListener('focus', () => tellShop({ kind: 'focus', field: name }))
  input.addEventListener('blur', () => {
    whenReleased(() => input.value !== '' && showProblem(field, field.problem()))
    tellShop({ kind: 'blur', field: name, valid: field.problem() === undefined })
  })
  input.addEventListener('input', () => {
    if (input.getAttribute('aria-invalid') === 'true' && !field.problem()) showProblem(field, undefined)
  })
}

let isPressed = false
const waiting: (() => unknown)[] = []
const press = (): void => {
  isPressed = true
}
/** The click comes before. */
const release = (): unknown =>
  setTimeout(() => {
    isPressed = false
    for (const act of waiting.splice(0)) act()
  })
addEventListener('pointerdown', press, true)
addEventListener('pointerup', release, true)
addEventListener('pointercancel', release, true)

/** A text that comes while the pointer is down on a button would push the button away from under it, and its click would be lost. */
const whenReleased = (act: () => unknown): unknown => (isPressed ? waiting.push(act) : act())

/** Shows all that is wrong and goes to the first of it. */
export function allRight(fields: readonly FormField[]): boolean {
  const wrong = fields.filter(field => {
    const problem = field.problem()
    showProblem(field, problem)
    return problem !== undefined
  })
  wrong[0]?.input.focus()
  return wrong.length === 0
}
