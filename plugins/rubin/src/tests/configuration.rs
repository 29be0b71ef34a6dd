//! The configuration: the example, the schema, and the reports about a configuration of Nublado.

use serde_json::{Value, json};
use wasmspawner_sdk::Policy;
use wasmspawner_sdk::testing::TestKit;

use super::{example, site};
use crate::RubinPolicy;

/// The errors in a configuration, each with its place and its message.
fn problems(config: &Value) -> Vec<(String, String)> {
    let found = TestKit::<RubinPolicy>::new(config).err().unwrap_or_default();
    found.into_iter().map(|problem| (problem.field, problem.message)).collect()
}

fn fields(config: &Value) -> Vec<String> {
    problems(config).into_iter().map(|(field, _)| field).collect()
}

/// The JSON pointers of all values below `value`.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut below = |key: &str, value: &Value| {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        found.push(pointer.clone());
        pointers(value, &pointer, found);
    };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(key, value)| below(key, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, value)| below(&at.to_string(), value)),
        _ => {}
    }
}

#[test]
fn the_example_is_valid() {
    assert_eq!(site(&example()).warnings, Vec::<String>::new());
}

/// Every value of the example has an effect: one of a wrong type is an error at its place, or in the map that contains
/// it.
#[test]
fn every_key_of_the_example_is_read() {
    let mut all = Vec::new();
    pointers(&example(), "", &mut all);
    assert!(all.len() > 100, "{}", all.len());
    // The affinity is Kubernetes' own, and is passed on unchanged.
    for pointer in all.iter().filter(|pointer| !pointer.starts_with("/lab/affinity/")) {
        let mut config = example();
        *config.pointer_mut(pointer).unwrap() = json!([[{"a": []}]]);
        let found = fields(&config);
        let (parent, _) = pointer.rsplit_once('/').unwrap();
        let (grandparent, _) = parent.rsplit_once('/').unwrap_or_default();
        let reported =
            |field: &String| field.starts_with(pointer.as_str()) || field == parent || field == grandparent;
        assert!(found.iter().any(reported), "{pointer}: {found:?}");
    }
}

#[test]
fn the_smallest_configuration() {
    let config = json!({
        "images": {"source": {"type": "docker", "repository": "lsstsqre/sciplat-lab"}},
        "lab": {"sizes": [{"size": "small", "cpu": 1, "memory": "4Gi"}]}
    });
    assert_eq!(site(&config).warnings, Vec::<String>::new());
    assert_eq!(fields(&json!({})), ["/images", "/lab"]);
    assert_eq!(fields(&json!({"images": {}, "lab": {}})), ["/images/source", "/lab/sizes"]);
}

/// A configuration of Nublado's controller is accepted as it is. What the service itself decides about is a warning that
/// names the service's key.
#[test]
fn keys_that_the_service_owns_are_warnings_that_name_its_keys() {
    let mut config = example();
    config["fileserver"] = json!({"enabled": true});
    config["fsadmin"] = json!({"mountPrefix": "/mnt"});
    config["pathPrefix"] = json!("/nublado");
    config["watchReconnectTimeout"] = json!("3m");
    config["images"]["refreshInterval"] = json!("5m");
    config["images"]["prepullTimeout"] = json!("20m");
    config["images"]["dockerCredentialsPath"] = json!("/etc/secrets/.dockerconfigjson");
    config["images"]["source"]["credentialsPath"] = json!("/etc/secrets/.dockerconfigjson");
    let lab = &mut config["lab"];
    lab["files"] = json!({"/opt/x": "y"});
    lab["namespaceAnnotations"] = json!({"a": "b"});
    lab["namespacePrefix"] = json!("nublado");
    lab["nss"] = json!({"basePasswd": "root:x:0:0:root:/root:/bin/bash\n"});
    lab["pullSecret"] = json!("pull-secret");
    lab["secrets"] = json!([{"secretName": "nublado-lab-secret", "secretKey": "aws.ini"}]);
    assert_eq!(problems(&config), []);
    let warnings = site(&config).warnings;
    for (field, named) in [
        ("/fileserver", "file servers"),
        ("/fsadmin", "file systems"),
        ("/pathPrefix", "`http.prefix`"),
        ("/watchReconnectTimeout", "by itself"),
        ("/images/refreshInterval", "`images.refresh_every`"),
        ("/images/prepullTimeout", "`images.prepull.time_limit`"),
        ("/images/dockerCredentialsPath", "`registries.credentials_file`"),
        ("/images/source/credentialsPath", "`registries.credentials_file`"),
        ("/lab/files", "`lab.files`"),
        ("/lab/namespaceAnnotations", "`lab.annotations`"),
        ("/lab/namespacePrefix", "`names.namespace`"),
        ("/lab/nss", "`lab.user_files.passwd`"),
        ("/lab/pullSecret", "`lab.secrets`"),
        (
            "/lab/secrets/0",
            "`lab.secrets` of the service's configuration, as {name: nublado-lab-secret, key: aws.ini}",
        ),
    ] {
        let found = warnings
            .iter()
            .any(|warning| warning.starts_with(&format!("{field}: ")) && warning.contains(named));
        assert!(found, "{field}: {warnings:#?}");
    }
    assert_eq!(warnings.len(), 14, "{warnings:#?}");
}

#[test]
fn homes_are_made_by_a_container_that_is_listed_or_the_standard_one() {
    let mut config = example();
    let lab = &mut config["lab"];
    lab["initContainers"] = json!([]);
    lab["standardInithome"] = json!(true);
    assert_eq!(problems(&config), []);
    config["lab"]["volumes"][0]["name"] = json!("homes");
    config["lab"]["volumeMounts"][0]["volumeName"] = json!("homes");
    config["lab"].as_object_mut().unwrap().remove("homeVolumeName");
    assert_eq!(fields(&config), ["/lab/standardInithome"], "Nublado looks for `home`");
    let mut both = example();
    both["lab"]["standardInithome"] = json!(true);
    assert_eq!(fields(&both), ["/lab/initContainers/0/name"]);
}

