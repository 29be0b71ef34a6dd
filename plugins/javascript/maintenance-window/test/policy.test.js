import assert from 'node:assert/strict';
import { test } from 'node:test';

import { User } from 'wasmspawner-policy';
import { TestKit, given } from 'wasmspawner-policy/testing';

// `npm test` makes it of policy.ts.
import MaintenanceWindow from '../build/policy.js';

/** Friday, 27 November 2026, 00:00 UTC. */
const FRIDAY = 1_795_737_600_000;

test('nothing but a stop is allowed during maintenance', () => {
  const windows = [{ days: ['fri'], from: '08:00', until: '10:00' }];
  const policy = new TestKit(MaintenanceWindow, { windows, except_groups: ['admins'], message: 'Until ten.' });
  const [ada, admin] = [new User('ada'), new User('ada', { groups: ['admins'] })];
  const may = (hour, action, user) => given({ nowMillis: FRIDAY + hour * 3_600_000 }, () => policy.may(action, user));
  assert.equal(may(7, 'spawn', ada), 'allow');
  for (const action of ['spawn', 'start-kernel', 'dask-pool', 'scale']) {
    assert.deepEqual(may(8, action, ada), { deny: { message: 'Until ten.', rule: 'maintenance' } });
  }
  assert.equal(may(8, 'stop', ada), 'allow');
  assert.equal(may(8, 'spawn', admin), 'allow');
});

test('a window is needed', () => {
  assert.throws(() => new TestKit(MaintenanceWindow), ({ errors }) => errors[0].field === '/windows');
});
