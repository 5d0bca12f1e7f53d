// Spins at the end of calls of known depth: node deep.js DEPTH
'use strict';

function w_leaf() {
  let x = 1;
  for (let i = 0; i < 400000; i++) {
    x = (x * 31 + i) & 0xffff;
  }
  return x;
}

function w_deep(depth) {
  return depth > 1 ? w_deep(depth - 1) + 1 : w_leaf();
}

function w_turns(depth) {
  for (let sum = 0; ; ) {
    sum ^= w_deep(depth);
  }
}

require('fs').writeSync(1, `ready ${process.pid}\n`);
w_turns(Number(process.argv[2]));
