// SPDX-License-Identifier: Apache-2.0
'use strict'
const labels = require('./labels')('shop', ['tenant', 'route'])
const server = require('http').createServer((req, res) =>
  labels.run([req.headers['x-tenant'] ?? 'unknown', req.url.split('?')[0]], () => res.end(work())))
server.listen(process.argv[2] ?? 8080, '127.0.0.1', () => console.log('listening on', server.address().port))

// What a request does.
function work () {
  for (const end = process.hrtime.bigint() + 10_000_000n; process.hrtime.bigint() < end;);
  return 'done\n'
}
