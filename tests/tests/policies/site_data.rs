//! Data of the site, which changes without the policies.

use super::*;

async fn told(policies: &Policies) -> String {
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    answers[0].customization.working_dir.clone().unwrap()
}

#[tokio::test]
async fn a_policy_reads_the_data_that_is_named_for_it_and_sees_its_changes() {
    let folder = tempfile::tempdir().unwrap();
    let teams = folder.path().join("teams.yaml");
    std::fs::write(&teams, "moon: [ada, eve]").unwrap();
    let with_data = PolicySpec { data: [("teams".to_owned(), teams.clone())].into(), ..hostile("data") };
    let neighbour = PolicySpec { name: "other".into(), ..hostile("data") };
    let policies = load(vec![with_data, neighbour]).await;
    assert!(policies.loaded()[0].preparation.prepared);
    let first = told(&policies).await;
    assert!(first.contains(r#"{\"moon\":[\"ada\",\"eve\"]}"#) && first.ends_with("None"), "{first}");
    let answers = policies.customize(&LabRequest::default()).await.unwrap();
    assert_eq!(answers[1].customization.working_dir.as_deref(), Some("None None"), "it is another policy's");

    std::fs::write(&teams, "moon: [ada]").unwrap();
    policies.reload().await.unwrap();
    let second = told(&policies).await;
    assert!(second.contains(r#"{\"moon\":[\"ada\"]}"#), "{second}");
    assert_ne!(first.split(' ').next(), second.split(' ').next(), "the version is another one");

    // A mistake changes nothing, and says where it is.
    for (wrong, problem) in
        [("moon: [ada", "line 1"), (&*"x".repeat(2 << 20), "the largest that is read has 1048576")]
    {
        std::fs::write(&teams, wrong).unwrap();
        let error = policies.reload().await.unwrap_err().to_string();
        assert!(error.contains("data.teams: ") && error.contains(problem), "{error}");
        assert_eq!(told(&policies).await, second);
    }
    std::fs::remove_file(&teams).unwrap();
    assert!(policies.reload().await.unwrap_err().to_string().contains("teams.yaml"));
}
