/** Checks a submission against the fields of a form. */

import { Invalid } from './errors.js';

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
      const value = KINDS[field.kind](field, submitted);
      if (value !== undefined) options[field.name] = value;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      errors.push({ field: field.name, message: problem.message });
    }
  }
  for (const name of Object.keys(submission).sort()) {
    if (!fields.some((field) => field.name === name)) {
      errors.push({ field: name, message: 'is not a field of this form' });
    }
  }
  if (errors.length > 0) throw new Invalid(errors);
  return options;
}

class Problem extends Error {}

function visible({ visibleWhen: condition }, options) {
  return !condition || (Object.hasOwn(options, condition.field) && condition.values.includes(String(options[condition.field])));
}

function chosen(field, submitted) {
  const value = submitted === undefined ? field.default : String(submitted);
  if (value === undefined) {
    if (field.required) throw new Problem('choose one');
    return undefined;
  }
  const values = field.choices.map((choice) => choice.value);
  if (!values.includes(value)) {
    const offered = values.length > 10 ? [...values.slice(0, 10), '...'] : values;
    throw new Problem(`is not offered; choose one of ${offered.join(', ')}`);
  }
  return value;
}

function flag(field, submitted) {
  if (submitted === undefined) return field.default;
  if (submitted === true || ['true', 'on', '1'].includes(submitted)) return true;
  if (submitted === false || ['false', 'off', '0', ''].includes(submitted)) return false;
  throw new Problem('must be true or false');
}

function text(field, submitted) {
  const value = submitted === undefined ? field.default : submitted;
  if (typeof value !== 'string') throw new Problem('must be text');
  if (field.required && value.trim() === '') throw new Problem('must not be empty');
  if (field.maxLength !== undefined && [...value].length > field.maxLength) {
    throw new Problem(`is longer than ${field.maxLength} characters`);
  }
  // The control characters of Unicode; the engine in a component does not know \p{Cc}.
  if (/[\u0000-\u001f\u007f-\u009f]/.test(value)) throw new Problem('must be one line without control characters');
  return value;
}

function number(field, submitted) {
  // Number() would take '' and '0x10' for numbers.
  const written = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i;
  const isText = typeof submitted === 'string' && written.test(submitted);
  const value = submitted === undefined ? field.default : isText ? Number(submitted) : submitted;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw new Problem('must be a number');
  if (value < field.minimum) throw new Problem(`must be at least ${field.minimum}`);
  if (value > field.maximum) throw new Problem(`must be at most ${field.maximum}`);
  return value;
}
