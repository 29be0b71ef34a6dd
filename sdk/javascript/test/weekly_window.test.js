import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WeeklyWindow } from 'wasmspawner-policy';

import { readConfig } from '../src/config.js';

/** Friday, 27 November 2026, 00:00 UTC. */
const FRIDAY = 1_795_737_600_000;

const window = (entry) => readConfig(JSON.stringify(entry), WeeklyWindow.read).value;

function hours(window, from, until) {
  return Array.from({ length: until - from }, (_, index) => from + index).filter((hour) =>
    window.contains(FRIDAY + hour * 3_600_000),
  );
}

test('a window may end on the next day', () => {
  const nights = window({ days: ['fri', 'sat'], from: '22:00', until: '06:00' });
  assert.deepEqual(hours(nights, 0, 72), [22, 23, 24, 25, 26, 27, 28, 29, 46, 47, 48, 49, 50, 51, 52, 53]);
});

test('times may be of another zone', () => {
  const day = window({ days: ['fri'], from: '00:00', until: '24:00', utc_offset: '+02:00' });
  assert.deepEqual([hours(day, -12, 48).at(0), hours(day, -12, 48).at(-1)], [-2, 21]);
});

test('what is no time is told with its place', () => {
  for (const [entry, field] of [
    [{ from: '8:00', until: '09:00' }, '/from'],
    [{ from: '08:00', until: '24:01' }, '/until'],
    [{ from: '08:00', until: '09:00', days: ['monday'] }, '/days'],
    [{ from: '08:00', until: '09:00', utc_offset: '1' }, '/utc_offset'],
  ]) {
    assert.throws(() => window(entry), ({ errors }) => errors.length === 1 && errors[0].field === field);
  }
});
