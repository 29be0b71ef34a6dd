/** Checks a submission against the fields of a form. */

import { Invalid } from './errors.js';
import { problemOf } from './form.js';
import * as host from './host.js';
import { isMatch } from './pattern.js';

/** The most characters of a submitted text that a message repeats. */
const SHOWN = 64;
/** The most choices that a message lists. */
const LISTED = 10;
/** Control characters and breaks of lines, which could hide what is beside them. The engine in a component does not know \p{Cc}. */
const NOT_PLAIN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
/** The white space of Unicode, which is not that of `trim`: that has U+FEFF, too. */
const BLANK = /^[ \u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]*$/;
/** A number in the syntax of HTML ("valid floating-point number"), which is what browsers submit. */
const NUMBER = /^-?(\d+|\d*\.\d+)([eE][-+]?\d+)?$/;

const KINDS = { select: chosen, radio: chosen, checkbox: flag, text, number };

/**
 * The submission as complete options: every visible field, with its default if it was not submitted. Texts are converted
 * to the type of their field, because browsers submit only texts. Throws `Invalid` with all fields that are wrong, and
 * all keys that are not fields.
 */
export function check(fields, submission) {
  const options = {};
  const errors = [];
  for (const field of fields) {
    if (!visible(field, options)) continue;
    const submitted = Object.hasOwn(submission, field.name) ? submission[field.name] : undefined;
    try {
      const value = valueOf(field, submitted);
      if (value !== undefined) options[field.name] = value;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      errors.push({ field: field.name, message: problem.message });
    }
  }
  for (const name of Object.keys(submission).sort()) {
    if (!fields.some((field) => field.name === name)) {
      errors.push({ field: name, message: 'is not a field of this form; leave it out' });
    }
  }
  if (errors.length > 0) throw new Invalid(errors);
  return options;
}

class Problem extends Error {}

function visible({ visibleWhen: condition }, options) {
  return !condition || (Object.hasOwn(options, condition.field) && condition.values.includes(String(options[condition.field])));
}

/** The value of a field: what was submitted or else its default, held to all that the field says. */
function valueOf(field, submitted) {
  const problem = problemOf(field);
  if (problem) {
    host.error(`the form's field ${field.name} cannot be checked: ${problem}`);
    throw new Problem(`${field.label} cannot be checked now: tell the operators of this site`);
  }
  if (submitted !== undefined && !['boolean', 'number', 'string'].includes(typeof submitted)) {
    throw new Problem(`${field.label} must be a single value: a text, a number, true or false`);
  }
  return KINDS[field.kind](field, submitted);
}

/** What is wrong with a value, and what to do. */
function refused(field, value, remedy) {
  return new Problem(`${field.label} cannot be ${shown(value)}: ${remedy}`);
}

/** A value in a message: a long text is cut, and one with line breaks stays in its line. */
function shown(value) {
  if (typeof value !== 'string') return String(value);
  const chars = [...value];
  const begin = chars.slice(0, SHOWN).join('').replaceAll(NOT_PLAIN, '\ufffd');
  return `"${begin}${chars.length > SHOWN ? '…' : ''}"`;
}

function chosen(field, submitted) {
  const values = field.choices.map((choice) => choice.value);
  // The first choice of a required list asks for one if its value is empty, as in HTML.
  const asks = field.required && field.kind === 'select' && values[0] === '';
  const offered = asks ? values.slice(1) : values;
  const value = submitted === undefined ? field.default : String(submitted);
  if (offered.includes(value)) return value;
  if (value === undefined && !field.required) return undefined;
  const listed = (offered.length > LISTED ? [...offered.slice(0, LISTED), '...'] : offered).join(', ');
  if (value === undefined || (asks && value === '')) {
    throw new Problem(`${field.label} must not be empty: choose one of ${listed}`);
  }
  throw refused(field, submitted ?? value, `choose one of ${listed}`);
}

function flag(field, submitted) {
  let on = submitted ?? field.default;
  if (['true', 'on', '1'].includes(on)) on = true;
  if (['false', 'off', '0', ''].includes(on)) on = false;
  if (typeof on !== 'boolean') throw refused(field, on, 'it must be true or false');
  if (field.required && !on) throw refused(field, on, 'it must be checked');
  return on;
}

function text(field, submitted) {
  // The service makes booleans of the texts `true` and `false`.
  const value = typeof submitted === 'boolean' ? String(submitted) : submitted ?? field.default;
  if (typeof value !== 'string') throw refused(field, value, 'it must be text');
  if (value.search(NOT_PLAIN) >= 0) throw refused(field, value, 'it must be one line without control characters');
  if (field.required && BLANK.test(value)) throw new Problem(`${field.label} must not be empty: enter a text`);
  if (field.maxLength !== undefined && [...value].length > field.maxLength) {
    throw refused(field, value, `it must not be longer than ${field.maxLength} characters`);
  }
  // A pattern says nothing about a field that is left empty, as in HTML.
  if (field.pattern !== undefined && value !== '' && !isMatch(field.pattern, value)) {
    const help = field.help === undefined ? '' : ` (${field.help})`;
    throw refused(field, value, `it must match the pattern ${field.pattern}${help}`);
  }
  return value;
}

function number(field, submitted) {
  const given = submitted ?? field.default;
  if (given === '') throw new Problem(`${field.label} must not be empty: enter a number`);
  // Number() would take '' and '0x10' for numbers. Adding 0 makes 0 of -0.
  const value = typeof given === 'string' && NUMBER.test(given) ? Number(given) + 0 : given;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw refused(field, given, 'it must be a number');
  if (value < field.minimum) throw refused(field, value, `it must be at least ${field.minimum}`);
  if (value > field.maximum) throw refused(field, value, `it must be at most ${field.maximum}`);
  // Steps begin at the minimum, or else at the default, as in HTML.
  const base = field.minimum ?? field.default;
  if (field.step !== undefined && !isOnStep(value, field.step, base)) {
    throw refused(field, value, stepOf(field.step, base));
  }
  return value;
}

/**
 * Whether the number is a whole number of steps away from the base, with the tolerance of browsers for a step that has no exact
 * binary form (a 2^24th of it), and of the numbers themselves.
 */
function isOnStep(number, step, base) {
  const distance = Math.abs(number - base);
  const steps = distance / step + 0.5;
  // So large a number of steps, which may be infinite, is whole already.
  const rest = steps > 2 ** 53 ? 0 : Math.abs(distance - Math.floor(steps) * step);
  return rest <= step / 2 ** 24 + (Math.abs(number) + Math.abs(base)) / 2 ** 51;
}

function stepOf(step, base) {
  if (step === 1 && Number.isInteger(base)) return 'it must be a whole number';
  return `it must be ${base === 0 ? '' : `${base} plus `}a multiple of ${step}`;
}
