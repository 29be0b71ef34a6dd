"""What the chart installs and what deploy/README.md says to apply by hand are the same."""

import ast

import pytest
import service
import yaml
from chart import DEPLOY, MINIMAL, SOURCE, merged, one
from cluster import DEFINITIONS
from helm import Refused

SINGLE = {"config": {"kubernetes": {"namespaces": "single"}, "names": {"namespace": "wasmspawner-labs"}}}
SITE_SECRETS = {"config": {"lab": {"secrets": [{"name": "butler", "key": "a"}, {"name": "butler", "key": "b"}]}}}
ENVIRONMENTS = {"config": {"environments": {"default_class": "standard"}}}
MONITORING = ("alerts.yaml", "dashboard.json")


def written(path):
    return [each for each in yaml.safe_load_all((DEPLOY / path).read_text()) if each]


def of_kinds(objects, *kinds):
    return sorted((bare(each) for each in objects if each["kind"] in kinds), key=str)


def bare(described):
    """An object without the labels and annotations of Helm."""
    kept = {key: value for key, value in described["metadata"].items() if key not in ("labels", "annotations")}
    return {**described, "metadata": kept}


@pytest.mark.parametrize(("file", "values"), [("cluster-wide", {}), ("one-namespace", SINGLE)])
def test_the_permissions_are_those_that_the_service_is_tested_with(chart, file, values):
    expected = written(f"permissions/{file}.yaml")
    for role in expected:
        for rule in role.get("rules", []):
            if role["metadata"].get("namespace") == "wasmspawner" and rule["resources"] == ["secrets"]:
                rule["resourceNames"] = ["butler"]
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    rendered = chart.render(merged(MINIMAL, values, SITE_SECRETS))
    assert of_kinds(rendered, *kinds) == of_kinds(expected, *kinds)


def test_the_service_puts_labs_into_workloads_only_in_the_namespaces_of_its_configuration(chart):
    config = {"workloads": {"namespaces": ["shop", "store"]}}
    rendered = chart.render(merged(MINIMAL, {"config": config}))
    added = [each for each in rendered if each["metadata"].get("namespace") in ("shop", "store")]
    expected = []
    for namespace in ("shop", "store"):
        for each in written("permissions/workloads.yaml"):
            each["metadata"]["namespace"] = namespace
            expected.append(each)
    assert of_kinds(added, "Role", "RoleBinding") == of_kinds(expected, "Role", "RoleBinding")
    assert len(added) == len(expected)
    assert variables(one(rendered, "ValidatingAdmissionPolicy"))["workloads"] == "r'shop|store'"
    blue = chart.render(merged(MINIMAL, {"config": config}), namespace="hub", name="blue")
    names = {each["metadata"]["name"] for each in blue if each["metadata"].get("namespace") == "shop"}
    assert names == {"hub-blue-wasmspawner-workloads"}, "two releases may have the same namespace of workloads"


@pytest.mark.parametrize("nodes", [{}, {"selector": {"pool": "labs"}}])
def test_the_service_reads_nodes_only_where_it_is_configured(chart, nodes):
    kinds = ("ClusterRole", "ClusterRoleBinding")
    with_nodes = chart.render(merged(MINIMAL, {"config": {"images": {"nodes": nodes}}}))
    expected = written("permissions/cluster-wide.yaml") + written("permissions/nodes.yaml")
    assert of_kinds(with_nodes, *kinds) == of_kinds(expected, *kinds)
    for images in ({}, {"images": {"refresh_every": "1m"}}, {"images": {"nodes": None}}):
        without = chart.render(merged(MINIMAL, {"config": images}))
        assert of_kinds(without, *kinds) == of_kinds(written("permissions/cluster-wide.yaml"), *kinds)


def certificate(**how):
    url = "https://{name}.{namespace}.svc:{port}"
    return {"config": {"lab": {"service": {"lab_url": url, "certificate": how}}}}


