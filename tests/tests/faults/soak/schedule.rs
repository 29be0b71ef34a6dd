//! The random steps of a run, derived from a seed.

use std::time::Duration;

use wasmspawner_tests::proxy::Fault;

/// Number of users in a run.
pub(crate) const USERS: usize = 3;

/// The steps of a run, in order.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<Step>,
}

/// One step of a run. Users are identified by numbers.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Spawn(usize),
    Stop(usize),
    /// Kills the service and starts it again.
    Crash,
    DeleteRecord(usize),
    DeletePod(usize),
    DeleteNamespace(usize),
    /// A fault for requests that match the pattern, this number of times.
    Fault(&'static str, Fault, usize),
    /// Makes the API server unreachable.
    Outage,
    /// Makes the API server work again.
    Heal,
    /// Waits until the user's lab has no operation under way, or for a moment.
    Await(usize),
}

const PATTERNS: [&str; 14] = [
    "",
    "create",
    "delete",
    "read",
    "list",
    "watch",
    "update spawns",
    "create spawns",
    "delete spawns",
    "patch",
    "pods",
    "namespaces",
    "spawns",
    "create pods",
];

impl Schedule {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut random = Random(seed);
        let steps = (0..10 + random.below(20)).map(|_| random.step()).collect();
        Self { seed, steps }
    }

    /// Returns true if a spawn is requested when the service is compared with the pure core, and false if a stop is.
    pub(crate) fn asks_for_spawn(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// The name of a user; it is different in every run.
    pub(crate) fn user(&self, number: usize) -> String {
        format!("s{}n{number}x", self.seed)
    }
}

/// The steps of a run with two processes, in order.
#[derive(Debug)]
pub(crate) struct PairSchedule {
    pub(crate) seed: u64,
    pub(crate) steps: Vec<PairStep>,
}

/// One step of a run with two processes. Users and processes are identified by numbers.
#[derive(Debug, Clone)]
pub(crate) enum PairStep {
    Spawn(usize),
    Stop(usize),
    DeletePod(usize),
    /// Something happens to one of the processes.
    Trouble(usize, Trouble),
    /// Ends all trouble.
    Heal,
    /// Waits until the user's lab has no operation under way, or for a moment.
    Await(usize),
}

/// Trouble of one process.
#[derive(Debug, Clone)]
pub(crate) enum Trouble {
    /// The process is killed, and started again.
    Kill,
    /// The process is stopped, and does not notice it.
    Freeze,
    /// The process continues.
    Thaw,
    /// The process is asked to end, and started again when it has ended.
    Terminate,
    /// The process does not reach the API server.
    CutOff,
    /// A fault for requests of the process that match the pattern, this number of times.
    Fault(&'static str, Fault, usize),
}

impl PairSchedule {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut random = Random(seed);
        let steps = (0..8 + random.below(12)).map(|_| random.pair_step()).collect();
        Self { seed, steps }
    }

    /// The name of a user; it is different in every run.
    pub(crate) fn user(&self, number: usize) -> String {
        format!("p{}n{number}x", self.seed)
    }
}

/// A generator of random numbers: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn step(&mut self) -> Step {
        let user = self.below(USERS);
        match self.below(100) {
            0..30 => Step::Spawn(user),
            30..45 => Step::Stop(user),
            45..50 => Step::Crash,
            50..54 => Step::DeleteRecord(user),
            54..58 => Step::DeletePod(user),
            58..62 => Step::DeleteNamespace(user),
            62..76 => Step::Fault(PATTERNS[self.below(PATTERNS.len())], self.fault(), 1 + self.below(4)),
            76..79 => Step::Outage,
            79..86 => Step::Heal,
            _ => Step::Await(user),
        }
    }

    fn pair_step(&mut self) -> PairStep {
        let user = self.below(USERS);
        match self.below(100) {
            0..30 => PairStep::Spawn(user),
            30..40 => PairStep::Stop(user),
            40..43 => PairStep::DeletePod(user),
            43..70 => PairStep::Trouble(self.below(2), self.trouble()),
            70..76 => PairStep::Heal,
            _ => PairStep::Await(user),
        }
    }

    fn trouble(&mut self) -> Trouble {
        match self.below(10) {
            0..3 => Trouble::Kill,
            3..5 => Trouble::Freeze,
            5 => Trouble::Thaw,
            6 => Trouble::Terminate,
            7 => Trouble::CutOff,
            _ => Trouble::Fault(PATTERNS[self.below(PATTERNS.len())], self.fault(), 1 + self.below(4)),
        }
    }

    fn fault(&mut self) -> Fault {
        match self.below(13) {
            0 => Fault::Drop,
            1 => Fault::LoseAnswer,
            2 => Fault::Truncate,
            3 => Fault::Delay(Duration::from_millis(300)),
            4 => Fault::INTERNAL_ERROR,
            5 => Fault::TOO_MANY_REQUESTS,
            6 => Fault::CONFLICT,
            7 => Fault::UNAUTHORIZED,
            8 => Fault::UNAVAILABLE,
            9 => Fault::Reset,
            10 => Fault::Silence,
            11 => Fault::Stall,
            _ => Fault::Expire,
        }
    }
}
