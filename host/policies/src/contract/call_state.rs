use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use tracing::Level;
use wasmspawner_core::names::{Fields, Template, TemplateProblem, TemplateScope};
use wasmspawner_core::policy::Subject;
use wasmspawner_core::policy::usage::PastUse;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::limits::{Limits, MemoryBudget, as_millis};
use crate::names::message::one_line;
use crate::names::policy_name::PolicyName;
use crate::site_data::{Datum, SiteData};
use wasmspawner_registry::inventory::LiveInventory;

/// The maximum number of bytes that one call of `random` returns.
const RANDOM_BYTES: u32 = 1024;
/// The maximum length of a template for `expand`, and of the expanded text, in bytes. The host expands it outside the
/// guest's deadline.
const TEMPLATE_BYTES: usize = 64 << 10;
/// The number of bytes of a guest's standard error that are kept, for the message of a panic.
const STDERR_BYTES: usize = 2048;
/// The data that a policy can query in a call.
#[derive(Default)]
pub(crate) struct Given {
    /// The policy's configuration, as JSON.
    pub(crate) config: Arc<str>,
    /// The site data.
    pub(crate) data: SiteData,
    /// The fields of the lab that the call is about, for `expand`.
    pub(crate) lab: Option<Arc<Fields>>,
    /// The subject of the call, apart from the user and the options.
    pub(crate) subject: Subject,
    /// The service's knowledge about images.
    pub(crate) inventory: LiveInventory,
}

/// The state of one call. It is created for the call and dropped with it.
pub(crate) struct CallState {
    policy: PolicyName,
    given: Given,
    pub(crate) memory: MemoryBudget,
    log: LogBudget,
    now_ms: u64,
    /// The first function called by the policy whose result is not the same in all calls.
    learnt_by: Option<&'static str>,
    /// Created when a guest first uses WASI, which a successful call never does.
    wasi: Option<Inert>,
}

struct Inert {
    ctx: WasiCtx,
    table: ResourceTable,
    stderr: MemoryOutputPipe,
}

impl Inert {
    fn new() -> Self {
        let stderr = MemoryOutputPipe::new(STDERR_BYTES);
        let mut ctx = WasiCtxBuilder::new();
        ctx.stderr(stderr.clone()).max_random_size(RANDOM_BYTES.into()).allow_tcp(false).allow_udp(false);
        let mut table = ResourceTable::new();
        table.set_max_capacity(64);
        Self { ctx: ctx.build(), table, stderr }
    }
}

impl CallState {
    pub(crate) fn new(policy: PolicyName, given: Given, limits: &Limits) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            policy,
            given,
            memory: MemoryBudget::new(limits.memory_bytes),
            log: LogBudget { lines: limits.log_lines, bytes: limits.log_bytes, exhausted: false },
            now_ms: as_millis(now),
            learnt_by: None,
            wasi: None,
        }
    }

    /// Records a call of `function`, whose result is not the same in all calls.
    pub(crate) fn note_learning_by(&mut self, function: &'static str) {
        self.learnt_by.get_or_insert(function);
    }

    /// Returns the first such function that the policy has called.
    pub(crate) fn learnt_by(&self) -> Option<&'static str> {
        self.learnt_by
    }

    /// Returns the policy's configuration, as JSON.
    pub(crate) fn policy_config(&self) -> &str {
        &self.given.config
    }

    /// Returns the service's knowledge about images.
    pub(crate) fn inventory(&self) -> &LiveInventory {
        &self.given.inventory
    }

    /// Returns the subject of the call, apart from the user and the options.
    pub(crate) fn subject(&self) -> &Subject {
        &self.given.subject
    }

    /// Returns the site data with this name.
    pub(crate) fn site_data(&self, name: &str) -> Option<&Datum> {
        self.given.data.get(name)
    }

    /// Writes a line to the service's log, unless the log budget of the call is exhausted.
    pub(crate) fn write_log(&mut self, level: Level, message: &str) {
        match self.log.take(message.len()) {
            LogDecision::Line => write_line(&self.policy, level, &one_line(message)),
            LogDecision::LastLine => {
                tracing::warn!(policy = %self.policy, "the policy logs more than it may in one call; the rest is dropped");
            }
            LogDecision::Nothing => {}
        }
    }

    /// Returns the time of the call, in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns the user's usage in the last `days` days.
    pub(crate) fn use_of_days(&self, days: u32) -> PastUse {
        let now = i64::try_from(self.now_ms).ok().and_then(|millis| Timestamp::from_millisecond(millis).ok());
        self.subject().past_days.total(days, now.unwrap_or(Timestamp::UNIX_EPOCH))
    }

    /// Returns `length` random bytes, up to a limit.
    #[expect(clippy::unused_self, reason = "every function that a policy imports is a method of the call")]
    pub(crate) fn random_bytes(&self, length: u32) -> Vec<u8> {
        let mut bytes = vec![0; length.min(RANDOM_BYTES) as usize];
        if let Err(error) = getrandom::fill(&mut bytes) {
            tracing::error!(%error, "the operating system gives no random bytes");
            bytes.clear();
        }
        bytes
    }

    /// Expands a template of the policy's operator. The error is for the policy.
    pub(crate) fn expand_template(&self, template: String) -> Result<String, String> {
        expanded(template, self.given.lab.as_deref())
    }

    /// Returns the guest's standard error, on one line.
    pub(crate) fn stderr(&self) -> String {
        let Some(wasi) = &self.wasi else { return String::new() };
        let bytes = wasi.stderr.contents();
        let text = String::from_utf8_lossy(&bytes);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(Inert::new);
        WasiCtxView { ctx: &mut wasi.ctx, table: &mut wasi.table }
    }
}

