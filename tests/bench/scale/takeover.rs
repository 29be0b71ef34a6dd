//! The time until another process of the service leads, planned and after a kill.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use wasmspawner_tests::kubernetes::records;
use wasmspawner_tests::service::Service;

use crate::cluster::RealCluster;
use crate::rounds::{mebibytes, median};
use crate::usage::Usage;
use crate::{site, spawns};

const ROUNDS: usize = 3;

/// The time over which the cost of standing by is measured.
const STANDS_BY: Duration = Duration::from_secs(20);

/// Starts labs, and lets two processes lead in turn. Prints the times from SIGTERM and from SIGKILL until the other gets requests,
/// compared with a bare client that lists the records and the pods.
pub(crate) async fn measure(labs: usize) -> anyhow::Result<()> {
    let real = RealCluster::enter().await?;
    let (client, namespace) = (real.cluster.client.clone(), real.cluster.namespace.clone());
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), &namespace);
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": { "name": "wasmspawner" }, "addressType": "IPv4",
    });
    slices.patch("wasmspawner", &PatchParams::apply("scale"), &Patch::Apply(&slice)).await?;
    let process = |name: &str, address| {
        let mut service = site::on_cluster(&real.kubeconfig()?, &namespace, &namespace, |config| {
            config["kubernetes"]["endpoint_slice"] = json!("wasmspawner");
        })?;
        service.is_in_pod(name, address);
        anyhow::Ok(service)
    };
    let mut leader = process("first", Ipv4Addr::new(10, 0, 0, 1))?;
    let mut standby = process("second", Ipv4Addr::new(10, 0, 0, 2))?;
    leader.run().await?;
    spawns::run(&leader.admin()?, labs).await?;

    standby.run().await?;
    let pid = standby.pid().context("the standby has no process")?;
    let before = Usage::from_process(pid)?;
    tokio::time::sleep(STANDS_BY).await;
    let after = Usage::from_process(pid)?;
    let leads = Usage::from_process(leader.pid().context("the leader has no process")?)?;

    let (mut listed, mut planned, mut killed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let (pods, all): (Api<Pod>, _) = (Api::all(client.clone()), ListParams::default());
        let records = records(client.clone(), &namespace);
        tokio::try_join!(pods.list(&all), records.list(&all))?;
        listed.push(begun.elapsed());

        let begun = Instant::now();
        leader.ask_to_end()?;
        planned.push(until_it_leads(&standby, &slices, begun).await?);
        leader.death().await?;
        std::mem::swap(&mut leader, &mut standby);
        standby.run().await?;

        let begun = Instant::now();
        leader.kill();
        killed.push(until_it_leads(&standby, &slices, begun).await?);
        std::mem::swap(&mut leader, &mut standby);
        standby.run().await?;
    }
    println!("take-over with {labs} labs on the real control plane, medians of {ROUNDS} rounds");
    let reference = median(&listed);
    println!("a bare client lists pods and records   {reference:6.2} s");
    for (name, times) in [
        ("SIGTERM until the other gets requests", &planned),
        ("SIGKILL until the other gets requests", &killed),
    ] {
        println!("{name:38} {:6.2} s   ({:.1}x)", median(times), median(times) / reference);
    }
    println!(
        "the standby: {:.1} MiB, {} ms of CPU in {} s; the leader: {:.1} MiB\n",
        mebibytes(after.resident_kib),
        after.cpu_millis - before.cpu_millis,
        STANDS_BY.as_secs(),
        mebibytes(leads.resident_kib),
    );
    spawns::stop_all(&leader.admin()?, labs).await?;
    real.cleaned_up().await?;
    drop((leader, standby));
    real.leave().await
}

/// Waits until the process answers a request about a lab, and the Service leads to it. Returns the time since `begun`.
async fn until_it_leads(
    service: &Service,
    slices: &Api<EndpointSlice>,
    begun: Instant,
) -> anyhow::Result<Duration> {
    let (admin, mut again) = (service.admin()?, tokio::time::interval(Duration::from_millis(10)));
    while admin.lab("user0").await?.status != 200 {
        again.tick().await;
    }
    let answers = begun.elapsed();
    let is_led_to = async || {
        let slice = slices.get("wasmspawner").await?;
        let mut endpoints = slice.endpoints.into_iter().flatten();
        anyhow::Ok(endpoints.any(|endpoint| endpoint.target_ref.and_then(|pod| pod.name) == service.pod()))
    };
    while !is_led_to().await? {
        again.tick().await;
    }
    println!(
        "  answers after {:.2} s, gets requests after {:.2} s",
        answers.as_secs_f64(),
        begun.elapsed().as_secs_f64()
    );
    Ok(begun.elapsed())
}
