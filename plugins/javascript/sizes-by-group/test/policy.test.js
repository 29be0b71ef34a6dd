import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Denied, Invalid, User } from 'wasmspawner-policy';
import { TestKit } from 'wasmspawner-policy/testing';

import SizesByGroup from '../policy.js';

const sizes = [
  { name: 'small', cpu: 1, memory: '2Gi' },
  { name: 'large', cpu: 8, memory: '32Gi', groups: ['staff'] },
];
const policy = new TestKit(SizesByGroup, { sizes });
const [eve, ada] = [new User('eve'), new User('ada', { groups: ['staff'] })];

test('members of a group see its sizes', () => {
  assert.deepEqual(policy.parse(eve, { size: 'small' }), { size: 'small' });
  assert.deepEqual(policy.parse(ada, { size: 'large' }), { size: 'large' });
  assert.throws(() => policy.parse(eve, { size: 'large' }), Invalid);
});

test('a lab has its size, and nobody gets another by asking for it', () => {
  assert.equal(policy.buildPod(ada, { size: 'large' }).resources.memoryLimitBytes, 32 * 2 ** 30);
  assert.equal(policy.buildPod(ada).resources.memoryLimitBytes, 2 * 2 ** 30);
  assert.throws(() => policy.buildPod(eve, { size: 'large' }), new Denied('This size is not for you.'));
});

test('what is wrong in the configuration is told with its place', () => {
  const wrong = { sizes: [{ name: 'small', cpu: '1x', groups: ['staff'] }] };
  const fields = ({ errors }) => errors.map(({ field }) => field).join() === '/sizes/0/cpu,/sizes/0/memory,/sizes';
  assert.throws(() => new TestKit(SizesByGroup, wrong), fields);
});
