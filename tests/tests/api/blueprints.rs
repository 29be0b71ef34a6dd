//! Blueprints: the site's descriptions of labs, below the policies.

use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use super::running::until;
use crate::BINARY;

/// A site where ada is on the staff and eve is not. The default policy has two sizes, and sets `SITE` for everybody.
fn site(config: &mut Value) {
    let entry = |groups: Value| json!({ "uid": 1000, "gid": 1000, "groups": groups });
    config["auth"]["identities"]["users"] = json!({ "ada": entry(json!([{ "name": "staff", "id": 20 }])) });
    config["lab"] = json!({ "image": "registry.example.org/lab:1" });
    let size = |name: &str, cpu: u32| json!({ "name": name, "cpu": cpu, "memory": "1Gi" });
    config["policies"] = json!([{
        "name": "default",
        "path": guests::component("policy-default"),
        "config": { "sizes": [size("small", 1), size("large", 2)], "env": { "SITE": "policy" } },
    }]);
    config["blueprints"]["site"] = json!({
        "everybody": { "platform": true, "env": { "HOUSE": "ours", "SITE": "blueprint" } },
        "base": { "env": { "COLOUR": "grey", "BASE": "1" } },
        "course": {
            "displayName": "Physics course",
            "description": "Notebooks and data of the course",
            "extends": ["base"],
            "groups": ["staff"],
            "size": "large",
            "env": { "COLOUR": "red" },
            "volumes": [{ "name": "data", "mountPath": "/data", "readOnly": true,
                          "nfs": { "server": "nfs.example.org", "path": "/course" } }],
            "initContainers": [{ "name": "fetch", "command": ["true"], "mounts": [{ "volume": "data", "mountPath": "/data" }] }],
            "packages": { "pip": ["xarray>=2026.1"] },
        },
    });
}

async fn start(client: &Client, lab: &str, options: Value) -> Answer {
    client.spawn_with(lab, &json!({ "options": options })).await.unwrap()
}

async fn running(client: &Client, lab: &str) -> Value {
    until(client, lab, |lab| lab["status"] == "running").await
}

async fn pod(service: &Service, namespace: &str, name: &str) -> Value {
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), namespace);
    serde_json::to_value(pods.get(name).await.unwrap().spec.unwrap()).unwrap()
}

#[tokio::test]
async fn a_lab_is_as_its_blueprint_says_and_what_policies_say_counts_over_it() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let started = start(&ada, "ada", json!({ "blueprint": "course", "size": "small" })).await;
    assert_eq!(started.status, 303, "{started:?}");
    let lab = running(&ada, "ada").await;
    for (name, value) in [
        ("HOUSE", "ours"),
        ("COLOUR", "red"),
        ("BASE", "1"),
        ("SITE", "policy"),
        ("PYTHONPATH", "/opt/blueprint"),
    ] {
        assert_eq!(lab["env"][name], value, "{lab:#}");
    }
    assert_eq!(
        lab["options"],
        json!({ "blueprint": "course", "size": "large" }),
        "the blueprint counts over the form"
    );
    let spec = pod(&service, "nublado-ada", "nb-ada").await;
    let inits = spec["initContainers"].as_array().unwrap();
    let names: Vec<_> = inits.iter().map(|init| init["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fetch", "blueprint-packages"]);
    for init in inits {
        assert_eq!(init["image"], "registry.example.org/lab:1", "the image of the lab");
        assert_eq!(init["securityContext"]["allowPrivilegeEscalation"], false, "{init:#}");
    }
    let mounts = spec["containers"][0]["volumeMounts"].as_array().unwrap();
    let data = mounts.iter().find(|mount| mount["mountPath"] == "/data").unwrap();
    assert_eq!((&data["name"], &data["readOnly"]), (&json!("data"), &json!(true)));

    // A kernel of the lab has the blueprint's variables and volumes, too.
    super::kernels::run(&ada, "ada", "k1").await;
    let pods = super::kernels::pods(&service.cluster().await.unwrap(), "nublado-ada").await;
    let kernel = pods.iter().find(|pod| pod.metadata.name.as_deref() != Some("nb-ada")).unwrap();
    let mounts = kernel.spec.as_ref().unwrap().containers[0].volume_mounts.clone().unwrap();
    assert!(mounts.iter().any(|mount| mount.mount_path == "/data"));
}

