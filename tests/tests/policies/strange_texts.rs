//! Texts of a policy that are long, or deceptive when displayed. People see them cut, on one line, and with all
//! characters visible.

use super::*;

/// The length in bytes of the longest text of a policy that is passed on, with some words of the service.
const READABLE: usize = 2_500;

/// Fails if a text is too long, or has a character that moves the cursor or other text.
fn assert_readable(text: &str) {
    assert!(text.len() < READABLE, "{} bytes: {}", text.len(), &text[..200]);
    let strange = |c: &char| c.is_control() || *c == '\u{202e}';
    assert_eq!(text.chars().find(strange), None, "{text:?}");
}

#[tokio::test]
async fn what_a_policy_says_of_itself_is_readable() {
    let loaded = load(vec![hostile("strange-info")]).await.loaded().remove(0);
    assert!(loaded.title.starts_with("title "), "{}", loaded.title);
    for text in [&loaded.title, &loaded.version, &loaded.description] {
        assert_readable(text);
    }
}

#[tokio::test]
async fn errors_are_readable_wherever_they_come_from() {
    for act in ["strange-panic", "strange-denied", "strange-form", "unusable-form"] {
        let policies = load(vec![within(AMPLE, hostile(act))]).await;
        let form = policies.render_form(&FormContext::default()).await.map(drop);
        let error = match form {
            Err(error) => error,
            Ok(()) => policies.customize(&LabRequest::default()).await.unwrap_err(),
        };
        match &error.kind {
            CallErrorKind::Trap(text) => assert_readable(text),
            CallErrorKind::Denied(denial) => {
                assert_readable(&denial.message);
                assert_readable(denial.rule.as_deref().unwrap());
            }
            CallErrorKind::UnusableForm(fields) => {
                assert!(fields.len() <= 100);
                for field in fields {
                    assert_readable(&field.field);
                    assert_readable(&field.message);
                }
            }
            other => panic!("{act}: {other}"),
        }
        assert!(error.to_string().starts_with("policy `evil`, "), "{act}");
    }
}

#[tokio::test]
async fn there_are_not_more_errors_than_people_read() {
    let CallErrorKind::Invalid(fields) = commit_by(within(AMPLE, hostile("strange-errors"))).await.kind
    else {
        panic!("invalid")
    };
    let LoadErrorKind::Config(problems) = refused(within(AMPLE, hostile("strange-config"))).await else {
        panic!("config")
    };
    for errors in [fields, problems] {
        assert_eq!(errors.len(), 100);
        for error in errors {
            assert_readable(&error.field);
            assert_readable(&error.message);
        }
    }
}

#[tokio::test]
async fn a_policy_cannot_forge_lines_of_the_log() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false).finish();
    let _listening = tracing::subscriber::set_default(subscriber);
    let policies = load(vec![hostile("strange-log")]).await;
    policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(lines.count("said INFO forged", "\u{202e}"), (1, 0));
    policies.replace(vec![hostile("strange-warnings")]).await.unwrap();
    assert_eq!(lines.count("warning ", "\u{202e}"), (100, 0));
}