#[test]
fn keys_without_a_content_are_no_warnings() {
    let mut config = example();
    config["fileserver"] = json!({});
    let lab = &mut config["lab"];
    for (key, value) in
        [("files", json!({})), ("pullSecret", Value::Null), ("standardInithome", json!(false))]
    {
        lab[key] = value;
    }
    assert_eq!(site(&config).warnings, Vec::<String>::new());
}

#[test]
fn keys_that_change_nothing_for_users_are_warnings() {
    let mut config = example();
    config["logLevel"] = json!("INFO");
    config["lab"]["application"] = json!("nublado-users");
    config["lab"]["initContainers"][0]["image"]["pullPolicy"] = json!("Always");
    let warnings = site(&config).warnings;
    let starts = ["/logLevel: ", "/lab/application: ", "/lab/initContainers/0/image/pullPolicy: "];
    assert_eq!(warnings.len(), starts.len(), "{warnings:?}");
    assert!(warnings.iter().zip(starts).all(|(warning, start)| warning.starts_with(start)), "{warnings:?}");
}

#[test]
fn contradictions_are_errors() {
    let mut config = example();
    config["images"]["source"]["type"] = json!("quay");
    let lab = &mut config["lab"];
    lab["defaultSize"] = json!("huge");
    lab["env"]["CPU_LIMIT"] = json!("4");
    lab["homeVolumeName"] = json!("homes");
    lab["volumes"][4]["name"] = json!("tmp");
    lab["volumes"][0]["source"]["type"] = json!("nfsPvc");
    lab["volumes"][1]["source"]["serverPath"] = json!("/share/{usrname}");
    lab["volumeMounts"][0]["containerPath"] = json!("/tmp/");
    lab["secrets"][1]["secretKey"] = json!("token");
    lab["tolerations"][0]["effect"] = json!("Never");
    lab["spawnTimeout"] = json!("soon");
    let found = fields(&config);
    for field in [
        "/images/source/type",
        "/lab/defaultSize",
        "/lab/env",
        "/lab/homeVolumeName",
        "/lab/volumes/4/name",
        "/lab/volumes/0/source/type",
        "/lab/volumes/1/source/serverPath",
        "/lab/volumeMounts/0/containerPath",
        "/lab/volumeMounts/4/volumeName",
        "/lab/secrets/1/secretKey",
        "/lab/tolerations/0/effect",
        "/lab/spawnTimeout",
    ] {
        assert!(found.iter().any(|at| at == field), "{field}: {found:?}");
    }
}

#[test]
fn names_and_paths_must_differ() {
    for (list, key, field) in [
        ("sizes", "size", "/lab/sizes/3/size"),
        ("volumes", "name", "/lab/volumes/5/name"),
        ("volumeMounts", "containerPath", "/lab/volumeMounts/5/containerPath"),
        ("initContainers", "name", "/lab/initContainers/1/name"),
        ("secrets", "secretKey", "/lab/secrets/2/secretKey"),
    ] {
        let mut config = example();
        let items = config["lab"][list].as_array_mut().unwrap();
        let name = items[0][key].as_str().unwrap().to_owned();
        items.push(items[0].clone());
        let found = problems(&config);
        assert_eq!(
            found,
            [(field.to_owned(), format!("there is a `{name}` before; each must be different"))]
        );
    }
    let mut config = example();
    config["lab"]["volumeMounts"][0]["volumeName"] = json!("project");
    assert_eq!(fields(&config), ["/lab/homeVolumeName"]);
}

/// The schema has the keys that are read. The error about an unknown key lists all known ones.
#[test]
fn the_schema_has_the_keys_that_are_read() {
    let schema: Value = serde_json::from_str(RubinPolicy::config_schema()).unwrap();
    for (at, in_schema) in [
        ("", "/properties"),
        ("/images", "/properties/images/properties"),
        ("/images/source", "/properties/images/properties/source/properties"),
        ("/dropdownMenu", "/properties/dropdownMenu/properties"),
        ("/dropdownMenu/weekly", "/$defs/filter/properties"),
        ("/lab", "/properties/lab/properties"),
        ("/lab/sizes/0", "/$defs/size/properties"),
        ("/lab/volumes/0", "/$defs/volume/properties"),
        ("/lab/volumeMounts/0", "/$defs/mount/properties"),
        ("/lab/initContainers/0", "/$defs/initContainer/properties"),
        ("/lab/secrets/0", "/$defs/secret/properties"),
        ("/lab/tolerations/0", "/$defs/toleration/properties"),
    ] {
        let mut config = example();
        // Without a path of its own, a volume has no keys of a mount.
        config["lab"]["volumes"][0]["containerPath"] = json!("/homes");
        config.pointer_mut(at).unwrap()["?"] = json!(1);
        let problem = problems(&config).into_iter().find(|(field, _)| *field == format!("{at}/?"));
        let (_, message) = problem.unwrap();
        let (_, known) = message.split_once("there are ").unwrap();
        let mut known: Vec<_> = known.split(", ").collect();
        known.sort_unstable();
        known.dedup();
        let listed: Vec<_> = schema.pointer(in_schema).unwrap().as_object().unwrap().keys().collect();
        for key in &known {
            assert!(listed.iter().any(|other| other == key), "{at}/{key} is not in the schema");
        }
        for key in &listed {
            // A source has only the keys of its type.
            assert!(known.contains(&key.as_str()) || at == "/images/source", "{at}/{key} is not read");
        }
    }
}
