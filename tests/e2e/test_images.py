"""Images of labs that come from a container registry: Debian's docker-registry, and one that has been taken over."""

import json
import subprocess
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import pytest
from local_registry import PASSWORD, USER, away, registry_or_skip, taken_over_registry
from lone_service import LoneService
from world import eventually

import toolchain

REPOSITORY = "site/lab"
TAGS = ["1.9", "1.10", "2.0-rc1"]


@pytest.fixture
def registry(tmp_path):
    with registry_or_skip(tmp_path / "registry") as registry:
        for tag in TAGS:
            registry.push_image(REPOSITORY, tag, tag)
        yield registry


def service(folder, repositories, registries, **images):
    """A service without policies whose images are those of the repositories."""

    def adapt(config):
        config["policies"] = []
        config["registries"] = registries
        config["images"] = {"repositories": repositories, "refresh_every": "10s"} | images

    return LoneService(folder, adapt)


def of_registry(folder, registry, **images):
    repositories = [{"name": f"{registry.address}/{REPOSITORY}"}]
    return service(folder, repositories, {"plain_http": [registry.address]}, **images)


def tags(service):
    """The tags of the only repository, once it has been read."""
    (repository,) = eventually(lambda: read(service), what="the registry is read")
    return [image["tag"] for image in repository["images"]]


def read(service):
    repositories = service.get("/images")["repositories"]
    return repositories if all(repository["refreshed_at"] for repository in repositories) else None


def test_users_choose_from_what_the_registry_has_and_labs_are_pinned(registry, tmp_path):
    lone = of_registry(tmp_path, registry)
    with lone.running():
        assert tags(lone) == ["2.0-rc1", "1.10", "1.9"], "newest first"
        menu = lone.get("/images/ada")
        assert [(image["name"], image["default"]) for image in menu["images"]] == [
            ("2.0-rc1", True),
            ("1.10", False),
            ("1.9", False),
        ]
        form = lone.ask("GET", "/spawn-form/ada").text
        assert 'value="1.10"' in form
        image = lone.start_lab("ada", image="1.9")["image"]
        expected = menu_digest(menu, "1.9")
        assert image["digest"] == expected
        assert image["reference"] == f"{registry.address}/{REPOSITORY}:1.9"
        lab = lone.get("/labs/ada")
        assert lab["env"]["IMAGE_DIGEST"] == expected
        assert lab["env"]["IMAGE_DESCRIPTION"] == "lab 1.9"
        listed = lone.command("images", "list")
        assert f"{registry.address}/{REPOSITORY}: 3 tags, read at 20" in listed
        assert f"1.9  {' ' * 29}{expected}\n" in listed
        assert f"1.10  {' ' * 28}{'sha256:'}" in lone.command("images", "menu", "ada")
        refused = lone.ask("POST", "/labs/eve/spawn", {"options": {"image": "3.0"}})
        assert refused.status_code == 422
        assert "there is no image" in refused.text
        assert "2.0-rc1, 1.10, 1.9" in refused.text


def test_a_tag_that_moves_changes_later_labs_only(registry, tmp_path):
    lone = of_registry(tmp_path, registry)
    with lone.running():
        tags(lone)
        before = lone.start_lab("ada", image="1.9")["image"]["digest"]
        moved = registry.push_image(REPOSITORY, "1.9", "another")
        registry.push_image(REPOSITORY, "2.0", "new")

        def digest():
            images = lone.get("/images")["repositories"][0]["images"]
            return next(image["digest"] for image in images if image["tag"] == "1.9")

        eventually(lambda: digest() == moved, what="the service notices that the tag has moved")
        assert tags(lone)[0] == "2.0"
        assert lone.start_lab("eve", image="1.9")["image"]["digest"] == moved
        assert lone.get("/labs/ada")["image"]["digest"] == before


