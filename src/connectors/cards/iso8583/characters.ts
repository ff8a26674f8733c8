// Characters of the wire: printable ASCII as bytes of ASCII, or of EBCDIC (code page 037). Bytes that are no such character become U+FFFD, which no field takes.

export type Characters = 'ascii' | 'ebcdic'

/** The bytes of the characters from space to tilde in code page 037. */
const page037 = Buffer.from(
  '405a7f7b5b6c507d4d5d5c4e6b604b61f0f1f2f3f4f5f6f7f8f97a5e4c7e6e6f7cc1c2c3c4c5c6c7c8c9d1d2d3d4d5d6d7d8d9e2e3e4e5e6e7e8e9' +
    'bae0bbb06d79818283848586878889919293949596979899a2a3a4a5a6a7a8a9c04fd0a1',
  'hex',
)
const printable = Array.from(page037, (_, at) => String.fromCharCode(0x20 + at))
const characterOf: ReadonlyMap<number, string> = new Map(printable.map((character, at) => [page037[at]!, character]))
const byteOf: ReadonlyMap<string, number> = new Map(printable.map((character, at) => [character, page037[at]!]))

/** Only for printable ASCII. */
export const bytesOfText = (text: string, characters: Characters): Buffer =>
  characters === 'ascii' ? Buffer.from(text, 'latin1') : Buffer.from(Array.from(text, character => byteOf.get(character)!))

export const textOfBytes = (bytes: Buffer, characters: Characters): string =>
  characters === 'ascii' ? bytes.toString('latin1') : Array.from(bytes, byte => characterOf.get(byte) ?? '\ufffd').join('')
