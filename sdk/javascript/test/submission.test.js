import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Invalid, form } from 'wasmspawner-policy';

import { check } from '../src/submission.js';

const fields = [
  form.radio('size', 'Size', [{ value: 'small', label: 'Small' }, { value: 'gpu', label: 'GPU' }]),
  form.number('gpus', 'GPUs', 1, { minimum: 0, maximum: 8, visibleWhen: { field: 'size', values: ['gpu'] } }),
  form.checkbox('debug', 'Debug'),
  form.text('note', 'Note', '', { maxLength: 5 }),
];

function wrong(submission) {
  try {
    check(fields, submission);
  } catch (error) {
    assert.ok(error instanceof Invalid, error);
    return error.errors.map(({ field }) => field);
  }
  return [];
}

test('a field that is not submitted gets its default', () => {
  assert.deepEqual(check(fields, {}), { size: 'small', debug: false, note: '' });
});

test('submitted texts become values of the type of the field', () => {
  const options = check(fields, { size: 'gpu', gpus: '2', debug: 'on' });
  assert.deepEqual(options, { size: 'gpu', gpus: 2, debug: true, note: '' });
});

test('every wrong field is named', () => {
  assert.deepEqual(wrong({ size: 'huge', debug: 'maybe', note: 'a\nb', root: true }), ['size', 'debug', 'note', 'root']);
  assert.deepEqual(wrong({ note: 'longer', toString: 1 }), ['note', 'toString']);
});

test('numbers outside of their range are refused', () => {
  for (const gpus of ['9', '-1', 'NaN', 'Infinity', 'x', '', '0x1', true]) {
    assert.deepEqual(wrong({ size: 'gpu', gpus }), ['gpus'], String(gpus));
  }
});

test('a required field needs a value', () => {
  for (const field of [form.radio('a', 'A', [], { required: true }), form.text('a', 'A', ' ', { required: true })]) {
    assert.throws(() => check([field], {}), Invalid);
  }
});
