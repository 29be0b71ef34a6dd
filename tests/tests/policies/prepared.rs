//! Policies whose calls begin with a copy of the memory that they had after `prepare`.

use super::*;

fn unprepared() -> EngineOptions {
    EngineOptions { prepare: false, ..options() }
}

fn rubin() -> PolicySpec {
    let example = include_str!("../../../plugins/rubin/example.json");
    spec("rubin", "policy-rubin", serde_json::from_str(example).unwrap())
}

fn lab(user: &User, options: &Options) -> LabRequest {
    LabRequest { user: user.clone(), options: options.clone(), ..LabRequest::default() }
}

/// All answers of a chain, as text.
async fn answers(policies: &Policies, user: &User, submission: &Options) -> String {
    let context = FormContext { user: user.clone(), server: String::new() };
    let form = policies.render_form(&context).await;
    let options = policies.parse_submission(submission, &context).await;
    let verdicts = policies.authorize(&spawn_request(user.clone())).await;
    let quotas = policies.limits(user, Usage { labs: 1 }, &Subject::default()).await;
    let chosen = options.as_ref().ok().and_then(|answer| Some(answer.as_ref()?.value.clone()));
    let pods = policies.customize(&lab(user, &chosen.unwrap_or_default())).await;
    let menu = policies.image_menu(&context).await;
    format!(
        "{form:?}\n{options:?}\n{verdicts:?}\n{quotas:?}\n{pods:?}\n{menu:?}\n{:?}",
        policies.prepull().await
    )
}

#[tokio::test]
async fn a_prepared_policy_answers_as_one_that_is_not() {
    for spec in [site(), rubin()] {
        let prepared = load(vec![spec.clone()]).await;
        let reference = Policies::load(vec![spec], unprepared()).await.unwrap();
        assert!(prepared.loaded()[0].preparation.prepared, "{:?}", prepared.loaded());
        assert!(!reference.loaded()[0].preparation.prepared);
        let submissions = [
            Options::new(),
            Options::from([("size".into(), Value::Text("gpu".into()))]),
            Options::from([
                ("size".into(), Value::Text("none".into())),
                ("root".into(), Value::Boolean(true)),
            ]),
        ];
        for user in [user("ada", &["science"]), user("eve", &[]), user("{username}", &["guests"])] {
            for submission in &submissions {
                let expected = answers(&reference, &user, submission).await;
                assert_eq!(answers(&prepared, &user, submission).await, expected);
            }
        }
    }
}

#[tokio::test]
async fn no_call_sees_what_another_has_done() {
    for (options, prepared) in [(options(), 1), (unprepared(), 0)] {
        let policies = Policies::load(vec![hostile("count")], options).await.unwrap();
        for _ in 0..100 {
            let answers = policies.customize(&LabRequest::default()).await.unwrap();
            let told = answers[0].customization.working_dir.clone().unwrap();
            assert_eq!(told, format!("/prepared/{prepared}/called/0"));
        }
    }
}

/// A policy that cannot be prepared works as before, and its operator learns why.
#[tokio::test]
async fn a_policy_that_misbehaves_when_it_is_prepared_works_without() {
    for (act, deadline_ms, reason) in [
        ("loop", SHORT, "policy `evil`, prepare.run: took longer than 20 ms"),
        ("memory", AMPLE, "policy `evil`, prepare.run: "),
        ("panic", AMPLE, "policy `evil`, prepare.run: "),
        ("fill", AMPLE, "policy `evil`, prepare.run: "),
        // The answers would stay the same: the same random bytes in all calls, and the data of yesterday.
        ("random", AMPLE, "`prepare` calls `random`, whose answer is not the same in all calls"),
        ("data", AMPLE, "`prepare` calls `data`, whose answer is not the same in all calls"),
    ] {
        let policies = load(vec![within(deadline_ms, hostile(&format!("{act}-when-prepared")))]).await;
        let preparation = policies.loaded()[0].preparation.clone();
        let told = preparation.not_prepared.unwrap_or_else(|| panic!("{act}: it was prepared"));
        assert!(!preparation.prepared && told.starts_with(reason), "{act}: {told}");
        let call = || async { policies.customize(&LabRequest::default()).await };
        assert!(with_cpu(call).await.is_ok(), "{act}");
    }
    let flood = load(vec![within(AMPLE, hostile("log-flood-when-prepared"))]).await;
    assert!(flood.loaded()[0].preparation.prepared, "{:?}", flood.loaded());
}

#[tokio::test]
async fn another_configuration_is_another_copy() {
    let quiet =
        |message: &str| spec("door", "policy-deny-group", json!({ "deny": ["guests"], "message": message }));
    let policies = load(vec![quiet("first")]).await;
    let guest = spawn_request(user("eve", &["guests"]));
    for message in ["first", "second", "first"] {
        policies.replace(vec![quiet(message)]).await.unwrap();
        assert!(policies.loaded()[0].preparation.prepared);
        let verdicts = policies.authorize(&guest).await.unwrap();
        assert_eq!(verdicts[0].value, Verdict::Deny(message.into()));
    }
}
