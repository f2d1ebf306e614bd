// Picks the best of some versions. It knows nothing of WASM.
import semver from 'semver';

/** The highest version that is in the range, and those that are not, lowest first. */
export function pick({ versions, range }) {
  if (semver.validRange(range) === null) {
    throw new RangeError(`expected a range such as \`^1.2.0\`, found \`${range}\``);
  }
  const invalid = versions.find((version) => semver.valid(version) === null);
  if (invalid !== undefined) {
    throw new RangeError(`expected versions such as \`1.2.0\`, found \`${invalid}\``);
  }
  const others = versions.filter((version) => !semver.satisfies(version, range));
  return { picked: semver.maxSatisfying(versions, range), others: semver.sort(others) };
}
