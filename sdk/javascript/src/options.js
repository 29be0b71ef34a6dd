/** The options of a lab. */

/** Converts entries of the contract to an object with booleans, numbers and texts. */
export function optionsOf(entries) {
  const plain = ({ name, value: { val } }) => [name, typeof val === 'bigint' ? Number(val) : val];
  return Object.fromEntries(entries.map(plain));
}
