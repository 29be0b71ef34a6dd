/** Makes the component of a policy: bundles it, writes the world with the hooks that it has, and runs componentize-js. */

import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { HOOKS, hooksOf, infoOf, strangersOf } from './policy.js';

/** Why there is no component, and what to do about it. */
export class BuildError extends Error {}

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const NAMES = ['policy.ts', 'policy.js', 'policy.mjs'];

/** Makes the component of the policy in `folder`, which is the default export of `policy.js` or `policy.ts`. */
export async function build(folder, output) {
  const source = NAMES.map((name) => resolve(folder, name)).find(existsSync);
  if (!source) throw new BuildError(`${resolve(folder)} has no policy; write it in ${NAMES.join(' or ')}`);
  const work = await mkdtemp(join(tmpdir(), 'wasmspawner-policy-'));
  try {
    await bundle(`export { default } from ${JSON.stringify(source)};`, folder, join(work, 'native.mjs'), []);
    const { default: policy } = await import(pathToFileURL(join(work, 'native.mjs')));
    const hooks = hooksAndName(policy, source);
    await writeFile(join(work, 'policy.wit'), `${await contract()}\n${world(hooks)}`);
    const info = infoOf(policy, await project(folder));
    await bundle(entry(source, hooks, info), folder, join(work, 'component.mjs'), ['wasmspawner-component']);
    await writeFile(output, await componentized(work));
  } finally {
    await rm(work, { recursive: true });
  }
}

/** The world of a policy with these hooks, in WIT. */
export function world(hooks) {
  const interfaces = ['metadata', 'config', 'prepare', ...hooks.map((hook) => HOOKS[hook])];
  return `world site-policy {\n  import host;\n${interfaces.map((name) => `  export ${name};\n`).join('')}}\n`;
}

/** The module of the component: it exports each interface under its name in JavaScript. */
function entry(source, hooks, info) {
  const nameOf = (hook) => HOOKS[hook].replace(/-(\w)/g, (_, letter) => letter.toUpperCase());
  const exported = ['metadata', 'config', 'prepare', ...hooks.map(nameOf)];
  return [
    `import policy from ${JSON.stringify(source)};`,
    `import { exportsOf } from 'wasmspawner-policy/component';`,
    `const all = exportsOf(policy, ${JSON.stringify(info)});`,
    ...exported.map((name) => `export const ${name} = all.${name};`),
  ].join('\n');
}

function hooksAndName(policy, source) {
  if (typeof policy !== 'function') throw new BuildError(`${source}: write \`export default class .. extends Policy\``);
  const strangers = strangersOf(policy);
  if (strangers.length > 0) throw new BuildError(`${source}: ${strangers.join('\n')}`);
  const hooks = hooksOf(policy);
  if (hooks.length === 0) {
    const known = Object.keys(HOOKS).join(', ');
    throw new BuildError(`${source}: ${policy.name} decides nothing; give it a method such as ${known}`);
  }
  return hooks;
}

async function bundle(contents, folder, outfile, conditions) {
  // Only here, so that tests of policies need none of the tools.
  const esbuild = await import('esbuild');
  const options = {
    stdin: { contents, resolveDir: resolve(folder) },
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    target: 'es2022',
    keepNames: true,
    conditions: [...conditions, 'import', 'module'],
    external: ['wasmspawner:*'],
    // This package, also for a policy in a folder without node_modules.
    alias: {
      'wasmspawner-policy/component': join(PACKAGE, 'src/component.js'),
      'wasmspawner-policy': join(PACKAGE, 'src/index.js'),
    },
    logLevel: 'silent',
  };
  try {
    await esbuild.build(options);
  } catch (failed) {
    const shown = await esbuild.formatMessages(failed.errors ?? [], { kind: 'error' });
    throw new BuildError(shown.join('').trim() || failed.message);
  }
}

async function componentized(work) {
  const { componentize } = await import('@bytecodealliance/componentize-js');
  try {
    const { component } = await componentize({
      sourcePath: join(work, 'component.mjs'),
      witPath: join(work, 'policy.wit'),
      worldName: 'site-policy',
      // globals.js replaces what these are for.
      disableFeatures: ['stdio', 'random', 'clocks', 'http', 'fetch-event'],
    });
    return component;
  } catch (error) {
    throw new BuildError(`componentize-js failed: ${error.message}`);
  }
}

/** The contract, which is beside this package where it is packed or copied, and otherwise in its repository. */
async function contract() {
  const packed = join(PACKAGE, 'policy.wit');
  return readFile(existsSync(packed) ? packed : join(PACKAGE, '../../wit/policy.wit'), 'utf8');
}

async function project(folder) {
  const file = resolve(folder, 'package.json');
  return existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : {};
}
