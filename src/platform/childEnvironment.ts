// What a program that we start knows of our surroundings: nothing of keys, databases and tokens that stand there. The gateway's own processes,
// workers and commands over cells, have its settings and do not go by this.

/** Where programs are, and messages and times that do not depend on the surroundings. */
export const childEnvironment = (): { readonly PATH: string; readonly LC_ALL: string; readonly TZ: string } => ({
  PATH: process.env.PATH ?? '/usr/bin:/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
})
