import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { quantity } from 'wasmspawner-policy';

const table = JSON.parse(readFileSync(new URL('../../../tests/tables/quantities.json', import.meta.url), 'utf8'));

function attempt(read, text) {
  try {
    return read(text);
  } catch {
    return undefined;
  }
}

test('amounts are those of Kubernetes, as far as JavaScript has them', () => {
  for (const { text, millis } of table) {
    // The table rounds up what is finer than a thousandth, which is no amount here.
    const known = millis === null || /[nu]$/.test(text) ? undefined : BigInt(millis);
    const exact = (amount) => (amount >= 0n && amount <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(amount) : undefined);
    assert.equal(attempt(quantity.cpuMillis, text), known === undefined ? undefined : exact(known), text);
    const bytes = known === undefined || known % 1000n !== 0n ? undefined : exact(known / 1000n);
    assert.equal(attempt(quantity.memoryBytes, text), bytes, text);
  }
});

test('what is no amount of bytes is refused', () => {
  for (const text of ['', '.', '-1', '1 Gi', '0.3', '8Pi', '1e99', '1e2147483647', '1constructor']) {
    assert.throws(() => quantity.memoryBytes(text), /is not an amount of bytes, such as 512Mi/, text);
  }
});

test('amounts are shown with one decimal', () => {
  assert.deepEqual([quantity.showCpus(1500), quantity.showCpus(2000)], ['1.5', '2']);
  assert.deepEqual([quantity.showBytes(4 * 2 ** 30), quantity.showBytes(512 * 2 ** 20)], ['4 GiB', '512 MiB']);
});
