/** Write wasmspawner policies in JavaScript or TypeScript. */

/** One value of the spawn form. */
export type Value = boolean | number | string;
/** The values of the spawn form. The names are the keys of `options` in the REST API. */
export type Options = Record<string, Value>;

/** A group of a user. A group without a GID exists by name only. */
export interface Group { name: string; gid?: number }

/** What the identity provider allows a user. The service enforces it, whatever the policies answer. */
export interface UserQuota {
  /** In thousandths of a CPU. */
  cpuMillis?: number;
  memoryBytes?: number;
  /** Whether the user may start labs at all. */
  spawn: boolean;
}

/** What a user has beside a name. */
export interface UserDetails {
  uid?: number;
  /** Number of the primary group. */
  gid?: number;
  /** Names, or names with GIDs. */
  groups?: (string | Group)[];
  email?: string;
  displayName?: string;
  /** Absent where the identity provider has no quotas. */
  quota?: UserQuota;
}

/** The user, as the service's identity provider describes them. */
export class User {
  constructor(name: string, details?: UserDetails);
  name: string;
  uid?: number;
  gid?: number;
  groups: Group[];
  email?: string;
  displayName?: string;
  quota?: UserQuota;
  /** True if the user is in the group of this name. */
  isIn(group: string): boolean;
  /** True if the user is in one of these groups. */
  isInAny(groups: string[]): boolean;
}

/** An error in one field: a key of the form, or a JSON pointer into the configuration. */
export interface FieldError { field: string; message: string }

/** What all errors that a hook may throw have in common. Any other exception counts as `Internal`. */
export abstract class PolicyError extends Error {}
/** The user may not do this. The message is shown to them; `rule` is one word for the rule of the policy, for administrators. */
export class Denied extends PolicyError { constructor(message: string, about?: { rule?: string }); rule?: string }
/** The request is invalid, field by field. */
export class Invalid extends PolicyError { constructor(errors: FieldError[]); errors: FieldError[] }
/** The user may try again after this number of seconds. */
export class RetryLater extends PolicyError { constructor(seconds: number); seconds: number }
/** The policy itself failed. The message is logged and never shown to the user. */
export class Internal extends PolicyError { constructor(message: string) }

/** The types of values in a configuration. */
export interface ConfigTypes {
  string: string;
  boolean: boolean;
  integer: number;
  number: number;
  list: unknown[];
  object: Record<string, unknown>;
}

/**
 * One object of the configuration. Keys that are never read are errors. Whatever is wrong is kept with its place, and reading
 * goes on with a value of the right type, so that all errors are reported at once. `null` counts as absent.
 */
export class Section {
  /** A required value. Returns the type's empty value if it is absent or wrong, which is an error. */
  required<T extends keyof ConfigTypes>(key: string, type: T): ConfigTypes[T];
  /** An optional value, or `otherwise`. */
  optional<T extends keyof ConfigTypes>(key: string, type: T): ConfigTypes[T] | undefined;
  optional<T extends keyof ConfigTypes>(key: string, type: T, otherwise: ConfigTypes[T]): ConfigTypes[T];
  /** A list of texts; empty if absent. */
  texts(key: string): string[];
  /** An optional text that `parse` converts, such as a quantity; what it throws is the error. A number may stand for a text. */
  parsed<T>(key: string, parse: (text: string) => T): T | undefined;
  parsed<T>(key: string, parse: (text: string) => T, otherwise: T): T;
  /** A required text that `parse` converts. Returns `otherwise`, which is 0 if absent, after an error. */
  requiredParsed(key: string, parse: (text: string) => number): number;
  requiredParsed<T>(key: string, parse: (text: string) => T, otherwise: T): T;
  /** An optional object. */
  section<T>(key: string, read: (entry: Section) => T): T | undefined;
  /** A list of objects; empty if absent. */
  list<T>(key: string, read: (entry: Section) => T): T[];
  /** Objects by name; empty if absent. */
  map<T>(key: string, read: (entry: Section) => T): Map<string, T>;
  /** An optional text that may contain template fields, for `host.expand`. */
  template(key: string): string | undefined;
  /** True during the check before the policy is used, where expensive checks belong. */
  readonly isCheck: boolean;
  /** True if the key is present. */
  has(key: string): boolean;
  /** Reports an error in the value of `key`; `''` means this object. */
  problem(key: string, message: string): void;
  /** Reports a value that is allowed but suspicious. */
  warning(key: string, message: string): void;
  /** The JSON pointer of `key`; `''` means this object. */
  pointerTo(key: string): string;
}

