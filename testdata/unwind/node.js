// SPDX-License-Identifier: Apache-2.0
// One stack of compiled functions, going down and up: node --perf-basic-prof node.js [SECONDS]
'use strict';

const DEPTH = 60;
let sink = 0;

function w_spin(n) {
  let sum = 0;
  for (let i = 0; i < 3000; i++) sum = (sum * 31 + i) | 0;
  return sum + n;
}

function w_A(n) {
  return n === 0 ? w_spin(n) : w_B(n - 1) + 1;
}

const w_B = (n) => {
  const more = [n, n + 1];
  return n === 0 ? w_spin(n) : more.reduce(w_C, 0);
};

function w_C(sum, n, index) {
  return index === 0 ? sum + w_A(n - 1) : sum + 1;
}

function w_turns(end) {
  while (Date.now() < end) for (let i = 0; i < 50; i++) sink += w_A(DEPTH);
}

console.log(`ready ${process.pid}`);
w_turns(Date.now() + 1000 * Number(process.argv[2] ?? 10));
