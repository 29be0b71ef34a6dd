//! The metrics of the process, under the names that all programs use: CPU time, memory, open files, start time.

use std::fmt;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

/// Reads the values of this process at each scrape. A value that the system does not provide is left out.
#[derive(Debug)]
pub(super) struct Process {
    /// Seconds since the Unix epoch.
    started: f64,
}

impl Process {
    /// Returns the process, with now as its start time.
    pub(super) fn started_now() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started: now.as_secs_f64() }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let mut gauge = |name: &str, help: &str, unit: Option<&Unit>, value: f64| {
            let metric = ConstGauge::new(value);
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        gauge(
            "process_start_time",
            "When the process started, since the Unix epoch",
            Some(&Unit::Seconds),
            self.started,
        )?;
        if let Some(bytes) = resident_bytes() {
            gauge("process_resident_memory", "Resident memory", Some(&Unit::Bytes), bytes)?;
        }
        if let Some(count) = open_files() {
            gauge("process_open_fds", "Open file descriptors", None, count)?;
        }
        if let Some(most) = getrlimit(Resource::Nofile).current {
            gauge("process_max_fds", "Most file descriptors that may be open", None, number(most))?;
        }
        let cpu = ConstCounter::new(cpu_seconds());
        let help = "CPU time in user and system mode";
        cpu.encode(encoder.encode_descriptor("process_cpu", help, Some(&Unit::Seconds), cpu.metric_type())?)
    }
}

fn resident_bytes() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(number(kib.saturating_mul(1024)))
}

fn open_files() -> Option<f64> {
    // The directory itself is open while it is read.
    let count = fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1);
    Some(number(count.try_into().ok()?))
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = number(time.tv_sec.try_into().unwrap_or_default());
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    whole + f64::from(nanos) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a number above 2^53 may be rounded in a metric")]
fn number(value: u64) -> f64 {
    value as f64
}
