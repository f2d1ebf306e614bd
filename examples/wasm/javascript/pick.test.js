import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pick } from './pick.js';

test('the highest version of the range is picked', () => {
  const versions = ['1.9.0', '2.0.0', '1.10.0', '1.2.3'];
  assert.deepEqual(pick({ versions, range: '^1.3.0' }), {
    picked: '1.10.0',
    others: ['1.2.3', '2.0.0'],
  });
  assert.deepEqual(pick({ versions: [], range: '*' }), { picked: null, others: [] });
});

test('what is no version or no range is told', () => {
  assert.throws(() => pick({ versions: ['one'], range: '*' }), /found `one`/);
  assert.throws(() => pick({ versions: [], range: 'one' }), /found `one`/);
});