def test_a_registry_that_is_away_changes_nothing_and_is_reported(registry, tmp_path):
    lone = of_registry(tmp_path, registry)
    with lone.running() as process:
        known = tags(lone)
        with away(registry):
            problem = eventually(lambda: lone.get("/images")["repositories"][0]["problem"], what="a problem")
            assert "the registry does not answer: it cannot be reached" in problem["message"]
            assert problem["since"]
            assert tags(lone) == known
            assert lone.start_lab("ada", image="1.10")["image"]["digest"].startswith("sha256:")
        eventually(lambda: not lone.get("/images")["repositories"][0]["problem"], what="the registry is back")
        log = process.log.read_text()
        assert log.count("the images cannot be read; what was known stays") == 1
        assert log.count("the images can be read again") == 1


def test_a_restart_does_not_need_the_registry(registry, tmp_path):
    lone = of_registry(tmp_path, registry)
    with lone.running():
        known = tags(lone)
    with away(registry), lone.running():
        assert tags(lone) == known
        assert lone.start_lab("ada", image="1.10")["image"]["digest"].startswith("sha256:")
        eventually(lambda: lone.get("/images")["repositories"][0]["problem"], what="a problem")
    (lone.settings.state / "images.json").write_text("{")
    with lone.running() as process:
        assert tags(lone) == known
        assert "the images of the last time cannot be read" in process.log.read_text()


def test_what_cannot_be_pinned_follows_the_choice_of_the_site(registry, tmp_path):
    lone = of_registry(tmp_path, registry, unpinned="refuse")
    with away(registry), lone.running():
        eventually(lambda: lone.get("/images")["repositories"][0]["problem"], what="a problem")
        failed = lone.failed_lab("ada")
        assert "local/lab:latest: its digest is not known" in failed["message"], failed


def test_only_tags_that_the_site_names_are_read(registry, tmp_path):
    repositories = [{"name": f"{registry.address}/{REPOSITORY}", "tags": ["1.*"]}]
    lone = service(tmp_path, repositories, {"plain_http": [registry.address]})
    with lone.running():
        assert tags(lone) == ["1.10", "1.9"]


def test_a_private_registry_is_read_with_a_login(tmp_path):
    with registry_or_skip(tmp_path / "guarded", guarded=True) as registry:
        for tag in TAGS:
            registry.push_image(REPOSITORY, tag, tag)
        logins = tmp_path / "logins.json"
        logins.write_text(json.dumps({"auths": {registry.address: {"username": USER, "password": PASSWORD}}}))
        logins.chmod(0o600)
        registries = {"credentials_file": str(logins), "ca_file": str(registry.authority)}
        lone = service(tmp_path, [{"name": f"{registry.address}/{REPOSITORY}"}], registries)
        with lone.running():
            assert tags(lone) == ["2.0-rc1", "1.10", "1.9"]


