/** Functions of the service that a policy can call. In native tests `given` says what they return. */

import * as host from '#host';

import { optionsOf } from './options.js';

/** Writes a line to the service's log, with the level debug, info, warn or error; at most 64 lines and 16 KiB per call. */
export function log(level, message) {
  host.log(level, message);
}

/** Logs a line for the author of the policy. */
export const debug = (message) => log('debug', message);

/** Logs a line for the operator. */
export const info = (message) => log('info', message);

/** Logs a possible problem. */
export const warn = (message) => log('warn', message);

/** Logs a failure. */
export const error = (message) => log('error', message);

/** The time in milliseconds since the Unix epoch. It is constant during one call of a hook. */
export function nowMillis() {
  return Number(host.clockNow());
}

/** Random bytes, as a `Uint8Array`; at most 1024 per call of this function. */
export function random(length) {
  return host.random(length);
}

/**
 * Expands the fields of the lab in a template of the operator, such as `{username}`; `{{` stands for a brace. Outside of
 * `buildPod`, `labServer` and `labFiles` the template is only checked. Never pass text of a user. Throws `RangeError` that says what is
 * wrong with the template, and which fields there are.
 */
export function expand(template) {
  // Most texts contain no field, and a call of the host takes time.
  if (!/[{}]/.test(template)) return template;
  try {
    return host.expand(template);
  } catch (problem) {
    // The contract's error is a text; where it comes from an import it is the payload of an error.
    throw new RangeError(String(problem?.payload ?? problem));
  }
}

/** What the service knows about the images of a repository; newest first. */
export function images(repository) {
  const plain = ({ tag, digest, sizeBytes, nodesWith }) => ({
    tag,
    digest: digest ?? undefined,
    sizeBytes: optionalNumber(sizeBytes),
    nodesWith,
  });
  return host.images(repository).map(plain);
}

/**
 * The data that the policy's `data` in the service's configuration names, as `{ version, value }`; `undefined` if it names no
 * such. Do not call it in the constructor, which runs once.
 */
export function data(name) {
  const found = host.data(name);
  return found ? { version: found.version, value: JSON.parse(found.json) } : undefined;
}

/** The number of nodes on which labs can run; 0 if the service does not watch nodes. */
export const labNodes = () => host.labNodes();

/** The kernel or Dask pool that the call is about, `{ kind, name, workers }`; `undefined` if it is about a lab itself. */
export const child = () => host.child() ?? undefined;

/** What the user has now, of all labs together, without what the call is about. */
export function presentUse() {
  const use = host.presentUse();
  return { ...use, cpuMillis: Number(use.cpuMillis), memoryBytes: Number(use.memoryBytes) };
}

/** What the user has used in the last `days` days of UTC, the present one included: 1 is today; at most 30. */
export function pastUse(days) {
  const use = host.pastUse(days);
  return {
    labSeconds: Number(use.labSeconds),
    kernelSeconds: Number(use.kernelSeconds),
    daskWorkerSeconds: Number(use.daskWorkerSeconds),
    cpuSeconds: Number(use.cpuSeconds),
    memoryGibSeconds: Number(use.memoryGibSeconds),
  };
}

/** The blueprints of the lab that the call is about, `{ chosen, consistsOf, spec }`; `undefined` if none holds. */
export function blueprint() {
  const found = host.blueprint();
  return found ? { chosen: found.chosen ?? undefined, consistsOf: found.consistsOf, spec: JSON.parse(found.spec) } : undefined;
}

/**
 * The submission of the form with which this server of the user was last started, as an object; empty if it never was, or if the
 * site does not want it. Known to `form`. The service itself selects these choices in fields, so this is for a policy's own HTML.
 * The user has written the values: escape them, and use only those that are still allowed.
 */
export const lastOptions = () => optionsOf(host.lastOptions());

function optionalNumber(value) {
  return value === undefined || value === null ? undefined : Number(value);
}
