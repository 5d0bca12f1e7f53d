// An HTTP server that burns CPU for each request and logs what was active when.
//
//   node server.js WRITER LOG
//
// WRITER is what publishes thread contexts: `dd-trace`, or `pprof` for
// @datadog/pprof without a tracer. Prints its port. Writes LOG when its standard
// input ends: lines "KIND TRACE_ID SPAN_ID START END ROUTE", where KIND is
// `request` (its context may be active) or `burn` (nothing else is), times are of
// CLOCK_MONOTONIC in ns.
'use strict'

const [writer, logPath] = process.argv.slice(2)
const log = []
const contexts = { 'dd-trace': tracer, pprof: direct }[writer]()

const crypto = require('crypto')
const fs = require('fs')
const http = require('http')
const { AsyncLocalStorage } = require('async_hooks')

// dd-trace: the tracer makes the contexts, one for each request.
function tracer () {
  const dd = require('dd-trace').init({ service: 'shop-dd-trace', startupLogs: false })
  dd.use('dns', false) // listening would be a span of its own, which the log does not know
  return {
    handle: async (req, handler) => {
      const context = dd.scope().active().context()
      await handler({ trace: context.toTraceId(true), span: context.toSpanId(true), route: '-' })
    }
  }
}

// @datadog/pprof: contexts of our own, and a process context that tells of them.
function direct () {
  const { ThreadContext, getProcessContextAttributes } = require('@datadog/pprof').otelThreadCtx
  const discovery = require('@datadog/libdatadog-extras').maybeLoad('process-discovery')
  const published = getProcessContextAttributes(['http.route'])
  const metadata = new discovery.TracerMetadata('runtime', '1', 'host', 'shop-pprof', null, null, null, null, {
    // the name with the index 0 is put in front of these
    attributeKeys: [...published['threadlocal.attribute_key_map']],
    schemaVersion: published['threadlocal.schema_version'],
    extraAttributes: []
  })
  const handle = discovery.storeMetadata(metadata)
  return {
    keep: handle, // its memory is the process context
    handle: (req, handler) => {
      const trace = require('crypto').randomBytes(16)
      const span = require('crypto').randomBytes(8)
      const route = req.url.split('?')[0]
      const attributes = []
      attributes[1] = route
      const context = new ThreadContext(trace, span, 1, attributes)
      return context.run(async () => {
        try {
          await handler({ trace: trace.toString('hex'), span: span.toString('hex'), route })
        } finally {
          context.invalidate()
        }
      })
    }
  }
}

// Others' values in the same hash table: its buckets have chains.
const others = Array.from({ length: 20 }, () => new AsyncLocalStorage())

const now = () => process.hrtime.bigint()
const pause = ms => new Promise(resolve => setTimeout(resolve, ms))

let kept = [] // some objects live on, for the garbage collector to move

function burn (id, ms) {
  const start = now()
  const until = start + BigInt(ms * 1e6)
  let n = 0
  let end = start
  while (end < until) {
    for (let i = 0; i < 100; i++) kept.push({ n: n++, text: `${n}` })
    if (kept.length > 20000) kept = kept.slice(10000)
    end = now()
  }
  log.push(['burn', id.trace, id.span, start, end, id.route])
}

async function serve (id, res, entry) {
  entry.push('request', id.trace, id.span, now(), 0n, id.route)
  log.push(entry)
  others.forEach((storage, i) => storage.enterWith({ i }))
  await pause(1)
  burn(id, 4)
  await crypto.webcrypto.subtle.digest('SHA-256', new Uint8Array(1000))
  burn(id, 2)
  await Promise.all([1, 2].map(async ms => {
    await fs.promises.stat('/')
    burn(id, ms)
  }))
  await new Promise(resolve => {
    res.on('close', resolve)
    res.end('done\n')
  })
}

const server = http.createServer(async (req, res) => {
  const entry = []
  await contexts.handle(req, id => serve(id, res, entry))
  entry[4] = now()
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))

process.stdin.resume().on('end', () => {
  for (const entry of log) entry[4] ||= now() // the last ones have not heard yet that they are done
  fs.writeFileSync(logPath, log.map(entry => entry.join(' ') + '\n').join(''))
  process.exit()
})