/** The user for whom a form is, and their server (`''` is the default server). */
export interface FormContext { user: User; server: string }

/** A choice that submits `value` and is shown as `label`, with `description` as a second line. */
export interface Choice { value: string; label: string; description?: string }

/** What every field may have beside its name. */
export interface FieldDetails {
  help?: string;
  /** Title of a group. Fields of the same group are shown together below that title. */
  group?: string;
  /** Whether it must have a value: a choice, a text that is not empty, a checkbox that is checked. A number always has one. */
  required?: boolean;
  /** Shows the field only while another field, which comes before it, has one of these values. */
  visibleWhen?: { field: string; values: string[] };
}
interface ChoiceDetails { default?: string }
interface TextDetails {
  placeholder?: string;
  maxLength?: number;
  /** A regular expression for the whole text. It may have what `wit/README.md` lists, and says nothing about an empty text. */
  pattern?: string;
}
interface NumberDetails {
  minimum?: number;
  maximum?: number;
  /** The distance between allowed numbers, which begin at the minimum, or else at the default. Any number if absent. */
  step?: number;
}
interface Named { name: string; label: string }

/** A field of the form. The functions of `form` make one. */
export type Field = Named & FieldDetails & (
  | ({ kind: 'select' | 'radio'; choices: Choice[] } & ChoiceDetails)
  | { kind: 'checkbox'; default: boolean }
  | ({ kind: 'text'; default: string } & TextDetails)
  | ({ kind: 'number'; default: number } & NumberDetails)
);

/** Fields that the service renders, or HTML of the policy's own, which needs the grant `raw-html` and a `parse`. */
export type Form = Field[] | { html: string };

export namespace form {
  /** A drop-down list. The first choice is selected, unless `default` is the value of another. */
  function select(name: string, label: string, choices: Choice[], more?: FieldDetails & ChoiceDetails): Field;
  /** Choices that are all visible. The first is selected, unless `default` is the value of another. */
  function radio(name: string, label: string, choices: Choice[], more?: FieldDetails & ChoiceDetails): Field;
  /** A switch, which is on or off at first. */
  function checkbox(name: string, label: string, on?: boolean, more?: FieldDetails): Field;
  /** A line of text. */
  function text(name: string, label: string, value?: string, more?: FieldDetails & TextDetails): Field;
  /** A number. Its range includes its ends. */
  function number(name: string, label: string, value: number, more?: FieldDetails & NumberDetails): Field;
}

/** The limits of a user. An absent limit does not limit. */
export interface Quota {
  /** In thousandths of a CPU. */
  cpuMillis?: number;
  memoryBytes?: number;
  storageBytes?: number;
  pods?: number;
  /** Labs at the same time, named servers included. */
  labs?: number;
  /** Extended resources, such as `nvidia.com/gpu`. */
  extended?: Record<string, number>;
}
/** What the user has at this moment. */
export interface Usage { labs: number }

/** What a user wants to do. */
export type Action = 'spawn' | 'stop' | 'start-kernel' | 'dask-pool' | 'scale';
/** The action that is to be decided. `options` are the parsed ones of a spawn, and empty for other actions. */
export interface AuthorizeRequest { action: Action; user: User; server: string; options: Options }
/** Why the user may not do something: a message for them, or that with one word for the rule of the policy, for administrators. */
export type Denial = string | { message: string; rule?: string };
/** Whether the user may do it. */
export type Verdict = 'allow' | { deny: Denial };

