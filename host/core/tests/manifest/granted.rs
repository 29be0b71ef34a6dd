//! Grants within a chain. Whatever the policies answer, the pod contains only parts that the asking policy itself was
//! granted, and none that only another policy of the chain was granted.

use k8s_openapi::api::core::v1::{Container, PodSpec, VolumeMount};
use proptest::prelude::*;
use serde_json::{Value, json};
use wasmspawner_core::manifest::build;
use wasmspawner_core::policy::{Customization, Grants, LabServer};

use super::case::{Case, CaseAnswer};
use super::written_storage::{self, WrittenStorage};

/// The values come from few names, so that the answers of a chain collide.
const VOLUMES: [&str; 3] = ["v0", "v1", "v2"];
const INITS: [&str; 2] = ["i0", "i1"];
const HOST_PATHS: [&str; 3] = ["/data", "/data/deep", "/scratch"];
const SECRETS: [&str; 2] = ["s0", "s1"];
const KEYS: [&str; 3] = ["app", "mesh.example/inject", "plain"];
const PATCHED: [&str; 4] = ["spec", "metadata", "spec.volumes", "spec.initContainers"];

/// Two names of one server, and paths of which some contain others.
const NFS_SERVERS: [&str; 2] = ["nas", "NAS."];
const NFS_PATHS: [&str; 4] = ["/", "/tools", "/tools/./bin/", "/home"];
const CLAIMS: [&str; 2] = ["c0", "c1"];

/// A placeholder for the asking policy, until its number is known.
const SELF: &str = "(self)";

