// Compiled and not run: the declarations fit the policies in TypeScript.
import MaintenanceWindow from '../../../plugins/javascript/maintenance-window/policy.ts';
import { type Customization, type Form, type FormContext, Policy, type User, form } from 'wasmspawner-policy';
import { TestKit, given } from 'wasmspawner-policy/testing';

class Labelled extends Policy {
  form({ user }: FormContext): Form {
    return [form.number('gpus', user.name, 1, { maximum: 8 })];
  }

  buildPod(user: User): Customization {
    // @ts-expect-error a key that no customization has
    return { labels: { user: user.name }, label: 'x' };
  }
}

new TestKit(Labelled).parse(null as unknown as User, {});
given({ nowMillis: 1 }, () => new TestKit(MaintenanceWindow, {}).may('spawn', null as unknown as User));