def test_the_menu_of_the_rubin_science_platform(tmp_path):
    """Its tags, classes and sizes, in the service with a real registry."""
    tags = [
        *(f"w_2026_{week}" for week in range(35, 42)),
        "d_2026_10_05",
        "r28_0_2",
        "exp_w_2026_40_new",
        "w_2026_41-arm64",
    ]
    with registry_or_skip(tmp_path / "registry") as registry:
        for tag in tags:
            registry.push_image(REPOSITORY, tag, tag)
        registry.push_image(REPOSITORY, "recommended", "r28_0_2")
        lone = of_registry(tmp_path, registry)
        adapt = lone.settings.adapt
        rubin = {
            "images": {"source": {"type": "docker", "registry": registry.address, "repository": REPOSITORY}},
            "lab": {"sizes": [{"size": "small", "cpu": 1, "memory": "4Gi"}]},
        }

        def with_policy(config):
            adapt(config)
            path, grants = str(toolchain.policy("policy-rubin")), {"secrets": ["nb-{user_server}"]}
            config["policies"] = [{"name": "rubin", "path": path, "grants": grants, "config": rubin}]

        lone.settings.adapt = with_policy
        with lone.running():
            eventually(lambda: read(lone), what="the registry is read")
            menu = lone.get("/images/ada")
            shown = {image["name"]: (image["label"], image["shown"]) for image in menu["images"]}
            assert menu["source"] == "policy `rubin`"
            assert menu["images"][0]["name"] == "recommended"
            assert shown["recommended"] == ("Recommended (Release r28.0.2)", "first")
            assert shown["w_2026_41"] == ("Weekly 2026_41", "rest"), "nobody knows which nodes have it"
            assert shown["w_2026_40"] == ("Weekly 2026_40", "rest")
            assert shown["w_2026_41-arm64"][1] == "hidden"
            assert {entry["name"]: entry["image"] for entry in menu["classes"]}["latest-weekly"] == "w_2026_41"
            form = lone.ask("GET", "/spawn-form/ada").text
            assert '<option value="w_2026_40">' in form
            assert "w_2026_41-arm64" not in form
            lab = lone.start_lab("ada", image="latest-weekly", size="small")
            assert lab["options"] == lab["options"] | {"image": "w_2026_41", "size": "small"}
            assert lab["image"]["description"] == "Weekly 2026_41"
            assert lab["image"]["digest"] == menu_digest(menu, "w_2026_41")
            known = lone.get("/images")
    # The same without a service, as a site tries its tags.
    known["nodes"] = [{"name": "a", "excluded": None}, {"name": "b", "excluded": "it is cordoned"}]
    (tmp_path / "known.json").write_text(json.dumps(known))
    (tmp_path / "rubin.json").write_text(json.dumps(rubin))
    policy = toolchain.policy("policy-rubin")
    command = [lone.settings.program, "policy", "run", policy, "images", "--config", tmp_path / "rubin.json"]
    tried = subprocess.run(
        [*command, "--input", tmp_path / "known.json"], stdout=subprocess.PIPE, check=True, text=True
    )
    answer = json.loads(tried.stdout)
    assert sorted(entry["name"] for entry in answer["menu"]["entries"]) == sorted(shown)
    wanted = [image["reference"].rpartition(":")[2] for image in answer["prepull"]]
    assert wanted == ["recommended", "w_2026_41", "w_2026_40", "d_2026_10_05"]
    repository = f"{registry.address}/{REPOSITORY}"
    assert [(pull["node"], pull["image"]) for pull in answer["missing"]] == [
        ("a", f"{repository}@{menu_digest(menu, tag)}") for tag in wanted
    ]


def test_the_default_policy_takes_images_from_a_repository(registry, tmp_path):
    lone = of_registry(tmp_path, registry)
    adapt = lone.settings.adapt

    def with_policy(config):
        default = config["policies"][0]
        adapt(config)
        offered = {
            "name": "site",
            "repository": f"{registry.address}/{REPOSITORY}",
            "versions": "*",
            "recommended": True,
        }
        default["config"] |= {"images": [], "image_repositories": [offered]}
        config["policies"] = [default]

    lone.settings.adapt = with_policy
    with lone.running():
        tags(lone)
        images = lone.get("/images/ada")["images"]
        assert [(image["name"], image["recommended"]) for image in images] == [("site:1.10", True), ("site:1.9", False)]
        form = lone.ask("GET", "/spawn-form/ada").text
        assert form.count('name="image"') == 2
        assert 'name="size"' in form
        lab = lone.start_lab("ada", image="site:1.9", size="small")
        assert lab["image"]["reference"].endswith("/site/lab:1.9")
        assert lab["image"]["digest"] == menu_digest(lone.get("/images/ada"), "site:1.9")


def test_what_every_node_has_is_shown_first(registry, tmp_path):
    lone = of_registry(tmp_path, registry, nodes={})
    with lone.running():
        tags(lone)
        digest = menu_digest(lone.get("/images/ada"), "1.9")
        name = f"{registry.address}/{REPOSITORY}"

        def pulled(tag, digest):
            images = [{"names": [f"{name}@{digest}", f"{name}:{tag}"], "sizeBytes": 1}]
            lone.patch_node({"status": {"images": images}}, "/status")

        def shown():
            images = lone.get("/images/ada")["images"]
            return {image["name"]: (image["shown"], image["nodes_with"]) for image in images}

        pulled("1.9", digest)
        eventually(lambda: shown()["1.9"] == ("first", 1), what="the node's image is known")
        assert shown()["1.10"] == ("rest", 0)
        pulled("1.9", "sha256:" + 64 * "0")
        eventually(lambda: shown()["1.9"] == ("rest", 0), what="another image of the same tag does not count")
        lone.patch_node({"spec": {"unschedulable": True}})
        eventually(lambda: lone.get("/images")["nodes"][0]["excluded"] == "it is cordoned", what="the reason")


