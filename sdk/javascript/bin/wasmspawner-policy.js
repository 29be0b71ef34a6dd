#!/usr/bin/env node
/** The command `wasmspawner-policy`. */

import { statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';

import { BuildError, build } from '../src/build.js';

const USAGE = 'usage: wasmspawner-policy build FOLDER [-o FILE]';

let given;
try {
  given = parseArgs({ allowPositionals: true, options: { output: { type: 'string', short: 'o' }, help: { type: 'boolean' } } });
} catch (error) {
  console.error(`error: ${error.message}\n${USAGE}`);
  process.exit(2);
}
const [command, folder, ...rest] = given.positionals;
if (given.values.help) {
  console.log(USAGE);
  process.exit(0);
}
if (command !== 'build' || !folder || rest.length > 0) {
  console.error(USAGE);
  process.exit(2);
}
const output = given.values.output ?? join(folder, `${basename(resolve(folder))}.wasm`);
try {
  await build(folder, output);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  console.error(`error: ${error.message}`);
  process.exit(1);
}
console.log(`${output}: ${(statSync(output).size / 1e6).toFixed(1)} MB`);
