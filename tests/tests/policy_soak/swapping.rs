use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::try_join_all;
use wasmspawner_policies::Policies;

use crate::chain;
use crate::question::AnsweredQuestion;

/// The number of versions that take turns.
pub(crate) const VERSIONS: usize = 2;
/// The number of tasks that call policies; the runtime has a thread for each.
const CALLERS: u64 = 2;

/// Policies that are called and replaced at the same time.
pub(crate) struct Swapping {
    policies: Policies,
    questions: Arc<Vec<AnsweredQuestion>>,
    /// The time between two replacements of the policies; `None` means without a pause.
    period: Option<Duration>,
    phase: Arc<Phase>,
}

/// The present phase of the policies. The number is even while a version is in use, and odd while the next one replaces
/// it.
#[derive(Default)]
struct Phase(AtomicU64);

/// The counts of a run.
pub(crate) struct Counts {
    /// The number of answers of each version.
    pub(crate) answers: [u64; VERSIONS],
    /// The number of replacements of the policies.
    pub(crate) replacements: u64,
}

impl Swapping {
    /// Starts with `policies`, which are of the first version.
    pub(crate) fn new(
        policies: Policies,
        questions: Vec<AnsweredQuestion>,
        period: Option<Duration>,
    ) -> Self {
        Self { policies, questions: Arc::new(questions), period, phase: Arc::default() }
    }

    /// Makes calls while the policies are replaced. Afterwards the first version is in use, and nothing else is.
    pub(crate) async fn run(&self, calls: u64) -> Counts {
        let share = |caller: u64| calls / CALLERS + u64::from(caller < calls % CALLERS);
        let callers = (0..CALLERS).map(|caller| tokio::spawn(self.call(share(caller))));
        let mut callers = std::pin::pin!(try_join_all(callers.collect::<Vec<_>>()));
        let mut due = self.period.map(|period| tokio::time::interval_at(later(period), period));
        let mut replacements = 0;
        let counted = loop {
            let wait = async {
                match &mut due {
                    Some(due) => drop(due.tick().await),
                    None => tokio::task::yield_now().await,
                }
            };
            tokio::select! {
                counted = &mut callers => break counted.unwrap(),
                () = wait => self.replace().await,
            }
            replacements += 1;
        };
        if version_in_use(self.phase.number()) != Some(0) {
            self.replace().await;
        }
        let answers = [0, 1].map(|version: usize| counted.iter().map(|counts| counts[version]).sum());
        Counts { answers, replacements }
    }

    async fn replace(&self) {
        let next = self.phase.begin();
        self.policies.replace(chain(next)).await.unwrap();
        self.phase.end();
    }

    /// Makes calls, and counts the answers of each version.
    fn call(&self, calls: u64) -> impl Future<Output = [u64; VERSIONS]> + use<> {
        let (policies, questions) = (self.policies.clone(), Arc::clone(&self.questions));
        let phase = Arc::clone(&self.phase);
        async move {
            let mut answers = [0; VERSIONS];
            for question in questions.iter().cycle().take(usize::try_from(calls).unwrap()) {
                let before = phase.number();
                let version = question.version_asked(&policies).await;
                if let Some(in_use) = version_in_use(before)
                    && phase.number() == before
                {
                    assert_eq!(version, in_use, "a version answers that is not in use");
                }
                answers[version] += 1;
            }
            answers
        }
    }
}

impl Phase {
    fn number(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Begins a replacement, and returns the version that is put into use now.
    fn begin(&self) -> usize {
        version_at(self.0.fetch_add(1, Ordering::SeqCst) + 2)
    }

    fn end(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The version that is in use in a phase, unless it is being replaced then.
fn version_in_use(number: u64) -> Option<usize> {
    number.is_multiple_of(2).then(|| version_at(number))
}

fn version_at(number: u64) -> usize {
    usize::try_from(number / 2).unwrap_or_default() % VERSIONS
}

fn later(period: Duration) -> tokio::time::Instant {
    tokio::time::Instant::now() + period
}
