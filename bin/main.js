// Begins the gateway; src/main.ts leads here. Plain JavaScript in a folder of its own kind, which a Node too old for the rest can read too: it is
// told in a sentence what is needed.

if (Number(process.versions.node.split('.')[0]) < 24) {
  process.stderr.write(
    `Tollgate needs Node 24 or later, and this is ${process.version}. Start it with \`npm start\`, which brings its own, or install Node 24.\n`,
  )
  process.exitCode = 1
} else {
  import('../src/platform/cacheFolder.ts')
    .then(({ keepCompiled }) => {
      keepCompiled()
      return import('../src/start/main.ts')
    })
    .catch(error => {
      process.stderr.write(`${error.stack}\n`)
      process.exitCode = 1
    })
}
