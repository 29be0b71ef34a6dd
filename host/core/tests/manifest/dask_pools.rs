//! The objects of a Dask pool: the common parts of its scheduler and its workers, and the parts of only one of them.

use k8s_openapi::api::core::v1::{Container, Pod};
use wasmspawner_core::children::dask::{Pool, PoolLaunch, PoolPrograms, SCHEDULER_VARIABLE, WorkerRange};
use wasmspawner_core::manifest::{
    LabObjects, ParentPod, PartConflict, PoolObjects, PoolParts, build_dask_pool, dask_worker,
};
use wasmspawner_core::names::{LabelValue, WorkerGroupName};
use wasmspawner_core::policy::{Options, ValidatedSpawn};
use wasmspawner_core::values::secret::SecretString;

use super::case::Case;

const SPAWN: &str = "
identity: {username: ada, uid: 1000, gid: 1000}
namespaces: retain
lab:
  image: 'lab:1'
  network_policy: {blocked: ['169.254.0.0/16']}
quotas: [{cpu_millis: 8000}]
answers:
  - policy: site
    grants: {host-path: [/data]}
    customization:
      resources: {cpu_limit_millis: 2000, memory_limit_bytes: 1073741824, extended: [[nvidia.com/gpu, 1]], claims: [{name: gpu, template: one-gpu}]}
      volumes: [{name: data, source: {host_path: /data}}]
";

/// A pool whose workers are all alike: the template of its workers, and its other objects.
struct Alike {
    objects: LabObjects,
    worker: Pod,
}

fn pool(outlives_lab: bool) -> Alike {
    let PoolObjects { objects, worker, groups } = built(outlives_lab, &PoolParts::default()).unwrap();
    assert!(groups.is_empty());
    Alike { objects, worker: worker.unwrap() }
}

fn built(outlives_lab: bool, parts: &PoolParts) -> Result<PoolObjects, PartConflict> {
    let spawn = Case::read(SPAWN).compose().unwrap();
    let launch = PoolLaunch {
        pool: Pool {
            workers: WorkerRange::fixed(2),
            groups: Vec::new(),
            scheduler_options: Options::new(),
            idle_timeout: None,
            outlives_lab,
            certificate: "certificate".to_owned(),
            key: SecretString::new("key"),
        },
        url: "http://service/pool".to_owned(),
        token: SecretString::new("token"),
        programs: PoolPrograms { pod: "", keeper: "", link: "", tls: "" },
    };
    build_dask_pool(&spawn, parts, &launch, &parent("lab"))
}

fn parent(name: &str) -> ParentPod {
    let spawn = LabelValue::parse(format!("record-of-{name}")).unwrap();
    ParentPod { name: name.to_owned(), uid: format!("uid-of-{name}"), spawn }
}

