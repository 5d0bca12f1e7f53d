// Burns CPU in functions, each in a thread context whose attribute `function` names it:
//
//   node functions.js
//
// Prints "ready PID" when all has begun.
'use strict'

const { ThreadContext, getProcessContextAttributes } = require('@datadog/pprof').otelThreadCtx
const crypto = require('crypto')

const published = getProcessContextAttributes(['function'])
const discovery = require('@datadog/libdatadog-extras').maybeLoad('process-discovery')
const metadata = new discovery.TracerMetadata('runtime', '1', 'host', 'functions', null, null, null, null, {
  attributeKeys: [...published['threadlocal.attribute_key_map']], // behind the name with the index 0
  schemaVersion: published['threadlocal.schema_version'],
  extraAttributes: []
})
const handle = discovery.storeMetadata(metadata) // its memory is the process context

let kept = []

function burn (turns) {
  for (let i = 0; i < turns; i++) {
    kept.push({ i, text: `${i}` })
    if (kept.length > 5000) kept = kept.slice(2500)
  }
}

function alpha () {
  burn(5000)
}

function beta () {
  [1, 2].forEach(() => burn(2500))
}

async function gamma () {
  burn(2500)
  await null
  burn(2500)
}

function delta (depth = 20) {
  if (typeof depth !== 'number' || depth > 20) depth = 20
  return depth === 0 ? burn(5000) : delta(depth - 1)
}

async function main () {
  for (;;) {
    for (const f of [alpha, beta, gamma, delta]) {
      const attributes = []
      attributes[1] = f.name
      const context = new ThreadContext(crypto.randomBytes(16), crypto.randomBytes(8), 1, attributes)
      await context.run(async () => {
        await f()
        context.invalidate()
      })
    }
    await new Promise(resolve => setImmediate(resolve))
  }
}

console.log(`ready ${process.pid}`)
main()
module.exports = { handle }
