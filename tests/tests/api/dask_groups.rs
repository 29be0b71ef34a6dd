//! Dask pools with a scheduler of its own size, and with several groups of workers that are scaled apart.

use futures::future::join_all;
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client};
use wasmspawner_tests::guests;

use super::dask_pools::{
    self, body, connect, end, is_running, keeper, path, start, until, until_running, until_workers,
};
use super::kernels::{pods, records, with_lab};

const GROUP: &str = "wasmspawner.io/dask-group";

/// A site with two sizes of labs, and an option that becomes a variable.
fn site(config: &mut Value) {
    let policy = json!({
        "images": [{ "name": "lab", "reference": "lab:1" }],
        "sizes": [
            { "name": "small", "cpu": 1, "memory": "1Gi" },
            { "name": "large", "cpu": 4, "memory": "8Gi", "tolerations": [{ "key": "large", "operator": "Exists" }] },
        ],
        "default_size": "small",
        "options": [{ "name": "note", "kind": "text", "env": "NOTE" }],
    });
    config["policies"] =
        json!([{ "name": "site", "path": guests::component("policy-default"), "config": policy }]);
}

fn groups(groups: Value) -> Value {
    let mut sent = body(json!(null));
    sent.as_object_mut().unwrap().remove("workers");
    sent["groups"] = groups;
    sent
}

async fn run(client: &Client, pool: &str, sent: &Value) -> Value {
    let answer = start(client, "ada", pool, sent).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    until(client, "ada", pool, is_running).await
}

async fn scale(client: &Client, pool: &str, sent: &Value) -> Answer {
    let request = client.request(Method::POST, &format!("{}/scale", path("ada", pool)));
    client.send(request.json(sent)).await.unwrap()
}

async fn report(keeper: &Client, groups: Value) {
    let request = keeper.request(Method::PUT, &format!("{}/scheduler", path("ada", "p")));
    let answer = keeper.send(request.json(&json!({ "groups": groups }))).await.unwrap();
    assert_eq!(answer.status, 204, "{answer:?}");
}

fn group(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(GROUP).map(String::as_str)
}

fn of_group<'a>(workers: &'a [Pod], name: &str) -> Vec<&'a Pod> {
    workers.iter().filter(|pod| group(pod) == Some(name)).collect()
}

fn cpu(pod: &Pod) -> String {
    let resources = pod.spec.as_ref().unwrap().containers[0].resources.clone().unwrap();
    resources.limits.unwrap()["cpu"].0.clone()
}

fn variable(pod: &Pod, name: &str) -> Option<String> {
    let env = pod.spec.as_ref().unwrap().containers[0].env.as_ref()?;
    env.iter().find(|variable| variable.name == name)?.value.clone()
}

