// Finds promises that nobody waits for: a rejection of theirs would end the process. `void` in front does not help, nor does handing an async
// function to who expects no promise (an event's listener, a timer). What ends in `.catch(…)` or `.then(…, …)` is fine. `npm run check`.

import { fileURLToPath } from 'node:url'
import { SyntaxKind } from 'typescript/unstable/ast'
import {
  isArrowFunction,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isExpressionStatement,
  isFunctionExpression,
  isIdentifier,
  isNewExpression,
  isParenthesizedExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isVariableDeclaration,
  isVoidExpression,
} from 'typescript/unstable/ast/is'
import { API, type Checker, SignatureKind, type Type, TypeFlags } from 'typescript/unstable/sync'

type Node = Parameters<typeof isBlock>[0]

/** `file:line text` of each. */
export function floatingPromises(project: string): string[] {
  const api = new API({ cwd: project })
  try {
    const opened = api.updateSnapshot({ openProjects: [`${project}tsconfig.json`] }).getProjects()[0]!
    const found: string[] = []
    for (const name of opened.program.getSourceFileNames()) {
      if (!name.startsWith(project) || name.includes('/node_modules/')) continue
      const file = opened.program.getSourceFile(name)!
      const look = lookIn(opened.checker, node => {
        const start = node.getStart(file)
        const line = file.text.slice(0, start).split('\n').length
        found.push(`${name.slice(project.length)}:${line}  ${node.getText(file).split('\n')[0]}`)
      })
      look(file)
    }
    return found
  } finally {
    api.close()
  }
}

// What node:test gives for a test is its runner's to wait for.
const testFunctions = /^(it|test|describe|before|after|beforeEach|afterEach)$/

function lookIn(checker: Checker, report: (node: Node) => void): (node: Node) => void {
  const known = new Map<number, boolean>()
  const isPromise = (type: Type | undefined): boolean => {
    if (!type || type.flags & (TypeFlags.Any | TypeFlags.Void | TypeFlags.Undefined)) return false
    const before = known.get(type.id)
    if (before !== undefined) return before
    const answer = type.isUnionType()
      ? type.getTypes().some(isPromise)
      : checker.getPropertyOfType(type, 'then') !== undefined && checker.getPropertyOfType(type, 'catch') !== undefined
    known.set(type.id, answer)
    return answer
  }
  const returns = (type: Type | undefined): readonly (Type | undefined)[] =>
    type ? checker.getSignaturesOfType(type, SignatureKind.Call).map(one => checker.getReturnTypeOfSignature(one)) : []

  /** The promise's rejection has a taker. */
  const isTaken = (node: Node): boolean => {
    if (isParenthesizedExpression(node) || isVoidExpression(node)) return isTaken(node.expression)
    if (isBinaryExpression(node)) return true // an assignment: somebody keeps it
    if (!isCallExpression(node)) return node.kind === SyntaxKind.AwaitExpression
    if (isIdentifier(node.expression) && testFunctions.test(node.expression.text)) return true
    if (!isPropertyAccessExpression(node.expression)) return false
    const { name, expression } = node.expression
    if (name.text === 'finally') return isTaken(expression)
    return (name.text === 'catch' && node.arguments.length > 0) || (name.text === 'then' && node.arguments.length > 1)
  }
  /** A function whose promise's rejection it takes itself. */
  const takesItself = (node: Node): boolean => {
    if (isIdentifier(node)) {
      const declared = checker.getSymbolAtLocation(node)?.valueDeclaration?.resolve(undefined!)
      return (
        declared !== undefined && isVariableDeclaration(declared) && !!declared.initializer && takesItself(declared.initializer)
      )
    }
    return isArrowFunction(node) && !isBlock(node.body) && isTaken(node.body)
  }
  const look = (node: Node): void => {
    if (isExpressionStatement(node) && !isTaken(node.expression) && isPromise(checker.getTypeAtLocation(node.expression)))
      report(node)
    else if (isVoidExpression(node) && !isTaken(node.expression) && isPromise(checker.getTypeAtLocation(node.expression)))
      report(node)
    for (const one of functionsGiven(node)) {
      if (!isArrowFunction(one) && !isFunctionExpression(one) && !isIdentifier(one) && !isPropertyAccessExpression(one)) continue
      const type = checker.getTypeAtLocation(one)
      if (!returns(type).some(isPromise) || takesItself(one)) continue
      const expected = checker.getContextualType(one as Parameters<Checker['getContextualType']>[0])
      const wanted = returns(expected && checker.getNonNullableType(expected))
      if (wanted.length > 0 && wanted.every(type => (type?.flags ?? 0) & TypeFlags.Void)) report(one)
    }
    node.forEachChild(look)
  }
  return look
}

// These wait for what they are given, whatever their types say: a promise's method, and an option of pg's pool.
const waits = /^(finally|onConnect)$/

/** Where a function is handed over. */
function functionsGiven(node: Node): readonly Node[] {
  if (isPropertyAssignment(node)) return isIdentifier(node.name) && waits.test(node.name.text) ? [] : [node.initializer]
  if (!isCallExpression(node) && !isNewExpression(node)) return []
  if (isPropertyAccessExpression(node.expression) && waits.test(node.expression.name.text)) return []
  return node.arguments ?? []
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const found = floatingPromises(fileURLToPath(new URL('..', import.meta.url)))
  for (const one of found) process.stdout.write(`nobody waits for it: ${one}\n`)
  if (found.length > 0) process.exitCode = 1
}
