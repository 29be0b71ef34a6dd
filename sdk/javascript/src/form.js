/** Builders of the fields of a spawn form. `more` may have `help`, `group`, `required` and `visibleWhen`. */

import { PatternError, check } from './pattern.js';

/** A drop-down list of `choices`. The first is selected, unless `more.default` is the value of another. */
export function select(name, label, choices, more = {}) {
  return choice('select', name, label, choices, more);
}

/** Choices that are all visible. The first is selected, unless `more.default` is the value of another. */
export function radio(name, label, choices, more = {}) {
  return choice('radio', name, label, choices, more);
}

/** A switch, which is on or off at first. */
export function checkbox(name, label, on = false, more = {}) {
  return { ...more, name, label, kind: 'checkbox', default: on };
}

/**
 * A line of text. `more` may also have `placeholder`, `maxLength` and `pattern`: a regular expression for the whole text, with
 * what `wit/README.md` lists.
 */
export function text(name, label, value = '', more = {}) {
  return { ...more, name, label, kind: 'text', default: value };
}

/**
 * A number. `more` may also have `minimum`, `maximum` and `step`: the distance between allowed numbers, which begin at the minimum,
 * or else at the default.
 */
export function number(name, label, value, more = {}) {
  return { ...more, name, label, kind: 'number', default: value };
}

function choice(kind, name, label, choices, more) {
  return { default: choices[0]?.value, ...more, name, label, kind, choices };
}

/** The part of a field to which submissions cannot be held, and why; `undefined` if there is none. */
export function problemOf(field) {
  if (field.kind === 'number') return problemOfNumber(field);
  if (field.kind !== 'text' || field.pattern === undefined) return undefined;
  try {
    return check(field.pattern);
  } catch (error) {
    if (error instanceof PatternError) return `pattern: ${error.message}`;
    throw error;
  }
}

function problemOfNumber({ default: value, minimum, maximum, step }) {
  for (const [part, number] of Object.entries({ default: value, minimum, maximum })) {
    if (number !== undefined && !Number.isFinite(number)) return `${part}: must be a finite number`;
  }
  if (step !== undefined && !(Number.isFinite(step) && step > 0)) return 'step: must be a number above 0';
  return minimum > maximum ? 'minimum: must not be above the maximum' : undefined;
}