#[tokio::test]
async fn users_choose_the_blueprints_of_their_groups_in_the_form_and_by_the_name_of_the_server() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let (ada, eve) = (service.user("ada").unwrap(), service.user("eve").unwrap());
    let form = async |client: &Client, lab: &str| {
        client.get(&format!("{PREFIX}/spawn-form/{lab}")).await.unwrap().body
    };
    let shown = form(&ada, "ada").await;
    assert!(
        shown.contains("Physics course") && shown.contains("Notebooks and data of the course"),
        "{shown}"
    );
    assert!(!shown.contains("everybody"), "nobody chooses what holds for all: {shown}");
    assert!(!form(&eve, "eve").await.contains("Physics course"));
    assert!(!form(&ada, "ada/servers/course").await.contains("name=\"blueprint\""), "its name says it");

    let refused = start(&eve, "eve", json!({ "blueprint": "course" })).await;
    assert_eq!(refused.problem().unwrap(), "422 invalid_option");
    let detail = refused.json().unwrap()["detail"][0].clone();
    assert_eq!(detail["loc"], json!(["body", "options", "blueprint"]));
    assert_eq!(detail["msg"], "there is no blueprint `course` that you may choose; there are `base`");

    // A server of this name uses the blueprint for users who may choose it.
    for client in [&ada, &eve] {
        let name = if std::ptr::eq(client, &raw const ada) { "ada" } else { "eve" };
        let lab = format!("{name}/servers/course");
        assert_eq!(start(client, &lab, json!({})).await.status, 303);
        let colour = running(client, &lab).await["env"]["COLOUR"].clone();
        assert_eq!(colour, if name == "ada" { json!("red") } else { Value::Null });
    }
    let none = start(&ada, "ada", json!({ "blueprint": "" })).await;
    assert_eq!(none.status, 303, "{none:?}");
    let lab = running(&ada, "ada").await;
    assert_eq!((&lab["env"]["HOUSE"], lab["env"].get("COLOUR")), (&json!("ours"), None));
}

#[tokio::test]
async fn what_a_blueprint_means_is_shown_with_where_it_comes_from() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let (ada, eve, admin) =
        (service.user("ada").unwrap(), service.user("eve").unwrap(), service.admin().unwrap());
    let get =
        async |client: &Client, path: &str| client.get(&format!("{PREFIX}/blueprints{path}")).await.unwrap();
    let all = get(&admin, "").await.json().unwrap();
    let names: Vec<_> = all.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["base", "course", "everybody"]);
    assert_eq!(get(&ada, "").await.problem().unwrap(), "403 permission_denied");
    let choices = get(&ada, "/ada").await.json().unwrap();
    assert_eq!(
        choices[1],
        json!({ "name": "course", "display_name": "Physics course", "description": "Notebooks and data of the course" })
    );
    assert_eq!(get(&eve, "/ada").await.problem().unwrap(), "403 permission_denied");
    let resolved = get(&admin, "/ada/resolved/course").await.json().unwrap();
    assert_eq!(resolved["consists_of"], json!(["everybody", "base", "course"]));
    assert_eq!(
        (&resolved["sources"]["env.BASE"], &resolved["sources"]["env.COLOUR"]),
        (&json!("course -> base"), &json!("course"))
    );
    assert_eq!(get(&eve, "/eve/resolved/course").await.problem().unwrap(), "404 unknown_blueprint");
    assert_eq!(get(&eve, "/eve/resolved/A B").await.problem().unwrap(), "422 invalid_name");
}

#[tokio::test]
async fn a_policy_sees_the_blueprints_and_may_refuse_them() {
    let service = Service::start_with(BINARY, |config| {
        config["blueprints"]["site"] = json!({
            "everybody": { "platform": true },
            "base": {},
            "team": { "extends": ["base"], "env": { "TEAM": "1" } },
            "secret": { "env": { "FORBIDDEN": "1" } },
        });
    })
    .await
    .unwrap();
    for (user, blueprint, status) in
        [("strict", "team", 303), ("strict", "secret", 403), ("ada", "secret", 303)]
    {
        let server = format!("{user}/servers/of-{blueprint}");
        let answer = start(&service.user(user).unwrap(), &server, json!({ "blueprint": blueprint })).await;
        assert_eq!(answer.status, status, "{user} {blueprint}: {answer:?}");
        if status == 403 {
            let denied = &answer.json().unwrap()["detail"][0];
            assert_eq!(denied["msg"], "Not this blueprint.");
            let by = json!({ "decided_by": "policy", "policy": "stagehand", "rule": "no-such-blueprint" });
            assert_eq!(denied["ctx"], by);
        }
    }
    let teller = service.user("tell.all").unwrap();
    assert_eq!(start(&teller, "tell.all", json!({ "blueprint": "team" })).await.status, 303);
    let lab = running(&teller, "tell.all").await;
    assert_eq!(lab["env"]["BLUEPRINTS"], "everybody base team", "{lab:#}");
}

