/** The user, as the service's identity provider describes them. */
export class User {
  /** `groups` are names, or `{ name, gid }`. */
  constructor(name, { uid, gid, groups = [], email, displayName, quota } = {}) {
    this.name = name;
    this.uid = uid;
    this.gid = gid;
    this.groups = groups.map((group) => (typeof group === 'string' ? { name: group } : group));
    this.email = email;
    this.displayName = displayName;
    this.quota = quota;
  }

  /** True if the user is in the group of this name. */
  isIn(group) {
    return this.groups.some(({ name }) => name === group);
  }

  /** True if the user is in one of these groups. */
  isInAny(groups) {
    return groups.some((group) => this.isIn(group));
  }
}
