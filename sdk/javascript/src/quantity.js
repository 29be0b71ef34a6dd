/** Amounts as Kubernetes writes them: `500m`, `2`, `4Gi`. They are computed exactly. */

/** The value of each suffix: a factor, and an exponent of ten. */
const SUFFIXES = {
  '': [1n, 0], Ki: [1n << 10n, 0], Mi: [1n << 20n, 0], Gi: [1n << 30n, 0], Ti: [1n << 40n, 0], Pi: [1n << 50n, 0], Ei: [1n << 60n, 0],
  n: [1n, -9], u: [1n, -6], m: [1n, -3], k: [1n, 3], M: [1n, 6], G: [1n, 9], T: [1n, 12], P: [1n, 15], E: [1n, 18],
};

/**
 * The number of bytes of an amount of memory or storage: `512Mi`, `2Gi`, `1.5G`, `1000`. Throws `RangeError` if the amount
 * is negative, is no quantity of Kubernetes, or is no whole number of bytes up to 2^53 - 1, which is 8 PiB.
 */
export function memoryBytes(text) {
  const amount = scaled(text, 0);
  if (amount === undefined) throw new RangeError(`\`${text}\` is not an amount of bytes, such as 512Mi, 2Gi or 1.5G`);
  return amount;
}

/**
 * The number of thousandths of a CPU: `500m`, `2`, `0.5`. Throws `RangeError` if the amount is negative, is no quantity of
 * Kubernetes, or is no whole number of thousandths up to 2^53 - 1.
 */
export function cpuMillis(text) {
  const amount = scaled(text, 3);
  if (amount === undefined) throw new RangeError(`\`${text}\` is not an amount of CPU, such as 500m, 2 or 0.5`);
  return amount;
}

/** The amount for people, in CPUs with at most one decimal: `1.5` for 1500 thousandths. */
export function showCpus(millis) {
  return decimal(millis, 1000);
}

/** The amount for people, in MiB or GiB with at most one decimal: `4 GiB`, `512 MiB`. */
export function showBytes(bytes) {
  return bytes >= 2 ** 30 ? `${decimal(bytes, 2 ** 30)} GiB` : `${decimal(bytes, 2 ** 20)} MiB`;
}

function decimal(amount, unit) {
  const tenths = (BigInt(amount) * 10n + BigInt(unit / 2)) / BigInt(unit);
  return tenths % 10n === 0n ? String(tenths / 10n) : `${tenths / 10n}.${tenths % 10n}`;
}

/** The amount, multiplied by ten to the power of `places`, if that is a whole number which JavaScript can hold. */
function scaled(text, places) {
  const found = /^\+?(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,4})|([A-Za-z]*))$/.exec(text);
  if (!found) return undefined;
  const [, whole, fraction = '', exponent, suffix = ''] = found;
  const digits = whole + fraction;
  if (digits === '' || digits.length > 38 || !Object.hasOwn(SUFFIXES, suffix)) return undefined;
  const [factor, power] = exponent === undefined ? SUFFIXES[suffix] : [1n, Number(exponent)];
  const shift = power + places - fraction.length;
  if (Math.abs(shift) > 38) return undefined;
  const scale = 10n ** BigInt(Math.abs(shift));
  const amount = BigInt(digits) * factor;
  if (shift < 0 && amount % scale !== 0n) return undefined;
  const exact = shift < 0 ? amount / scale : amount * scale;
  return exact <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(exact) : undefined;
}