def test_the_service_asks_cert_manager_only_where_that_issues_the_certificates_of_labs(chart):
    asking = certificate(cert_manager={"issuerRef": {"name": "labs"}})
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    everywhere, added = written("permissions/cluster-wide.yaml"), written("permissions/certificates.yaml")
    cluster = ("ClusterRole", "ClusterRoleBinding")
    rendered = chart.render(merged(MINIMAL, asking))
    assert of_kinds(rendered, *cluster) == of_kinds(everywhere + added, *cluster)
    for without in ({}, certificate(authority="lab-authority")):
        assert of_kinds(chart.render(merged(MINIMAL, without)), *cluster) == of_kinds(everywhere, *cluster)

    single = of_kinds(chart.render(merged(MINIMAL, SINGLE, asking)), *kinds)
    mine = [each for each in single if each["metadata"]["name"].endswith("-certificates")]
    assert [each["kind"] for each in mine] == ["Role", "RoleBinding"]
    assert {each["metadata"]["namespace"] for each in mine} == {"wasmspawner-labs"}
    assert mine[0]["rules"] == added[0]["rules"]
    assert mine[1]["roleRef"]["kind"] == "Role"
    assert mine[1]["roleRef"]["name"] == mine[0]["metadata"]["name"]


def test_the_service_reads_logs_only_where_the_values_say_so(chart):
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    cluster = kinds[:2]
    everywhere, added = written("permissions/cluster-wide.yaml"), written("permissions/logs.yaml")
    reading = {"rbac": {"logs": True}}
    assert of_kinds(chart.render(merged(MINIMAL, reading)), *cluster) == of_kinds(everywhere + added, *cluster)
    assert of_kinds(chart.render(MINIMAL), *cluster) == of_kinds(everywhere, *cluster)

    single = of_kinds(chart.render(merged(MINIMAL, SINGLE, reading)), *kinds)
    mine = [each for each in single if each["metadata"]["name"].endswith("-logs")]
    assert [each["kind"] for each in mine] == ["Role", "RoleBinding"]
    assert {each["metadata"]["namespace"] for each in mine} == {"wasmspawner-labs"}
    assert mine[0]["rules"] == added[0]["rules"]
    assert mine[1]["roleRef"] == {**mine[1]["roleRef"], "kind": "Role", "name": mine[0]["metadata"]["name"]}


def test_the_service_reads_the_authority_from_which_it_issues_certificates(chart):
    rendered = chart.render(merged(MINIMAL, certificate(authority="lab-authority"), SITE_SECRETS))
    rules = [rule for each in rendered if each["kind"] == "Role" for rule in each["rules"]]
    (secrets,) = [rule for rule in rules if rule["resources"] == ["secrets"] and rule["verbs"] == ["get"]]
    assert secrets["resourceNames"] == ["butler", "lab-authority"]


@pytest.mark.parametrize(("values", "file"), [({}, "cluster-wide"), (SINGLE, "one-namespace")])
def test_the_service_makes_pods_beside_itself_only_where_nodes_pull_images(chart, values, file):
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    pulling = merged(values, {"config": {"images": {"nodes": {}, "prepull": {"per_node": 2}}}})
    rendered = chart.render(merged(MINIMAL, pulling, SITE_SECRETS))
    expected = [each for name in (file, "nodes", "prepull") for each in written(f"permissions/{name}.yaml")]
    for role in expected:
        for rule in role.get("rules", []):
            if role["metadata"].get("namespace") == "wasmspawner" and rule["resources"] == ["secrets"]:
                rule["resourceNames"] = ["butler"]
    assert of_kinds(rendered, *kinds) == of_kinds(expected, *kinds)


def test_the_service_knows_its_own_pod(chart):
    (container,) = one(chart.render(MINIMAL), "Deployment")["spec"]["template"]["spec"]["containers"]
    fields = {
        each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in container["env"] if "valueFrom" in each
    }
    assert fields == {
        "WASMSPAWNER_POD_NAME": "metadata.name",
        "WASMSPAWNER_POD_UID": "metadata.uid",
        "WASMSPAWNER_POD_IPS": "status.podIPs",
        "WASMSPAWNER_NODE_NAME": "spec.nodeName",
    }


