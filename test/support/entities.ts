// What our pages escape, back again.

const characters: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

export const decode = (text: string): string =>
  text.replace(/&(?:amp|lt|gt|quot|#(\d+));/g, (entity, code) => characters[entity] ?? String.fromCharCode(code))
