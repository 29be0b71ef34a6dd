import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { Policy } from 'wasmspawner-policy';

import { build, world } from '../src/build.js';
import { infoOf, strangersOf } from '../src/policy.js';

const folder = mkdtempSync(join(tmpdir(), 'policy-'));
after(() => rmSync(folder, { recursive: true }));

/** The program that has the policies' commands; its tests are skipped if this variable does not name it. */
const { WASMSPAWNER } = process.env;
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const everything = join(repository, 'sdk/javascript/test/everything');

test('the world has the hooks of the policy and no others', () => {
  const exported = ['metadata', 'config', 'prepare', 'quota', 'build-pod'].map((name) => `  export ${name};\n`).join('');
  assert.equal(world(['quota', 'buildPod']), `world site-policy {\n  import host;\n${exported}}\n`);
});

test('name and description come from the class or from package.json', () => {
  class SizesByGroup extends Policy {}
  assert.deepEqual(infoOf(SizesByGroup), { name: 'sizes-by-group', version: '0.1.0', description: '' });
  assert.equal(infoOf(SizesByGroup, { name: 'sizes', version: '2.0.0' }).name, 'sizes');
});

const withMethod = (name) =>
  `import { Policy } from 'wasmspawner-policy'; export default class Mine extends Policy { quota() {} ${name}() {} }`;

test('methods of its own and constants are no hooks', () => {
  class Base extends Policy {
    static version = '1.0.0';
    #size = 1;
    _sizes() {
      return [this.#size];
    }
    quota() {
      return { labs: this._sizes().length };
    }
  }
  class Derived extends Base {
    prepull() {
      return [];
    }
  }
  assert.deepEqual(strangersOf(Derived), []);
});

test('what is no policy is told', async () => {
  await assert.rejects(build(folder, join(folder, 'out.wasm')), /has no policy; write it in policy.ts or policy.js/);
  for (const [source, message] of [
    ['export const x = 1;', /No matching export/],
    ['export default 1;', /write `export default class \.\. extends Policy`/],
    ["import { Policy } from 'wasmspawner-policy'; export default class Empty extends Policy {}", /Empty decides nothing/],
    [withMethod('authorise'), /Mine\.authorise is no hook.*is `authorize` meant\?/],
    [withMethod('build_pods'), /is `buildPod` meant\?/],
    [withMethod('sizeOf'), /Mine\.sizeOf is no hook, so it is never called\. The names/],
  ]) {
    writeFileSync(join(folder, 'policy.js'), source);
    await assert.rejects(build(folder, join(folder, 'out.wasm')), message);
  }
});

test('a policy in TypeScript becomes a component without WASI', async () => {
  const output = join(folder, 'window.wasm');
  await build(join(repository, 'plugins/javascript/maintenance-window'), output);
  const component = readFileSync(output).toString('latin1');
  assert.ok(component.startsWith('\0asm\x0d\0\x01\0'), 'a component, and not a module');
  assert.ok(component.includes('wasmspawner:policy/authorize@0.1.0'));
  assert.ok(!component.includes('wasmspawner:policy/quota@0.1.0'));
  if (WASMSPAWNER) passes(output, 'plugins/javascript/maintenance-window/config.yaml', 'plugins/javascript/maintenance-window/cases');
});

test('every hook gives its answer', { skip: !WASMSPAWNER }, async () => {
  const output = join(folder, 'everything.wasm');
  await build(everything, output);
  passes(output, 'sdk/javascript/test/everything/config.yaml', 'sdk/javascript/test/everything/cases');
  passes(output, 'sdk/javascript/test/everything/config.yaml', 'tests/tables/policy-answers');
});

test('sizes by group answers as the policy in Rust', { skip: !WASMSPAWNER }, async () => {
  const output = join(folder, 'sizes.wasm');
  await build(join(repository, 'plugins/javascript/sizes-by-group'), output);
  passes(output, 'plugins/sizes-by-group/config.yaml', 'plugins/sizes-by-group/cases');
  passes(output, 'plugins/javascript/sizes-by-group/config.yaml', 'plugins/javascript/sizes-by-group/cases');
});

function passes(component, config, cases) {
  const given = ['policy', 'test', component, join(repository, cases), '--config', join(repository, config)];
  const { status, stdout, stderr } = spawnSync(WASMSPAWNER, given, { encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
}
