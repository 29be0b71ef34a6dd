/** A policy with every hook and every type of answer, which the program runs in a test. */

import { Denied, Policy, RetryLater, form, host } from 'wasmspawner-policy';

export default class Everything extends Policy {
  static configSchema = { type: 'object' };

  constructor(config) {
    super();
    this.labs = config.required('labs', 'integer');
    console.log('prepared');
  }

  form({ user }) {
    if (user.name === 'eve') throw new Denied('Nothing for you.', { rule: 'nobody' });
    const sizes = [{ value: 's', label: 'S', description: 'small' }, { value: 'l', label: 'L' }];
    const more = { placeholder: 'placeholder', maxLength: 9, pattern: '[a-z]*', required: true };
    const visibleWhen = { field: 'size', values: ['l'] };
    return [
      form.select('size', 'Size', sizes, { help: 'help', group: 'group' }),
      form.checkbox('debug', 'Debug', true),
      form.text('note', 'Note', 'a', more),
      form.number('gpus', 'GPUs', 1, { minimum: 0, maximum: 8, step: 0.5, visibleWhen }),
    ];
  }

  quota(user, usage) {
    if (user.name === 'eve') throw new RetryLater(60);
    const { cpuMillis, memoryBytes, kernels } = host.presentUse();
    const extended = { 'nvidia.com/gpu': 2 };
    return { cpuMillis, memoryBytes, storageBytes: 3, pods: kernels, labs: this.labs + usage.labs, extended };
  }

  authorize({ action, user }) {
    const child = host.child();
    if (action === 'scale') return undefined;
    if (action === 'dask-pool') return user.groups[0].name;
    if (child && !user.isIn('staff')) return { deny: { message: `No ${child.kind.toUpperCase()} ${child.name}.`, rule: 'staff-only' } };
    return 'allow';
  }

  inject(user, server, options, { kind, namespace, name, containers, volumes }) {
    if (kind !== 'deployment') return { deny: `Not into ${namespace}/${name}.` };
    const seen = volumes.map((one) => ({ volume: one.name, path: `/data/${one.source}`, readOnly: true }));
    return { allow: { volumes: seen, environmentOf: containers[0].name } };
  }

  onEvent({ what, username, server, tookMs, reason }) {
    const child = host.child();
    if (server === 'wrong') throw new RangeError(server);
    const about = child ? `${child.kind} ${child.name}` : 'lab';
    host.info(`${what} ${username} ${about} ${tookMs ?? 'None'} ${reason ?? 'None'}`);
  }

  buildPod(user, server, options) {
    if (options.wrong) return { resources: { memoryLimitByte: 1 } };
    console.log('two', 'lines');
    const differs = Math.random() !== Math.random() && Date.now() === new Date().getTime() && Date.now() > 1e12;
    const truth = differs ? 'True' : 'False';
    const create = { storageBytes: 5, storageClass: 'fast', accessModes: ['read-write-many'], reclaim: 'delete' };
    Object.assign(create, { labels: { a: 'b' }, annotations: { c: 'd' }, selector: { e: 'f' } });
    const volumes = [
      { name: 'v0', nfs: { server: 'nfs', path: '/x' } },
      { name: 'v1', claim: { claimName: 'c-{username}', create } },
      { name: 'v2', emptyDir: { sizeLimitBytes: 7, memory: true } },
      { name: 'v3', configMap: { name: 'map', items: { key: 'path' }, mode: 0o440 } },
    ];
    const env = {
      TEXT: `${host.random(8).length} ${truth} ${host.nowMillis() > 0 ? 'True' : 'False'}`,
      IP: { field: 'status.podIP' },
    };
    if (options.grants) {
      volumes.push({ name: 'v4', secret: { name: 'secret' } }, { name: 'v5', hostPath: '/host' });
      env.SECRET = { secret: 'secret', key: 'key' };
    }
    const resources = {
      cpuLimitMillis: 1,
      cpuRequestMillis: 2,
      memoryLimitBytes: 3,
      memoryRequestBytes: 4,
      extended: { 'nvidia.com/gpu': 1 },
      claims: [{ name: 'claim', template: 'template' }],
    };
    const init = { name: 'init', image: 'image', command: ['a'], args: ['b'], env: { X: 'y' }, run: 'until-provisioned' };
    return {
      image: { reference: 'lab:1' },
      env,
      labels: { 'example.org/a': host.expand('{username}') },
      annotations: { 'example.org/b': '1' },
      resources,
      tolerations: [{ key: 'key', operator: 'equal', value: 'value', effect: 'no-execute', seconds: 60 }],
      nodeSelector: { pool: 'a' },
      affinity: 'pack',
      volumes,
      mounts: [{ volume: 'v1', path: '/home', readOnly: true }],
      initContainers: [{ ...init, mounts: [{ volume: 'v0', path: '/v', subPath: 'sub' }], resources }],
      command: ['start'],
      args: [],
      workingDir: '/home',
      timeLimits: { spawnSeconds: 60 },
    };
  }

  labServer(user, server, { probe }) {
    return { probe: probe === 'http' ? { http: '/healthz' } : probe };
  }

  labFiles(user) {
    return { '/etc/site/lab.txt': `the lab of ${user.name}` };
  }

  images() {
    const known = host.images('example.org/lab');
    if (known.length === 0) return undefined;
    const entry = ({ tag }, index) => ({
      name: tag,
      reference: `example.org/lab:${tag}`,
      label: tag,
      recommended: index === 0,
      place: index === 0 ? 'first' : { hidden: 'old' },
    });
    return { entries: known.map(entry), classes: { newest: known[0].tag } };
  }

  prepull() {
    return [{ reference: 'example.org/lab:v2', nodeSelector: { pool: 'a' } }];
  }
}
