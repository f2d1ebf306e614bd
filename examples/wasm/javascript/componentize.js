// Makes a component of the bundle, without any of the features of the engine that reach out.
import { writeFile } from 'node:fs/promises';

import { componentize } from '@bytecodealliance/componentize-js';

const [sourcePath, builtPath] = process.argv.slice(2);
const { component } = await componentize({
  sourcePath,
  witPath: 'wit',
  worldName: 'pure',
  disableFeatures: ['clocks', 'fetch-event', 'http', 'random', 'stdio'],
});
await writeFile(builtPath, component);