/** A workload, without the labs that are in it already. */
export interface Workload {
  kind: 'deployment' | 'stateful-set' | 'daemon-set';
  namespace: string;
  name: string;
  containers: { name: string; image: string }[];
  /** `source` is its kind as Kubernetes writes it: `configMap`, `secret`, `persistentVolumeClaim`. */
  volumes: { name: string; source: string }[];
}
/** What the lab sees of a workload's pods, beside the network. What is made from Secrets needs the grant `secrets: [name]`. */
export interface Access {
  /** Volumes of the workload that the lab has, too, at an absolute path. */
  volumes?: { volume: string; path: string; subPath?: string; readOnly?: boolean }[];
  /** The container whose environment the lab has, too. */
  environmentOf?: string;
}
/** Whether a lab may be in the pods of a workload. */
export type InjectVerdict = { allow: Access } | { deny: Denial };

/** Variables by name: a text, a key of a Secret (grant `secrets: [name]`) or a field of the pod such as `status.podIP`. */
export type Environment = Record<string, string | { secret: string; key: string } | { field: string }>;

/** Requests and limits. What is absent is as the other policies or the service say. */
export interface Resources {
  /** In thousandths of a CPU. */
  cpuLimitMillis?: number;
  cpuRequestMillis?: number;
  memoryLimitBytes?: number;
  memoryRequestBytes?: number;
  /** Extended resources, such as `nvidia.com/gpu`. Request and limit are the same, as Kubernetes requires. */
  extended?: Record<string, number>;
  /** `template` is a `ResourceClaimTemplate` in the lab's namespace. */
  claims?: { name: string; template: string; request?: string }[];
}
/** A toleration of taints of nodes. */
export interface Toleration {
  key?: string;
  /** `exists` if absent. */
  operator?: 'exists' | 'equal';
  value?: string;
  effect?: 'no-schedule' | 'prefer-no-schedule' | 'no-execute';
  seconds?: number;
}
/** A claim that the service creates if it does not exist. */
export interface ClaimTemplate {
  storageBytes: number;
  storageClass?: string;
  accessModes?: ('read-write-once' | 'read-only-many' | 'read-write-many' | 'read-write-once-pod')[];
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  /** Labels that the volume behind the claim must have. */
  selector?: Record<string, string>;
  /** Whether the claim is deleted with the last server that used it; `retain` if absent. */
  reclaim?: 'retain' | 'delete';
}
/** Files from an object in the lab's namespace. `items` are paths by key; `mode` are permission bits such as `0o440`. */
export interface ObjectSource { name: string; optional?: boolean; items?: Record<string, string>; mode?: number }
/**
 * A volume, with its source beside its name. Names and paths may contain template fields such as `{username}`: take them from
 * the configuration, and never build them from text that a user typed.
 */
export type Volume = { name: string } & (
  | { nfs: { server: string; path: string; readOnly?: boolean } }
  | { claim: { claimName: string; readOnly?: boolean; create?: ClaimTemplate } }
  | { configMap: ObjectSource }
  /** Needs the grant `secrets: [name]`. */
  | { secret: ObjectSource }
  | { emptyDir: { sizeLimitBytes?: number; memory?: boolean } }
  /** Needs the grant `host-path: [prefix]`. */
  | { hostPath: string }
);
/** Mounts a volume at an absolute path. */
export interface Mount { volume: string; path: string; subPath?: string; readOnly?: boolean }
/** A container that ends before the lab starts. */
export interface InitContainer {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: Environment;
  mounts?: Mount[];
  resources?: Resources;
  /** `restricted` if absent. The others need the grants `run-as-root-init` and `privileged-init`. */
  profile?: 'restricted' | 'baseline' | 'privileged';
  /** `always` if absent; the other is until a lab of this user has become ready. */
  run?: 'always' | 'until-provisioned';
}
/** The settings that a policy wants for the lab's pod. A later policy of the chain wins. */
export interface Customization {
  image?: { reference: string; digest?: string; description?: string };
  env?: Environment;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  resources?: Resources;
  tolerations?: Toleration[];
  nodeSelector?: Record<string, string>;
  /** Labs on different nodes if possible (`spread`), or on the same ones (`pack`). */
  affinity?: 'none' | 'spread' | 'pack';
  volumes?: Volume[];
  mounts?: Mount[];
  initContainers?: InitContainer[];
  command?: string[];
  args?: string[];
  workingDir?: string;
  /** The operator's maximum applies. */
  timeLimits?: { spawnSeconds?: number; deleteSeconds?: number };
  /** A `DeploymentTargetClass`, or `environment/` and the name of an `Environment`, where the lab is to run. */
  environmentClass?: string;
  /** A strategic merge patch of the Pod, as JSON. Needs the grant `pod-patch: [path]`. */
  podPatch?: string;
}

