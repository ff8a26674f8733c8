// Whether the gateway of this container takes requests: ends with 0 or 1. An image has no curl.

import http from 'node:http'
import https from 'node:https'

const { PORT = '8080', TLS_CERT } = process.env
const options = { host: '127.0.0.1', port: PORT, path: '/health', timeout: 4000, rejectUnauthorized: false }
const request = (TLS_CERT ? https : http).get(options, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
request.on('timeout', () => process.exit(1))
request.on('error', () => process.exit(1))
