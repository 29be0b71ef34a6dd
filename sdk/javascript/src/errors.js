/** Why a hook returns no answer. A hook throws one of these. */

/** What all errors of this module have in common. Throw one of the others. */
export class PolicyError extends Error {}

/** The user may not do this. The message is shown to them; `rule` is one word for the rule of the policy, for administrators. */
export class Denied extends PolicyError {
  constructor(message, { rule } = {}) {
    super(message);
    if (rule !== undefined) this.rule = rule;
  }

  /** The error in the form of the contract. */
  get lowered() {
    return { tag: 'denied', val: { message: this.message, rule: this.rule } };
  }
}

/** The request is invalid, field by field: a list of `{ field, message }`. */
export class Invalid extends PolicyError {
  constructor(errors) {
    super(errors.map(({ field, message }) => `${field}: ${message}`).join('; '));
    this.errors = errors;
  }

  /** The error in the form of the contract. */
  get lowered() {
    return { tag: 'invalid', val: this.errors };
  }
}

/** The user may try again after this number of seconds. */
export class RetryLater extends PolicyError {
  constructor(seconds) {
    super(`try again in ${seconds} s`);
    this.seconds = seconds;
  }

  /** The error in the form of the contract. */
  get lowered() {
    return { tag: 'retry-later', val: this.seconds };
  }
}

/** The policy itself failed. The message is logged and never shown to the user. Every other exception counts as this. */
export class Internal extends PolicyError {
  /** The error in the form of the contract. */
  get lowered() {
    return { tag: 'internal', val: this.message };
  }
}
