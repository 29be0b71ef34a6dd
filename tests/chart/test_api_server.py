"""What a real API server says to the rendered objects."""

import pytest
from chart import EXAMPLES, MINIMAL, configuration, merged, one
from cluster import Refused

EVERYTHING = {
    "labsNamespace": {"create": True, "labels": {"team": "hub"}},
    "state": {"persistence": {"enabled": True, "storageClassName": "fast"}},
    "service": {"annotations": {"a": "b"}},
    "ingress": {"enabled": True, "host": "lab.example.org", "tlsSecret": "tls", "annotations": {"a": "b"}},
    "networkPolicy": {"apiClients": [{"podSelector": {}}], "apiServerCidrs": ["192.0.2.1/32"]},
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"a": "b"},
    "podDisruptionBudget": {"enabled": True},
    "gafaelfawr": {
        "enabled": True,
        "host": "lab.example.org",
        "baseUrl": "https://lab.example.org",
        "minimumLifetime": 3600,
        "tlsSecret": "tls",
    },
}


@pytest.fixture(scope="module")
def home(cluster):
    return cluster.namespace("rendered")


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_the_api_server_accepts_every_object_of_an_example(chart, cluster, home, values):
    objects = chart.render(values, namespace=home)
    assert len(objects) > 8
    # Namespaces of labs exist before a release refers to them, or the release creates them.
    if (labs := configuration(objects)["names"].get("namespace")) and "{" not in labs:
        cluster.namespaces.append(labs)
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": labs}})
    cluster.dry_run(objects)


def test_the_api_server_accepts_what_no_example_has(chart, cluster, home):
    labs = cluster.namespace("rendered-labs")
    headers = {"url": "https://gafaelfawr.example.org", "trusted_peers": ["192.0.2.1"], "implied_scopes": []}
    config = {
        "kubernetes": {"namespaces": "single"},
        "names": {"namespace": labs},
        "auth": {"modes": ["headers"], "headers": headers},
    }
    objects = chart.render(merged(MINIMAL, EVERYTHING, {"config": config}), namespace=home)
    cluster.dry_run(objects)
    assert len([each for each in objects if each["kind"] == "GafaelfawrIngress"]) == 6
    for kind in ("Ingress", "PersistentVolumeClaim", "PodDisruptionBudget", "Namespace"):
        one(objects, kind)


def test_the_dry_run_finds_unknown_fields_of_foreign_kinds(chart, cluster, home):
    example = next(path for path in EXAMPLES if path.stem == "gafaelfawr")
    objects = chart.render(example, namespace=home)
    wrong = next(each for each in objects if each["kind"] == "GafaelfawrIngress")
    wrong["config"]["delegated"] = {}
    with pytest.raises(Refused, match="delegated"):
        cluster.dry_run([wrong])


@pytest.mark.parametrize("values", EXAMPLES, ids=lambda path: path.stem)
def test_the_pods_meet_the_restricted_pod_security_level(chart, cluster, values):
    home = cluster.namespace(f"restricted-{values.stem}", **{"pod-security.kubernetes.io/enforce": "restricted"})
    objects = chart.render(values, namespace=home)
    cluster.apply(one(objects, "ServiceAccount"))
    cluster.until(lambda: cluster.exists("serviceaccount", "default", "-n", home), "the default account")
    template = one(objects, "Deployment")["spec"]["template"]
    metadata = {**template["metadata"], "name": "served", "namespace": home}
    served = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    tested = one(objects, "Pod")
    cluster.dry_run([served, tested])
    for privileged in (served, tested):
        privileged["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
        with pytest.raises(Refused, match="violates PodSecurity"):
            cluster.dry_run([privileged])
