// HTTP of Node, without what an import of it brings along: an import reads every export once, and one of them loads a whole client of its own.

export const http = process.getBuiltinModule('node:http')
export const https = process.getBuiltinModule('node:https')
