//! The process that leads an installation looks after its labs; another waits until it leads.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use kube::Client;
use rustix::system::uname;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wasmspawner_core::config::Config;
use wasmspawner_files::whole_file;
use wasmspawner_history::History;
use wasmspawner_kubernetes::k8s::Connection;
use wasmspawner_kubernetes::leadership::{Candidate, Leadership};
use wasmspawner_kubernetes::published_address::PublishedAddress;
use wasmspawner_kubernetes::random_token::random_token;
use wasmspawner_spawner::prepull::LivePrepulls;
use wasmspawner_spawner::{self as spawner, Labs};

use crate::images::pull_images;
use crate::own_pod::OwnPod;

/// The election of the process that leads, where there may be several.
pub(crate) struct Election {
    candidate: Candidate,
    /// `None` if nothing sends requests by the Lease.
    address: Option<PublishedAddress>,
}

impl Election {
    /// The election of this installation. `leases` is a client that sends changes although this process does not lead.
    pub(crate) fn new(
        config: &Config,
        connection: &Connection,
        leases: Client,
        leadership: &Leadership,
    ) -> anyhow::Result<Self> {
        let (namespace, instance) = (config.kubernetes.namespace.as_str(), config.kubernetes.instance());
        let pod = OwnPod::from_environment();
        let identity = identity(pod.as_ref(), config.state_dir.as_deref())?;
        let address = match &config.kubernetes.endpoint_slice {
            Some(slice) => {
                let pod = pod.map(OwnPod::address).filter(|pod| !pod.addresses.is_empty()).context(
                    "kubernetes.endpoint_slice: this process does not know its pod; set WASMSPAWNER_POD_NAME, WASMSPAWNER_POD_UID and WASMSPAWNER_POD_IPS from metadata.name, metadata.uid and status.podIPs, or remove the key",
                )?;
                let slice = slice.as_str();
                Some(PublishedAddress::new(connection, leases.clone(), namespace, slice, pod))
            }
            None => None,
        };
        let candidate = Candidate::new(leases, namespace, instance, identity, leadership.clone());
        Ok(Self { candidate, address })
    }

    /// Follows whether requests can be led to this process; `None` where nothing leads them by the Lease.
    pub(crate) fn address_works(&self) -> Option<watch::Receiver<bool>> {
        self.address.as_ref().map(PublishedAddress::works)
    }

    /// Waits until this process leads. Its address is published once it knows the labs.
    async fn win(mut self, labs: &Labs) -> Won {
        let checked = async {
            let Some(address) = &self.address else { return std::future::pending().await };
            loop {
                address.check().await;
                tokio::time::sleep(CHECK_EVERY).await;
            }
        };
        tokio::select! {
            () = Box::pin(self.candidate.acquire()) => {}
            () = checked => {}
        }
        let give_back = CancellationToken::new();
        let asked = give_back.clone();
        let mut candidate = self.candidate;
        let renewal = tokio::spawn(async move {
            if asked.run_until_cancelled(Box::pin(candidate.keep())).await.is_none() {
                candidate.release().await;
            }
            candidate
        });
        let asked = give_back.clone();
        let (labs, address) = (labs.clone(), self.address);
        let publishing = tokio::spawn(async move {
            let address = address?;
            let published = async {
                labs.until_known().await;
                Box::pin(address.keep()).await;
            };
            asked.run_until_cancelled(published).await;
            Some(address)
        });
        Won { give_back, renewal, publishing }
    }
}

/// The interval at which a process that stands by checks that requests could be led to it.
const CHECK_EVERY: Duration = Duration::from_mins(1);

/// An election that this process has won.
struct Won {
    give_back: CancellationToken,
    /// Renews the Lease until it is to be given back.
    renewal: JoinHandle<Candidate>,
    /// Publishes the address of this process until then.
    publishing: JoinHandle<Option<PublishedAddress>>,
}

impl Won {
    /// Gives the Lease back. Requests that still come in are answered until they go to the next leader.
    async fn give_back(self, handed_over: &CancellationToken) -> anyhow::Result<()> {
        self.give_back.cancel();
        let (candidate, address) = tokio::join!(self.renewal, self.publishing);
        handed_over.cancel();
        let candidate = candidate.context("the task that keeps the Lease panicked")?;
        if let Some(address) = address.context("the task that publishes the address panicked")? {
            address.withdraw(candidate.wait_for_successor().await).await;
        }
        Ok(())
    }
}

/// The time that the tasks of a process have to end before another may lead. What they do not finish, the next leader does.
const TASKS_END: Duration = Duration::from_secs(5);

/// The time for which the end waits for the history.
const FLUSH: Duration = Duration::from_secs(5);

