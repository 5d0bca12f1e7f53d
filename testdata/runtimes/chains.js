// Burns CPU in known call chains: node chains.js [once]
//
// A line that calls functions of this file ends with their names behind "// >". "ready PID"
// tells that all has begun. TestRuntimesV8 has the chains.
'use strict';

const { setFlagsFromString } = require('v8');
const { Worker, isMainThread } = require('worker_threads');

function burn(turns) {
  let x = 1;
  for (let i = 0; i < turns; i++) {
    x = (x * 31 + i) & 0xffff;
  }
  return x;
}

function descend(depth) {
  if (depth === 0) {
    return burn(20000); // > burn
  }
  return descend(depth - 1) + 1; // > descend
}

function recursion() {
  return descend(200); // > descend
}

function* numbers() {
  for (let i = 0; i < 4; i++) {
    yield burn(4000); // > burn
  }
}

function generator() {
  let sum = 0;
  for (const n of numbers()) { // > numbers
    sum += n;
  }
  return sum;
}

function spread() {
  return [...numbers()].length; // > numbers
}

function order(a, b) {
  burn(2000); // > burn
  return a - b;
}

function callback() {
  return [3, 1, 2].sort(order); // > order
}

function nested() {
  [1, 2].forEach(function visit(v) { // > visit
    [v, v].map((w) => burn(2000 * w)); // > <anonymous> burn
  });
}

function replaced(match) {
  burn(3000); // > burn
  return match;
}

function revived(key, value) {
  burn(2000); // > burn
  return value;
}

function natives() {
  'aXbX'.replace(/X/g, replaced); // > replaced
  return JSON.parse('{"a": [1, 2]}', revived); // > revived
}

function failing(depth) {
  if (depth === 0) {
    throw new Error('expected');
  }
  try {
    failing(depth - 1); // > failing
  } finally {
    burn(1000); // > burn
  }
}

function exception() {
  try {
    failing(5); // > failing
  } catch {
    burn(4000); // > burn
  }
}

class Shape {
  constructor() {
    this.size = burn(1000); // > burn
  }
  get area() {
    return burn(4000); // > burn
  }
  valueOf() {
    return burn(2000); // > burn
  }
  static make() {
    const closure = () => burn(4000); // > burn
    return closure(); // > closure
  }
}

function methods() {
  const shape = new Shape(); // > Shape
  shape.area; // > get_area
  Shape.make(); // > make
  return shape + 1; // > valueOf
}

function innermost(n) {
  let x = n;
  for (let i = 0; i < 50; i++) {
    x = (x * 31 + i) & 0xffff;
  }
  return x;
}

function middle(n) {
  return innermost(n) + innermost(n + 1); // > innermost
}

function inlined() {
  let x = 0;
  for (let i = 0; i < 400; i++) {
    x += middle(i); // > middle innermost
  }
  return x;
}

// So large that it is put into no other.
function step(n) {
  if (n < 0) {
    n += n * 3; n ^= n << 1; n += n * 5; n ^= n << 2; n += n * 7; n ^= n << 3;
    n += n * 11; n ^= n << 2; n += n * 13; n ^= n << 3; n += n * 15; n ^= n << 4;
    n += n * 19; n ^= n << 3; n += n * 21; n ^= n << 4; n += n * 23; n ^= n << 5;
    n += n * 27; n ^= n << 4; n += n * 29; n ^= n << 5; n += n * 31; n ^= n << 6;
    n += n * 35; n ^= n << 5; n += n * 37; n ^= n << 6; n += n * 39; n ^= n << 7;
    n += n * 43; n ^= n << 6; n += n * 45; n ^= n << 7; n += n * 47; n ^= n << 1;
    n += n * 51; n ^= n << 7; n += n * 53; n ^= n << 1; n += n * 55; n ^= n << 2;
    n += n * 59; n ^= n << 1; n += n * 61; n ^= n << 2; n += n * 63; n ^= n << 3;
    n += n * 67; n ^= n << 2; n += n * 69; n ^= n << 3; n += n * 71; n ^= n << 4;
    n += n * 75; n ^= n << 3; n += n * 77; n ^= n << 4; n += n * 79; n ^= n << 5;
    n += n * 83; n ^= n << 4; n += n * 85; n ^= n << 5; n += n * 87; n ^= n << 6;
    n += n * 91; n ^= n << 5; n += n * 93; n ^= n << 6; n += n * 95; n ^= n << 7;
    n += n * 99; n ^= n << 6; n += n * 101; n ^= n << 7; n += n * 103; n ^= n << 1;
    n += n * 107; n ^= n << 7; n += n * 109; n ^= n << 1; n += n * 111; n ^= n << 2;
  }
  return (n * 31 + 7) & 0xffff;
}