/** How a lab's program is reached. What is absent is as the service's configuration says. */
export interface LabServer {
  /** 1 to 65535. Needs the grant `ports: [port]`. */
  port?: number;
  /** GET of a path is answered with 200 to 399, the port accepts connections, or the container runs. */
  probe?: { http: string } | 'tcp' | 'none';
}

/** An image of the menu. */
export interface ImageEntry {
  /** The value of the option `image`, unique in the menu. */
  name: string;
  /** The image with its tag, such as `registry.example.org/site/lab:w_2026_40`. */
  reference: string;
  label: string;
  /** Pins the image, `sha256:...`. If absent, the service pins it to the digest that it knows. */
  digest?: string;
  description?: string;
  group?: string;
  recommended?: boolean;
  /** Where the form shows it; `automatic` if absent. A hidden one can still be asked for by name. */
  place?: 'automatic' | 'first' | 'rest' | { hidden: string };
}
/** The images of a user, in the order in which they are shown, and other names of entries. */
export interface ImageMenu { entries: ImageEntry[]; classes?: Record<string, string> }
/** An image that nodes with these labels are to have before it is asked for. */
export interface WantedImage { reference: string; nodeSelector?: Record<string, string> }

/** Something that has happened to a lab; `host.child` is the kernel or Dask pool that it is about. */
export interface LabEvent {
  what: 'spawned' | 'ready' | 'failed' | 'stopped' | 'denied';
  /** In milliseconds since the Unix epoch. */
  atMs: number;
  username: string;
  /** `""` is the default server. */
  server: string;
  /** The operation, as in the lab's history. */
  operation?: string;
  image?: string;
  /** How long the operation took, in milliseconds. */
  tookMs?: number;
  /** One word for why it failed, or the rule by which it was denied. */
  reason?: string;
  /** Why it failed or was denied, as the user saw it. */
  message?: string;
}

/**
 * A policy. It exports the hooks whose methods it has; the other policies of the chain decide the rest. The constructor runs
 * once when the policy is loaded, and every call begins with a copy of what it has made.
 */
export class Policy {
  constructor(config?: Section);
  /** What of these is absent comes from `package.json` beside the policy, or from the name of the class. */
  static policyName?: string;
  static version?: string;
  static description?: string;
  /** JSON Schema (2020-12) of the configuration, for people and tools. */
  static configSchema?: object | boolean;
  /** The fields that this user sees. */
  form?(context: FormContext): Form;
  /** Converts a submission to options. Unless it is overridden, it checks the submission against the fields of `form`. */
  parse(submission: Options, context: FormContext): Options;
  /** The limits of this user. */
  quota?(user: User, usage: Usage): Quota;
  /** Allows or denies an action. */
  authorize?(request: AuthorizeRequest): Verdict;
  /** Allows or denies a lab in the pods of a workload. */
  inject?(user: User, server: string, options: Options, workload: Workload): InjectVerdict;
  /** Hears what has happened. Nobody waits, so all that this can do is to write to the log. */
  onEvent?(event: LabEvent): void;
  /** The settings that this policy wants for the lab's pod. */
  buildPod?(user: User, server: string, options: Options): Customization;
  /** How the program in the lab's container is reached. */
  labServer?(user: User, server: string, options: Options): LabServer;
  /**
   * The text files of the lab: the content of each by its absolute path, at most 512 KiB together. They are read-only. Users can
   * read them, and so can everybody who reads ConfigMaps: a secret is no file.
   */
  labFiles?(user: User, server: string, options: Options): Record<string, string>;
  /** The images from which this user chooses; `undefined` if this policy has none. */
  images?(user: User, server: string): ImageMenu | undefined;
  /** The images that nodes are to have, the most important first. Asked only if `images` is there, too. */
  prepull(): WantedImage[];
}

