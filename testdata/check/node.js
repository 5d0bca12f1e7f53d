// SPDX-License-Identifier: Apache-2.0
// A writer for Node.js 24 that breaks the rule which the first argument names, of those for thread
// contexts of Node.js; none: it keeps all. The second is an addon, node_addon.c, which breaks rules
// by how it was built, or by what it writes into records. It ends after 30 seconds.
'use strict'

const { AsyncLocalStorage } = require('node:async_hooks')
const { ThreadContext, getProcessContextAttributes } = require('@datadog/pprof').otelThreadCtx
const { TracerMetadata, storeMetadata } = require('@datadog/libdatadog-extras').maybeLoad('process-discovery')

const breaks = name => process.argv[2] === name
// On a Node.js that readers do not know, the library does not say what it would publish.
const published = breaks('tls-model')
  ? { 'threadlocal.schema_version': 'nodejs_v1_dev', 'threadlocal.attribute_key_map': ['tenant'] }
  : getProcessContextAttributes(['tenant'])
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
// Index 0 is the library's own. It writes half of a pair as three bytes, which are no UTF-8.
attributes[1] = breaks('attributes-utf8') ? 'acme\ud800' : 'acme'

const library = Object.keys(require.cache).find(file => /dd_pprof[^/]*\.node$/.test(file))
const addon = process.argv[3] && require(process.argv[3])

// What has the function run in the async context that readers look at.
let run = f => {
  const context = new ThreadContext(trace, zeros(8), flags, attributes)
  if (breaks('attributes-complete')) {
    addon.shorten(context)
  }
  context.run(f)
}
if (breaks('record-readable')) {
  const storage = new AsyncLocalStorage()
  require(library).otelThreadCtxStoreAls(storage)
  run = f => storage.run(5, f) // no object, and so without a record
}
if (breaks('tls-model')) {
  run = f => f()
}
if (addon) {
  new ThreadContext(zeros(16), zeros(8), 0, []).run(() => addon.follow(library)) // when there is something to follow
}

const until = Date.now() + 30_000
const work = () => {
  run(() => {
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