function half(n) {
  return step(n) + 1; // > step
}

// Most of its time goes for calls, of which each begins and ends in the frame of its caller.
function tight() {
  let x = 0;
  for (let i = 0; i < 100000; i++) {
    x ^= half(i); // > half
  }
  return x;
}

function garbage() {
  let list = [];
  for (let i = 0; i < 3000; i++) {
    list.push({ i, text: 'x' + i });
    if (list.length > 500) {
      list = [];
    }
  }
  return list;
}

function größe() {
  return burn(4000); // > burn
}

// Code of each of the two, in turn: neither is put into the other, which is not always the same.
function ping(depth) {
  if (depth === 0) {
    return burn(20000); // > burn
  }
  return turns[(depth ^ depth >> 4) & 1](depth - 1) + 1; // > ping pong
}

function pong(depth) {
  if (depth === 0) {
    return burn(20000); // > burn
  }
  return turns[(depth ^ depth >> 4) & 1](depth - 1) + 2; // > ping pong
}

const turns = [ping, pong];

function mutual() {
  return ping(40); // > ping
}

// doomed waits, with functions that were put into it, for one that makes its code invalid.
function waits(turns) {
  deoptimize();
  return burn(turns); // > burn
}

function between(turns) {
  return waits(turns) + 1; // > waits
}

function doomed(turns) {
  let x = between(turns); // > between
  for (let i = 0; i < 4; i++) {
    x += innermost(i); // > innermost
  }
  return x;
}

let deoptimize = () => {};
const optimizers = [];
let dooms = 0;

function doom() {
  if (!optimizers.length) {
    deoptimize = new Function('f', '%DeoptimizeFunction(f)').bind(null, doomed);
    [waits, doom].forEach(new Function('f', '%NeverOptimizeFunction(f)'));
    for (const compiler of ['Function', 'Maglev'].slice(0, parseInt(process.versions.v8) < 12 ? 1 : 2)) {
      optimizers.push(new Function('f', `%PrepareFunctionForOptimization(f); %Optimize${compiler}OnNextCall(f)`));
    }
  }
  if (++dooms % 8) {
    return;
  }
  for (const optimize of optimizers) {
    optimize(doomed);
    doomed(100000); // > doomed
  }
}

function worker() {
  for (;;) {
    recursion(); // > recursion
    generator(); // > generator
    spread(); // > spread
    callback(); // > callback
    nested(); // > nested
    natives(); // > natives
    exception(); // > exception
    methods(); // > methods
    inlined(); // > inlined
    tight(); // > tight
    garbage(); // > garbage
    größe(); // > größe
    mutual(); // > mutual
    doom(); // > doom
  }
}

async function inner() {
  burn(4000); // > burn
  await null;
  burn(4000); // > burn
}

async function outer() {
  await inner(); // > inner
  await inner(); // > inner
}

async function coroutine() {
  for (;;) {
    for (let i = 0; i < 100; i++) {
      await outer(); // > outer
    }
    await new Promise((resolve) => setImmediate(resolve)); // > <anonymous>
  }
}

if (isMainThread) {
  setFlagsFromString('--allow-natives-syntax'); // for doom
  new Worker(__filename).once('online', () => {
    console.log('ready ' + process.pid);
    coroutine(); // > coroutine
  });
} else {
  worker(); // > worker
}
