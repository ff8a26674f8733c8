// CLABE: the number of a Mexican bank account, 18 digits of which the last is a check digit. Pure.

const weights = [3, 7, 1]

export function isClabe(text: string): boolean {
  if (!/^\d{18}$/.test(text)) return false
  let sum = 0
  for (let at = 0; at < 17; at++) sum += (Number(text[at]) * weights[at % 3]!) % 10
  return (10 - (sum % 10)) % 10 === Number(text[17])
}
