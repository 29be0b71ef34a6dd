// Fields hold submissions to all that they say: the table that the SDKs of all languages read.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { Internal, Invalid, Policy, User, form } from 'wasmspawner-policy';
import { TestKit } from 'wasmspawner-policy/testing';

import { check } from '../src/submission.js';

const table = JSON.parse(readFileSync(new URL('../../../tests/tables/form-fields.json', import.meta.url), 'utf8'));

function fieldOf({ field: { kind, default: value, choices = [], ...more } }) {
  if (kind === 'text') return form.text('name', 'Label', value, more);
  if (kind === 'number') return form.number('name', 'Label', value ?? 0, more);
  if (kind === 'checkbox') return form.checkbox('name', 'Label', false, more);
  return form[kind]('name', 'Label', choices.map((choice) => ({ value: choice, label: choice })), more);
}

test('a value is held to all that its field says', () => {
  for (const row of table.values) {
    const submission = 'value' in row ? { name: row.value } : {};
    if ('problem' in row) {
      assert.throws(() => check([fieldOf(row)], submission), (error) => {
        assert.ok(error instanceof Invalid, error);
        assert.deepEqual(error.errors, [{ field: 'name', message: row.problem }]);
        return true;
      }, JSON.stringify(row));
    } else {
      assert.deepEqual(check([fieldOf(row)], submission), { name: row.becomes }, JSON.stringify(row));
    }
  }
});

test('a pattern means the same in a browser', () => {
  const rows = table.values.filter(({ field, value }) => field.pattern && value);
  assert.ok(rows.length > 0);
  for (const { field, value, becomes } of rows) {
    assert.equal(new RegExp(`^(?:${field.pattern})$`, 'v').test(value), becomes === value, `${field.pattern} ${value}`);
  }
});

test('a field that cannot be checked is refused before anybody sees it', () => {
  for (const row of table.fields) {
    class Shows extends Policy {
      form() {
        return [fieldOf(row)];
      }
    }
    const fields = () => new TestKit(Shows).fields(new User('ada'));
    if ('problem' in row) {
      const message = `the form's field name cannot be checked: ${row.problem}`;
      assert.throws(fields, (error) => error instanceof Internal && error.message === message, message);
    } else {
      assert.equal(fields().length, 1);
      if (row.field.pattern) new RegExp(row.field.pattern, 'v');
    }
  }
});

test('no value passes a field that cannot be checked', () => {
  const errors = [{ field: 'code', message: 'Code cannot be checked now: tell the operators of this site' }];
  assert.throws(() => check([form.text('code', 'Code', 'x', { pattern: '(?=x)' })], {}), { errors });
});
