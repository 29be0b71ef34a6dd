//! The parts that are added to a workload for a lab.

use serde_json::Value;
use wasmspawner_core::manifest::{InjectedLab, Injection, build_injected, without_job_label};
use wasmspawner_core::workload::Workload;

use super::case::{Case, TOKEN};

const SPAWN: &str = "
identity: {username: ada, uid: 1000, gid: 1001, groups: [{name: staff, id: 3000}]}
env: {JUPYTERHUB_SERVICE_URL: 'http://0.0.0.0:8888/user/ada/', MODE: slow}
lab:
  image: 'lab:1'
  secrets: [{name: pull, key: .dockerconfigjson, pull_secret: true}]
  security: {privilege_escalation: true, default_capabilities: true, unconfined_seccomp: true}
secrets: {pull: {.dockerconfigjson: pull-secret}}
answers:
  - policy: site
    grants: {run-as-root-init: true, privileged-init: true, host-path: [/], pod-patch: [spec]}
    customization:
      resources: {memory_limit_bytes: 1073741824}
      volumes:
        - {name: home, source: {claim: {claim_name: home-ada}}}
        - {name: scratch, source: {empty_dir: {}}}
        - {name: node, source: {host_path: /}}
      mounts: [{volume: home, path: /home/ada}, {volume: scratch, path: /scratch}]
      init_containers:
        - {name: setup, image: 'setup:1', mounts: [{volume: scratch, path: /scratch}]}
        - {name: own, image: 'own:1', profile: baseline}
        - {name: tune, image: 'tune:1', profile: privileged}
        - {name: fill, image: 'fill:1', mounts: [{volume: home, path: /home/ada}]}
      pod_patch: '{\"spec\": {\"containers\": [{\"name\": \"beside\", \"image\": \"x\"}], \"shareProcessNamespace\": true}}'
";

const TEMPLATE: &str = "
spec:
  serviceAccountName: shop
  containers: [{name: web, env: [{name: MODE, value: fast}, {name: COLOUR, value: red}], envFrom: [{configMapRef: {name: theirs}}]}]
  volumes: [{name: files, persistentVolumeClaim: {claimName: files}}]
";

fn injected(access: &str) -> InjectedLab {
    injected_into(TEMPLATE, access)
}

fn injected_into(template: &str, access: &str) -> InjectedLab {
    let spawn = Case::read(SPAWN).compose().unwrap();
    let injection = Injection {
        workload: Workload::parse("deployment/shop/web").unwrap(),
        uid: "uid-of-web".to_owned(),
        template: serde_saphyr::from_str(template).unwrap(),
        access: serde_saphyr::from_str(access).unwrap(),
    };
    build_injected(&spawn, &injection)
}

#[test]
fn a_lab_brings_its_own_containers_and_volumes_and_nothing_for_the_pod_as_a_whole() {
    let lab = injected("{volumes: [{volume: files, path: /srv, read_only: true}], environment_of: web}");
    insta::assert_snapshot!(serde_saphyr::to_string(&lab.patch).unwrap());
    let volume = |name| {
        format!(
            "The volume `{name}` is not there: a lab in a workload has neither volume claims nor paths of the node."
        )
    };
    let step = |name, why| format!("The preparation step `{name}` is left out, because it {why}.");
    let told = [
        volume("home"),
        volume("node"),
        step("own", "runs as root"),
        step("tune", "runs as root"),
        step("fill", "needs the volume `home`"),
    ];
    assert_eq!(lab.without, told);
    let kinds: Vec<_> = lab.objects.rest().map(|object| object.kind()).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap", "Secret", "Secret"]);
    let pull_secret = &lab.patch["spec"]["template"]["spec"]["imagePullSecrets"][0]["name"];
    assert_eq!(*pull_secret, lab.objects.pull_secret.unwrap().metadata.name.unwrap().as_str());
    assert!(!lab.patch.to_string().contains(TOKEN));
}

#[test]
fn the_label_of_the_operation_is_that_of_the_lab_that_came_first() {
    let label = |job: &str| {
        let labels = format!("metadata: {{labels: {{wasmspawner.io/job-id: {job}}}}}\n{TEMPLATE}");
        let patch = injected_into(&labels, "{}").patch;
        patch["spec"]["template"]["metadata"]["labels"].get("wasmspawner.io/job-id").cloned()
    };
    let own = "0196f000-0000-7000-8000-000000000001";
    assert_eq!(label(own), Some(own.into()));
    assert_eq!(label("0196f000-0000-7000-8000-000000000009"), None);
    let patch = injected("{}").patch;
    assert!(patch.to_string().contains("wasmspawner.io/job-id"));
    assert!(!without_job_label(&patch).to_string().contains("wasmspawner.io/job-id"));
}

#[test]
fn without_a_grant_a_lab_sees_only_its_own_volumes_and_no_token_of_the_service() {
    let patch = injected("{}").patch;
    let spec = &patch["spec"]["template"]["spec"];
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    let volumes = names(&spec["volumes"]);
    for key in ["containers", "initContainers"] {
        for container in spec[key].as_array().unwrap() {
            let mounts = names(&container["volumeMounts"]);
            assert!(mounts.iter().all(|mount| volumes.contains(mount)), "{mounts:?}");
            let token = "/var/run/secrets/kubernetes.io/serviceaccount";
            let masks = container["volumeMounts"].as_array().unwrap().iter();
            assert_eq!(masks.filter(|mount| mount["mountPath"] == token).count(), 1);
            let context = &container["securityContext"];
            assert_eq!(context["allowPrivilegeEscalation"], false);
            assert_eq!(context["capabilities"], serde_json::json!({ "drop": ["ALL"] }));
            assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
            assert_eq!((&context["runAsUser"], &context["runAsNonRoot"]), (&1000.into(), &true.into()));
        }
    }
    assert!(!patch.to_string().contains("COLOUR"));
}
