// SPDX-License-Identifier: Apache-2.0
// Labels of requests for profilers, by what is published in npm: thread contexts of Node.js
// (schema nodejs_v1_dev) of @datadog/pprof, and the process context of @datadog/libdatadog-extras.
//
//   const labels = require('./labels')('shop', ['tenant', 'route'])
//   labels.run(['acme', '/browse'], () => { ... })  // and what is awaited in it
//
// Where nothing can be published (Node.js without async context frames, a package that is missing),
// that is said once, by a warning, and the program goes on without labels.
'use strict'

// Index 0 is datadog.local_root_span_id, which the library puts in front of the names.
const FIRST = 1
const NO_TRACE = Buffer.alloc(16)
const NO_SPAN = Buffer.alloc(8)

module.exports = function (service, names) {
  try {
    return publisher(service, names)
  } catch (e) {
    process.emitWarning('no labels for profilers: ' + e.message.split('\n')[0])
    return { run: (values, f) => f() }
  }
}

function publisher (service, names) {
  const { ThreadContext, getProcessContextAttributes } = require('@datadog/pprof').otelThreadCtx
  const { TracerMetadata, storeMetadata } = require('@datadog/libdatadog-extras').maybeLoad('process-discovery')
  const published = getProcessContextAttributes(names)
  const metadata = new TracerMetadata('runtime', '1', require('os').hostname(), service, null, null, null, null, {
    attributeKeys: [...published['threadlocal.attribute_key_map']],
    schemaVersion: published['threadlocal.schema_version'],
    extraAttributes: []
  })
  return {
    handle: storeMetadata(metadata), // its memory is the process context: it is to be kept
    run (values, f) {
      const attributes = []
      values.forEach((value, i) => { attributes[FIRST + i] = String(value) })
      return new ThreadContext(NO_TRACE, NO_SPAN, 0, attributes).run(f)
    }
  }
}