fn container(pod: &Pod) -> &Container {
    &pod.spec.as_ref().unwrap().containers[0]
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn workers_have_gpus_and_no_token_and_the_scheduler_the_other_way_round() {
    let Alike { objects, worker } = pool(false);
    let scheduler = &objects.pod;
    assert!(text(&container(&worker).resources).contains("nvidia.com/gpu"));
    assert!(!text(&container(scheduler).resources).contains("nvidia.com/gpu"));
    assert!(text(&worker.spec).contains("one-gpu"));
    assert!(
        !text(&scheduler.spec).contains("one-gpu")
            && !text(&container(scheduler).resources).contains("claims")
    );
    let limits = |pod| container(pod).resources.clone().unwrap().limits.unwrap();
    assert_eq!(limits(scheduler)["cpu"], limits(&worker)["cpu"]);
    let volumes = |pod: &Pod| text(&pod.spec.as_ref().unwrap().volumes);
    assert!(volumes(scheduler).contains("dask.token") && !volumes(&worker).contains("dask.token"));
    assert!(volumes(&worker).contains("dask.tls.key"));
    let file = String::from_utf8(objects.secret.data.unwrap()["dask.pool.json"].0.clone()).unwrap();
    assert!(file.contains(r#""threads":2"#) && file.contains(r#""memory_bytes":1073741824"#), "{file}");
}

#[test]
fn a_worker_belongs_to_its_scheduler_and_is_on_its_node_if_the_volumes_are() {
    let Alike { objects, worker } = pool(false);
    let made = dask_worker(&worker, "pool-abcd", &parent("scheduler"), "fd00::7");
    assert_eq!(made.metadata.name.as_deref(), Some("pool-abcd"));
    assert_eq!(made.metadata.owner_references.as_ref().unwrap()[0].uid, "uid-of-scheduler");
    let env = container(&made).env.clone().unwrap();
    let address = env.iter().find(|variable| variable.name == SCHEDULER_VARIABLE).unwrap();
    assert_eq!(address.value.as_deref(), Some("tls://[fd00::7]:8786"));
    let affinity = |pod: &Pod| text(&pod.spec.as_ref().unwrap().affinity);
    assert!(affinity(&objects.pod).contains("record-of-lab"), "a folder of the node is where the lab is");
    assert!(!affinity(&made).contains("record-of-lab"), "the lab may be gone by then");
    assert!(affinity(&made).contains("5d3c0f5e-0000-4000-8000-000000000002"));
    let labels = made.metadata.labels.unwrap();
    assert_eq!(labels["wasmspawner.io/spawn"], "5d3c0f5e-0000-4000-8000-000000000002");
    assert!(!labels.contains_key("wasmspawner.io/job-id"));
}

#[test]
fn a_pool_that_outlives_its_lab_brings_what_would_go_with_the_lab() {
    let (usual, lasting) = (pool(false).objects, pool(true).objects);
    assert_eq!(usual.pod.metadata.owner_references.as_ref().unwrap()[0].uid, "uid-of-lab");
    assert_eq!(lasting.pod.metadata.owner_references, None);
    assert!(usual.service_account.is_none() && usual.resource_quota.is_none());
    assert!(lasting.service_account.is_some() && lasting.resource_quota.is_some());
    let egress = text(&lasting.network_policy.unwrap().spec.unwrap().egress);
    assert!(egress.contains("169.254.0.0/16"), "{egress}");
}

/// What policies decide for a part of the pool, with another size and more.
fn part(cpu_millis: u32, more: &str) -> ValidatedSpawn {
    let other = SPAWN.replace("cpu_limit_millis: 2000", &format!("cpu_limit_millis: {cpu_millis}"));
    Case::read(&format!("{other}{more}")).compose().unwrap()
}

#[test]
fn groups_and_the_scheduler_have_their_own_size_and_variables() {
    let group = |name: &str| WorkerGroupName::parse(name).unwrap();
    let more = "      env: [{name: NOTE, value: {literal: 'a $(B)'}}]\n      node_selector: [{name: pool, value: gpu}]\n";
    let parts = PoolParts {
        scheduler: Some(part(500, "")),
        groups: vec![(group("cpu"), part(1000, "")), (group("gpu"), part(4000, more))],
    };
    let PoolObjects { objects, worker, groups } = built(false, &parts).unwrap();
    assert!(worker.is_none());
    let cpu = |pod: &Pod| container(pod).resources.clone().unwrap().limits.unwrap()["cpu"].0.clone();
    assert_eq!([&objects.pod, &groups[0].pod, &groups[1].pod].map(cpu), ["500m", "1", "4"]);
    let variable = |pod: &Pod, name: &str| {
        let env = container(pod).env.clone().unwrap();
        env.into_iter().find(|variable| variable.name == name).and_then(|variable| variable.value)
    };
    assert_eq!(variable(&groups[1].pod, "NOTE").as_deref(), Some("a $$(B)"));
    assert_eq!(variable(&groups[0].pod, "NOTE"), None);
    for group in &groups {
        assert_eq!(
            group.pod.metadata.labels.as_ref().unwrap()["wasmspawner.io/dask-group"],
            group.name.as_str()
        );
        assert_eq!(variable(&group.pod, "WASMSPAWNER_DASK_GROUP").as_deref(), Some(group.name.as_str()));
        assert!(group.pod.metadata.name.is_none());
    }
    assert_eq!(groups[1].pod.spec.as_ref().unwrap().node_selector.as_ref().unwrap()["pool"], "gpu");
    let file = String::from_utf8(objects.secret.data.unwrap()["dask.pool.json"].0.clone()).unwrap();
    assert!(file.contains(r#""groups":[{"memory_bytes":1073741824,"name":"cpu","threads":1},"#), "{file}");
}
