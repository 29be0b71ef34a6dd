//! Labs in the pods of a workload: a `Deployment`, a `StatefulSet` or a `DaemonSet` that does not belong to the
//! service.
//!
//! The service adds the lab's containers and volumes to the workload's pod template by server-side apply, under a field
//! manager of the lab's own. An apply of nothing under the same manager removes exactly these fields again. All other
//! changes to the workload are up to its owner: the service watches them, and never prevents them.

mod ejection;
mod lab_mark;
mod lab_pod;
mod look;
mod name;
mod object;
mod port;
mod refusal;

pub use ejection::{is_leftover_revision, leftovers, remainder};
pub use lab_mark::{LabMark, installation_label};
pub use lab_pod::{LabPod, Revisions, choose, controller_uid};
pub use look::{Look, Seen, look};
pub use name::{InvalidWorkload, WORKLOAD, Workload, WorkloadKind};
pub use object::{WorkloadObject, WorkloadState};
pub use port::{declares_port, free_port};
pub use refusal::{MAX_LABS, WorkloadRefusal, check};
