use serde_json::json;
use wasmspawner_sdk::User;
use wasmspawner_sdk::testing::{Subject, TestKit};

use super::*;

const HOUR: u64 = 3600;

fn used(lab_hours: u64, cpu_hours: u64) -> UseOfDays {
    UseOfDays { lab_seconds: lab_hours * HOUR, cpu_seconds: cpu_hours * HOUR, ..UseOfDays::default() }
}

fn policy() -> TestKit<Budgets> {
    let budgets = json!([
        {"groups": ["staff"], "lab_hours": 200, "days": 30},
        {"groups": ["students"], "lab_hours": 20, "cpu_hours": 40, "kernel_hours": 10},
    ]);
    TestKit::new(&json!({"budgets": budgets, "except_groups": ["admins"]})).unwrap()
}

fn may(action: Action, groups: &[&str], past_use: &[(u32, UseOfDays)]) -> Verdict {
    let user = groups.iter().fold(User::named("ada"), |user, group| user.in_group(group));
    let subject = Subject { past_use: past_use.to_vec(), ..Subject::default() };
    policy().may_with(action, &user, &subject).unwrap()
}

#[test]
fn nothing_is_started_once_the_hours_are_used_up() {
    let student = |past: &[(u32, UseOfDays)]| may(Action::Spawn, &["students"], past);
    assert_eq!(student(&[]), Verdict::Allow);
    assert_eq!(student(&[(0, used(12, 0)), (6, used(7, 39))]), Verdict::Allow);
    assert_eq!(student(&[(0, used(12, 0)), (7, used(90, 90))]), Verdict::Allow, "a week has passed");
    let message = "You have used 20 of 20 lab-hours that you have for 7 days, today included.";
    let denied = |rule: &str, message: &str| Verdict::deny(Denial::by_rule(rule, message));
    assert_eq!(student(&[(0, used(12, 0)), (6, used(8, 0))]), denied("lab-hours", message));
    let message = "You have used 41 of 40 CPU-hours that you have for 7 days, today included.";
    assert_eq!(student(&[(3, used(2, 41))]), denied("cpu-hours", message));
    let kernels = UseOfDays { kernel_seconds: 10 * HOUR, ..UseOfDays::default() };
    let message = "You have used 10 of 10 kernel-hours that you have for 7 days, today included.";
    assert_eq!(student(&[(1, kernels)]), denied("kernel-hours", message));
}

#[test]
fn the_first_group_counts_and_some_need_no_budget() {
    let past = [(0, used(150, 0))];
    assert_eq!(may(Action::Spawn, &["students", "staff"], &past), Verdict::Allow);
    assert_eq!(may(Action::Spawn, &["students", "admins"], &past), Verdict::Allow);
    assert_eq!(may(Action::Spawn, &[], &past), Verdict::Allow);
    assert_eq!(may(Action::Stop, &["students"], &past), Verdict::Allow);
    assert_ne!(may(Action::StartKernel, &["students"], &past), Verdict::Allow);
}

#[test]
fn a_budget_has_hours_and_days_that_are_counted() {
    let errors = |budget| TestKit::<Budgets>::new(&json!({"budgets": [budget]})).err().unwrap();
    assert_eq!(errors(json!({"groups": ["a"]}))[0].field, "/budgets/0/lab_hours");
    assert_eq!(errors(json!({"groups": ["a"], "lab_hours": 1, "days": 31}))[0].field, "/budgets/0/days");
}
