// The words of the back office in its languages. Every folder of pages has a table of its own; English is what the others must have, slot by slot.

import type { Translated } from '../languages/texts.ts'

export const officeLanguages = { en: 'English', pt: 'Português (Brasil)' } as const
export type OfficeLanguage = keyof typeof officeLanguages

/** For the lang attribute, amounts and times. */
export const officeLocales: Readonly<Record<OfficeLanguage, string>> = { en: 'en-GB', pt: 'pt-BR' }

/** const words = wordsIn({ title: 'Payments' }, { title: 'Pagamentos' }); words(language).title. A word that is missing does not compile, nor one without one of its slots. */
export const wordsIn =
  <const En extends Readonly<Record<string, string>>>(en: En, pt: Translated<En>) =>
  (language: OfficeLanguage): Translated<En> =>
    language === 'pt' ? pt : (en as unknown as Translated<En>)

/** The first of the browser's languages that there is, unless somebody chose one. */
export function officeLanguage(chosen: string | undefined, accepted = ''): OfficeLanguage {
  if (chosen !== undefined && Object.hasOwn(officeLanguages, chosen)) return chosen as OfficeLanguage
  const [first] = accepted
    .split(',')
    .map(part => part.trim().slice(0, 2).toLowerCase())
    .filter(code => Object.hasOwn(officeLanguages, code))
  return (first as OfficeLanguage | undefined) ?? 'en'
}

/** A moment in UTC, to the second: the same for colleagues wherever they sit. */
export const momentText = (language: OfficeLanguage, milliseconds: number): string => moments[language].format(milliseconds)

// To make one takes longer than to write a hundred moments.
const momentsIn = (locale: string) =>
  new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' })
const moments: Readonly<Record<OfficeLanguage, Intl.DateTimeFormat>> = {
  en: momentsIn(officeLocales.en),
  pt: momentsIn(officeLocales.pt),
}

export const frameWords = wordsIn(
  {
    office: 'Back office',
    menu: 'Menu',
    signOut: 'Sign out',
    account: 'Your account',
    skip: 'Skip to the content',
    language: 'Language',
    sandbox: 'Sandbox: no real money moves here.',
    console: 'Console',
    payments: 'Payments',
    overview: 'Overview',
    cases: 'Cases',
    approvals: 'Approvals',
    deliveries: 'Notifications given up',
    work: 'Work that fails',
    reports: 'Reports',
    files: 'Files',
    risk: 'Risk lists',
    exports: 'Exports',
    schedules: 'Files on servers',
    entities: 'Entities',
    webhooks: 'Webhooks',
    staff: 'Staff',
    audit: 'Audit',
    notFound: 'Nothing here',
    nextPage: 'More',
    notFoundText: 'There is no such page, or it belongs to a merchant that you do not act for.',
    tooMany: 'Too much at once',
    tooManyText:
      'Several of your requests are still being worked on, and nothing was done for this one. Wait a moment and try again.',
    forbidden: 'Not for your role',
    forbiddenText: 'Your role, {role}, does not include this. An administrator can change it.',
    foreign: 'This came from another site',
    foreignText:
      'The request did not come from a page of this back office, and nothing was done. Open the page here and try again. Where that does not help, your browser hides from which page it comes (Referer): allow it for this site.',
    signedOut: 'You are signed out',
    signedOutText: 'Sign in and try again. Nothing was done.',
    accessEnded: 'Your access has changed',
    accessEndedText:
      'While this was under way you were signed out, or what you may do here was changed, and it was not carried on. Sign in and look at what stands.',
    away: 'Lists and reports are away',
    awayText:
      'The database that lists, reports and this overview are read in does not answer at the moment. Payments are made all the while, and the other pages work. Try again in a moment.',
    old: 'What is shown here is {seconds} seconds old.',
    signIn: 'Sign in',
    role_viewer: 'viewer',
    role_support: 'support',
    role_finance: 'finance',
    role_developer: 'developer',
    role_admin: 'administrator',
  },
  {
    office: 'Retaguarda',
    menu: 'Menu',
    signOut: 'Sair',
    account: 'Sua conta',
    skip: 'Ir para o conteúdo',
    language: 'Idioma',
    sandbox: 'Sandbox: aqui não se movimenta dinheiro de verdade.',
    console: 'Console',
    payments: 'Pagamentos',
    overview: 'Visão geral',
    cases: 'Casos',
    approvals: 'Aprovações',
    deliveries: 'Notificações abandonadas',
    work: 'Tarefas com falha',
    reports: 'Relatórios',
    files: 'Arquivos',
    risk: 'Listas de risco',
    exports: 'Exportações',
    schedules: 'Arquivos em servidores',
    entities: 'Entidades',
    webhooks: 'Webhooks',
    staff: 'Equipe',
    audit: 'Auditoria',
    notFound: 'Nada aqui',
    nextPage: 'Mais',
    notFoundText: 'Esta página não existe ou pertence a um lojista pelo qual você não responde.',
    tooMany: 'Pedidos demais de uma vez',
    tooManyText:
      'Vários dos seus pedidos ainda estão em andamento, e nada foi feito para este. Espere um momento e tente de novo.',
    forbidden: 'Fora do seu papel',
    forbiddenText: 'O seu papel, {role}, não inclui isto. Um administrador pode mudá-lo.',
    foreign: 'Isto veio de outro site',
    foreignText:
      'O pedido não veio de uma página desta retaguarda, e nada foi feito. Abra a página aqui e tente de novo. Se não adiantar, o seu navegador esconde de que página vem (Referer): permita isso para este site.',
    signedOut: 'Você saiu',
    signedOutText: 'Entre e tente de novo. Nada foi feito.',
    accessEnded: 'O seu acesso mudou',
    accessEndedText:
      'Enquanto isto estava em andamento, a sua sessão foi encerrada ou o que você pode fazer aqui mudou, e não se continuou. Entre e veja o que está feito.',
    away: 'Listas e relatórios indisponíveis',
    awayText:
      'O banco de dados em que se leem listas, relatórios e a visão geral não responde agora. Os pagamentos continuam sendo feitos, e as outras páginas funcionam. Tente de novo em instantes.',
    old: 'O que se mostra aqui é de {seconds} segundos atrás.',
    signIn: 'Entrar',
    role_viewer: 'leitor',
    role_support: 'atendimento',
    role_finance: 'financeiro',
    role_developer: 'desenvolvedor',
    role_admin: 'administrador',
  },
)
export type FrameWords = ReturnType<typeof frameWords>