def test_the_service_makes_environments_only_where_it_is_configured(chart):
    kinds = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    rendered = chart.render(merged(MINIMAL, ENVIRONMENTS, {"environments": {"credentialsSecrets": ["far", "butler"]}}))
    expected = [each for name in ("cluster-wide", "environments") for each in written(f"permissions/{name}.yaml")]
    for role in expected:
        for rule in role.get("rules", []):
            if role["metadata"].get("namespace") == "wasmspawner" and rule["resources"] == ["secrets"]:
                rule["resourceNames"] = ["butler", "far"]
    assert of_kinds(rendered, *kinds) == of_kinds(expected, *kinds)
    blue = chart.render(merged(MINIMAL, ENVIRONMENTS), namespace="hub", name="blue")
    names = [each["metadata"]["name"] for each in blue if each["kind"] in kinds and "-environments" in str(each)]
    assert sorted(names) == [*["blue-wasmspawner-environments"] * 2, *["hub-blue-wasmspawner-environments"] * 2]
    for config in ({}, {"environments": None}):
        without = chart.render(merged(MINIMAL, {"config": config}))
        of_environments = [each["metadata"]["name"] for each in without if "-environments" in each["metadata"]["name"]]
        assert of_environments == []


@pytest.mark.parametrize(
    ("values", "readable"),
    [
        ({}, None),
        ({"environments": {"credentialsSecrets": ["far", "away"]}}, ["away", "far"]),
        (SITE_SECRETS, ["butler"]),
        (merged(SITE_SECRETS, {"environments": {"credentialsSecrets": ["far"]}}), ["butler", "far"]),
    ],
)
def test_of_the_credentials_of_clusters_the_service_reads_those_that_are_named(chart, values, readable):
    role = one(chart.render(merged(MINIMAL, {"config": {"environments": {}}}, values)), "Role", "wasmspawner")
    rules = [rule for rule in role["rules"] if rule["resources"] == ["secrets"]]
    assert [rule["resourceNames"] for rule in rules] == ([readable] if readable else [])


def test_the_service_reads_no_secret_that_its_configuration_does_not_name(chart):
    role = one(chart.render(MINIMAL), "Role")
    assert [rule["resources"] for rule in role["rules"]] == [["spawns"], ["leases"], ["endpointslices"]]


def test_one_namespace_needs_nothing_cluster_wide(chart):
    without = {"crds": {"install": False}, "admissionPolicy": {"enabled": False}}
    rendered = chart.render(merged(MINIMAL, SINGLE, without))
    assert {each["metadata"].get("namespace") for each in rendered} == {"wasmspawner", "wasmspawner-labs"}


def test_names_of_the_release_are_in_the_permissions_and_the_admission_policy(chart):
    values = merged(MINIMAL, {"serviceAccount": {"name": "robot"}})
    rendered = chart.render(values, namespace="hub", name="blue")
    binding = one(rendered, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == one(rendered, "ClusterRole")["metadata"]["name"] == "hub-blue-wasmspawner"
    for each in [binding, one(rendered, "RoleBinding")]:
        assert each["subjects"] == [{"kind": "ServiceAccount", "name": "robot", "namespace": "hub"}]
    policy = one(rendered, "ValidatingAdmissionPolicy")
    assert "'system:serviceaccount:hub:robot'" in policy["spec"]["matchConditions"][0]["expression"]
    assert one(rendered, "ValidatingAdmissionPolicyBinding")["spec"]["policyName"] == policy["metadata"]["name"]
    assert variables(policy)["instance"] == "r'hub-blue-wasmspawner'"


def test_the_admission_policy_is_the_one_that_the_service_is_tested_with(chart):
    kinds = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    both = of_kinds(chart.render(MINIMAL), *kinds), of_kinds(written("admission-policy.yaml"), *kinds)
    for objects in both:
        for each in objects:
            for variable in each["spec"].get("variables", []):
                variable["expression"] = literal(variable["expression"])
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("values", "created", "existing"),
    [
        ({}, "nublado-.*", ""),
        ({"config": {"names": {"namespace": "labs-{username}-{servername}"}}}, "labs-.*-.*", ""),
        ({"config": {"kubernetes": {"namespaces": "retain"}}}, "nublado-.*", ""),
        ({"config": {"kubernetes": {"namespaces": "retain"}, "names": {"namespace": "jhub"}}}, "", "jhub"),
        (SINGLE, "", "wasmspawner-labs"),
        ({"config": {"environments": {}}}, "nublado-.*|env-.*", ""),
        (merged(ENVIRONMENTS, {"environments": {"namespacePrefixes": []}}), "nublado-.*", ""),
        (merged(ENVIRONMENTS, {"environments": {"namespacePrefixes": ["a-", "b-"]}}), "nublado-.*|a-.*|b-.*", ""),
        (merged(ENVIRONMENTS, {"admissionPolicy": {"created": "labs-.*"}}), "labs-.*", ""),
        ({"admissionPolicy": {"created": "new-.*|old-.*", "existing": "jhub"}}, "new-.*|old-.*", "jhub"),
        (
            {"config": {"kubernetes": {"namespaces": "retain", "existing_namespaces": ["labs", "course-*"]}}},
            "nublado-.*",
            "labs|course-.*",
        ),
    ],
)
def test_the_namespaces_of_the_admission_policy_follow_from_the_configuration(chart, values, created, existing):
    found = variables(one(chart.render(merged(MINIMAL, values)), "ValidatingAdmissionPolicy"))
    assert (found["created"], found["existing"]) == (f"r'{created}'", f"r'{existing}'")