#[tokio::test]
async fn groups_of_workers_have_their_own_size_and_place_and_are_scaled_apart() {
    let (service, ada) = with_lab("ada", site).await;
    let mut sent = groups(json!([
        { "name": "cpu", "workers": 2, "options": { "note": "$(HOME)" } },
        { "name": "big", "workers": { "minimum": 0, "maximum": 4 }, "options": { "size": "large" } },
    ]));
    sent["scheduler"] = json!({ "options": { "size": "large" } });
    let pool = run(&ada, "p", &sent).await;
    let numbers = |pool: &Value| -> Vec<Value> {
        let groups = pool["groups"].as_array().unwrap();
        groups.iter().map(|group| json!([group["name"], group["desired"], group["maximum"]])).collect()
    };
    assert_eq!(numbers(&pool), [json!(["cpu", 2, 2]), json!(["big", 0, 4])], "{pool:#}");
    assert_eq!((&pool["workers"]["minimum"], &pool["workers"]["maximum"]), (&json!(2), &json!(6)));
    assert_eq!(pool["groups"][1]["limits"], json!({ "cpu": 4.0, "memory": 8_i64 << 30 }), "{pool:#}");

    let cluster = service.cluster().await.unwrap();
    let two = until_workers(&cluster, "nublado-ada", 2).await;
    assert!(two.iter().all(|pod| group(pod) == Some("cpu") && cpu(pod) == "1"));
    assert_eq!(variable(&two[0], "WASMSPAWNER_DASK_GROUP").as_deref(), Some("cpu"));
    assert_eq!(variable(&two[0], "NOTE").as_deref(), Some("$$(HOME)"), "the text is not expanded");
    let all = pods(&cluster, "nublado-ada").await;
    let scheduler = all.iter().find(|pod| pod.metadata.name.as_deref().unwrap().contains("dask")).unwrap();
    let labels = scheduler.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["app.kubernetes.io/component"], "dask-scheduler");
    assert_eq!(cpu(scheduler), "4");
    let tolerates = |pod: &Pod| {
        let all = pod.spec.as_ref().unwrap().tolerations.clone().unwrap_or_default();
        all.iter().any(|toleration| toleration.key.as_deref() == Some("large"))
    };
    assert!(tolerates(scheduler) && !tolerates(&two[0]));

    // The scheduler wants three of one group.
    let keeper = keeper(&service, "nublado-ada").await;
    let mut orders = connect(&keeper, "ada", "p").await;
    orders.until("\"name\":\"big\",\"target\":0}").await.unwrap();
    report(
        &keeper,
        json!([{ "name": "cpu", "ready": 2, "wanted": 2 }, { "name": "big", "ready": 0, "wanted": 3 }]),
    )
    .await;
    orders.until("\"name\":\"big\",\"target\":3}").await.unwrap();
    let five = until_workers(&cluster, "nublado-ada", 5).await;
    let big = of_group(&five, "big");
    assert_eq!((big.len(), cpu(big[0]).as_str(), tolerates(big[0])), (3, "4", true));
    until_running(&cluster, "nublado-ada", 2).await;

    // One group is scaled, and the other one stays.
    let scaled = scale(&ada, "p", &json!({ "group": "cpu", "workers": 1 })).await;
    assert_eq!(scaled.status, 202, "{scaled:?}");
    assert_eq!(numbers(&scaled.json().unwrap()), [json!(["cpu", 1, 1]), json!(["big", 3, 4])]);
    end(&cluster, of_group(&five, "cpu")[0], "Succeeded").await;
    let left = until_workers(&cluster, "nublado-ada", 4).await;
    assert_eq!((of_group(&left, "cpu").len(), of_group(&left, "big").len()), (1, 3));
}

#[tokio::test]
async fn groups_survive_a_restart_of_the_service() {
    let keeps = |config: &mut Value| {
        site(config);
        config["embedded"]["keep_labs"] = true.into();
    };
    let (mut service, ada) = with_lab("ada", keeps).await;
    run(&ada, "p", &groups(json!([{ "name": "a", "workers": 1 }, { "name": "b", "workers": 1 }]))).await;
    let cluster = service.cluster().await.unwrap();
    until_workers(&cluster, "nublado-ada", 2).await;
    assert_eq!(scale(&ada, "p", &json!({ "group": "b", "workers": 2 })).await.status, 202);
    let before = until_workers(&cluster, "nublado-ada", 3).await;
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(&ada, "ada", "p", is_running).await;
    assert_eq!(scale(&ada, "p", &json!({ "group": "a", "workers": 2 })).await.status, 202);
    let cluster = service.cluster().await.unwrap();
    let after = until_workers(&cluster, "nublado-ada", 4).await;
    assert_eq!((of_group(&after, "a").len(), of_group(&after, "b").len()), (2, 2));
    let kept = |pod: &Pod| after.iter().any(|now| now.metadata.uid == pod.metadata.uid);
    assert!(before.iter().all(kept), "no worker was lost");
}

