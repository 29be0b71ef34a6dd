/**
 * Converters of values to the types of the contract. Each gets a value and its place in the answer, and throws `Internal`
 * with the place if the value does not fit, because a setting that nobody reads would be a rule that is not enforced.
 */

import { Internal } from './errors.js';

/** A text. */
export const text = (value, at) => of('string', value, at);

/** A boolean. */
export const flag = (value, at) => of('boolean', value, at);

/** A number. */
export const number = (value, at) => of('number', value, at);

/** A whole number from 0 to 2^32 - 1. */
export const small = (value, at) => (whole(value, at) < 2 ** 32 ? value : wrong(at, value, 'a whole number below 2^32'));

/** A whole number from 0 to 2^53 - 1, which has 64 bits in the contract. */
export const large = (value, at) => BigInt(whole(value, at));

/** A number of seconds, which may be negative. */
export const signed = (value, at) => (Number.isSafeInteger(value) ? BigInt(value) : wrong(at, value, 'a whole number'));

/** One of these texts. */
export function oneOf(...names) {
  return (value, at) => (names.includes(value) ? value : wrong(at, value, `one of ${names.join(', ')}`));
}

/** A value that may be absent. */
export function optional(convert) {
  return (value, at) => (value === undefined || value === null ? undefined : convert(value, at));
}

/** A value that is `otherwise` if it is absent. */
export function or(otherwise, convert) {
  return (value, at) => convert(value ?? otherwise, at);
}

/** A list; empty if absent. */
export function list(convert) {
  return (value = [], at) =>
    Array.isArray(value) ? value.map((item, index) => convert(item, `${at}[${index}]`)) : wrong(at, value, 'a list');
}

/** The entries of an object, each made by `make` from its name and converted value; none if absent. */
export function entries(convert, make = (name, value) => ({ name, value })) {
  return (value = {}, at) => {
    const one = ([name, item]) => make(name, convert(item, `${at}.${name}`));
    return isObject(value) ? Object.entries(value).map(one) : wrong(at, value, 'an object');
  };
}

/** Amounts by name, which are pairs in the contract. */
export const amounts = entries(large, (name, value) => [name, value]);

/** Texts by name. */
export const texts = entries(text);

/** An object with exactly these keys. */
export function record(fields) {
  return (value, at) => {
    if (!isObject(value)) wrong(at, value, 'an object');
    for (const key of Object.keys(value)) {
      if (!Object.hasOwn(fields, key)) {
        throw new Internal(`${at}.${key} is no setting; there are ${Object.keys(fields).join(', ')}`);
      }
    }
    const one = ([key, convert]) => [key, convert(value[key], at === '' ? key : `${at}.${key}`)];
    return Object.fromEntries(Object.entries(fields).map(one));
  };
}

/** A variant of the contract: one of these texts, or an object with exactly one of these keys. */
export function variant(names, cases) {
  return (value, at) => {
    if (names.includes(value)) return { tag: value };
    const keys = isObject(value) ? Object.keys(value) : [];
    if (keys.length !== 1 || !Object.hasOwn(cases, keys[0])) {
      const known = [...names.map((name) => `'${name}'`), ...Object.keys(cases).map((key) => `{ ${key}: .. }`)];
      wrong(at, value, known.join(' or '));
    }
    const [key] = keys;
    return { tag: kebab(key), val: cases[key](value[key], `${at}.${key}`) };
  };
}

/** A name of JavaScript as the contract writes it: `emptyDir` is `empty-dir`. */
export function kebab(name) {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Throws the error about a value that does not fit. */
export function wrong(at, value, expected) {
  throw new Internal(`${at} is ${JSON.stringify(value)}; it must be ${expected}`);
}

function whole(value, at) {
  return Number.isSafeInteger(value) && value >= 0 ? value : wrong(at, value, 'a whole number from 0 to 2^53 - 1');
}

function of(type, value, at) {
  return typeof value === type ? value : wrong(at, value, `a ${type}`);
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
