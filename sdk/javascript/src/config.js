/** Reads a configuration and collects all errors in it, each with its JSON pointer. */

import { expand } from './host.js';

/** All errors in a configuration, in the order of reading: `errors` is a list of `{ field, message }`. */
export class ConfigErrors extends Error {
  constructor(errors) {
    super(errors.map(({ field, message }) => `${field || '/'}: ${message}`).join('; '));
    this.errors = errors;
  }
}

/** For each type its name for people, and what stands for a required value that is absent or wrong. */
const TYPES = {
  string: ['a string', () => ''],
  boolean: ['a boolean', () => false],
  integer: ['a whole number', () => 0],
  number: ['a number', () => 0],
  list: ['a list', () => []],
  object: ['an object', () => ({})],
};
const NOTHING = Symbol('no value');

/** One object of the configuration. Keys that are never read are errors; whatever is wrong is kept, and reading goes on. */
export class Section {
  #entries;
  #place;
  #findings;
  #known = [];

  constructor(entries, place, findings) {
    this.#entries = entries;
    this.#place = place;
    this.#findings = findings;
  }

  /** A required value of a type: string, boolean, integer, number, list, object. */
  required(key, type) {
    if (!this.has(key)) {
      this.#known.push(key);
      this.problem(key, 'is missing');
    }
    return this.optional(key, type) ?? TYPES[type][1]();
  }

  /** An optional value of a type, or `otherwise`. `null` counts as absent. */
  optional(key, type, otherwise = undefined) {
    const value = this.#take(key);
    if (value === undefined) return otherwise;
    const found = typeOf(value);
    if (found === type || (type === 'number' && found === 'integer')) return value;
    this.problem(key, `must be ${TYPES[type][0]}, not ${kind(value)}`);
    return otherwise;
  }

  /** A list of texts; empty if absent. */
  texts(key) {
    const isText = (value, index) => {
      if (typeof value === 'string') return true;
      this.#report(`${this.pointerTo(key)}/${index}`, `must be a string, not ${kind(value)}`);
      return false;
    };
    return this.optional(key, 'list', []).filter(isText);
  }

  /** An optional text that `parse` converts, such as a quantity; what it throws is the error. A number may stand for a text. */
  parsed(key, parse, otherwise = undefined) {
    const value = this.#take(key);
    if (value === undefined) return otherwise;
    if (typeof value !== 'string' && typeof value !== 'number') {
      this.problem(key, `must be a string, not ${kind(value)}`);
      return otherwise;
    }
    try {
      return parse(String(value));
    } catch (error) {
      this.problem(key, error.message);
      return otherwise;
    }
  }

  /** A required text that `parse` converts. Returns `otherwise` if it is absent or wrong, which is an error. */
  requiredParsed(key, parse, otherwise = 0) {
    if (!this.has(key)) this.problem(key, 'is missing');
    return this.parsed(key, parse, otherwise);
  }

  /** An optional object, from which `read` makes the value. */
  section(key, read) {
    const value = this.#take(key);
    return value === undefined ? undefined : this.#findings.open(value, this.pointerTo(key), read, undefined);
  }

  /** A list of objects; empty if absent. */
  list(key, read) {
    const open = (item, index) => this.#findings.open(item, `${this.pointerTo(key)}/${index}`, read, NOTHING);
    return this.optional(key, 'list', []).map(open).filter((value) => value !== NOTHING);
  }

  /** A `Map` of objects by name; empty if absent. */
  map(key, read) {
    const open = ([name, item]) => [name, this.#findings.open(item, `${this.pointerTo(key)}/${escaped(name)}`, read, NOTHING)];
    return new Map(Object.entries(this.optional(key, 'object', {})).map(open).filter(([, value]) => value !== NOTHING));
  }

  /** An optional text that may contain template fields, for `host.expand`. */
  template(key) {
    const text = this.optional(key, 'string');
    if (text !== undefined && this.isCheck) {
      try {
        expand(text);
      } catch (error) {
        this.problem(key, `\`${text}\` is not a valid template: ${error.message}`);
      }
    }
    return text;
  }

  /** True during the check before the policy is used, where expensive checks belong. */
  get isCheck() {
    return this.#findings.isCheck;
  }

  /** True if the key is present. */
  has(key) {
    return Object.hasOwn(this.#entries, key);
  }

  /** Reports an error in the value of `key`; `''` means this object. */
  problem(key, message) {
    this.#report(this.pointerTo(key), message);
  }

  /** Reports a value that is allowed but suspicious. */
  warning(key, message) {
    this.#findings.warnings.push(`${this.pointerTo(key)}: ${message}`);
  }

  /** The JSON pointer of `key`; `''` means this object. */
  pointerTo(key) {
    return key === '' ? this.#place : `${this.#place}/${escaped(key)}`;
  }

  /** Reports the keys that nothing has read. */
  refuseUnknownKeys() {
    for (const key of Object.keys(this.#entries).filter((key) => !this.#known.includes(key))) {
      this.problem(key, `is not a key here; there are ${this.#known.join(', ')}`);
    }
  }

  #take(key) {
    this.#known.push(key);
    return (this.has(key) ? this.#entries[key] : null) ?? undefined;
  }

  #report(field, message) {
    this.#findings.problems.push({ field, message });
  }
}

/** What was found while a configuration was read. */
class Findings {
  problems = [];
  warnings = [];

  constructor(isCheck) {
    this.isCheck = isCheck;
  }

  /** What `read` makes of an object; `instead` if the value is none. */
  open(value, place, read, instead) {
    if (typeOf(value) !== 'object') {
      this.problems.push({ field: place, message: `must be an object, not ${kind(value)}` });
      return instead;
    }
    const section = new Section(value, place, this);
    const result = read(section);
    section.refuseUnknownKeys();
    return result;
  }
}

/** Reads a configuration from JSON. Returns `{ value, warnings }`, or throws `ConfigErrors`. */
export function readConfig(json, read, { isCheck = false } = {}) {
  let config;
  try {
    config = JSON.parse(json);
  } catch (error) {
    throw new ConfigErrors([{ field: '', message: `is not JSON: ${error.message}` }]);
  }
  const findings = new Findings(isCheck);
  let value;
  try {
    value = findings.open(config, '', read, undefined);
  } catch (error) {
    // A policy may stumble over the stand-in of a value that was reported already.
    if (findings.problems.length === 0) throw error;
  }
  if (findings.problems.length > 0) throw new ConfigErrors(findings.problems);
  return { value, warnings: findings.warnings };
}

function typeOf(value) {
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return value === null ? 'null' : typeof value;
}

function kind(value) {
  const type = typeOf(value);
  return { null: 'null', integer: 'a number' }[type] ?? TYPES[type][0];
}

/** Escapes a key for a JSON pointer (RFC 6901). */
function escaped(key) {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