#[tokio::test]
async fn workers_belong_to_the_group_of_exactly_their_name() {
    let (service, ada) = with_lab("ada", site).await;
    let names = ["a", "ab", "a-b", "abcdefghijklmnopqrst"];
    let one_each = names.map(|name| json!({ "name": name, "workers": 1 }));
    run(&ada, "p", &groups(json!(one_each))).await;
    // A second pool has a group of the same name.
    assert_eq!(start(&ada, "ada", "p-a", &groups(json!([{ "name": "a", "workers": 1 }]))).await.status, 201);
    let cluster = service.cluster().await.unwrap();
    let before = until_running(&cluster, "nublado-ada", 5).await;
    // A group without workers takes none of another: running ones are ended by the scheduler alone, and pods that do not
    // run yet only if they are of the group.
    assert_eq!(scale(&ada, "p", &json!({ "group": "a", "workers": 0 })).await.status, 202);
    assert_eq!(scale(&ada, "p", &json!({ "group": "ab", "workers": 2 })).await.status, 202);
    let after = until_workers(&cluster, "nublado-ada", 6).await;
    assert!(before.iter().all(|pod| after.iter().any(|now| now.metadata.uid == pod.metadata.uid)));
    let counts = names.map(|name| of_group(&after, name).len());
    assert_eq!(counts, [2, 2, 1, 1], "the group `a` has a worker of each pool");
    let pool = until(&ada, "ada", "p", |pool| pool["groups"][1]["pods"] == 2).await;
    let pods: Vec<&Value> = pool["groups"].as_array().unwrap().iter().map(|group| &group["pods"]).collect();
    assert_eq!(pods, [1, 2, 1, 1], "each pool counts its own: {pool:#}");
    for worker in of_group(&after, "a") {
        assert!(worker.metadata.name.as_ref().unwrap().len() <= 63);
    }
}

#[tokio::test]
async fn groups_that_are_scaled_at_once_do_not_lose_each_others_numbers() {
    let keeps = |config: &mut Value| {
        site(config);
        config["embedded"]["keep_labs"] = true.into();
        config["limits"] = json!({ "per_user": { "dask_workers": 100, "requests_per_second": 1000, "requests_at_once": 500 } });
    };
    let (mut service, ada) = with_lab("ada", keeps).await;
    let names = ["a", "b", "c", "d"];
    run(&ada, "p", &groups(json!(names.map(|name| json!({ "name": name, "workers": 0 }))))).await;
    let sent: Vec<Value> = (0..5)
        .flat_map(|round| names.map(|name| json!({ "group": name, "workers": round })))
        .chain(names.iter().zip(1..).map(|(name, workers)| json!({ "group": name, "workers": workers })))
        .collect();
    let (last, before) = (&sent[sent.len() - names.len()..], &sent[..sent.len() - names.len()]);
    let answers = join_all(before.iter().map(|sent| scale(&ada, "p", sent))).await;
    // One that waits too long behind the others is refused, on a slow machine.
    assert!(answers.iter().all(|answer| matches!(answer.status, 202 | 503)), "{answers:?}");
    let answers = join_all(last.iter().map(|sent| scale(&ada, "p", sent))).await;
    assert!(answers.iter().all(|answer| answer.status == 202), "{answers:?}");
    let sizes = |pool: &Value| -> Vec<Value> {
        pool["groups"].as_array().unwrap().iter().map(|group| group["maximum"].clone()).collect()
    };
    let pool = until(&ada, "ada", "p", is_running).await;
    assert_eq!(
        (sizes(&pool), &pool["workers"]["maximum"]),
        (vec![1.into(), 2.into(), 3.into(), 4.into()], &json!(10))
    );
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(sizes(&until(&ada, "ada", "p", is_running).await), [1, 2, 3, 4], "each was recorded");
}

#[tokio::test]
async fn a_pool_without_groups_is_recorded_and_answered_as_before() {
    let keeps = |config: &mut Value| config["embedded"]["keep_labs"] = true.into();
    let (mut service, ada) = with_lab("ada", keeps).await;
    let pool = dask_pools::run(&ada, "ada", "p", json!(1)).await;
    assert_eq!((&pool["groups"], &pool["scheduler_limits"]), (&json!([]), &pool["quotas"]["limits"]));
    let cluster = service.cluster().await.unwrap();
    let recorded = async |cluster: &kube::Client| {
        let all = records(cluster).await;
        all.into_iter().find(|record| record.data["spec"]["kind"] == "DaskPool").unwrap().data["spec"]["lab"]
            ["pool"]
            .clone()
    };
    let before = recorded(&cluster).await;
    assert!(before.get("groups").is_none() && before["worker"].is_object(), "{before:#}");
    until_workers(&cluster, "nublado-ada", 1).await;
    service.crash_and_restart().await.unwrap();
    let ada = service.user("ada").unwrap();
    until(&ada, "ada", "p", is_running).await;
    assert_eq!(scale(&ada, "p", &json!({ "workers": 2 })).await.status, 202);
    let cluster = service.cluster().await.unwrap();
    let two = until_workers(&cluster, "nublado-ada", 2).await;
    assert!(two.iter().all(|pod| group(pod).is_none()));
    assert!(recorded(&cluster).await.get("groups").is_none());
}

