//! Rules for how tests wait.

use super::assert_rule;
use super::tree::{Text, texts};

/// Files whose tests may sleep, each with its reason.
const MAY_SLEEP: [(&str, &str); 14] = [
    ("sdk/python/tests/test_kernel_launcher.py", "the programs that it launches have to last"),
    ("sdk/python/tests/test_kernel_with_launcher.py", "the cell that it interrupts has to last"),
    ("tests/bench/scale/many_labs.rs", "measures what a service costs that has nothing to do for a while"),
    ("tests/bench/scale/spawns.rs", "comes back when the service says, as a Hub does"),
    ("tests/bench/scale/takeover.rs", "measures what a process costs that stands by for a while"),
    ("tests/bench/scale/simulated.rs", "a watch on which nothing happens until its time is over"),
    (
        "tests/chart/cluster.py",
        "asks again until the API server says so, within a bound: kubectl waits for few conditions",
    ),
    (
        "tests/control-plane/processes.py",
        "asks again until a program answers, within a bound: none of them says that it is ready",
    ),
    ("tests/e2e/test_kernels.py", "the cells that it interrupts have to last"),
    (
        "tests/e2e/world.py",
        "asks again until a condition holds, within a bound: a browser and a Hub tell nobody",
    ),
    ("tests/e2e/test_browser.py", "a screenshot after the colours have faded in, of which no event tells"),
    (
        "tests/node/cgroups.py",
        "looks again until killed processes are gone, within a bound: the kernel tells only their parents",
    ),
    (
        "tests/node/lab_site.py",
        "asks again until the cluster has removed what belonged to a lab, within a bound",
    ),
    ("tests/guests/hostile/src/lib.rs", "a policy that hangs is what is tested"),
];

#[test]
fn tests_do_not_sleep() {
    const SLEEPS: [&str; 3] = ["thread::sleep(", "time::sleep(", "time.sleep("];
    let mut offences = Vec::new();
    for file in texts().iter().filter(|file| file.is(".rs") || file.is(".py")) {
        if file.path.starts_with("tests/tidy/") || MAY_SLEEP.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        // With a paused clock a sleep takes no time, and only determines the order of events.
        if file.text.contains("start_paused = true") || file.text.contains("time::pause()") {
            continue;
        }
        for (number, line) in test_lines(file) {
            if SLEEPS.iter().any(|sleep| line.contains(sleep)) {
                offences.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    assert_rule(
        "A test that sleeps is slow or flaky; wait for the condition, with a bound, or list the file in MAY_SLEEP:",
        &offences,
    );
}

#[test]
fn every_exception_names_an_existing_file() {
    let files = texts();
    let gone = MAY_SLEEP.iter().filter(|(path, _)| !files.iter().any(|file| file.path == *path));
    let offences: Vec<String> = gone.map(|(path, _)| (*path).to_owned()).collect();
    assert_rule("These exceptions name files that do not exist; remove them:", &offences);
}

/// The lines of a file that are tests: all lines in a folder of tests, and otherwise those in its modules for tests.
fn test_lines(file: &Text) -> Vec<(usize, &str)> {
    let whole = file.path.starts_with("tests/") || file.path.contains("/tests/") || file.stem() == "tests";
    let lines: Vec<(usize, &str)> =
        file.text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    let inline = lines.windows(2).position(|pair| {
        pair[0].1.trim() == "#[cfg(test)]"
            && pair[1].1.trim_start().starts_with("mod ")
            && pair[1].1.ends_with('{')
    });
    match inline {
        _ if whole => lines,
        Some(start) => lines[start..].to_vec(),
        None => Vec::new(),
    }
}
