//! Environments under load, with figures. These take minutes; `make environments` runs them.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wasmspawner_embedded::kubelet::{Kubelet, KubeletOptions, Runtime, SimulatedOptions};
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::some_within;

use crate::environments::{add, embedded, kind};
use crate::labs::service_with;
use crate::site::{CLUSTER_WIDE, ENVIRONMENTS, Site, until};

/// The number of labs in each of two clusters.
const LABS: usize = 50;
/// The time for which the API server of one of them is away.
const AWAY: Duration = Duration::from_mins(1);
/// The time for which that API server accepts connections and sends nothing.
const SILENT: Duration = Duration::from_secs(20);
/// The time limit for a stuck deletion, which counts as failed after two minutes.
const STUCK_WITHIN: Duration = Duration::from_mins(3);
/// The number of spawns of each kind, one after the other.
const SPAWNS: usize = 15;

fn many(config: &mut Value) {
    config["limits"] = json!({ "concurrent_spawns": 200, "per_user": {
        "requests_per_second": 1000, "requests_at_once": 500, "event_streams": 100,
    } });
    let size = |name: &str| json!({"name": name, "cpu": 1, "memory": "1Gi"});
    let of_class = |name: &str| json!({"name": name, "cpu": 1, "memory": "1Gi", "environment_class": name});
    config["policies"][0]["config"] = json!({
        "sizes": [size("plain"), of_class("near"), of_class("far"), of_class("account"), of_class("pooled")],
    });
    config["environments"] = json!({});
}

async fn add_class(classes: &Api<DynamicObject>, name: &str, spec: Value) {
    let mut spec = spec;
    spec["provisioner"] = "wasmspawner.io/namespace".into();
    spec["reclaimPolicy"] = "Delete".into();
    add(classes, json!({"kind": "DeploymentTargetClass", "metadata": {"name": name}, "spec": spec})).await;
}