export namespace pattern {
  /** What in a pattern cannot be checked, and what to write instead. */
  class PatternError extends RangeError {}
  /** Throws `PatternError` unless browsers and all SDKs can check the pattern alike. */
  function check(pattern: string): void;
  /** Whether the whole text matches the pattern. Throws `PatternError` as `check` does. */
  function isMatch(pattern: string, text: string): boolean;
}

export namespace quantity {
  /** Bytes of `512Mi`, `2Gi`, `1.5G`; up to 2^53 - 1. Throws `RangeError`. */
  function memoryBytes(text: string): number;
  /** Thousandths of a CPU of `500m`, `2`, `0.5`; up to 2^53 - 1. Throws `RangeError`. */
  function cpuMillis(text: string): number;
  /** `1.5` for 1500 thousandths. */
  function showCpus(millis: number): string;
  /** `4 GiB`, `512 MiB`. */
  function showBytes(bytes: number): string;
}

/** A time of some days of the week. One that ends before it begins ends on the next day. */
export class WeeklyWindow {
  /** Reads `{days: [mon, tue], from: "22:00", until: "06:00", utc_offset: "+01:00"}`. Summer time is not known. */
  static read(entry: Section): WeeklyWindow;
  /** Whether this moment, in milliseconds since the Unix epoch, is in it. */
  contains(nowMillis: number): boolean;
}

/** An image of a repository, as the service knows it. */
export interface KnownImage {
  tag: string;
  digest?: string;
  sizeBytes?: number;
  /** How many nodes on which labs can run have the image. */
  nodesWith: number;
}
/** A kernel or a Dask pool, with the most workers that it may have. */
export interface ChildOfLab { kind: 'kernel' | 'dask-pool'; name: string; workers: number }
/** What a user has at one moment, of all labs together. CPU is in thousandths. */
export interface UseOfUser {
  labs: number;
  kernels: number;
  daskPools: number;
  daskWorkers: number;
  cpuMillis: number;
  memoryBytes: number;
}

/**
 * What was used in past days: seconds for which labs and kernels ran, and workers of Dask pools could run, and limits of CPU and
 * memory times seconds.
 */
export interface UseOfDays {
  labSeconds: number;
  kernelSeconds: number;
  daskWorkerSeconds: number;
  cpuSeconds: number;
  memoryGibSeconds: number;
}

export namespace host {
  /** Writes a line to the service's log; at most 64 lines and 16 KiB per call of a hook. */
  function log(level: 'debug' | 'info' | 'warn' | 'error', message: string): void;
  function debug(message: string): void;
  function info(message: string): void;
  function warn(message: string): void;
  function error(message: string): void;
  /** The time in milliseconds since the Unix epoch, constant during one call of a hook. */
  function nowMillis(): number;
  /** Random bytes, at most 1024. */
  function random(length: number): Uint8Array;
  /** Expands the lab's fields in a template of the operator, such as `{username}`. Never pass text of a user. Throws `RangeError`. */
  function expand(template: string): string;
  /** What the service knows about the images of a repository; newest first. */
  function images(repository: string): KnownImage[];
  /** The data that the policy's `data` in the service's configuration names. Do not call it in the constructor. */
  function data(name: string): { version: string; value: unknown } | undefined;
  /** The number of nodes on which labs can run; 0 if the service does not watch nodes. */
  function labNodes(): number;
  /** The kernel or Dask pool that the call is about; `undefined` if it is about a lab itself. */
  function child(): ChildOfLab | undefined;
  /** What the user has now, without what the call is about. */
  function presentUse(): UseOfUser;
  /** What the user has used in the last `days` days of UTC, the present one included: 1 is today; at most 30. */
  function pastUse(days: number): UseOfDays;
  /** The blueprints of the lab that the call is about; `undefined` if none holds. */
  function blueprint(): { chosen?: string; consistsOf: string[]; spec: unknown } | undefined;
  /**
   * The submission of the form with which this server of the user was last started, for a policy's own HTML; the service itself
   * selects these choices in fields. Escape the values, and use only those that are still allowed.
   */
  function lastOptions(): Options;
}
