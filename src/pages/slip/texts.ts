// What the pages of slips say, in the languages of the countries that have them, and in English.

import { type Language, languages } from '../languages/languages.ts'

const en = {
  title: 'Payment slip',
  payable: 'To be paid until {date}',
  part: 'Partly paid',
  paid: 'Paid',
  overdue: 'Was due on {date}',
  writtenOff: 'Withdrawn',
  payableText: 'Pay at any bank, in its app or with the barcode. The shop hears of it within three working days.',
  payableStoreText:
    'Show the barcode or say the reference in a store and pay in cash. The shop hears of it on the next working day.',
  partText: '{amount} of it has arrived. Ask the shop how to pay the rest.',
  paidText: 'Your payment of {amount} has arrived. Thank you.',
  overdueText: 'It can still be paid, but the shop may have given up the order: ask there first.',
  writtenOffText: 'The shop has withdrawn this slip. Please do not pay it.',
  copyLine: 'Copy the line',
  copyReference: 'Copy the reference',
  copied: 'Copied',
  line: 'Line to type',
  reference: 'Reference',
  pixTitle: 'Or pay by Pix',
  copyPix: 'Copy the Pix code',
  pdf: 'Download as PDF',
  print: 'Print',
  due: 'Due',
  payer: 'Payer',
  taxId: 'Tax id',
  beneficiary: 'Beneficiary',
  number: 'Number',
  product: 'Product',
  barcode: 'Barcode {digits}',
  testNotice: 'Test slip: it cannot be paid.',
  forTesters: 'Only a sandbox shows this. The slip is then paid as a bank or a store would tell it.',
  payIt: 'Pay this slip',

  // In the payment form.
  formHint: 'You get a slip with a barcode and pay it in the app of your bank, at a bank or in a store.',
  givenName: 'First name',
  surname: 'Last name',
  email: 'Email address',
  street: 'Street and number',
  city: 'City',
  state: 'State',
  postcode: 'Postcode',
  fieldMissing: 'Please fill this in.',
  fieldWrong: 'Please check this.',
} as const
export type SlipTexts = Readonly<Record<keyof typeof en, string>>

const pt: SlipTexts = {
  title: 'Boleto',
  payable: 'Pagar até {date}',
  part: 'Pago em parte',
  paid: 'Pago',
  overdue: 'Venceu em {date}',
  writtenOff: 'Cancelado',
  payableText:
    'Pague em qualquer banco, pelo aplicativo ou com o código de barras. A loja recebe a confirmação em até três dias úteis.',
  payableStoreText:
    'Mostre o código de barras ou informe a referência na loja e pague em dinheiro. A confirmação chega no próximo dia útil.',
  partText: 'Recebemos {amount}. Pergunte à loja como pagar o restante.',
  paidText: 'O seu pagamento de {amount} foi recebido. Obrigado.',
  overdueText: 'Ele ainda pode ser pago, mas a loja pode ter cancelado o pedido: pergunte antes.',
  writtenOffText: 'A loja cancelou este boleto. Por favor, não o pague.',
  copyLine: 'Copiar linha digitável',
  copyReference: 'Copiar referência',
  copied: 'Copiado',
  line: 'Linha digitável',
  reference: 'Referência',
  pixTitle: 'Ou pague com Pix',
  copyPix: 'Copiar código Pix',
  pdf: 'Baixar em PDF',
  print: 'Imprimir',
  due: 'Vencimento',
  payer: 'Pagador',
  taxId: 'CPF/CNPJ',
  beneficiary: 'Beneficiário',
  number: 'Nosso número',
  product: 'Produto',
  barcode: 'Código de barras {digits}',
  testNotice: 'Boleto de teste: não pode ser pago.',
  forTesters: 'Só um ambiente de testes mostra isto. O boleto é pago como um banco informaria.',
  payIt: 'Pagar este boleto',

  // In the payment form.
  formHint: 'Você recebe um boleto com código de barras e paga no aplicativo do seu banco ou em uma agência.',
  givenName: 'Nome',
  surname: 'Sobrenome',
  email: 'E-mail',
  street: 'Rua e número',
  city: 'Cidade',
  state: 'Estado (UF)',
  postcode: 'CEP',
  fieldMissing: 'Preencha este campo.',
  fieldWrong: 'Confira este campo.',
}

const es: SlipTexts = {
  title: 'Ficha de pago',
  payable: 'Pagar hasta el {date}',
  part: 'Pagada en parte',
  paid: 'Pagada',
  overdue: 'Venció el {date}',
  writtenOff: 'Cancelada',
  payableText:
    'Paga en cualquier banco, en su aplicación o con el código de barras. La tienda recibe la confirmación en tres días hábiles.',
  payableStoreText:
    'Muestra el código de barras o di la referencia en la tienda y paga en efectivo. La confirmación llega el siguiente día hábil.',
  partText: 'Recibimos {amount}. Pregunta a la tienda cómo pagar el resto.',
  paidText: 'Recibimos tu pago de {amount}. Gracias.',
  overdueText: 'Todavía se puede pagar, pero la tienda puede haber cancelado el pedido: pregunta antes.',
  writtenOffText: 'La tienda canceló esta ficha. Por favor, no la pagues.',
  copyLine: 'Copiar la línea',
  copyReference: 'Copiar la referencia',
  copied: 'Copiado',
  line: 'Línea',
  reference: 'Referencia',
  pixTitle: 'O paga con Pix',
  copyPix: 'Copiar el código Pix',
  pdf: 'Descargar en PDF',
  print: 'Imprimir',
  due: 'Vencimiento',
  payer: 'Quien paga',
  taxId: 'Identificación fiscal',
  beneficiary: 'Beneficiario',
  number: 'Número',
  product: 'Producto',
  barcode: 'Código de barras {digits}',
  testNotice: 'Ficha de prueba: no se puede pagar.',
  forTesters: 'Solo un entorno de pruebas muestra esto. La ficha se paga como lo informaría una tienda.',
  payIt: 'Pagar esta ficha',

  // In the payment form.
  formHint: 'Recibes una ficha con código de barras y la pagas en una tienda o en tu banco.',
  givenName: 'Nombre',
  surname: 'Apellidos',
  email: 'Correo electrónico',
  street: 'Calle y número',
  city: 'Ciudad',
  state: 'Estado',
  postcode: 'Código postal',
  fieldMissing: 'Completa este campo.',
  fieldWrong: 'Revisa este campo.',
}

const ofCountry = { BR: ['pt', 'BR'], MX: ['es', 'MX'] } as const
const texts: ReadonlyMap<string, SlipTexts> = new Map([
  ['en', en],
  ['pt', pt],
  ['es', es],
])

/** `wanted`: what the browser asks for. What is not among the three is answered in the language of the slip's country. */
export function slipLanguage(
  wanted: Language | undefined,
  country: keyof typeof ofCountry,
): { language: Language; texts: SlipTexts } {
  const [own, region] = ofCountry[country]
  const chosen = wanted && texts.has(wanted.code) ? wanted : { ...languages.get(own)!, locale: `${own}-${region}` }
  return { language: chosen, texts: texts.get(chosen.code)! }
}

export const filledIn = (text: string, slots: Readonly<Record<string, string>>): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => slots[name] ?? '')
