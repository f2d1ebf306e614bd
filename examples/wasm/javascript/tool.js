// The tool, as its host sees it.
import { pick } from './pick.js';

const version = { type: 'string', maxLength: 256 };

const input = {
  type: 'object',
  required: ['versions', 'range'],
  additionalProperties: false,
  properties: {
    versions: { type: 'array', maxItems: 1000, items: version, description: 'Such as 1.2.0.' },
    range: { ...version, description: 'As npm writes it, such as `^1.2.0 || >=3`.' },
  },
};

const output = {
  type: 'object',
  required: ['picked', 'others'],
  additionalProperties: false,
  properties: {
    picked: { type: ['string', 'null'], description: 'The highest version in the range.' },
    others: { type: 'array', items: version, description: 'What is not in it, lowest first.' },
  },
};

export const tool = {
  describe() {
    return {
      name: 'pick_version',
      version: '1.0.0',
      description: 'Picks the highest of some versions that is in a range, as npm understands it.',
      input: JSON.stringify(input),
      output: JSON.stringify(output),
      access: 'pure',
      repeat: 'idempotent',
      confirm: false,
      needs: [],
      bounds: { memory: 64n << 20n, fuel: 2_000_000_000n },
    };
  },

  call(args) {
    try {
      return JSON.stringify(pick(JSON.parse(args)));
    } catch (err) {
      // What is thrown is the failure that the world describes.
      throw { kind: { tag: 'not-done' }, message: err.message, code: undefined };
    }
  },
};
