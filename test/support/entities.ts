// The five characters that our pages escape, back again.

const characters: Readonly<Record<string, string>> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }

export const decode = (text: string): string => text.replace(/&(amp|lt|gt|quot|#39);/g, entity => characters[entity]!)
