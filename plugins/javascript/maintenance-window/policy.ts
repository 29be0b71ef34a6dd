/** Nobody starts anything while the site is maintained. What runs goes on, and can be stopped. */

import { type AuthorizeRequest, Policy, type Section, type Verdict, WeeklyWindow, host } from 'wasmspawner-policy';

export default class MaintenanceWindow extends Policy {
  static description = 'Nothing is started during maintenance';

  private readonly windows: WeeklyWindow[];
  private readonly exceptGroups: string[];
  private readonly message: string;

  constructor(config: Section) {
    super();
    if (!config.has('windows')) config.problem('windows', 'is missing');
    this.windows = config.list('windows', WeeklyWindow.read);
    this.exceptGroups = config.texts('except_groups');
    this.message = config.optional('message', 'string', 'The site is being maintained; please try again later.');
  }

  authorize({ action, user }: AuthorizeRequest): Verdict {
    const isNow = this.windows.some((window) => window.contains(host.nowMillis()));
    if (!isNow || action === 'stop' || user.isInAny(this.exceptGroups)) return 'allow';
    return { deny: { message: this.message, rule: 'maintenance' } };
  }
}
