// Takes the hosts out of the lock file: packages come from where npm is told to get them, and are
// what their hashes say.
import { readFile, writeFile } from 'node:fs/promises';

const lock = JSON.parse(await readFile('package-lock.json', 'utf8'));
for (const locked of Object.values(lock.packages)) {
  delete locked.resolved;
  delete locked.funding;
}
await writeFile('package-lock.json', JSON.stringify(lock, null, 2) + '\n');