def menu_digest(menu, name):
    return next(image["digest"] for image in menu["images"] if image["name"] == name)


class HostileRegistry(BaseHTTPRequestHandler):
    """A registry that has been taken over. What it does depends on the repository."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        what = self.path.removeprefix("/v2/").split("/", 1)[0]
        if what == "silent":
            self.server.ended.wait(60)
        elif what == "html":
            self.answer(b"<html>Please log in</html>")
        elif what == "huge":
            self.answer(b'{"tags": ["' + b"a" * (9 << 20) + b'"]}')
        elif what == "looping":
            self.answer(b'{"tags": ["a"]}', Link='</v2/looping/tags/list?last=a&n=1>; rel="next"')
        elif what == "endless":
            number = int(self.path.rpartition("=")[2]) if "last" in self.path else 0
            page = json.dumps({"tags": [f"t{number + at}" for at in range(1000)]})
            self.answer(page.encode(), Link=f'</v2/endless/tags/list?last={number + 1000}>; rel="next"')
        elif what == "elsewhere":
            self.answer(b'{"tags": []}' if "page=2" in self.path else b'{"tags": ["1.0"]}', Link=self.elsewhere())
        else:
            self.answer(json.dumps({"tags": ["1.0", "not a tag", "../../etc", "2.0"]}).encode())

    def do_HEAD(self):
        self.answer(b"", **{"Docker-Content-Digest": "sha256:nonsense"})

    def elsewhere(self):
        """The next page is on another host, which must not be asked."""
        return '<http://192.0.2.1/v2/elsewhere/tags/list?page=2>; rel="next"' if "page=2" not in self.path else ""

    def answer(self, body, **headers):
        with suppress(OSError):
            self.send_response(200)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def hostile():
    with taken_over_registry(HostileRegistry) as address:
        yield address


def test_a_registry_cannot_lie_or_keep_the_service_busy(hostile, tmp_path):
    expected = {
        "html": "the registry has sent something that is no list of tags",
        "huge": "8388608 are allowed",
        "looping": "the registry's list of tags does not end",
        "endless": "the repository has more than 20000 tags",
        "elsewhere": "tag 1.0: the registry has sent a wrong digest",
        "liar": "the registry has sent a wrong digest",
        "silent": "the registry does not answer: it takes too long",
    }
    repositories = [{"name": f"{hostile}/{name}/lab"} for name in expected]
    lone = service(tmp_path, repositories, {"plain_http": [hostile], "timeout": "3s"})
    with lone.running():

        def problems():
            found = lone.get("/images")["repositories"]
            return found if all(repository["problem"] for repository in found) else None

        found = eventually(problems, what="all problems are reported")
        for repository in found:
            name = repository["name"].split("/")[1]
            assert expected[name] in repository["problem"]["message"], repository["problem"]
            assert all(image["digest"] is None for image in repository["images"])
        liar = next(repository for repository in found if "/liar/" in repository["name"])
        assert [image["tag"] for image in liar["images"]] == ["2.0", "1.0"], "what is no tag is left out"


def test_a_silent_registry_delays_no_lab(hostile, tmp_path):
    lone = service(tmp_path, [{"name": f"{hostile}/silent/lab"}], {"plain_http": [hostile], "timeout": "1m"})
    adapt = lone.settings.adapt

    def with_image(config):
        adapt(config)
        config["lab"]["image"] = "example.org/lab:1"

    lone.settings.adapt = with_image
    with lone.running():
        before = time.monotonic()
        assert "digest" not in lone.start_lab("ada")["image"] or lone.get("/labs/ada")["image"]["digest"] is None
        assert time.monotonic() - before < 50, "less than the registry takes"
        assert lone.get("/images")["repositories"][0]["refreshed_at"] is None
