/** Sizes of labs, some of which are for the members of groups only. */

import { Denied, Policy, form, quantity } from 'wasmspawner-policy';

/** One entry of `sizes`. */
class Size {
  /** What is wrong is reported with its place in the configuration. */
  constructor(entry) {
    this.name = entry.required('name', 'string');
    this.cpuMillis = entry.requiredParsed('cpu', quantity.cpuMillis);
    this.memoryBytes = entry.requiredParsed('memory', quantity.memoryBytes);
    /** Who may choose it; everybody if it names no group. */
    this.groups = entry.texts('groups');
  }

  isFor(user) {
    return this.groups.length === 0 || user.isInAny(this.groups);
  }

  get choice() {
    const [cpus, memory] = [quantity.showCpus(this.cpuMillis), quantity.showBytes(this.memoryBytes)];
    return { value: this.name, label: this.name, description: `${cpus} CPU, ${memory}` };
  }
}

export default class SizesByGroup extends Policy {
  static description = 'Sizes of labs, by group';

  constructor(config) {
    super();
    this.sizes = config.list('sizes', (entry) => new Size(entry));
    if (!this.sizes.some((size) => size.groups.length === 0)) {
      config.problem('sizes', 'has none for everybody; give at least one no `groups`');
    }
  }

  form({ user }) {
    const choices = this.sizes.filter((size) => size.isFor(user)).map((size) => size.choice);
    return [form.radio('size', 'Size', choices, { required: true })];
  }

  /** The form was checked, but not every lab is started with it. So this asks again who may have the size. */
  buildPod(user, server, options) {
    const allowed = this.sizes.filter((size) => size.isFor(user));
    const size = options.size === undefined ? allowed[0] : allowed.find(({ name }) => name === options.size);
    if (!size) throw new Denied('This size is not for you.');
    return {
      resources: {
        cpuLimitMillis: size.cpuMillis,
        cpuRequestMillis: Math.floor(size.cpuMillis / 4),
        memoryLimitBytes: size.memoryBytes,
        memoryRequestBytes: size.memoryBytes,
      },
    };
  }
}
