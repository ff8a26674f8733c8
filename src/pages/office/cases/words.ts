// The words of the cases.

import type { CaseKind } from '../../../payments/cases/cases.ts'
import { wordsIn } from '../words.ts'

export const caseWords = wordsIn(
  {
    open: 'Open',
    all: 'All',
    none: 'No case is open: nothing waits for a decision.',
    kind: 'What it is',
    about: 'About',
    merchant: 'Merchant',
    opened: 'Opened (UTC)',
    owner: 'Looked after by',
    closed: 'Closed (UTC)',
    state: 'State',
    nobody: 'no merchant is known',
    details: 'Details',
    history: 'History',
    taken: '{by} took it over',
    released: '{by} left it to others',
    note: '{by} wrote: {text}',
    closedBy: '{by} closed it: {text}',
    openedText: 'The gateway opened it',
    take: 'Take it over',
    release: 'Leave it to others',
    noteLabel: 'Note for colleagues',
    addNote: 'Write it down',
    decide: 'Close',
    ofOperator: 'What became of the money the staff of the operator decides.',
    reason: 'Reason, for whoever asks later',
    decision: 'What became of the payment',
    carriedOut: 'It was carried out',
    notCarriedOut: 'It was not carried out',
    choose: 'Ask the other side first',
    close: 'Close the case',
    isClosed: 'The case is closed.',
    isFull: 'So much has been written about the case that no more is kept: close it.',
    needsReason: 'Give a reason of 1 to 500 characters.',
    needsDecision: 'Say what became of the payment.',
  },
  {
    open: 'Abertos',
    all: 'Todos',
    none: 'Nenhum caso aberto: nada espera uma decisão.',
    kind: 'O que é',
    about: 'Sobre',
    merchant: 'Lojista',
    opened: 'Aberto em (UTC)',
    owner: 'Responsável',
    closed: 'Encerrado em (UTC)',
    state: 'Situação',
    nobody: 'nenhum lojista conhecido',
    details: 'Detalhes',
    history: 'Histórico',
    taken: '{by} assumiu',
    released: '{by} deixou para outros',
    note: '{by} escreveu: {text}',
    closedBy: '{by} encerrou: {text}',
    openedText: 'O gateway abriu o caso',
    take: 'Assumir',
    release: 'Deixar para outros',
    noteLabel: 'Nota para os colegas',
    addNote: 'Anotar',
    decide: 'Encerrar',
    ofOperator: 'O que aconteceu com o dinheiro decide a equipe do operador.',
    reason: 'Motivo, para quem perguntar depois',
    decision: 'O que aconteceu com o pagamento',
    carriedOut: 'Foi realizado',
    notCarriedOut: 'Não foi realizado',
    choose: 'Pergunte antes ao outro lado',
    close: 'Encerrar o caso',
    isClosed: 'O caso está encerrado.',
    isFull: 'Já se escreveu tanto sobre o caso que nada mais é guardado: encerre-o.',
    needsReason: 'Dê um motivo de 1 a 500 caracteres.',
    needsDecision: 'Diga o que aconteceu com o pagamento.',
  },
)

/** The kinds in Portuguese; English stands beside them in payments/cases. */
export const kindsInPortuguese: Readonly<Record<CaseKind, string>> = {
  clearingLine: 'uma linha de um arquivo não corresponde a nenhum pagamento',
  answerUnproven: 'o outro lado respondeu, e ninguém sabe se o pagamento foi realizado',
  stillUnknown: 'o outro lado continua respondendo que não sabe; a pergunta é repetida, e o caso se encerra quando ele disser',
  answersContradict: 'um pagamento foi aprovado, e uma resposta posterior à mesma mensagem o recusa',
  transactionTaken:
    'um banco ou uma carteira citou uma transação que é de outro pagamento: ela pagou um deles, no máximo, e nada foi devolvido; pergunte ao outro lado qual',
  totalsDiffer: 'um adquirente informa totais do dia diferentes dos nossos',
  totalsUnheard: 'um adquirente não confirma os totais de um dia',
  settlementLine: 'uma linha de um arquivo de liquidação não corresponde a nenhum lançamento nosso, ou só em parte',
  lineMissing: 'um lançamento nosso não está nos arquivos de liquidação do seu dia',
  settlementMissing: 'o arquivo de liquidação de um dia não chegou',
  captureLine: 'uma linha da confirmação de um arquivo de capturas rejeita uma captura ou cita uma que não está no arquivo',
  captureUnacknowledged: 'uma captura está em um arquivo, e a confirmação dele não a cita',
  transferDetails: 'um estorno deve ser transferido, e ninguém disse para qual conta: informe os dados na página do pagamento',
  transferLine: 'um banco diz de uma transferência algo que não combina: ela não é conhecida, ou já terminou de outro modo',
  transfersHeld:
    'o banco de dados voltou a um momento anterior, e os arquivos de transferências esperam: leia o que o banco disse dos que já tem e libere-os com tollgate transfers release',
  capturesHeld:
    'o banco de dados voltou a um momento anterior, e os arquivos de capturas esperam: leia o que o adquirente disse dos que já tem e libere-os com tollgate acquirers release',
  ordersHeld:
    'o banco de dados voltou a um momento anterior, e os arquivos de remessa a um banco esperam: informe quais ele já tem com tollgate slips release',
  receiptFile:
    'um arquivo de recebimentos não pôde ser posto no servidor de um lojista: desistiu-se dele, ou os dois servidores não se conhecem',
  returnLine:
    'uma linha de um arquivo de um banco ou de uma rede de lojas é dinheiro de nenhum boleto, ou diz o que alguém precisa olhar',
  returnFile:
    'um arquivo de um banco ou de uma rede de lojas não está inteiro, é outro, ou não pôde ser lido até o fim ou movido: o caso diz qual',
  returnServer:
    'o servidor de um banco ou de uma rede de lojas não pode ser alcançado, é outro, ou não entrega todos os seus arquivos',
  returnMissing: 'os arquivos de um banco ou de uma rede de lojas são contados, e um não chegou',
  reportFile:
    'um relatório programado não pôde ser entregue ao seu servidor: foi abandonado, ou os dois servidores não se conhecem',
  reversalOpen:
    'dinheiro talvez retido ou movimentado não pôde ser devolvido: pergunte ao outro lado. Encerrar o caso encerra as tentativas, e volta a valer o que foi informado: um estorno que falhou pode ser feito de novo',
}