fn some_of(names: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(names, 0..=names.len())
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

prop_compose! {
    fn grants()(
        privileged_init in any::<bool>(),
        run_as_root_init in any::<bool>(),
        host_path in some_of(&HOST_PATHS),
        secrets in some_of(&SECRETS),
        metadata in some_of(&KEYS),
        pod_patch in some_of(&PATCHED),
    ) -> Grants {
        Grants { privileged_init, run_as_root_init, host_path, secrets, metadata, pod_patch, ..Grants::default() }
    }
}

fn one_of(names: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(names)
}

/// The source of a volume in the form of a customization, and in the form of a patch.
type Source = (Value, Value);

fn source() -> impl Strategy<Value = Source> {
    prop_oneof![
        Just((json!({"empty_dir": {}}), json!({"emptyDir": {}}))),
        // This source needs no grant, and names its policy.
        Just((
            json!({"nfs": {"server": SELF, "path": "/x"}}),
            json!({"nfs": {"server": SELF, "path": "/x"}})
        )),
        one_of(&HOST_PATHS)
            .prop_map(|path| (json!({"host_path": path}), json!({"hostPath": {"path": path}}))),
        one_of(&SECRETS)
            .prop_map(|name| (json!({"secret": {"name": name}}), json!({"secret": {"secretName": name}}))),
    ]
}

/// Storage that several volumes may have, under the same name or another.
fn shared_source() -> impl Strategy<Value = Source> {
    prop_oneof![
        (one_of(&NFS_SERVERS), one_of(&NFS_PATHS), prop::bool::weighted(0.2)).prop_map(
            |(server, path, read_only)| (
                json!({"nfs": {"server": server, "path": path, "read_only": read_only}}),
                json!({"nfs": {"server": server, "path": path, "readOnly": read_only}}),
            )
        ),
        (one_of(&CLAIMS), prop::bool::weighted(0.2), prop::bool::weighted(0.1)).prop_map(
            |(name, read_only, creates)| {
                let create = creates.then(|| json!({"storage_bytes": 1}));
                // A patch may not contain a claim.
                let claim = json!({"claim_name": name, "read_only": read_only, "create": create});
                (json!({"claim": claim}), json!({"emptyDir": {}}))
            }
        ),
        one_of(&HOST_PATHS)
            .prop_map(|path| (json!({"host_path": path}), json!({"hostPath": {"path": path}}))),
    ]
}

/// The name of a volume, and true if it is mounted read only.
type AskedMount = (&'static str, bool);

fn mounts() -> impl Strategy<Value = Vec<AskedMount>> {
    prop::collection::vec((one_of(&VOLUMES), prop::bool::weighted(0.2)), 0..2)
}

/// The requests of a policy whose number is not known yet.
#[derive(Clone, Debug)]
struct Asked {
    volumes: Vec<(&'static str, Source)>,
    mounts: Vec<AskedMount>,
    inits: Vec<(&'static str, &'static str, Vec<AskedMount>)>,
    secrets: Vec<&'static str>,
    keys: Vec<&'static str>,
    patch: Option<Patch>,
}

#[derive(Clone, Debug)]
struct Patch {
    volume: Option<(&'static str, Source)>,
    container: &'static str,
    mounts: Vec<&'static str>,
    secret: Option<&'static str>,
    key: Option<&'static str>,
    host_network: bool,
}

prop_compose! {
    fn patch()(
        volume in prop::option::of((one_of(&VOLUMES), prop_oneof![source(), shared_source()])),
        container in prop_oneof![Just("notebook"), one_of(&INITS)],
        mounts in prop::collection::vec(one_of(&VOLUMES), 0..2),
        secret in prop::option::of(one_of(&SECRETS)),
        key in prop::option::of(one_of(&KEYS)),
        host_network in any::<bool>(),
    ) -> Patch {
        Patch { volume, container, mounts, secret, key, host_network }
    }
}

prop_compose! {
    fn asked()(
        volumes in prop::collection::vec((one_of(&VOLUMES), source()), 0..2),
        mounts in mounts(),
        inits in prop::collection::vec(
            (
                one_of(&INITS),
                prop::sample::select(vec!["restricted", "baseline", "privileged"]),
                mounts(),
            ),
            0..2,
        ),
        secrets in prop::collection::vec(one_of(&SECRETS), 0..2),
        keys in prop::collection::vec(one_of(&KEYS), 0..2),
        patch in prop::option::weighted(0.3, patch()),
    ) -> Asked {
        Asked { volumes, mounts, inits, secrets, keys, patch }
    }
}

/// A policy that asks only for volumes and containers, so few chains are refused for another reason.
fn asks_for_storage() -> impl Strategy<Value = (Grants, Asked)> {
    let volumes = prop::sample::subsequence(&VOLUMES[..], 1..=2).prop_flat_map(|names| {
        let sources = prop::collection::vec(shared_source(), names.len());
        sources.prop_map(move |sources| names.iter().copied().zip(sources).collect::<Vec<_>>())
    });
    let profile = prop::sample::select(vec!["restricted", "baseline", "privileged"]);
    let inits = prop::collection::vec((one_of(&INITS), profile, mounts()), 0..2);
    let patch = prop::option::weighted(0.2, patch());
    (any::<bool>(), any::<bool>(), volumes, mounts(), inits, patch).prop_map(
        |(granted, may_patch, volumes, mounts, mut inits, patch)| {
            let all = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let grants = Grants {
                privileged_init: granted,
                host_path: all(&HOST_PATHS),
                secrets: all(&SECRETS),
                metadata: all(&KEYS),
                pod_patch: if may_patch { all(&PATCHED) } else { Vec::new() },
                ..Grants::default()
            };
            for (_, profile, _) in inits.iter_mut().filter(|_| !granted) {
                *profile = "restricted";
            }
            let patch = patch.filter(|_| may_patch);
            (grants, Asked { volumes, mounts, inits, secrets: Vec::new(), keys: Vec::new(), patch })
        },
    )
}

impl Asked {
    /// The answer of the policy with this number. Every path, image, variable and value names the policy, so the pod
    /// shows the origin of each part.
    fn customization(&self, of: usize) -> Customization {
        let mounts = |place: &str, volumes: &[AskedMount]| -> Vec<Value> {
            let mount = |(volume, read_only): &AskedMount| {
                let path = format!("/p{of}/{place}/{volume}");
                json!({"volume": volume, "path": path, "read_only": read_only})
            };
            volumes.iter().map(mount).collect()
        };
        let inits = self.inits.iter().map(|(name, profile, mounted)| {
            let mounts = mounts(name, mounted);
            json!({"name": name, "image": format!("p{of}/init:1"), "profile": profile, "mounts": mounts})
        });
        let volumes = self.volumes.iter().map(|(name, (source, _))| json!({"name": name, "source": source}));
        let env = self.secrets.iter().map(|secret| {
            json!({"name": format!("P{of}_{secret}").to_uppercase(), "value": {"secret_ref": {"name": secret, "key": "k"}}})
        });
        let labels = self.keys.iter().map(|key| json!({"name": key, "value": format!("p{of}")}));
        let answer = json!({
            "volumes": volumes.collect::<Vec<_>>(),
            "mounts": mounts("lab", &self.mounts),
            "init_containers": inits.collect::<Vec<_>>(),
            "env": env.collect::<Vec<_>>(),
            "labels": labels.collect::<Vec<_>>(),
            "pod_patch": self.patch.as_ref().map(|patch| patch.json(of).to_string()),
        });
        serde_json::from_str(&answer.to_string().replace(SELF, &format!("p{of}"))).unwrap()
    }
}

impl Patch {
    fn json(&self, of: usize) -> Value {
        let mounts: Vec<_> = self
            .mounts
            .iter()
            .map(|volume| json!({"name": volume, "mountPath": format!("/p{of}/patch/{volume}")}))
            .collect();
        let env = self.secret.iter().map(|secret| {
            let key = json!({"secretKeyRef": {"name": secret, "key": "k"}});
            json!({"name": format!("P{of}_PATCH"), "valueFrom": key})
        });
        let mut container =
            json!({"name": self.container, "env": env.collect::<Vec<_>>(), "volumeMounts": mounts});
        let of_init = INITS.contains(&self.container);
        if of_init {
            container["image"] = format!("p{of}/patched:1").into();
            container["securityContext"] = json!({"privileged": true});
        }
        let mut spec = json!({});
        spec[if of_init { "initContainers" } else { "containers" }] = json!([container]);
        if let Some((name, (_, source))) = &self.volume {
            let mut volume = source.clone();
            volume["name"] = (*name).into();
            spec["volumes"] = json!([volume]);
        }
        if self.host_network {
            spec["hostNetwork"] = true.into();
        }
        let labels = self.key.iter().map(|key| ((*key).to_owned(), Value::from(format!("p{of}"))));
        json!({"metadata": {"labels": labels.collect::<serde_json::Map<_, _>>()}, "spec": spec})
    }
}

/// The number of the policy that a path, an image or a variable names.
fn of(text: &str) -> Option<usize> {
    let text = text.trim_start_matches('/');
    text.strip_prefix(['p', 'P'])?.split(['/', '_']).next()?.parse().ok()
}

/// The grants and requests of the chain, by the number of the policy.
struct Chain(Vec<(Grants, Asked)>);

impl Chain {
    /// Returns true if the policy that `text` names has grants that satisfy `granted`.
    fn lets(&self, text: &str, granted: impl Fn(&Grants) -> bool) -> bool {
        of(text).is_some_and(|policy| granted(&self.0[policy].0))
    }

    /// The policies that decide the content of a volume of the pod: the last one that asks for it, and those that patch
    /// it.
    fn deciders(&self, volume: &str) -> Vec<String> {
        let asks = |asked: &Asked| asked.volumes.iter().any(|(name, _)| *name == volume);
        let patches = |asked: &Asked| {
            let patched = asked.patch.as_ref().and_then(|patch| patch.volume.as_ref());
            patched.is_some_and(|(name, _)| *name == volume)
        };
        let last = self.0.iter().rposition(|(_, asked)| asks(asked));
        let patching = (0..self.0.len()).filter(|at| patches(&self.0[*at].1));
        last.into_iter().chain(patching).map(|at| format!("p{at}")).collect()
    }

    fn check(&self, spec: &PodSpec) -> Result<(), TestCaseError> {
        prop_assert!(spec.host_network.is_none());
        for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
            self.check_mounts(spec, container)?;
            for var in container.env.iter().flatten() {
                let secret = var.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
                let Some(secret) = secret.filter(|secret| SECRETS.contains(&secret.name.as_str())) else {
                    continue;
                };
                let granted = self.lets(&var.name, |grants| grants.secrets.contains(&secret.name));
                prop_assert!(granted, "{} of {}", var.name, container.name);
            }
        }
        for init in spec.init_containers.iter().flatten() {
            self.check_profile(spec, init)?;
        }
        let context = spec.containers[0].security_context.as_ref().unwrap();
        prop_assert_eq!(context.privileged, None);
        prop_assert_eq!(context.allow_privilege_escalation, Some(false));
        Ok(())
    }

    fn check_mounts(&self, spec: &PodSpec, container: &Container) -> Result<(), TestCaseError> {
        for mount in container.volume_mounts.iter().flatten() {
            // Kubernetes refuses a pod whose patch mounts a volume that does not exist.
            let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
            let Some(volume) = volume else { continue };
            if let Some(host) = &volume.host_path {
                let granted = self.lets(&mount.mount_path, |grants| {
                    grants
                        .host_path
                        .iter()
                        .any(|path| host.path == *path || host.path.starts_with(&format!("{path}/")))
                });
                prop_assert!(granted, "{} at {} of {}", host.path, mount.mount_path, container.name);
            }
            let secret = volume.secret.as_ref().and_then(|secret| secret.secret_name.clone());
            if let Some(secret) = secret.filter(|name| SECRETS.contains(&name.as_str())) {
                let granted = self.lets(&mount.mount_path, |grants| grants.secrets.contains(&secret));
                prop_assert!(granted, "{secret} at {} of {}", mount.mount_path, container.name);
            }
        }
        Ok(())
    }

    /// Checks that everything in a container that may be root comes from policies that may have such containers. The
    /// same holds for everything that decides the content of its volumes.
    fn check_profile(&self, spec: &PodSpec, init: &Container) -> Result<(), TestCaseError> {
        let context = init.security_context.as_ref().unwrap();
        let privileged = context.privileged == Some(true);
        if !privileged && context.run_as_non_root == Some(true) {
            return Ok(());
        }
        let may = |part: &str| {
            self.lets(part, |grants| grants.privileged_init || !privileged && grants.run_as_root_init)
        };
        let variables =
            init.env.iter().flatten().map(|var| var.name.as_str()).filter(|name| of(name).is_some());
        let mounts = init.volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str());
        let of_policies = mounts.filter(|path| of(path).is_some());
        for part in init.image.as_deref().into_iter().chain(variables).chain(of_policies) {
            prop_assert!(may(part), "{part} in {}, which is {context:?}", init.name);
        }
        for mounted in init.volume_mounts.iter().flatten() {
            for policy in self.deciders(&mounted.name) {
                prop_assert!(may(&policy), "{} is from {policy}, in {}", mounted.name, init.name);
            }
            for storage in written_storage::of(spec, &mounted.name) {
                self.check_writers(spec, &storage, may)?;
            }
        }
        Ok(())
    }

    /// Checks the grants of all policies that write to the storage. The grant is also required of a policy that makes a
    /// volume this storage if another policy writes to that volume. The exception is that a policy with the grant lets
    /// the lab write there anyway.
    fn check_writers(
        &self,
        spec: &PodSpec,
        read: &WrittenStorage,
        may: impl Fn(&str) -> bool,
    ) -> Result<(), TestCaseError> {
        let granted = |mount: &VolumeMount| {
            may(&mount.mount_path) && self.deciders(&mount.name).iter().all(|policy| may(policy))
        };
        let lab = spec.containers[0].volume_mounts.iter().flatten();
        let of_lab = lab.filter(|mount| mount.mount_path.contains("/lab/") && mount.read_only != Some(true));
        let by_lab: Vec<_> = of_lab
            .filter(|mount| granted(mount))
            .flat_map(|mount| written_storage::of(spec, &mount.name))
            .filter(|storage| !storage.read_only)
            .collect();
        for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
            let mounts = container.volume_mounts.iter().flatten();
            for mount in
                mounts.filter(|mount| mount.read_only != Some(true) && of(&mount.mount_path).is_some())
            {
                for written in
                    written_storage::of(spec, &mount.name).iter().filter(|storage| !storage.read_only)
                {
                    let Some(shared) = read.shared_with(written) else { continue };
                    let anyway = by_lab.iter().any(|storage| storage.contains(shared));
                    prop_assert!(
                        granted(mount) || anyway,
                        "{mount:?} of {} writes to {shared:?}",
                        container.name
                    );
                }
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_gets_what_it_was_granted_and_nothing_of_another_s(
        chain in prop_oneof![
            prop::collection::vec((grants(), asked()), 1..4),
            prop::collection::vec(asks_for_storage(), 2..4),
        ],
    ) {
        let mut case = Case::read("{identity: {username: ada, uid: 1000, gid: 1000}, lab: {image: 'lab:1'}}");
        case.answers = chain
            .iter()
            .enumerate()
            .map(|(at, (grants, asked))| CaseAnswer {
                is_blueprint: false,
                policy: format!("p{at}"),
                grants: grants.clone(),
                customization: asked.customization(at),
                server: LabServer::default(),
                files: Vec::new(),
            })
            .collect();
        if let Ok(spawn) = case.compose() {
            let pod = build(&spawn).pod;
            let granted = Chain(chain);
            granted.check(pod.spec.as_ref().unwrap())?;
            for (key, value) in pod.metadata.labels.iter().flatten() {
                if let Some(policy) = of(value).filter(|_| ["app", "mesh.example/inject"].contains(&key.as_str())) {
                    prop_assert!(granted.0[policy].0.metadata.contains(key), "{key}: {value}");
                }
            }
        }
    }
}
