// Brazilian tax ids: CPF of people, CNPJ of companies, since 2026 also with letters. Pure. Source: Receita Federal, Nota Técnica 49/2024 for letters.

import { elevenDigit } from './checkDigits.ts'

export type TaxId = {
  readonly kind: 'cpf' | 'cnpj'
  /** 11 digits, or 14 of which the last two are digits. */
  readonly id: string
}

const shapes = {
  cpf: /^\d{3}\.?\d{3}\.?\d{3}-?\d{2}$/,
  cnpj: /^[\dA-Z]{2}\.?[\dA-Z]{3}\.?[\dA-Z]{3}\/?[\dA-Z]{4}-?\d{2}$/,
} as const

/** Weights 2, 3 … to this one, from the last character on; those of a CNPJ begin again. */
const lastWeights = { cpf: 11, cnpj: 9 } as const

/** With or without dots, hyphen and slash. Undefined when it is none, or a check digit is wrong, or it is one digit throughout. */
export function readTaxId(text: string): TaxId | undefined {
  for (const kind of ['cpf', 'cnpj'] as const) {
    if (!shapes[kind].test(text)) continue
    const id = text.replace(/[./-]/g, '')
    const first = id.slice(0, -2)
    const second = first + elevenDigit(first, lastWeights[kind])
    return id === second + elevenDigit(second, lastWeights[kind]) && !/^(.)\1*$/.test(id) ? { kind, id } : undefined
  }
  return undefined
}

/** One of digits alone, and nothing else beside it: what may pass for a card number by chance. */
export const isTaxNumber = (text: string): boolean => /^\d+$/.test(readTaxId(text.trim())?.id ?? '')
