/** Calls a policy's hooks natively, for tests. */

import type {
  Action, ChildOfLab, Customization, Field, FieldError, Form, ImageMenu, InjectVerdict, KnownImage, LabEvent, LabServer, Options, Policy,
  Quota, Section, UseOfDays, UseOfUser, User, Verdict, WantedImage, Workload,
} from './index.js';

/** All errors in a configuration, in the order of reading. */
export class ConfigErrors extends Error { errors: FieldError[] }

/** What the host tells a policy in a test: a lab of a user who has nothing else, unless something else is said. */
export interface Situation {
  /** The time in milliseconds since the Unix epoch. */
  nowMillis?: number;
  /** The random bytes, followed by zeros. */
  random?: number[] | Uint8Array;
  /** The site's data by name, as values of JSON. */
  data?: Record<string, unknown>;
  /** The images by repository, newest first. */
  images?: Record<string, KnownImage[]>;
  labNodes?: number;
  child?: ChildOfLab;
  presentUse?: Partial<UseOfUser>;
  /** What the user has used, by how many days ago; 0 is today. */
  pastUse?: Record<number, Partial<UseOfDays>>;
  /** `spec` is JSON in the form of a blueprint's file. */
  blueprint?: { chosen?: string; consistsOf: string[]; spec: string };
  /** The submission with which the server was last started. */
  lastOptions?: Options;
  /** The user whose lab fills the fields of templates; without one, templates are only checked. */
  labOf?: User;
  /** Gets the lines that the policy logs. */
  log?: { level: string; message: string }[];
}

/** Calls `hooks` while the host answers this. */
export function given<T>(situation: Situation, hooks: (situation: Situation) => T): T;

/** A policy with a configuration. Throws `ConfigErrors` with all errors in it. Answers are checked as in a component. */
export class TestKit<P extends Policy = Policy> {
  constructor(policy: new (config: Section) => P, config?: object);
  readonly policy: P;
  readonly warnings: string[];
  /** The form that the user sees. */
  fields(user: User): Field[] & Form;
  /** The options from a submission of the user. */
  parse(user: User, submission: Options): Options;
  /** The limits of the user, who has this number of labs. */
  quota(user: User, labs?: number): Quota;
  /** Whether the user may do this. */
  may(action: Action, user: User, options?: Options): Verdict;
  /** Lets the policy hear of something. */
  onEvent(event: Pick<LabEvent, 'what' | 'username'> & Partial<LabEvent>): void;
  /** Whether the user may have a lab in this workload, and what of it the lab sees. */
  inject(user: User, workload: Workload, options?: Options): InjectVerdict;
  /** The settings of the pod of the user's lab. Template fields expand to plain names and not to slugs. */
  buildPod(user: User, options?: Options): Customization;
  /** How the program of the user's lab is reached. */
  labServer(user: User, options?: Options): LabServer;
  /** The content of the text files of the user's lab, by their paths. */
  labFiles(user: User, options?: Options): Record<string, string>;
  /** The menu of the user. */
  images(user: User): ImageMenu | undefined;
  /** The images that are to be pulled in advance. */
  prepull(): WantedImage[];
}
