// merchantMemo: what it is read as, and what is left to a person.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type BankDetail, checkBankDetails, readBankDetails } from '../src/payments/transfers/bankDetails.ts'

const silva = {
  holder: 'João da Silva',
  taxId: '11144477735',
  bank: '341',
  agency: '1234',
  agencyDigit: '',
  account: '56789',
  accountDigit: '0',
}

describe('bank details are read', () => {
  const cases: readonly (readonly [memo: string, expected: object])[] = [
    ['João da Silva; 111.444.777-35; Itaú; 1234; 56789-0', silva],
    ['João da Silva, 11144477735, Banco Itaú, 1234, 56789-0', silva],
    ['João da Silva, CPF 111.444.777-35, Banco 341, agência 1234, conta 56789-0', silva],
    ['João da Silva; CPF: 111.444.777-35; Itaú; ag. 1234; c/c 56789-0', silva],
    ['João da Silva\n11144477735\n341\n1234\n56.789-0\n', silva],
    ['João da Silva\u2028111.444.777-35\u2029Itaú\u00851234\v56789-0', silva],
    ['Nome: João da Silva | CPF: 111.444.777-35 | Banco: 341 - Itaú Unibanco | Agência: 1234 | Conta: 56789-0', silva],
    ['conta=56789-0; agencia=1234; banco=341; cpf=11144477735; titular=João da Silva', silva],
    [
      'Holder: Ana Lima; Tax ID: 11.222.333/0001-81; Bank: Banco do Brasil; Branch: 1234-x; Account: 98765-P',
      {
        holder: 'Ana Lima',
        taxId: '11222333000181',
        bank: '001',
        agency: '1234',
        agencyDigit: 'X',
        account: '98765',
        accountDigit: 'P',
      },
    ],
    [
      'Ana Lima; 12ABC34501DE35; Caixa Econômica Federal; 1; 2-3',
      { holder: 'Ana Lima', taxId: '12ABC34501DE35', bank: '104', agency: '1', agencyDigit: '', account: '2', accountDigit: '3' },
    ],
    [
      'Ana Lima; 11144477735; Nubank; 0001; 2-3',
      { ...silva, holder: 'Ana Lima', bank: '260', agency: '0001', account: '2', accountDigit: '3' },
    ],
    [
      'Ana Lima; 11144477735; Banco Inter; 0001; 2-3',
      { ...silva, holder: 'Ana Lima', bank: '077', agency: '0001', account: '2', accountDigit: '3' },
    ],
    [
      'Ana Lima; 11144477735; C6 Bank; 0001; 2-3',
      { ...silva, holder: 'Ana Lima', bank: '336', agency: '0001', account: '2', accountDigit: '3' },
    ],
    ['Ana López; 032180000118359719', { holder: 'Ana López', clabe: '032180000118359719' }],
    ['CLABE: 0020 1007 7777 7777 71; Nombre: Ana López', { holder: 'Ana López', clabe: '002010077777777771' }],
  ]
  for (const [memo, expected] of cases)
    it(JSON.stringify(memo), () => assert.deepEqual(readBankDetails(memo, 'clabe' in expected ? 'MXN' : 'BRL'), expected))
})

describe('bank details are left to a person', () => {
  const cases: readonly (readonly [what: string, memo: string])[] = [
    ['named otherwise than their place says', 'João da Silva, CPF 111.444.777-35, Banco 341, conta 1234, agência 56789-0'],
    ['nothing', ''],
    ['a sentence', 'please refund to the account that you know'],
    ['a wrong check digit', 'João da Silva; 11144477734; Itaú; 1234; 56789-0'],
    ['an account without its hyphen', 'João da Silva; 11144477735; Itaú; 1234; 567890'],
    ['a bank that is not known', 'João da Silva; 11144477735; Banco Qualquer; 1234; 56789-0'],
    ['a name of prototypes', 'João da Silva; 11144477735; constructor; 1234; 56789-0'],
    ['a bank whose code and name disagree', 'João da Silva; 11144477735; 237 Itaú; 1234; 56789-0'],
    ['two codes', 'João da Silva; 11144477735; 237 341; 1234; 56789-0'],
    ['another order', 'João da Silva; Itaú; 11144477735; 1234; 56789-0'],
    ['something left over', 'João da Silva; 11144477735; Itaú; 1234; 56789-0; urgent'],
    ['a savings account', 'Nome: João da Silva; CPF: 11144477735; Banco: 341; Agência: 1234; Conta: 56789-0; Tipo: poupança'],
    ['a part twice', 'Nome: João da Silva; CPF: 11144477735; Banco: 341; Agência: 1234; Conta: 56789-0; Conta: 11111-1'],
    ['a part in place of another', 'Nome: João da Silva; Nome: Ana; Banco: 341; Agência: 1234; Conta: 56789-0'],
    ['a name that is half said', 'Nome: João da Silva; 11144477735; Itaú; 1234; 56789-0'],
    ['a holder of digits', '12345; 11144477735; Itaú; 1234; 56789-0'],
    ['a sign that nobody sees', 'João da Silva; 11144477735; Itaú; 1234; 56789-0\u202e'],
    ['a CLABE with a wrong digit', 'Ana López; 032180000118359718'],
    ['an account of another country', 'Ana López; 032180000118359719'],
    ['a bank that ends in another line', `A B;1;001${' '.repeat(2020)}x\u2028y;1;1-1`],
    ['a bank that is mostly blank', `João da Silva; 11144477735; 341${' '.repeat(100)}Itaú; 1234; 56789-0`],
    [
      'a label that is far from its value',
      `Nome: João da Silva; CPF:${' '.repeat(140)}11144477735; Banco: 341; Agência: 1234; Conta: 56789-0`,
    ],
    ['an agency that is too long', 'João da Silva; 11144477735; Itaú; 123456; 56789-0'],
  ]
  for (const [what, memo] of cases)
    it(what, () => assert.equal(readBankDetails(memo, /CLABE/.test(what) ? 'MXN' : 'BRL'), undefined))

  it('also of a field that a person filled in with lines', () => {
    const fields = { holder: 'Ana Lima', taxId: '11144477735', bank: '341', agency: '1234', account: '56789-0' }
    for (const [name, value] of Object.entries(fields) as [BankDetail, string][])
      for (const line of ['\nx', '\rx', '\u2028x', '\u2029x'])
        assert.deepEqual(
          checkBankDetails(new Map(Object.entries({ ...fields, [name]: value + line }) as [BankDetail, string][])),
          {
            wrong: [name],
          },
        )
  })

  it('whatever it is, reading ends and never fails', () =>
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 2048 }), memo => {
        readBankDetails(memo, 'BRL')
      }),
      { numRuns: 200 },
    ))
})