#[tokio::test]
async fn policies_decide_about_each_group() {
    let sized = |config: &mut Value| {
        let decides = config["policies"][0].clone();
        site(config);
        config["policies"][0]["config"]["sizes"][1]["groups"] = json!(["science"]);
        config["policies"].as_array_mut().unwrap().push(decides);
        config["auth"]["identities"]["users"] =
            json!({ "sparing": { "uid": 1000, "gid": 1000, "groups": [{ "name": "science" }] } });
    };
    let (service, eve) = with_lab("eve", sized).await;
    let large = |workers: u32| {
        groups(json!([
            { "name": "few", "workers": 1 },
            { "name": "many", "workers": workers, "options": { "size": "large" } },
        ]))
    };
    // The user is in no group that may have the size.
    let refused = start(&eve, "eve", "p", &large(1)).await;
    assert_eq!(refused.problem().unwrap(), "422 invalid_option", "{refused:?}");
    assert!(refused.body.contains("the group `many`: "), "{refused:?}");

    let user = service.user("sparing").unwrap();
    user.spawn_to_end("sparing").await.unwrap();
    let refused = start(&user, "sparing", "p", &large(4)).await;
    assert_eq!(refused.problem().unwrap(), "403 permission_denied", "{refused:?}");
    assert!(refused.body.contains("At most 4 where workers are large."), "{refused:?}");
    let made = start(&user, "sparing", "p", &large(3)).await;
    assert_eq!(made.status, 201, "{made:?}");
    until(&user, "sparing", "p", is_running).await;
    let scale = async |group: &str, workers: u32| {
        let request = user.request(Method::POST, &format!("{}/scale", path("sparing", "p")));
        user.send(request.json(&json!({ "group": group, "workers": workers }))).await.unwrap()
    };
    let refused = scale("many", 4).await;
    assert_eq!(refused.problem().unwrap(), "403 permission_denied", "{refused:?}");
    let pool = user.get(&path("sparing", "p")).await.unwrap().json().unwrap();
    assert_eq!(pool["groups"][1]["maximum"], 3, "{pool:#}");
    assert_eq!(scale("few", 2).await.status, 202, "the policy has nothing against more of the other group");
}

#[tokio::test]
async fn a_limit_holds_for_the_sum_of_the_groups() {
    let few = |config: &mut Value| {
        site(config);
        config["limits"] = json!({ "per_user": { "dask_workers": 5 } });
    };
    let (service, ada) = with_lab("ada", few).await;
    let six = groups(json!([{ "name": "a", "workers": 3 }, { "name": "b", "workers": 3 }]));
    let refused = start(&ada, "ada", "p", &six).await;
    assert_eq!(refused.problem().unwrap(), "403 permission_denied");
    assert!(refused.body.contains("no room for 6 more"), "{refused:?}");
    run(&ada, "p", &groups(json!([{ "name": "a", "workers": 3 }, { "name": "b", "workers": 1 }]))).await;
    let too_many = scale(&ada, "p", &json!({ "group": "b", "workers": 9_998 })).await;
    assert_eq!(too_many.problem().unwrap(), "422 invalid_pool", "{too_many:?}");
    assert_eq!(too_many.json().unwrap()["detail"][0]["loc"], json!(["body", "workers"]), "{too_many:?}");
    let clamped = scale(&ada, "p", &json!({ "group": "b", "workers": 9 })).await.json().unwrap();
    assert_eq!(clamped["workers"]["desired"], 5, "{clamped:#}");
    assert!(clamped["note"].as_str().unwrap().contains("You may have 5 Dask workers"), "{clamped:#}");
    until_workers(&service.cluster().await.unwrap(), "nublado-ada", 5).await;
}