/// The time to give the Lease back and to wait until requests go elsewhere. With [`TASKS_END`], the answers under way (5 s) and
/// the history (5 s) it has to fit into the pod's grace period, of which the chart gives 30 s to all that follows the drain.
const HAND_OVER: Duration = Duration::from_secs(14);

/// The tasks of a process that leads.
pub(crate) struct Led {
    /// Follows the cluster. It goes on while the service drains.
    spawner: JoinHandle<()>,
    spawner_stop: CancellationToken,
    /// `None` where there is no other process, and no Lease.
    election: Option<Won>,
}

impl Led {
    /// Ends the tasks, the Lease last: whoever takes it finds nothing under way. Requests are answered until then, and event
    /// streams end when it has been given back (`handed_over`). Without a Lease nobody else answers, and the ports are
    /// `closed` before the cluster ends.
    pub(crate) async fn end(
        self,
        cluster_stop: &CancellationToken,
        background: &TaskTracker,
        history: &History,
        handed_over: &CancellationToken,
        closed: &CancellationToken,
    ) -> anyhow::Result<()> {
        let Self { spawner, spawner_stop, election } = self;
        if election.is_none() {
            handed_over.cancel();
            closed.cancel();
        }
        let ending = async {
            spawner_stop.cancel();
            let followed = spawner.await;
            cluster_stop.cancel();
            background.close();
            background.wait().await;
            // The next leader begins with what is written now.
            if history.is_shared() {
                let history = history.clone();
                let flushed = tokio::task::spawn_blocking(move || history.flush(Timestamp::now())).await;
                flushed.context("the history could not be written")?;
            }
            followed.context("the task that follows the cluster panicked")
        };
        let Some(won) = election else { return ending.await };
        let ended = tokio::time::timeout(TASKS_END + FLUSH, ending).await;
        let handed_over = tokio::time::timeout(HAND_OVER, won.give_back(handed_over)).await;
        ended.context("the tasks of the service did not end in time")??;
        handed_over.context("the Lease could not be given back in time")?
    }
}

/// Waits until this process could lead and does, then looks after the labs until it is asked to `stop`, and lets those that
/// are being created get their pods. Returns `None` if it has never led.
pub(crate) async fn lead(
    election: Option<Election>,
    labs: &Labs,
    connection: &Connection,
    prepulls: LivePrepulls,
    background: &TaskTracker,
    stop: &CancellationToken,
) -> Option<Led> {
    stop.run_until_cancelled(spawner::prepare(labs)).await?;
    let election = match election {
        Some(election) => Some(stop.run_until_cancelled(election.win(labs)).await?),
        None => None,
    };
    pull_images(background, labs.context(), connection, prepulls, stop);
    let spawner_stop = CancellationToken::new();
    let running = spawner::run(labs.clone(), connection.watches.clone(), spawner_stop.clone());
    // If that task ends early, the service would work with outdated knowledge. It therefore stops, and is started
    // again.
    let end = stop.clone().drop_guard();
    let spawner = tokio::spawn(async move {
        Box::pin(running).await;
        drop(end);
    });
    drain(labs, stop).await;
    Some(Led { spawner, spawner_stop, election })
}

/// Returns the name by which this process holds the Lease: that of its pod, or else the one in its state directory. A
/// process that is started again there has the same name, and takes its Lease back at once; there are never two.
fn identity(pod: Option<&OwnPod>, state_dir: Option<&Path>) -> anyhow::Result<String> {
    if let Some(pod) = pod {
        return Ok(format!("{}_{}", pod.name, pod.uid));
    }
    let fresh = || format!("{}_{}", uname().nodename().to_string_lossy(), random_token());
    let Some(file) = state_dir.map(|state_dir| state_dir.join("lease-holder")) else { return Ok(fresh()) };
    match std::fs::read_to_string(&file) {
        Ok(identity) if !identity.is_empty() => return Ok(identity),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be read", file.display()));
        }
        _ => {}
    }
    let identity = fresh();
    whole_file::write(&file, identity.as_bytes())
        .with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(identity)
}

/// Waits for the request to end the service, and then until the labs that are being created have their pods. After a
/// restart, a lab with a pod is followed further, but a lab without one fails.
async fn drain(labs: &Labs, stop: &CancellationToken) {
    stop.cancelled().await;
    labs.drain();
    let limit = Duration::try_from(labs.context().config.current().limits.drain).unwrap_or_default();
    let created = async {
        let mut again = tokio::time::interval(Duration::from_millis(20));
        while labs.creating() > 0 {
            again.tick().await;
        }
    };
    if tokio::time::timeout(limit, created).await.is_err() {
        tracing::warn!(
            labs = labs.creating(),
            "the service ends while labs are being created; they fail, and have to be started again"
        );
    }
}
