/** Write wasmspawner policies in JavaScript. `types/index.d.ts` documents everything. */

export { Section } from './config.js';
export { Denied, Internal, Invalid, PolicyError, RetryLater } from './errors.js';
export * as form from './form.js';
export * as host from './host.js';
export * as pattern from './pattern.js';
export { Policy } from './policy.js';
export * as quantity from './quantity.js';
export { User } from './user.js';
export { WeeklyWindow } from './weekly_window.js';