/// Expands the template for the lab. If no lab is known, only checks the template, and returns it unchanged.
fn expanded(template: String, lab: Option<&Fields>) -> Result<String, String> {
    if template.len() > TEMPLATE_BYTES {
        return Err(format!("is {} bytes long; a template may have {TEMPLATE_BYTES}", template.len()));
    }
    let parsed =
        Template::parse("", &template, TemplateScope::Lab).map_err(|error| template_error(&error.problem))?;
    if parsed.needs_userid() {
        return Err("{userid} is not known when a lab is started; use {username} or {user_server}".into());
    }
    let Some(lab) = lab else { return Ok(template) };
    let expanded = parsed.render_within(TEMPLATE_BYTES, lab);
    expanded.ok_or_else(|| format!("becomes longer than {TEMPLATE_BYTES} bytes"))
}

/// Returns the error message. JSON and shell scripts also contain braces, so the message explains how to write one.
fn template_error(problem: &TemplateProblem) -> String {
    match problem {
        TemplateProblem::Positional | TemplateProblem::Unbalanced(_) => problem.to_string(),
        other => format!("{other}; for a brace itself write it twice"),
    }
}

fn write_line(policy: &PolicyName, level: Level, message: &str) {
    match level {
        Level::ERROR => tracing::error!(%policy, message),
        Level::WARN => tracing::warn!(%policy, message),
        Level::INFO => tracing::info!(%policy, message),
        _ => tracing::debug!(%policy, message),
    }
}

/// The lines and bytes that a call may still log.
struct LogBudget {
    lines: u32,
    bytes: usize,
    exhausted: bool,
}

#[derive(Debug, PartialEq)]
enum LogDecision {
    Line,
    /// The first line that exceeds the budget.
    LastLine,
    Nothing,
}

impl LogBudget {
    fn take(&mut self, bytes: usize) -> LogDecision {
        if self.exhausted {
            return LogDecision::Nothing;
        }
        if self.lines == 0 || bytes > self.bytes {
            self.exhausted = true;
            return LogDecision::LastLine;
        }
        self.lines -= 1;
        self.bytes -= bytes;
        LogDecision::Line
    }
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::names::{NameTemplates, NamesConfig, ServerName, Username};

    use super::*;

    #[test]
    fn an_exhausted_log_budget_is_reported_once() {
        let mut log = LogBudget { lines: 2, bytes: 100, exhausted: false };
        let taken: Vec<_> = (0..5).map(|_| log.take(10)).collect();
        assert_eq!(
            taken,
            [
                LogDecision::Line,
                LogDecision::Line,
                LogDecision::LastLine,
                LogDecision::Nothing,
                LogDecision::Nothing
            ]
        );
        let mut log = LogBudget { lines: 2, bytes: 100, exhausted: false };
        assert_eq!(log.take(101), LogDecision::LastLine);
    }

    #[test]
    fn templates_are_expanded_for_a_lab_and_only_checked_without_one() {
        let names = NameTemplates::parse(&NamesConfig::default()).unwrap();
        let user = Username::parse("{username}").unwrap();
        let lab = names.resolve(&user, &ServerName::parse("").unwrap(), None).unwrap();
        let text = "{unescaped_username} {{x}}";
        assert_eq!(expanded(text.into(), None).as_deref(), Ok(text));
        assert_eq!(
            expanded(text.into(), Some(&lab.fields)).as_deref(),
            Ok("{username} {x}"),
            "filled in once"
        );
        let refused = |text: &str| expanded(text.into(), None).unwrap_err();
        assert!(refused("{usrname}").contains("the fields are userid, unescaped_username"));
        assert!(refused("{userid}").contains("use {username}"));
        assert!(refused("{username:{userid}}").contains("{userid}"));
        for braces in ["{", "{}", r#"{"a": 1}"#, "${HOME}"] {
            assert!(refused(braces).contains("write"), "{braces}");
        }
        assert!(refused(&"{username}".repeat(10_000)).contains("65536"));
    }
}
