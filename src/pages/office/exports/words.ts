// The words of the pages about exports.

import { wordsIn } from '../words.ts'

export const exportWords = wordsIn(
  {
    isLong: 'This file has more than {count} lines. It is made while you do something else, and can be taken for some days.',
    begin: 'Make the file',
    tooMany: 'There are too many files already, of yours or of your colleagues. Delete one that is not needed any more.',
    none: 'No file is being made or waits to be taken. Long files of payments and reports come to stand here.',
    file: 'File',
    asked: 'Asked for (UTC)',
    ends: 'Deleted (UTC)',
    by: 'By',
    state: 'State',
    waiting: 'waits for its turn',
    making: '{records} of {total} lines',
    counting: '{records} lines so far',
    made: 'ready: {records} lines, {size} MB',
    tooLarge: 'Too large for one file. Narrow the filter or the days.',
    take: 'Take the file',
    cancel: 'Cancel',
    remove: 'Delete',
    again: 'Look again',
    progress: 'Progress',
  },
  {
    isLong:
      'Este arquivo tem mais de {count} linhas. Ele é feito enquanto você faz outra coisa e pode ser baixado por alguns dias.',
    begin: 'Fazer o arquivo',
    tooMany: 'Já há arquivos demais, seus ou dos seus colegas. Exclua um que não seja mais necessário.',
    none: 'Nenhum arquivo está sendo feito ou espera ser baixado. Arquivos longos de pagamentos e relatórios aparecem aqui.',
    file: 'Arquivo',
    asked: 'Pedido em (UTC)',
    ends: 'Excluído em (UTC)',
    by: 'Por',
    state: 'Situação',
    waiting: 'aguarda a sua vez',
    making: '{records} de {total} linhas',
    counting: '{records} linhas até agora',
    made: 'pronto: {records} linhas, {size} MB',
    tooLarge: 'Grande demais para um arquivo. Restrinja o filtro ou os dias.',
    take: 'Baixar o arquivo',
    cancel: 'Cancelar',
    remove: 'Excluir',
    again: 'Ver de novo',
    progress: 'Andamento',
  },
)
