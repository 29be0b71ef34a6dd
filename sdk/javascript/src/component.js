/** The exports of a component. */

import { config as configOfHost } from '#host';

import * as answer from './answer.js';
import { ConfigErrors, readConfig } from './config.js';
import { Internal, PolicyError } from './errors.js';
import { replaceGlobals } from './globals.js';
import * as host from './host.js';
import { optionsOf } from './options.js';
import { User } from './user.js';

/** The interfaces of a policy, by their names in JavaScript. `info` has name, version and description. */
export function exportsOf(policy, info) {
  replaceGlobals();
  const create = (section) => new policy(section);
  let prepared;

  /** The policy that `prepare` has created, or else a new one. */
  const instance = () => prepared ?? readConfig(configOfHost(), create).value;

  /** The converted answer of a hook. Whatever it throws becomes an error of the contract. */
  const call = (name, convert, hook) => {
    try {
      return convert(hook(instance()), name);
    } catch (error) {
      throw lowered(error);
    }
  };

  return {
    metadata: { describe: () => info, configSchema: () => JSON.stringify(policy.configSchema ?? true) },
    config: { validate: (json) => validated(json, create) },
    prepare: {
      run() {
        try {
          prepared = instance();
        } catch (error) {
          // A configuration that is wrong is reported by the call that needs it.
          host.debug(`the policy is not prepared: ${error.message}`);
        }
      },
    },
    form: {
      render: (context) => call('form', answer.form, (it) => it.form(contextOf(context))),
      parse(submission, context) {
        try {
          return call('parse', answer.options, (it) => it.parse(optionsOf(submission), contextOf(context)));
        } catch (error) {
          throw noForm(error);
        }
      },
    },
    quota: { limits: (user, usage) => call('quota', answer.quota, (it) => it.quota(userOf(user), usage)) },
    authorize: {
      decide: (request) =>
        call('authorize', answer.verdict, (it) =>
          it.authorize({ ...request, user: userOf(request.user), options: optionsOf(request.options) }),
        ),
    },
    inject: {
      decide: (request) =>
        call('inject', answer.injectVerdict, (it) => it.inject(...lab(request), request.workload)),
    },
    events: {
      onEvent(event) {
        try {
          instance().onEvent(eventOf(event));
        } catch (error) {
          // The contract has no error here.
          host.error(`the event is not handled: ${told(error)}`);
        }
      },
    },
    buildPod: { customize: (request) => call('buildPod', answer.customization, (it) => it.buildPod(...lab(request))) },
    labServer: { decide: (request) => call('labServer', answer.settings, (it) => it.labServer(...lab(request))) },
    labFiles: { decide: (request) => call('labFiles', answer.textFiles, (it) => it.labFiles(...lab(request))) },
    images: {
      menu: ({ user, server }) => call('images', answer.menu, (it) => it.images(userOf(user), server)),
      prepull: () => call('prepull', answer.wantedImages, (it) => it.prepull()),
    },
  };
}

function validated(json, create) {
  try {
    return readConfig(json, create, { isCheck: true }).warnings;
  } catch (error) {
    if (error instanceof ConfigErrors) throw error.errors;
    throw [{ field: '', message: `the policy failed: ${told(error)}` }];
  }
}

function lowered(error) {
  if (error instanceof PolicyError) return error.lowered;
  if (error instanceof ConfigErrors) return new Internal(`the configuration is wrong: ${error.message}`).lowered;
  return new Internal(told(error)).lowered;
}

/** An exception with the function that threw it. Lines are those of the bundle, which nobody has. */
function told(error) {
  if (!(error instanceof Error)) return `the policy threw ${JSON.stringify(error)}`;
  const thrower = /^\s*(?:at )?([\w$.]+)/.exec(error.stack ?? '')?.[1];
  return `${error.name}: ${error.message}${thrower ? ` (in ${thrower})` : ''}`;
}

/** The reason why there is no form, as errors of the submission. */
function noForm({ tag, val }) {
  if (tag === 'invalid') return val;
  if (tag === 'denied') return [{ field: '', message: val.message }];
  if (tag === 'retry-later') return [{ field: '', message: `try again in ${val} s` }];
  host.error(val);
  return [{ field: '', message: 'the form is not available at the moment' }];
}

function lab({ user, server, options }) {
  return [userOf(user), server, optionsOf(options)];
}

/** An event with plain numbers, and without the absent values. */
function eventOf({ atMs, tookMs, ...rest }) {
  const all = { ...rest, atMs: Number(atMs), tookMs: optionalNumber(tookMs) };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value != null));
}

function contextOf({ user, server }) {
  return { user: userOf(user), server };
}

/** A user without the absent values, which one engine writes as `null`. */
function userOf(user) {
  const quota = user.quota && {
    cpuMillis: optionalNumber(user.quota.cpuMillis),
    memoryBytes: optionalNumber(user.quota.memoryBytes),
    spawn: user.quota.spawn,
  };
  const groups = user.groups.map(({ name, gid }) => ({ name, gid: gid ?? undefined }));
  const { uid, gid, email, displayName } = user;
  const present = Object.entries({ uid, gid, email, displayName, quota }).filter(([, value]) => value != null);
  return new User(user.name, { ...Object.fromEntries(present), groups });
}

function optionalNumber(value) {
  return value == null ? undefined : Number(value);
}
