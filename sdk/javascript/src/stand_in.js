/** Stands in for the host in native tests. It has the functions of the contract's interface `host`, in its types. */

import { User } from './user.js';

const NO_USE = { labs: 0, kernels: 0, daskPools: 0, daskWorkers: 0, cpuMillis: 0, memoryBytes: 0 };
let situation = {};

/** Calls `hooks` while the host answers what `changes` say; `types/testing.d.ts` lists them. */
export function given(changes, hooks) {
  const before = situation;
  situation = { ...before, ...changes };
  try {
    return hooks(situation);
  } finally {
    situation = before;
  }
}

export const config = () => '{}';
export const log = (level, message) => void situation.log?.push({ level, message });
export const clockNow = () => BigInt(situation.nowMillis ?? 0);
export const images = (repository) => situation.images?.[repository] ?? [];
export const labNodes = () => situation.labNodes ?? 0;
export const child = () => situation.child;
export const blueprint = () => situation.blueprint;
export const lastOptions = () => Object.entries(situation.lastOptions ?? {}).map(([name, val]) => ({ name, value: { val } }));

export function random(length) {
  const bytes = new Uint8Array(Math.min(length, 1024));
  bytes.set((situation.random ?? []).slice(0, bytes.length));
  return bytes;
}

export function data(name) {
  const known = situation.data ?? {};
  return Object.hasOwn(known, name) ? { version: 'test', json: JSON.stringify(known[name]) } : undefined;
}

export function presentUse() {
  const use = { ...NO_USE, ...situation.presentUse };
  return { ...use, cpuMillis: BigInt(use.cpuMillis), memoryBytes: BigInt(use.memoryBytes) };
}

export function pastUse(days) {
  const sum = { labSeconds: 0, kernelSeconds: 0, daskWorkerSeconds: 0, cpuSeconds: 0, memoryGibSeconds: 0 };
  const past = Object.entries(situation.pastUse ?? {}).filter(([daysAgo]) => Number(daysAgo) < Math.min(Math.max(days, 1), 30));
  for (const name of Object.keys(sum)) sum[name] = BigInt(past.reduce((total, [, use]) => total + (use[name] ?? 0), 0));
  return sum;
}

/** Expands a template as the service does, except that names are not escaped and formats are refused. */
export function expand(template) {
  const fields = fieldsOf(situation.labOf ?? new User(''));
  const replace = (part, field) => {
    if (part === '{{' || part === '}}') return part[0];
    if (field === undefined) throw 'unbalanced brace; for a brace itself write it twice';
    if (!Object.hasOwn(fields, field)) throw `unknown field {${field}}; there are ${Object.keys(fields).sort().join(', ')}`;
    return fields[field];
  };
  const expanded = template.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, replace);
  return situation.labOf ? expanded : template;
}

function fieldsOf(user) {
  const others = user.groups.map(({ gid }) => gid).filter((gid) => gid !== undefined && gid !== user.gid);
  const names = ['', 'safe_', 'escaped_'].flatMap((prefix) => [
    [`${prefix}username`, user.name],
    [`${prefix}servername`, ''],
    [`${prefix}user_server`, user.name],
  ]);
  return {
    uid: String(user.uid ?? 0),
    gid: String(user.gid ?? 0),
    supplemental_gids: others.join(','),
    home: `/home/${user.name}`,
    hubnamespace: 'jhub',
    namespace: `ns-${user.name}`,
    pod_name: `nb-${user.name}`,
    pvc_name: `claim-${user.name}`,
    unescaped_username: user.name,
    unescaped_servername: '',
    ...Object.fromEntries(names),
  };
}