/// Starts a lab, and returns the time until it ran.
async fn start(service: &Service, user: &str, size: &str) -> Duration {
    let (client, begun) = (service.user(user).unwrap(), Instant::now());
    let answer = client.spawn_with(user, &json!({"options": {"size": size}})).await.unwrap();
    assert_eq!(answer.status, 303, "{answer:?}");
    let events = client.events(user).await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    begun.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The number of requests to the API server so far, without watches.
async fn requests(service: &Service) -> u64 {
    let text = service.probes().get("/metrics").await.unwrap().body;
    let counts = text.lines().filter(|line| line.starts_with("wasmspawner_kubernetes_requests_total{"));
    counts
        .filter(|line| !line.contains("verb=\"watch\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for a minute; `make environments` runs it"]
async fn a_pool_saves_the_making_of_namespaces() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    let template = format!("{}-env-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, many);
    let classes = kind(&site, "DeploymentTargetClass", "deploymenttargetclasses");
    add_class(&classes, "near", json!({"parameters": {"credentials": "false"}})).await;
    add_class(&classes, "account", json!({})).await;
    add_class(&classes, "pooled", json!({"parameters": {"credentials": "false"}, "poolSize": 3})).await;
    service.run().await.unwrap();
    let targets = kind(&site, "DeploymentTarget", "deploymenttargets");
    let available = async || {
        let all = targets.list(&ListParams::default()).await.unwrap().items;
        all.iter().filter(|target| target.data["status"]["phase"] == "Available").count()
    };
    until(async || available().await == 3).await;
    let mut lines = Vec::new();
    for size in ["plain", "near", "account", "pooled", "plain"] {
        let (mut times, before) = (Vec::new(), requests(&service).await);
        for number in 0..SPAWNS {
            times.push(start(&service, &format!("{size}{}{number}", lines.len()), size).await);
            if size == "pooled" {
                until(async || available().await == 3).await;
            }
        }
        let each = (requests(&service).await - before) / SPAWNS as u64;
        lines.push(format!("{size:8} median {:4} ms, {each} requests a spawn", median(times).as_millis()));
    }
    println!("{}", lines.join("\n"));
    service.kill();
    for class in ["near", "account", "pooled"] {
        classes.delete(class, &DeleteParams::default()).await.unwrap();
    }
    site.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes; `make environments` runs it"]
async fn a_namespace_that_kubernetes_cannot_remove_is_told_after_two_minutes_and_goes_later() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    let template = format!("{}-env-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, many);
    let classes = kind(&site, "DeploymentTargetClass", "deploymenttargetclasses");
    add_class(&classes, "near", json!({"parameters": {"credentials": "false"}})).await;
    service.run().await.unwrap();
    start(&service, "ada", "near").await;
    let namespace = format!("{}-env-ada", site.name());
    let maps: Api<ConfigMap> = Api::namespaced(site.cluster.client.clone(), &namespace);
    let kept = json!({"metadata": {"name": "kept", "finalizers": ["example.org/kept"]}});
    maps.create(&PostParams::default(), &serde_json::from_value(kept).unwrap()).await.unwrap();

    let ada = service.user("ada").unwrap();
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let targets = kind(&site, "DeploymentTarget", "deploymenttargets");
    let begun = Instant::now();
    let failed = some_within(STUCK_WITHIN, async || {
        let target = targets.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
        (target.data["status"]["phase"] == "Failed").then_some(target)
    })
    .await
    .unwrap();
    println!("failed after {:.0} s", begun.elapsed().as_secs_f32());
    let told = failed.data["status"]["conditions"][0]["message"].as_str().unwrap();
    assert!(told.starts_with("The namespace could not be removed within 2 minutes: "), "{told}");
    assert!(told.contains("example.org/kept"), "Kubernetes says what is left: {told}");
    assert!(failed.metadata.finalizers.is_some_and(|finalizers| !finalizers.is_empty()));

    // Another user is not affected, and the same user learns the reason for the wait.
    start(&service, "grace", "near").await;
    service.crash_and_restart().await.unwrap();
    let freed = json!({"metadata": {"finalizers": null}});
    maps.patch("kept", &PatchParams::default(), &Patch::Merge(&freed)).await.unwrap();
    let begun = Instant::now();
    some_within(STUCK_WITHIN, async || {
        let left = targets.list(&ListParams::default()).await.unwrap().items;
        (left.len() == 1).then_some(())
    })
    .await
    .unwrap();
    println!("gone {:.1} s after what kept it", begun.elapsed().as_secs_f32());
    start(&service, "ada", "near").await;
    for user in ["ada", "grace"] {
        service.user(user).unwrap().stop_to_end(user).await.unwrap();
    }
    service.kill();
    classes.delete("near", &DeleteParams::default()).await.unwrap();
    site.leave().await;
}

/// A second control plane, which ends with this value.
struct ControlPlane {
    process: Child,
    kubeconfig: PathBuf,
    /// The API server of the control plane, once it was started again here.
    api_server: Option<Child>,
}

impl ControlPlane {
    fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/control-plane/run.py");
        let mut process = Command::new("python3")
            .args([script, "with", "sh", "-c", "echo kubeconfig $TEST_KUBECONFIG; exec sleep 1000"])
            .env_remove("TEST_KUBECONFIG")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let named =
            lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("kubeconfig ")?.to_owned()));
        Self { process, kubeconfig: named.unwrap().into(), api_server: None }
    }

    /// Kills the API server of the control plane, and returns the command that starts it again.
    fn kill(&self) -> Command {
        let found = Command::new("pgrep").args(["-f", &self.pattern()]).output().unwrap();
        let pid = String::from_utf8(found.stdout).unwrap().trim().to_owned();
        let written = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
        let mut words = written.split_terminator('\0');
        let mut command = Command::new(words.next().unwrap());
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        self.signal("-KILL");
        command
    }

    /// Sends a signal to the API server of the control plane.
    fn signal(&self, signal: &str) {
        assert!(Command::new("pkill").args([signal, "-f", &self.pattern()]).status().unwrap().success());
    }

    /// The pattern of the API server's command line.
    fn pattern(&self) -> String {
        format!("kube-apiserver.*{}", self.kubeconfig.parent().unwrap().to_str().unwrap())
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.signal("-CONT");
        if let Some(api_server) = &mut self.api_server {
            let _ = api_server.kill();
            let _ = api_server.wait();
        }
        let _ = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes three minutes; `make environments` runs it"]
async fn fifty_labs_in_each_of_two_clusters_of_which_one_is_away_for_a_minute() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    site.apply(ENVIRONMENTS).await;
    site.install_definition().await;
    let mut far = ControlPlane::start();
    let kubeconfig = embedded(&std::fs::read_to_string(&far.kubeconfig).unwrap());
    let config = Kubeconfig::from_yaml(&kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let there = kube::Client::try_from(config).unwrap();
    let stop = CancellationToken::new();
    let options = KubeletOptions::new("far", Runtime::Simulated(SimulatedOptions::default()));
    let kubelet = tokio::spawn(Kubelet::new(there.clone(), options).unwrap().run(stop.clone()));

    let here = site.cluster.client.clone();
    let secret = json!({"metadata": {"name": "far"}, "stringData": {"kubeconfig": kubeconfig}});
    let secret = serde_json::from_value(secret).unwrap();
    Api::<Secret>::namespaced(here.clone(), site.name())
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let classes = kind(&site, "DeploymentTargetClass", "deploymenttargetclasses");
    add_class(&classes, "near", json!({"parameters": {"credentials": "false"}})).await;
    let parameters = json!({"credentials": "false", "credentialsSecret": "far"});
    add_class(&classes, "far", json!({"parameters": parameters})).await;
    let template = format!("{}-env-{{user_server}}", site.name());
    let mut service = service_with(&site, "delete", &template, many);
    service.run().await.unwrap();

    let begun = Instant::now();
    let users = |size: &str| (0..LABS).map(|number| format!("{size}{number}")).collect::<Vec<_>>();
    let (near, distant) = (users("near"), users("far"));
    let starts = near.iter().map(|user| (user, "near")).chain(distant.iter().map(|user| (user, "far")));
    let times = join_all(starts.map(|(user, size)| start(&service, user, size))).await;
    println!(
        "{} labs in two clusters: {:.1} s, median {:.1} s",
        times.len(),
        begun.elapsed().as_secs_f32(),
        median(times).as_secs_f32()
    );
    assert_eq!(pods(&here, site.name()).await.len(), LABS);
    assert_eq!(pods(&there, site.name()).await.len(), LABS);

    let before = start_one_a_second(&service, "before", Duration::from_secs(15)).await;
    let mut again = far.kill();
    let meanwhile = start_one_a_second(&service, "meanwhile", AWAY).await;
    far.api_server = Some(again.spawn().unwrap());
    let answers = async || there.apiserver_version().await.is_ok().then_some(());
    some_within(AWAY, answers).await.unwrap();
    far.signal("-STOP");
    let silent = start_one_a_second(&service, "silent", SILENT).await;
    println!(
        "starts in one cluster: median {} ms; while the other's API server was killed for a minute: {} ms; while it was \
         silent: {} ms",
        before.as_millis(),
        meanwhile.as_millis(),
        silent.as_millis()
    );
    for user in &distant {
        let lab = service.user(user).unwrap().lab(user).await.unwrap().json().unwrap();
        assert_eq!(lab["status"], "running", "{lab}");
    }
    far.signal("-CONT");

    let begun = Instant::now();
    let stops = near
        .iter()
        .chain(&distant)
        .map(async |user| service.user(user).unwrap().stop_to_end(user).await.unwrap());
    let ended = join_all(stops).await;
    assert!(ended.iter().all(|events| events.last().unwrap().kind == "complete"));
    // The kubelet of this test waits for up to 30 seconds before it watches again, and so does Kubernetes' controller.
    println!("all stopped: {:.1} s", begun.elapsed().as_secs_f32());
    let claims = kind(&site, "DeploymentTargetClaim", "deploymenttargetclaims");
    until(async || claims.list(&ListParams::default()).await.unwrap().items.is_empty()).await;
    let left = async |client: &kube::Client| {
        let all = Api::<Namespace>::all(client.clone()).list(&ListParams::default()).await.unwrap().items;
        all.into_iter().filter_map(|one| one.metadata.name).filter(|name| name.contains("-env-")).count()
    };
    assert_eq!((left(&here).await, left(&there).await), (0, 0));
    println!("all stopped and gone: {:.1} s", begun.elapsed().as_secs_f32());
    service.kill();
    stop.cancel();
    kubelet.await.unwrap();
    for class in ["near", "far"] {
        classes.delete(class, &DeleteParams::default()).await.unwrap();
    }
    site.leave().await;
}

/// Starts a lab each second, and stops it again. Returns the time that a start takes.
async fn start_one_a_second(service: &Service, name: &str, during: Duration) -> Duration {
    let (begun, mut times, mut each) =
        (Instant::now(), Vec::new(), tokio::time::interval(Duration::from_secs(1)));
    while begun.elapsed() < during {
        each.tick().await;
        let user = format!("{name}{}", times.len());
        times.push(start(service, &user, "near").await);
        assert_eq!(service.user(&user).unwrap().stop(&user).await.unwrap().status, 202);
    }
    median(times)
}

async fn pods(client: &kube::Client, instance: &str) -> Vec<String> {
    let labs = ListParams::default().labels(&format!("wasmspawner.io/instance={instance}"));
    let all = Api::<Pod>::all(client.clone()).list(&labs).await.unwrap().items;
    all.into_iter().filter_map(|pod| pod.metadata.name).collect()
}
