/** The answers of hooks in the types of the contract. */

import { Internal } from './errors.js';
import { problemOf } from './form.js';
import { amounts, entries, flag, kebab, large, list, number, oneOf, optional, or, record, signed, small, text, texts, variant, wrong } from './shape.js';

const no = or(false, flag);

const resources = record({
  cpuLimitMillis: optional(large),
  cpuRequestMillis: optional(large),
  memoryLimitBytes: optional(large),
  memoryRequestBytes: optional(large),
  extended: amounts,
  claims: list(record({ name: text, template: text, request: optional(text) })),
});

/** The environment: a text, `{ secret, key }` or `{ field }` by name. */
const environment = entries((value, at) => {
  if (typeof value === 'string') return { tag: 'literal', val: value };
  if (value && 'field' in value) return { tag: 'field-ref', val: record({ field: text })(value, at).field };
  const { secret, key } = record({ secret: text, key: text })(value, at);
  return { tag: 'secret-ref', val: { name: secret, key } };
});

const mount = record({ volume: text, path: text, subPath: optional(text), readOnly: no });

const claimTemplate = record({
  storageBytes: large,
  storageClass: optional(text),
  accessModes: list(oneOf('read-write-once', 'read-only-many', 'read-write-many', 'read-write-once-pod')),
  labels: texts,
  annotations: texts,
  selector: texts,
  reclaim: or('retain', oneOf('retain', 'delete')),
});

const object = record({
  name: text,
  optional: no,
  items: entries(text, (key, path) => [key, path]),
  mode: optional(small),
});

const source = variant([], {
  nfs: record({ server: text, path: text, readOnly: no }),
  claim: record({ claimName: text, readOnly: no, create: optional(claimTemplate) }),
  configMap: object,
  secret: object,
  emptyDir: record({ sizeLimitBytes: optional(large), memory: no }),
  hostPath: text,
});

/** A volume has its source beside its name, as in Kubernetes. */
function volume(value, at) {
  const { name, ...rest } = value ?? {};
  return { name: text(name, `${at}.name`), source: source(rest, at) };
}

const initContainer = record({
  name: text,
  image: text,
  command: list(text),
  args: list(text),
  env: environment,
  mounts: list(mount),
  resources: optional(resources),
  profile: or('restricted', oneOf('restricted', 'baseline', 'privileged')),
  run: or('always', oneOf('always', 'until-provisioned')),
});

const toleration = record({
  key: optional(text),
  operator: or('exists', oneOf('exists', 'equal')),
  value: optional(text),
  effect: optional(oneOf('no-schedule', 'prefer-no-schedule', 'no-execute')),
  seconds: optional(signed),
});

/** The answer of `buildPod`. */
export const customization = record({
  image: optional(record({ reference: text, digest: optional(text), description: optional(text) })),
  env: environment,
  labels: texts,
  annotations: texts,
  resources: optional(resources),
  tolerations: list(toleration),
  nodeSelector: texts,
  affinity: optional(oneOf('none', 'spread', 'pack')),
  volumes: list(volume),
  mounts: list(mount),
  initContainers: list(initContainer),
  command: optional(list(text)),
  args: optional(list(text)),
  workingDir: optional(text),
  timeLimits: optional(record({ spawnSeconds: optional(small), deleteSeconds: optional(small) })),
  environmentClass: optional(text),
  podPatch: optional(text),
});

/** The answer of `quota`. */
export const quota = record({
  cpuMillis: optional(large),
  memoryBytes: optional(large),
  storageBytes: optional(large),
  pods: optional(small),
  labs: optional(small),
  extended: amounts,
});

/** A message for the user, or that with the name of the rule. */
const denial = (value, at) =>
  typeof value === 'string' ? { message: value } : record({ message: text, rule: optional(text) })(value, at);

/** The answer of `authorize`. */
export const verdict = variant(['allow'], { deny: denial });

const access = record({
  volumes: list(record({ volume: text, path: text, subPath: optional(text), readOnly: no })),
  environmentOf: optional(text),
});

/** The answer of `inject`. */
export const injectVerdict = variant([], { allow: access, deny: denial });

/** The answer of `labServer`. */
export const settings = record({ port: optional(small), probe: optional(variant(['tcp', 'none'], { http: text })) });

/** The answer of `labFiles`. */
export const textFiles = entries(text, (path, content) => ({ path, content }));

const entry = record({
  name: text,
  reference: text,
  digest: optional(text),
  label: text,
  description: optional(text),
  group: optional(text),
  recommended: no,
  place: or('automatic', variant(['automatic', 'first', 'rest'], { hidden: text })),
});

/** The answer of `images`. */
export const menu = optional(
  record({ entries: list(entry), classes: entries(text, (name, of) => ({ name, entry: of })) }),
);

/** The answer of `prepull`. */
export const wantedImages = list(record({ reference: text, nodeSelector: texts }));

/** The answer of `form`: a list of fields, or `{ html }`. */
export function form(value, at) {
  if (Array.isArray(value)) return { tag: 'fields', val: list(field)(value, at) };
  return { tag: 'html', val: record({ html: text })(value, at).html };
}

const choices = {
  choices: list(record({ value: text, label: text, description: optional(text) })),
  default: optional(text),
};
const KINDS = {
  select: record(choices),
  radio: record(choices),
  text: record({ default: text, placeholder: optional(text), maxLength: optional(small), pattern: optional(text) }),
  number: record({ default: number, minimum: optional(number), maximum: optional(number), step: optional(number) }),
};
const common = record({
  name: text,
  label: text,
  help: optional(text),
  group: optional(text),
  required: no,
  visibleWhen: optional(record({ field: text, values: list(text) })),
  kind: oneOf('checkbox', ...Object.keys(KINDS)),
});

function field(value, at) {
  const { name, label, help, group, required, visibleWhen, kind, ...input } = value;
  const converted = common({ name, label, help, group, required, visibleWhen, kind }, at);
  const val = kind === 'checkbox' ? record({ default: flag })(input, at).default : KINDS[kind](input, at);
  const problem = problemOf(value);
  if (problem) throw new Internal(`the form's field ${name} cannot be checked: ${problem}`);
  return { ...converted, kind: { tag: kebab(kind), val } };
}

/** The answer of `parse`: an object with booleans, numbers and texts. */
export const options = entries((value, at) => {
  if (typeof value === 'boolean') return { tag: 'boolean', val: value };
  if (typeof value === 'string') return { tag: 'text', val: value };
  if (Number.isSafeInteger(value)) return { tag: 'integer', val: BigInt(value) };
  return typeof value === 'number' ? { tag: 'number', val: value } : wrong(at, value, 'a boolean, a number or a text');
});
