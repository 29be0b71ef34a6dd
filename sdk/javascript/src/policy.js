/** What a policy is: a class with a method for each thing that it decides. */

import { check } from './submission.js';

/** The methods that make a policy export an interface, with the names of the interface in the contract. */
export const HOOKS = {
  form: 'form',
  quota: 'quota',
  authorize: 'authorize',
  inject: 'inject',
  onEvent: 'events',
  buildPod: 'build-pod',
  labServer: 'lab-server',
  labFiles: 'lab-files',
  images: 'images',
};

/**
 * A policy. It exports the hooks whose methods it has: `form`, `quota`, `authorize`, `inject`, `onEvent`, `buildPod`,
 * `labServer`, `labFiles`, `images`. `types/index.d.ts` says what they get and return. It has no other public methods, so that a
 * misspelled hook is noticed: the names of its own begin with `#` or `_`.
 *
 * The service calls the constructor once when the policy is loaded, and begins every call with a copy of what it has made.
 * So it must not depend on time, on random numbers, or on what the service knows about images.
 */
export class Policy {
  /** Converts a submission to options. Unless it is overridden, it checks the submission against the fields of `form`. */
  parse(submission, context) {
    const form = this.form(context);
    return check(Array.isArray(form) ? form : [], submission);
  }

  /** The images that nodes are to have. Asked only if `images` is there, too. */
  prepull() {
    return [];
  }
}

/** Name, version and description. `project` is what `package.json` beside the policy says. */
export function infoOf(policy, project = {}) {
  const fromClass = policy.name.replace(/([a-z0-9])([A-Z])/g, '$1-$2').toLowerCase();
  return {
    name: policy.policyName ?? project.name ?? fromClass,
    version: policy.version ?? project.version ?? '0.1.0',
    description: policy.description ?? project.description ?? '',
  };
}

/** The methods of the hooks that a policy has. */
export function hooksOf(policy) {
  return Object.keys(HOOKS).filter((method) => typeof policy.prototype[method] === 'function');
}

/** Problems with public methods that no hook calls: a rule in one of them would never hold. */
export function strangersOf(policy) {
  const known = [...Object.keys(HOOKS), 'parse', 'prepull'];
  const found = [];
  for (let at = policy.prototype; at && at !== Policy.prototype && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof value !== 'function' || name === 'constructor' || name.startsWith('_') || known.includes(name)) continue;
      const near = known.find((hook) => distance(plain(name), plain(hook)) <= Math.ceil(hook.length / 4));
      const meant = near ? `; is \`${near}\` meant?` : '.';
      found.push(
        `${policy.name}.${name} is no hook, so it is never called${meant} The names of a policy's own methods begin with ` +
          `\`#\` or \`_\`; the hooks are ${Object.keys(HOOKS).join(', ')}`,
      );
    }
  }
  return found;
}

function plain(name) {
  return name.toLowerCase().replaceAll('_', '');
}

/** How many letters have to be added, removed or replaced (Levenshtein). */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}
