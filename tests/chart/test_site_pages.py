"""The pages of deploy/sites: their values work with both charts, and labs are as they say."""

import re
import subprocess

import pytest
import service
import yaml
from chart import DEPLOY, configuration, one
from site_network import API, VALUES, Site, assert_connected, assert_separate, lab, runnable, site

PAGES = sorted((DEPLOY / "sites").glob("*.md"))
FILE = re.compile(r"(?ms)^```yaml\n# (\S+\.yaml)\n(.*?)^```$")
INSTALL = re.compile(r"(?m)^helm upgrade --install (\S+) deploy/chart -n (\S+) (.*)$")
GPU = ["--group", "users:100", "--group", "vision:2000", "--option", "size=gpu"]


class Release:
    """A release of the service's chart that a page installs."""

    def __init__(self, chart, page, name, namespace, arguments):
        files = dict(FILE.findall(page))
        values = [yaml.safe_load(files.pop(file)) for file in re.findall(r"-f (\S+)", arguments)]
        self.namespace = namespace
        self.objects = chart.render(*values, name=name, namespace=namespace)
        self.configuration = runnable(configuration(self.objects))

    def site(self) -> Site:
        return site(yaml.safe_load(VALUES.read_text()), self.namespace, self.objects, self.configuration)

    def lab(self, *arguments: str) -> list[dict]:
        return lab(self.configuration, *arguments)


@pytest.fixture
def releases(chart):
    def made(name: str) -> list[Release]:
        page = (DEPLOY / "sites" / f"{name}.md").read_text()
        return [Release(chart, page, *found) for found in INSTALL.findall(page)]

    return made


@pytest.mark.parametrize("name", [page.stem for page in PAGES])
def test_the_values_of_a_page_are_a_site_that_works(releases, name, tmp_path):
    made = releases(name)
    files = FILE.findall((DEPLOY / "sites" / f"{name}.md").read_text())
    assert len(made) == len(files) >= 1, "each file is given to Helm"
    for release in made:
        service.check(release.configuration, tmp_path)
        network = release.site().network()
        assert_connected(release.site(), network)
        assert_separate(release.site(), network)


def test_every_page_is_in_the_list_of_pages():
    listed = (DEPLOY / "README.md").read_text()
    assert len(PAGES) == 4
    assert [page.name for page in PAGES if f"(sites/{page.name})" not in listed] == []


def test_homes_on_nfs_are_made_and_mounted(releases):
    (release,) = releases("nfs-homes")
    pod = one(release.lab(), "Pod")
    assert pod["metadata"]["namespace"] == "jupyterhub-labs"
    (home,) = [volume for volume in pod["spec"]["volumes"] if "nfs" in volume]
    (mount,) = [each for each in pod["spec"]["containers"][0]["volumeMounts"] if each["name"] == home["name"]]
    assert (mount["mountPath"], mount["subPath"]) == ("/home/jovyan", "ada")
    (make_home,) = pod["spec"]["initContainers"]
    assert '"/homes/ada"' in make_home["command"][-1]
    assert make_home["securityContext"]["runAsUser"] == 0
    assert one(release.objects, "Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
    assert not [each for each in release.objects if each["kind"] == "ClusterRole"]


def test_each_user_has_a_claim(releases):
    (release,) = releases("dynamic-claims")
    claim = one(release.lab(), "PersistentVolumeClaim")
    assert claim["metadata"]["name"] == "claim-ada"
    assert claim["spec"]["storageClassName"] == "standard"


def test_only_a_group_gets_gpus(releases):
    (release,) = releases("gpus-by-group")
    pod = one(release.lab(*GPU), "Pod")
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod["spec"]["nodeSelector"] == {"node.kubernetes.io/instance-type": "g5.2xlarge"}
    with pytest.raises(subprocess.CalledProcessError):
        release.lab("--option", "size=gpu")


def test_hubs_in_a_cluster_share_no_object_and_no_lab(releases):
    physics, biology = releases("several-hubs")
    definitions = "CustomResourceDefinition"
    assert [each for each in physics.objects if each["kind"] == definitions]
    assert not [each for each in biology.objects if each["kind"] == definitions]

    def places(release):
        return {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]) for o in release.objects}

    assert not places(physics) & places(biology)
    instances = [release.configuration["kubernetes"]["instance"] for release in (physics, biology)]
    assert instances == ["physics-wasmspawner", "biology-wasmspawner"]
    ours, theirs = physics.site(), biology.site()
    assert (ours.lab.namespace, theirs.lab.namespace) == ("physics-ada", "biology-ada")
    ours.policies += theirs.policies
    assert_connected(ours, ours.network())
    for source, target, port in [(theirs.hub, ours.lab, 8888), (theirs.hub, ours.service, API)]:
        assert not ours.network(pods_are_addresses=True).lets(source, target, port)