/// A blueprint has no grants.
#[tokio::test]
async fn a_blueprint_cannot_take_what_belongs_to_the_service() {
    for (spec, problem) in [
        (json!({ "env": { "JUPYTERHUB_API_TOKEN": "mine" } }), "JUPYTERHUB_API_TOKEN"),
        (
            json!({ "volumes": [{ "name": "wasmspawner-x", "mountPath": "/x", "emptyDir": {} }] }),
            "is the service's own",
        ),
        (
            json!({ "volumes": [{ "name": "up", "mountPath": "/x", "subPath": "../..", "emptyDir": {} }] }),
            "sub_path",
        ),
        (json!({ "initContainers": [{ "name": "notebook", "command": ["true"] }] }), "notebook"),
    ] {
        let service = Service::start_with(BINARY, |config| {
            site(config);
            config["blueprints"]["site"]["greedy"] = spec.clone();
        })
        .await
        .unwrap();
        let ada = service.user("ada").unwrap();
        assert_eq!(start(&ada, "ada", json!({ "blueprint": "greedy" })).await.status, 303);
        let failed = until(&ada, "ada", |lab| lab["status"] == "failed").await;
        assert!(failed["message"].is_string(), "{failed:#}");
        service.logged(problem).await.unwrap();
        assert_eq!(start(&ada, "ada", json!({})).await.status, 303, "other labs are not affected");
        running(&ada, "ada").await;
    }
}

#[tokio::test]
async fn blueprints_come_from_a_folder_and_change_while_the_service_runs() {
    let folder = |service: &Service| service.folder().join("blueprints");
    let mut service = Service::prepare(BINARY, |config| {
        site(config);
        config["blueprints"]["folder"] = "blueprints".into();
    })
    .unwrap();
    std::fs::create_dir(folder(&service)).unwrap();
    let write =
        |service: &Service, name: &str, text: &str| std::fs::write(folder(service).join(name), text).unwrap();
    write(&service, "team.yaml", "extends: [base]\nenv: {TEAM: one}\n");
    write(&service, "notes.txt", "not a blueprint");
    service.run().await.unwrap();
    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    let team = async || {
        let path = format!("{PREFIX}/blueprints/ada/resolved/team");
        ada.get(&path).await.unwrap().json().unwrap()["spec"]["env"]["TEAM"].clone()
    };
    assert_eq!(team().await, "one");

    let reload =
        async || admin.send(admin.request(Method::POST, &format!("{PREFIX}/config/reload"))).await.unwrap();
    write(&service, "team.yaml", "extends: [base]\nenv: {TEAM: two}\n");
    // The reload may find no change, because the service has seen it already. Its log has the same words in either
    // case.
    assert_eq!(reload().await.status, 200);
    service.logged(r#"applied="blueprints.site.team.env.TEAM""#).await.unwrap();
    assert_eq!(team().await, "two");

    // A mistake changes nothing, and is reported with its file.
    for (text, told) in [
        ("extends: [team]\n", "extend each other in a circle: team -> team"),
        ("privileged: true\n", "team.yaml"),
        ("packages: {pip: [--index-url=https://evil.example]}\n", "is no package"),
    ] {
        write(&service, "team.yaml", text);
        let refused = reload().await;
        assert_eq!(refused.problem().unwrap(), "409 reload_failed");
        assert!(refused.body.contains(told), "{told}: {}", refused.body);
        assert_eq!(team().await, "two");
    }
    // A link that leads out of the folder is not followed.
    std::fs::remove_file(folder(&service).join("team.yaml")).unwrap();
    std::os::unix::fs::symlink(service.config_file(), folder(&service).join("team.yaml")).unwrap();
    let refused = reload().await;
    assert_eq!(refused.problem().unwrap(), "409 reload_failed");
    assert!(refused.body.contains("team.yaml"), "{}", refused.body);
}