#[tokio::test]
async fn a_quota_counts_each_group_with_the_size_of_its_workers() {
    let one_namespace = |config: &mut Value| {
        site(config);
        config["kubernetes"] = json!({ "namespaces": "single" });
        config["names"] = json!({ "namespace": "labs" });
        config["policies"][0]["config"]["quota"] = json!({ "default": { "cpu": 12 } });
    };
    let (_service, ada) = with_lab("ada", one_namespace).await;
    // A lab of 1, a scheduler of 1 and a worker of 1, and two workers of 4: 11 in all.
    let sent = groups(json!([
        { "name": "a", "workers": 1 },
        { "name": "b", "workers": 2, "options": { "size": "large" } },
    ]));
    let mut too_much = sent.clone();
    too_much["scheduler"] = json!({ "options": { "size": "large" } });
    assert_eq!(start(&ada, "ada", "p", &too_much).await.status, 201);
    let failed = until(&ada, "ada", "p", |pool| pool["status"] == "failed").await;
    assert!(failed["message"].as_str().unwrap().contains("quota"), "{failed:#}");
    run(&ada, "p", &sent).await;
    let refused = scale(&ada, "p", &json!({ "group": "b", "workers": 3 })).await;
    assert_eq!(refused.problem().unwrap(), "403 permission_denied", "{refused:?}");
    let scaled = scale(&ada, "p", &json!({ "group": "a", "workers": 2 })).await;
    assert_eq!(scaled.status, 202, "{scaled:?}");
}

#[tokio::test]
async fn what_is_wrong_with_groups_is_said_with_its_place() {
    let (_service, ada) = with_lab("ada", site).await;
    let mut both = groups(json!([{ "name": "a", "workers": 1 }]));
    both["workers"] = json!(1);
    let mut scheduler = body(json!(1));
    scheduler["scheduler"] = json!({ "options": { "size": "gigantic" } });
    let of = |options: Value| groups(json!([{ "name": "a", "workers": 1, "options": options }]));
    for (sent, problem, place) in [
        (groups(json!([])), "422 wrong_type", json!(["body", "groups"])),
        (
            groups(json!([{ "name": "A", "workers": 1 }])),
            "422 invalid_name",
            json!(["body", "groups", "0", "name"]),
        ),
        (
            groups(json!([{ "name": "a", "workers": 1 }, { "name": "a", "workers": 2 }])),
            "422 invalid_name",
            json!(["body", "groups", "1", "name"]),
        ),
        (groups(json!([{ "name": "a" }])), "422 missing", json!(["body", "groups", "0", "workers"])),
        (both, "422 invalid_range", json!(["body", "workers"])),
        (of(json!({ "size": "gigantic" })), "422 invalid_option", json!(["body", "options", "size"])),
        (scheduler, "422 invalid_option", json!(["body", "options", "size"])),
    ] {
        let answer = start(&ada, "ada", "p", &sent).await;
        assert_eq!(answer.problem().unwrap(), problem, "{answer:?}");
        assert_eq!(answer.json().unwrap()["detail"][0]["loc"], place, "{answer:?}");
    }
    let answer = start(&ada, "ada", "p", &of(json!({ "size": "gigantic" }))).await;
    assert!(answer.body.contains("the group `a`: "), "{answer:?}");

    for workers in [json!(-1), json!(1.5), json!(10_001), json!("2"), json!(null)] {
        let answer = start(&ada, "ada", "p", &groups(json!([{ "name": "a", "workers": workers }]))).await;
        assert_eq!(answer.problem().unwrap(), "422 invalid_number", "{answer:?}");
        assert_eq!(answer.json().unwrap()["detail"][0]["loc"], json!(["body", "groups", "0", "workers"]));
    }
    run(&ada, "p", &groups(json!([{ "name": "a", "workers": 0 }, { "name": "b", "workers": 0 }]))).await;
    for (sent, message) in [
        (json!({ "workers": 1 }), "name one of a, b"),
        (json!({ "workers": 1, "group": "c" }), "there is no group `c`; the groups are a, b"),
    ] {
        let answer = scale(&ada, "p", &sent).await;
        assert_eq!(answer.problem().unwrap(), "422 invalid_pool", "{answer:?}");
        assert_eq!(answer.json().unwrap()["detail"][0]["loc"], json!(["body", "group"]));
        assert!(answer.body.contains(message), "{answer:?}");
    }
    let alike = scale(&ada, "p", &json!({ "workers": 1, "group": "GPU" })).await;
    assert_eq!(alike.problem().unwrap(), "422 invalid_name", "{alike:?}");
}
