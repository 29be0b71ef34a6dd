import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Policy, User, host } from 'wasmspawner-policy';
import { ConfigErrors, TestKit, given } from 'wasmspawner-policy/testing';

import Everything from './everything/policy.js';

const ada = new User('ada', { uid: 1000, gid: 100, groups: [{ name: 'staff', gid: 5 }] });
const policy = () => new TestKit(Everything, { labs: 2 });

test('the host answers what is given', () => {
  assert.equal(policy().may('start-kernel', new User('eve')), 'allow');
  const child = { kind: 'kernel', name: 'python3', workers: 0 };
  const denied = given({ child }, () => policy().may('start-kernel', new User('eve')));
  assert.deepEqual(denied, { deny: { message: 'No KERNEL python3.', rule: 'staff-only' } });
  const pastUse = { 0: { labSeconds: 60 }, 6: { labSeconds: 30 }, 7: { labSeconds: 900 } };
  given({ pastUse }, () => assert.deepEqual([0, 1, 7, 30].map((days) => host.pastUse(days).labSeconds), [60, 60, 90, 990]));
  assert.equal(given({ presentUse: { cpuMillis: 500 } }, () => policy().quota(ada)).cpuMillis, 500);
  const images = { 'example.org/lab': [{ tag: 'v1', nodesWith: 0 }] };
  assert.equal(given({ images }, () => policy().images(ada)).entries[0].reference, 'example.org/lab:v1');
  assert.equal(policy().images(ada), undefined);
  assert.deepEqual(given({ data: { teams: { ada: 1 } } }, () => host.data('teams').value), { ada: 1 });
  assert.equal(host.data('teams'), undefined);
  assert.deepEqual(given({ lastOptions: { size: 'large', debug: true } }, () => host.lastOptions()), { size: 'large', debug: true });
  assert.deepEqual(host.lastOptions(), {});
  assert.deepEqual([...given({ random: [7] }, () => host.random(2))], [7, 0]);
});

test('templates are filled in for a lab only', () => {
  assert.equal(policy().buildPod(ada).labels['example.org/a'], 'ada');
  assert.equal(host.expand('{{a}} {username}'), '{{a}} {username}');
  const expanded = given({ labOf: ada }, () => host.expand('{{{uid}:{gid}}} {supplemental_gids} {home}'));
  assert.equal(expanded, '{1000:100} 5 /home/ada');
  for (const wrong of ['{usrname}', '{', '}', '{userid}', '{username!r}']) {
    assert.throws(() => host.expand(wrong), RangeError, wrong);
  }
});

test('a wrong configuration is refused', () => {
  assert.throws(() => new TestKit(Everything, { labs: 'two' }), ConfigErrors);
});

test('an answer that is none is told with its place', () => {
  const wrong = { message: 'buildPod.resources.memoryLimitByte is no setting; there are cpuLimitMillis, ' };
  assert.throws(() => policy().buildPod(ada, { wrong: true }), ({ message }) => message.startsWith(wrong.message));
  assert.throws(() => policy().may('scale', ada), /authorize is undefined; it must be 'allow' or \{ deny: \.\. \}/);
  class Fractions extends Policy {
    quota() {
      return { labs: 1.5 };
    }
  }
  assert.throws(() => new TestKit(Fractions).quota(ada), /quota\.labs is 1\.5; it must be a whole number/);
});

test('what the policy logs can be read', () => {
  const log = [];
  given({ log }, () => host.warn('careful'));
  assert.deepEqual(log, [{ level: 'warn', message: 'careful' }]);
});