GRANTS = [
    {"name": "default", "grants": {"host-path": ["/data/", "/sc.ratch/{username}/x"], "run-as-root-init": True}},
    {"name": "deny-group", "grants": {"secrets": ["db.a", "of-{username}"], "pod-patch": ["spec.nodeName"]}},
]
LIFTS = {
    "privilege_escalation": True,
    "default_capabilities": True,
    "unconfined_seccomp": True,
    "service_account_token": True,
}

ADMINISTRATORS = {"groups": ["ops"], "root": True, "paths": ["/scratch/", "/data"]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"config": {"policies": GRANTS}},
            {
                "hostPaths": r"/data(/.*)?|/sc\.ratch/[^/]+/x(/.*)?",
                "runAsRootInit": True,
                "secrets": r"(tls[.])?nb-.*|db\.a|of-.*",
                "podPatch": ["spec.nodeName"],
                "podSecurity": ["restricted", "baseline", "privileged"],
            },
        ),
        (
            {"config": {"policies": [{"name": "default", "grants": {"privileged-init": True}}]}},
            {"privilegedInit": True, "podSecurity": ["restricted", "baseline", "privileged"]},
        ),
        (
            {
                "config": {
                    "lab": {"container": "lab", "administrators": ADMINISTRATORS},
                    "policies": [
                        {"name": "default", "grants": {"administrators": {"groups": ["ops"], "root": True}}},
                        {
                            "name": "deny-group",
                            "grants": {
                                "administrators": {
                                    "groups": ["ops"],
                                    "privileged": True,
                                    "paths": ["/scratch/a.b", "/"],
                                }
                            },
                        },
                    ],
                }
            },
            {
                "administratorRoot": True,
                "administratorPaths": r"/scratch/a\.b(/.*)?|/scratch(/.*)?|/data(/.*)?",
                "labContainer": "lab",
                "podSecurity": ["restricted", "baseline", "privileged"],
            },
        ),
        (
            {"config": {"lab": {"administrators": {"groups": ["ops"], "root": True}}}},
            {},
        ),
        (
            {"config": {"lab": {"security": LIFTS}}},
            {
                "privilegeEscalation": True,
                "defaultCapabilities": True,
                "unconfinedSeccomp": True,
                "serviceAccountToken": True,
                "podSecurity": ["restricted", "baseline", "privileged"],
            },
        ),
        (
            {
                "config": {"lab": {"priority_class_name": "labs", "runtime_class_name": "gvisor"}},
                "admissionPolicy": {
                    "priorityClasses": ["usual"],
                    "addedContainers": {"istio-init": "docker[.]io/istio/.*"},
                    "tokenAudiences": ["istio-ca"],
                },
            },
            {
                "priorityClasses": ["labs", "usual"],
                "runtimeClass": "gvisor",
                "addedContainers": {"istio-init": "docker[.]io/istio/.*"},
                "tokenAudiences": ["istio-ca"],
            },
        ),
        (
            {
                "config": {
                    "names": {"service_account": "sa.{username}", "pod": "p-{username}", "object_prefix": "o-{uid}"}
                }
            },
            {"serviceAccounts": r"sa\..*|p-.*", "secrets": r"(tls[.])?o-.*|(tls[.])?p-.*"},
        ),
        (
            {"config": {"kubernetes": {"namespaces": "retain"}}},
            {"podSecurity": ["restricted", "baseline", ""]},
        ),
        (
            {
                "config": {
                    "lab": {"labels": {"app": "jupyterhub", "team": "a"}},
                    "policies": [{"name": "default", "grants": {"metadata": ["release", "sidecar.istio.io/"]}}],
                }
            },
            {"hubLabels": ["app", "release"]},
        ),
        (ENVIRONMENTS, {"environments": ["restricted", "baseline"]}),
        (
            merged(ENVIRONMENTS, {"environments": {"podSecurity": ["privileged"]}}),
            {"environments": ["privileged"]},
        ),
        (
            {
                "config": {
                    "lab": {"service_account": "reader"},
                    "policies": [{"name": "default", "grants": {"service-accounts": ["a.writer", "reader"]}}],
                }
            },
            {"existingAccounts": "reader|a[.]writer"},
        ),
        # What no pod has grants nothing.
        ({"config": {"policies": [{"name": "default", "grants": {"raw-html": True, "ports": [8787]}}]}}, {}),
    ],
)
def test_the_admission_policy_allows_what_the_values_grant_and_no_more(chart, values, expected):
    strict = variables(written("admission-policy.yaml")[0])
    found = variables(one(chart.render(merged(MINIMAL, values)), "ValidatingAdmissionPolicy"))
    names = {"created", "existing", "workloads", "instance"}
    changed = {name for name in found if name not in names and literal(found[name]) != literal(strict[name])}
    assert {name: literal(found[name]) for name in changed} == expected


