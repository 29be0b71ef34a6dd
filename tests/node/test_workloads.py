"""Labs in somebody's web service, on a real kubelet."""

import json

import pytest
from lab_site import ANSWER, ROOT, eventually

SHOP = "shop"
# Like JupyterHub's single-user server, it listens where the Hub's URL says.
LISTEN = 'port=${JUPYTERHUB_SERVICE_URL##*:} && exec httpd -f -p "${port%%/*}" -h /tmp'
SERVE = "echo from the shop > /srv/greeting; exec httpd -f -p 8080 -h /srv"


@pytest.fixture
def shop(site, reconfigure):
    """A namespace with a web service of three replicas, into which labs may be put."""
    node = site.node
    node.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}})
    node.kubectl("apply", "-f", str(ROOT / "deploy/permissions/workloads.yaml"))
    container = {
        "name": "web",
        "image": node.shell_image,
        "command": ["sh", "-c", SERVE],
        "ports": [{"containerPort": 8080}],
        "env": [{"name": "COLOUR", "value": "red"}],
        "readinessProbe": {"httpGet": {"port": 8080, "path": "/greeting"}, "periodSeconds": 1},
        "volumeMounts": [{"name": "files", "mountPath": "/srv"}],
    }
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": [{"name": "files", "emptyDir": {}}],
        },
    }
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": SHOP}}
    node.apply(deployment | {"spec": spec})
    node.kubectl("rollout", "status", "deployment/web", "-n", SHOP, "--timeout=60s")

    def change(config: dict) -> None:
        config["workloads"] = {"namespaces": [SHOP]}
        policy = config["policies"][0]["config"]
        volumes = [{"volume": "files", "path": "/shop", "read_only": True}]
        policy["workloads"] = [{"workloads": [f"deployment/{SHOP}/web"], "volumes": volumes, "environment_of": "web"}]
        beside = {"image": node.shell_image, "cmd": ["sh", "-c", ANSWER + LISTEN], "mem_limit": "64M"}
        override = {"display_name": "beside", "slug": "beside", "kubespawner_override": beside | {"cpu_limit": 0.1}}
        policy["profile_list"].append(override)

    reconfigure(change)
    yield lambda: node.get("deployment", "web", "-n", SHOP)
    site.stop_to_end("ida")
    node.kubectl("delete", "namespace", SHOP)


def test_a_lab_reads_the_files_of_a_web_service_and_talks_to_it_on_localhost(site, shop):
    before = shop()["spec"]["template"]
    answer = site.spawn("ida", "beside", workload=f"deployment/{SHOP}/web")
    assert answer.status_code == 303, answer.text
    events = site.events("ida")
    assert events[-1].kind == "complete", events
    lab = site.lab("ida")
    url = lab["url"].removesuffix("/user/ida/")
    pods = json.loads(site.node.kubectl("get", "pods", "-n", SHOP, "-o", "json"))["items"]
    (pod,) = [pod for pod in pods if f"//{pod['status'].get('podIP')}:" in url]
    (name,) = [container["name"] for container in pod["spec"]["containers"] if container["name"] != "web"]

    def inside(script: str) -> str:
        return site.node.kubectl("exec", pod["metadata"]["name"], "-c", name, "-n", SHOP, "--", "sh", "-c", script)

    assert inside("cat /shop/greeting") == "from the shop\n"
    assert inside("wget -qO- http://localhost:8080/greeting") == "from the shop\n"
    assert inside("echo $COLOUR; id -u") == "red\n1000\n"
    assert inside("touch /shop/mine 2>/dev/null || echo refused") == "refused\n"
    assert inside("ls -A /var/run/secrets/kubernetes.io/serviceaccount") == "", "no token of the web service"
    other = next(each["metadata"]["name"] for each in pods if each is not pod)
    hub = ["exec", other, "-c", "web", "-n", SHOP, "--", "wget", "-qO-", f"{url}/user/ida/api"]
    assert site.node.kubectl(*hub) == "", "the page is empty, and there"

    # Its pod goes, and the lab goes on in another one.
    site.node.kubectl("delete", "pod", pod["metadata"]["name"], "-n", SHOP)
    eventually(lambda: site.lab("ida")["reason"] == "Moved", "the lab has moved")
    assert site.lab("ida")["status"] == "running"

    site.stop_to_end("ida")
    assert shop()["spec"]["template"] == before
    sets = json.loads(site.node.kubectl("get", "replicasets", "-n", SHOP, "-o", "json"))["items"]
    assert len(sets) == 1, "no rollback brings the lab back"
    site.node.kubectl("rollout", "status", "deployment/web", "-n", SHOP, "--timeout=60s")
    kept = json.loads(site.node.kubectl("get", "configmaps,secrets", "-n", SHOP, "-o", "json"))["items"]
    assert [item["metadata"]["name"] for item in kept] == ["kube-root-ca.crt"]
