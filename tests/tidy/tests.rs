//! How tests wait.

use super::hold;
use super::tree::{Text, texts};

/// Files that may sleep, each with its reason.
const MAY_SLEEP: [(&str, &str); 1] =
    [("tests/guests/hostile/src/lib.rs", "a guest that never comes back is what the host is tested with")];

#[test]
fn tests_wait_for_what_they_need() {
    const SLEEPS: [&str; 3] = ["thread::sleep(", "time::sleep(", "time.sleep("];
    let mut offences = Vec::new();
    for file in texts().iter().filter(|file| file.is(".rs") || file.is(".py")) {
        if file.path.starts_with("tests/tidy/") || MAY_SLEEP.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        // On a paused clock a sleep takes no time, and says in which order things happen.
        if file.text.contains("start_paused = true") || file.text.contains("time::pause()") {
            continue;
        }
        for (number, line) in test_lines(file) {
            if SLEEPS.iter().any(|sleep| line.contains(sleep)) {
                offences.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    hold(
        "A test that sleeps is slow or flaky; wait for the condition, with a bound, or list the file in MAY_SLEEP:",
        &offences,
    );
}

/// The lines of a file that belong to tests: all of it in a folder of tests, else what follows `#[cfg(test)]`.
fn test_lines(file: &Text) -> Vec<(usize, &str)> {
    let whole = file.path.starts_with("tests/") || file.path.contains("/tests/");
    let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    if whole {
        lines.collect()
    } else {
        lines.skip_while(|(_, line)| line.trim() != "#[cfg(test)]").collect()
    }
}
