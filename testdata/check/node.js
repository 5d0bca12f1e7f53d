// SPDX-License-Identifier: Apache-2.0
// A writer for Node.js 24 that breaks the rule which the first argument names, of those for thread
// contexts of Node.js; none: it keeps all. It ends after 30 seconds.
'use strict'

const { ThreadContext, getProcessContextAttributes } = require('@datadog/pprof').otelThreadCtx
const { TracerMetadata, storeMetadata } = require('@datadog/libdatadog-extras').maybeLoad('process-discovery')

const breaks = name => process.argv[2] === name
const published = getProcessContextAttributes(['tenant'])
const keys = [...published['threadlocal.attribute_key_map']]
if (breaks('key-map-complete')) {
  keys.pop()
}
const handle = storeMetadata(new TracerMetadata('runtime', '1', 'host', 'writer', null, null, null, null, {
  attributeKeys: keys,
  schemaVersion: breaks('schema') ? 'tls_v1' : published['threadlocal.schema_version'],
  extraAttributes: []
}))

const zeros = n => Buffer.alloc(n)
const trace = breaks('ids') ? Buffer.alloc(16, 1) : zeros(16)
const flags = breaks('trace-flags') ? 1 : 0
const attributes = []
attributes[1] = 'acme' // index 0 is the library's own

const until = Date.now() + 30_000
const work = () => {
  new ThreadContext(trace, zeros(8), flags, attributes).run(() => {
    for (const end = Date.now() + 10; Date.now() < end;);
  })
  if (Date.now() < until) {
    setImmediate(work)
  } else {
    handle.toString() // kept until now: its memory is the process context
  }
}
console.log('ready', process.pid)
work()