def test_no_permission_makes_a_token_or_enters_a_pod():
    files = sorted((DEPLOY / "permissions").glob("*.yaml"))
    rules = [rule for file in files for role in written(file) for rule in role.get("rules", [])]
    assert len(files) > 7
    assert len(rules) > 20
    below = {resource for rule in rules for resource in rule["resources"] if "/" in resource}
    statuses = {"deploymenttargetclaims/status", "deploymenttargets/status", "environments/status"}
    assert below == statuses | {"pods/log"}
    usual = {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
    for rule in rules:
        assert set(rule["verbs"]) <= usual, rule
        assert "*" not in rule["apiGroups"] + rule["resources"], rule


def variables(policy):
    return {variable["name"]: variable["expression"] for variable in policy["spec"]["variables"]}


def literal(expression):
    """The value of an expression that is a literal of CEL, and otherwise the expression."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(expression, expression))
    except (ValueError, SyntaxError):
        return expression


def test_the_network_policy_is_the_one_beside_the_permissions(chart):
    rendered = one(chart.render(merged(MINIMAL, {"jupyterhub": {"namespace": "jupyterhub"}})), "NetworkPolicy")
    (by_hand,) = written("network-policy.yaml")
    # By hand there is one installation in the namespace; the chart's policy is for the pods of its release alone.
    assert rendered["spec"]["podSelector"]["matchLabels"].pop("app.kubernetes.io/instance") == "wasmspawner"
    assert rendered["spec"] == by_hand["spec"]


def test_the_definitions_are_those_that_the_service_prints_and_stay_when_the_release_goes(chart):
    definitions = [each for each in chart.render(MINIMAL) if each["kind"] == "CustomResourceDefinition"]
    assert sorted(each["metadata"]["name"] for each in definitions) == sorted(DEFINITIONS)
    for definition in definitions:
        assert definition["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    printed = list(yaml.safe_load_all(service.printed("crds")))
    assert of_kinds(definitions, "CustomResourceDefinition") == of_kinds(printed, "CustomResourceDefinition")


@pytest.mark.parametrize("file", MONITORING)
def test_alerts_and_dashboard_are_those_of_deploy(chart, file):
    values = merged(MINIMAL, {"monitoring": {file.split(".")[0]: {"enabled": True}}})
    if not (DEPLOY / "monitoring" / file).exists():
        with pytest.raises(Refused, match=f"this version of the chart has no .*files/{file}"):
            chart.render(values)
        return
    linked = SOURCE / "files" / file
    assert linked.resolve() == (DEPLOY / "monitoring" / file).resolve(), f"link {linked} to ../../monitoring/{file}"
    text = (DEPLOY / "monitoring" / file).read_text()
    if file == "alerts.yaml":
        assert one(chart.render(values), "PrometheusRule")["spec"]["groups"] == yaml.safe_load(text)["groups"]
    else:
        assert one(chart.render(values), "ConfigMap", "wasmspawner-dashboard")["data"] == {"wasmspawner.json": text}
