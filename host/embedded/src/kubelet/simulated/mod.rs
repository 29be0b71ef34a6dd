//! The simulated runtime: nothing runs, but everything looks as if it did.
//!
//! What goes wrong is said by a pod's annotations, see `script`.

mod course;
mod run;
mod script;

pub(crate) use course::Course;
pub(crate) use run::SimulatedRun;
pub(crate) use script::Fault;
