/** Calls a policy's hooks natively, for tests. Answers are checked as in a component. */

import * as answer from './answer.js';
import { readConfig } from './config.js';
import { given } from './stand_in.js';

export { ConfigErrors } from './config.js';
export { given };

/** A policy with a configuration. Throws `ConfigErrors` with all errors in it. */
export class TestKit {
  constructor(policy, config = {}) {
    const { value, warnings } = readConfig(JSON.stringify(config), (section) => new policy(section), { isCheck: true });
    this.policy = value;
    this.warnings = warnings;
  }

  /** The fields that the user sees. */
  fields(user) {
    return checked('form', answer.form, this.policy.form({ user, server: '' }));
  }

  /** The options from a submission of the user. */
  parse(user, submission) {
    return checked('parse', answer.options, this.policy.parse({ ...submission }, { user, server: '' }));
  }

  /** The limits of the user, who has this number of labs. */
  quota(user, labs = 0) {
    return checked('quota', answer.quota, this.policy.quota(user, { labs }));
  }

  /** Whether the user may do this: spawn, stop, start-kernel, dask-pool or scale. */
  may(action, user, options = {}) {
    return checked('authorize', answer.verdict, this.policy.authorize({ action, user, server: '', options }));
  }

  /** Lets the policy hear of something. */
  onEvent(event) {
    this.policy.onEvent({ atMs: 0, server: '', ...event });
  }

  /** Whether the user may have a lab in this workload, and what of it the lab sees. */
  inject(user, workload, options = {}) {
    return checked('inject', answer.injectVerdict, this.policy.inject(user, '', options, workload));
  }

  /**
   * The settings of the pod of the user's lab. Template fields expand to plain names and not to slugs: `{username}` is the
   * username, `{pvc_name}` is `claim-` and the username.
   */
  buildPod(user, options = {}) {
    const lab = given({ labOf: user }, () => this.policy.buildPod(user, '', options));
    return checked('buildPod', answer.customization, lab);
  }

  /** How the program of the user's lab is reached. */
  labServer(user, options = {}) {
    const settings = given({ labOf: user }, () => this.policy.labServer(user, '', options));
    return checked('labServer', answer.settings, settings);
  }

  /** The content of the text files of the user's lab, by their paths. */
  labFiles(user, options = {}) {
    const files = given({ labOf: user }, () => this.policy.labFiles(user, '', options));
    return checked('labFiles', answer.textFiles, files);
  }

  /** The menu of the user. */
  images(user) {
    return checked('images', answer.menu, this.policy.images(user, ''));
  }

  /** The images that are to be pulled in advance. */
  prepull() {
    return checked('prepull', answer.wantedImages, this.policy.prepull());
  }
}

/** The answer itself, if it can be converted to the types of the contract. */
function checked(name, convert, value) {
  convert(value, name);
  return value;
}
