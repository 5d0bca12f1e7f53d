// An HTTP server that burns CPU for each request and logs what was active when.
//
//   node server.js WRITER LOG
//
// WRITER is what publishes thread contexts: `dd-trace`, or `pprof` for
// @datadog/pprof without a tracer. Prints its port. Writes LOG when its standard
// input ends: lines "KIND TID TRACE_ID SPAN_ID START END ROUTE", where KIND is
// `request` (its context may be active), `burn` (nothing else is on that thread) or
// `plain` (none is), times are of CLOCK_MONOTONIC in ns. A request begins when nobody has
// seen it but the parser of HTTP: a tracer makes its context before the handler runs.
//
// Two worker threads burn beside the server, one in contexts of its own, if the writer
// is pprof, and one without any. CHILD, in the environment, is a program that it runs
// meanwhile: a line `child` has its PID in the place of TID.
'use strict'

const { isMainThread, parentPort, Worker } = require('worker_threads')

const [writer, logPath, job] = process.argv.slice(2)
const tid = require('fs').readlinkSync('/proc/thread-self').split('/')[2]
const log = []
const contexts = (job === 'none' ? none : { 'dd-trace': tracer, pprof: direct }[writer])()

const crypto = require('crypto')
const fs = require('fs')
const http = require('http')
const { AsyncLocalStorage, AsyncResource } = require('async_hooks')

// worker: no contexts at all.
function none () {
  return { handle: undefined }
}

// dd-trace: the tracer makes the contexts, one for each request.
function tracer () {
  // The timer with which the tracer sends its spans is armed in a request, and goes off in its
  // context, when the request has long ended: not while this runs.
  const dd = require('dd-trace').init({ service: 'shop-dd-trace', startupLogs: false, flushInterval: 3600e3 })
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
  const published = getProcessContextAttributes(['http.route'])
  const discovery = isMainThread && require('@datadog/libdatadog-extras').maybeLoad('process-discovery')
  const metadata = discovery && new discovery.TracerMetadata('runtime', '1', 'host', 'shop-pprof', null, null, null, null, {
    // the name with the index 0 is put in front of these
    attributeKeys: [...published['threadlocal.attribute_key_map']],
    schemaVersion: published['threadlocal.schema_version'],
    extraAttributes: []
  })
  const handle = discovery && discovery.storeMetadata(metadata) // once for the process
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

function burn (id, ms, kind = 'burn') {
  const start = now()
  const until = start + BigInt(Math.round(ms * 1e6))
  let n = 0
  let end = start
  while (end < until) {
    for (let i = 0; i < 100; i++) kept.push({ n: n++, text: `${n}` })
    if (kept.length > 20000) kept = kept.slice(10000)
    end = now()
  }
  log.push([kind, tid, id.trace, id.span, start, end, id.route])
}

async function serve (id, req, res, entry) {
  entry.push('request', tid, id.trace, id.span, req.arrived, 0n, id.route)
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

// What runs in it is in no context.
const outside = new AsyncResource('outside')

// ends logs the end of a request where it cannot be active any more. The code that
// calls this may still be in its context, and be stopped there.
function ends (entry) {
  outside.runInAsyncScope(() => setImmediate(() => { entry[5] = now() }))
}

const nothing = { trace: '-', span: '-', route: '-' }

// inContext is a request of a worker thread's own.
async function inContext (n, handler) {
  const entry = []
  const began = now()
  await contexts.handle({ url: `/worker-${n % 5}?` }, async id => {
    entry.push('request', tid, id.trace, id.span, began, 0n, id.route)
    log.push(entry)
    await handler(id)
  })
  ends(entry)
}

// What a worker thread does until it is told to end.
async function work () {
  let over = false
  parentPort.on('message', () => { over = true })
  for (let n = 0; !over; n++) {
    if (job === 'contexts') {
      await inContext(n, async id => {
        burn(id, 3)
        await pause(1)
        burn(id, 2)
      })
      for (let i = 0; i < 20; i++) await inContext(i, async id => burn(id, 0.1 * (1 + i % 5)))
    }
    burn(nothing, 2, 'plain')
    await pause(5)
  }
  parentPort.postMessage(log)
  parentPort.close()
}

function serveRequests () {
  const workers = ['contexts', 'none'].map(job =>
    new Worker(__filename, { argv: [writer, logPath, writer === 'pprof' ? job : 'none'] }))
  const child = process.env.CHILD && require('child_process').spawn(process.env.CHILD, ['spin', '--seconds', '600'])
  if (child) log.push(['child', child.pid, '-', '-', now(), 0n, '-'])
  const server = http.createServer(async (req, res) => {
    const entry = []
    await contexts.handle(req, id => serve(id, req, res, entry))
    ends(entry)
  })
  const emit = server.emit // the tracer's
  server.emit = function (event, ...args) {
    if (event === 'request') args[0].arrived = now()
    return emit.call(this, event, ...args)
  }
  server.listen(0, '127.0.0.1', () => console.log(server.address().port))

  process.stdin.resume().on('end', async () => {
    if (child) child.kill('SIGKILL')
    for (const worker of workers) {
      worker.postMessage('end')
      log.push(...await new Promise(resolve => worker.once('message', resolve)))
    }
    for (const entry of log) entry[5] ||= now() // the last ones have not heard yet that they are done
    fs.writeFileSync(logPath, log.map(entry => entry.join(' ') + '\n').join(''))
    process.exit()
  })
}

if (isMainThread) serveRequests()
else work()
