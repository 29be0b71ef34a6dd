//! The same session with kubectl against the embedded API server and, when `TEST_KUBECONFIG` names one, against a real
//! Kubernetes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests are printed")]

mod logs;
mod session;
mod shell;

/// One test a part of the session and a kind of cluster.
macro_rules! session {
    ($($part:ident),+ $(,)?) => {
        mod embedded {
            $(
                #[tokio::test]
                async fn $part() {
                    if let Some(shell) = crate::shell::Shell::embedded(None).await {
                        crate::session::$part(&shell).await;
                    }
                }
            )+
        }

        mod real {
            $(
                #[tokio::test]
                async fn $part() {
                    if let Some(shell) = crate::shell::Shell::real().await {
                        crate::session::$part(&shell).await;
                        shell.leave().await;
                    }
                }
            )+
        }
    };
}

session! {
    the_server_tells_what_it_serves,
    tables_say_what_people_want_to_know,
    apply_creates_changes_and_finds_mistakes,
    objects_are_created_from_arguments,
    objects_are_edited_described_and_deleted,
    changes_are_watched_and_waited_for,
}
