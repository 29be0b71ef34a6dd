import assert from 'node:assert/strict';
import { test } from 'node:test';

import { quantity } from 'wasmspawner-policy';

import { ConfigErrors, readConfig } from '../src/config.js';

function problems(config, read, options) {
  try {
    readConfig(typeof config === 'string' ? config : JSON.stringify(config), read, options);
  } catch (error) {
    assert.ok(error instanceof ConfigErrors, error);
    return Object.fromEntries(error.errors.map(({ field, message }) => [field, message]));
  }
  return {};
}

function everything(config) {
  config.required('name', 'string');
  config.list('sizes', (size) => size.required('cpu', 'integer'));
  config.map('env', (entry) => entry.optional('on', 'boolean'));
  config.section('more', (more) => more.optional('flag', 'boolean'));
}

test('all errors are reported with their JSON pointers', () => {
  const config = { sizes: [{ cpu: 1 }, { cpu: 'x', ram: 2 }, 3], env: { 'a/b': { on: 1 } }, more: 4 };
  const found = problems(config, everything);
  assert.deepEqual(Object.keys(found), ['/name', '/sizes/1/cpu', '/sizes/1/ram', '/sizes/2', '/env/a~1b/on', '/more']);
  assert.equal(found['/sizes/1/cpu'], 'must be a whole number, not a string');
  assert.equal(found['/sizes/1/ram'], 'is not a key here; there are cpu');
  assert.equal(found['/more'], 'must be an object, not a number');
});

test('a configuration that is no JSON object is one error', () => {
  assert.match(problems('[', everything)[''], /is not JSON/);
  assert.deepEqual(problems('[]', everything), { '': 'must be an object, not a list' });
});

test('null counts as absent, and every object has only its own keys', () => {
  assert.equal(readConfig('{"a": null}', (config) => config.optional('a', 'string', 'b')).value, 'b');
  assert.deepEqual(problems({}, (config) => config.required('constructor', 'string')), { '/constructor': 'is missing' });
});

test('a number may stand for a quantity', () => {
  const read = (config) => config.requiredParsed('cpu', quantity.cpuMillis);
  assert.equal(readConfig('{"cpu": 2}', read).value, 2000);
  assert.deepEqual(problems({ cpu: '2x' }, read), { '/cpu': '`2x` is not an amount of CPU, such as 500m, 2 or 0.5' });
});

test('an entry of a list of texts is told with its place', () => {
  assert.deepEqual(Object.keys(problems({ groups: ['a', 1] }, (config) => config.texts('groups'))), ['/groups/1']);
});

test('templates are checked once', () => {
  const read = (config) => config.template('path');
  assert.deepEqual(problems({ path: '{wrong}' }, read), {});
  assert.match(problems({ path: '{wrong}' }, read, { isCheck: true })['/path'], /unknown field \{wrong\}; there are .*username/);
});

test('a policy that stumbles over a wrong value reports that value', () => {
  const read = (config) => config.optional('n', 'string').length;
  assert.deepEqual(Object.keys(problems({ n: 1 }, read)), ['/n']);
  assert.throws(() => readConfig('{}', read), TypeError);
});
