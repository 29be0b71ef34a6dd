/** Builders of the fields of a spawn form. `more` may have `help`, `group`, `required` and `visibleWhen`. */

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

/** A line of text. `more` may also have `placeholder`, `maxLength` and `pattern`. */
export function text(name, label, value = '', more = {}) {
  return { ...more, name, label, kind: 'text', default: value };
}

/** A number. `more` may also have `minimum`, `maximum` and `step`. */
export function number(name, label, value, more = {}) {
  return { ...more, name, label, kind: 'number', default: value };
}

function choice(kind, name, label, choices, more) {
  return { default: choices[0]?.value, ...more, name, label, kind, choices };
}
