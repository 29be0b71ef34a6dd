"""Policies that come from a container registry: Debian's docker-registry with artifacts as `make image` packs them, and a
registry that has been taken over."""

import base64
import hashlib
import json
import subprocess
import sys
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import pytest
import requests
from local_registry import PASSWORD, USER, away, registry_or_skip, taken_over_registry
from lone_service import LoneService
from world import ROOT

import toolchain

sys.path.insert(0, str(ROOT / "deploy/image"))

import artifact

REPOSITORY = "policies/deny-group"


@pytest.fixture(scope="module")
def layout(tmp_path_factory):
    """A policy as an artifact."""
    folder = tmp_path_factory.mktemp("artifact") / "deny-group"
    artifact.pack(folder, toolchain.policy("policy-deny-group"), "1.0", "2026-01-01T00:00:00+00:00")
    return folder


@pytest.fixture
def registry(tmp_path):
    with registry_or_skip(tmp_path / "registry") as registry:
        yield registry


@pytest.fixture
def guarded_registry(tmp_path):
    with registry_or_skip(tmp_path / "guarded", guarded=True) as registry:
        yield registry


@pytest.fixture
def check(tmp_path):
    """Runs `wasmspawner check` with a policy; returns whether it is good, and what was printed."""

    def run(oci, registries, **policy):
        config = {
            "auth": {"modes": ["jupyterhub"], "jupyterhub": {"api_url": "http://hub:8081/hub/api"}},
            "policies": [{"name": "suspended", "oci": oci, "config": {"deny": ["suspended"]}} | policy],
            "registries": registries,
            "state_dir": str(tmp_path / "state"),
        }
        file = tmp_path / "wasmspawner.yaml"
        file.write_text(json.dumps(config))  # JSON is YAML
        command = [toolchain.target_dir() / "debug/wasmspawner", "check", "--config", file]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
        return ended.returncode == 0, ended.stdout + ended.stderr

    return run


def test_a_policy_is_named_by_its_tag_or_by_its_digest(registry, layout, check):
    pinned = registry.push(layout, REPOSITORY, "1.0")
    plain = {"plain_http": [registry.address]}
    for reference in (f"{registry.address}/{REPOSITORY}:1.0", pinned):
        good, output = check(reference, plain)
        assert good, output
        assert "policy suspended: ok" in output


def test_what_cannot_be_pulled_is_named_with_the_key_and_the_remedy(registry, layout, check):
    registry.push(layout, REPOSITORY, "1.0")
    plain = {"plain_http": [registry.address]}
    address = registry.address
    other = "sha256:" + 64 * "0"
    for reference, registries, expected in [
        (f"{address}/{REPOSITORY}:2.0", plain, "the registry has nothing of this name and tag"),
        (f"{address}/no/such:1.0", plain, "the registry has nothing of this name and tag"),
        (f"{address}/{REPOSITORY}@{other}", plain, "the registry has nothing of this name and tag"),
        (f"{address}/{REPOSITORY}:1.0", {}, "a registry without TLS is listed in `registries.plain_http`"),
        ("127.0.0.1:1/policy:1", {"plain_http": ["127.0.0.1:1"]}, "it cannot be reached"),
        ("a policy", {}, '"a policy" is not a reference such as'),
        ("Policy:1", {}, '"Policy:1" is not a reference such as'),
    ]:
        good, output = check(reference, registries)
        assert not good, output
        assert "policies[0].oci: policy `suspended`:" in output, output
        assert expected in output, output


def test_a_component_has_the_digest_that_the_site_expects(registry, layout, check):
    registry.push(layout, REPOSITORY, "1.0")
    reference = f"{registry.address}/{REPOSITORY}:1.0"
    good, output = check(reference, {"plain_http": [registry.address]}, digest="sha256:" + 64 * "1")
    assert not good
    assert "the configuration pins sha256:1111" in output


def test_an_image_is_not_a_policy(registry, layout, check):
    """What has another type, and what has two files."""
    registry.push(layout, REPOSITORY, "1.0")
    entry = json.loads((layout / "index.json").read_text())["manifests"][0]
    manifest = json.loads(registry.blob(layout, entry["digest"]))
    (layer,) = manifest["layers"]
    image = manifest | {"layers": [layer | {"mediaType": "application/vnd.oci.image.layer.v1.tar"}]}
    twice = manifest | {"layers": [layer, layer]}
    for tag, other in (("image", image), ("twice", twice)):
        registry.push_manifest(REPOSITORY, tag, json.dumps(other).encode(), entry["mediaType"])
        good, output = check(f"{registry.address}/{REPOSITORY}:{tag}", {"plain_http": [registry.address]})
        assert not good
        assert "it must have one file of the type application/wasm" in output, output


def test_a_private_registry_wants_a_password_and_a_known_certificate(guarded_registry, layout, check, tmp_path):
    registry = guarded_registry
    registry.push(layout, REPOSITORY, "1.0")
    reference = f"{registry.address}/{REPOSITORY}:1.0"

    def logins(name, password=PASSWORD, mode=0o600):
        file = tmp_path / f"{name}.json"
        encoded = base64.b64encode(f"{USER}:{password}".encode()).decode()
        file.write_text(json.dumps({"auths": {registry.address: {"auth": encoded}}}))
        file.chmod(mode)
        return {"ca_file": str(registry.authority), "credentials_file": str(file)}

    good, output = check(reference, logins("right"))
    assert good, output
    for registries, expected in [
        (logins("wrong", "wrong"), "the login in `registries.credentials_file` may be wrong"),
        ({"ca_file": str(registry.authority)}, "needs a login in `registries.credentials_file`"),
        (logins("right") | {"ca_file": "/no/such.pem"}, "registries.ca_file: /no/such.pem: No such file"),
        ({}, "`registries.ca_file` names the authorities"),
        (logins("open", mode=0o644), "others than its owner have access to it (mode 644)"),
    ]:
        good, output = check(reference, registries)
        assert not good
        assert expected in output, output
        assert PASSWORD not in output


@pytest.fixture
def service(tmp_path, registry):
    """A service whose second policy comes from the registry, by its tag. It is started by the test."""

    def adapt(config):
        del config["policies"][1]["path"]
        config["policies"][1]["oci"] = f"{registry.address}/{REPOSITORY}:1.0"
        config["registries"] = {"plain_http": [registry.address]}

    return LoneService(tmp_path, adapt)


def loaded(service, *, reload=False):
    """The digest of the policy from the registry, after a reload of all policies if that is asked for."""
    if reload:
        service.ask("POST", "/policies/reload").raise_for_status()
    return next(policy["digest"] for policy in service.get("/policies") if policy["name"] == "suspended")


def push_other(registry, folder, content):
    """Let the tag mean another component."""
    component, layout = folder / "other.wasm", folder / "other"
    component.write_bytes(content)
    artifact.pack(layout, component, "1.0", "2026-01-02T00:00:00+00:00")
    registry.push(layout, REPOSITORY, "1.0")


def test_a_tag_is_looked_up_at_start_and_reload_and_outlives_the_registry(registry, layout, service, tmp_path):
    registry.push(layout, REPOSITORY, "1.0")
    with service.running():
        first = loaded(service)
        # A component with a custom section more is another one, and does the same.
        push_other(registry, tmp_path, toolchain.policy("policy-deny-group").read_bytes() + b"\x00\x04\x01n" + b"ew")
        assert loaded(service) == first
        second = loaded(service, reload=True)
        assert second != first
    with away(registry), service.running() as process:
        assert loaded(service) == second
        assert "the registry cannot be asked; the policy of the last time is used" in process.log.read_text()


def test_a_policy_with_a_digest_needs_its_registry_only_once(registry, layout, service):
    pinned = registry.push(layout, REPOSITORY, "1.0")
    adapt = service.settings.adapt

    def pin(config):
        adapt(config)
        config["policies"][1]["oci"] = pinned

    service.settings.adapt = pin
    with service.running():
        pass
    with away(registry), service.running() as process:
        assert loaded(service)
        assert "cannot be asked" not in process.log.read_text()


def test_what_a_restart_falls_back_on_is_the_last_good_policy(registry, layout, service, tmp_path):
    registry.push(layout, REPOSITORY, "1.0")
    with service.running():
        good = loaded(service)
        push_other(registry, tmp_path, b"no component")
        with pytest.raises(requests.HTTPError):
            loaded(service, reload=True)
        assert loaded(service) == good
    with away(registry), service.running():
        assert loaded(service) == good


def test_a_policy_that_is_too_large_is_not_downloaded(registry, layout, check):
    registry.push(layout, REPOSITORY, "1.0")
    entry = json.loads((layout / "index.json").read_text())["manifests"][0]
    manifest = json.loads(registry.blob(layout, entry["digest"]))
    manifest["layers"][0]["size"] = 1 << 40
    registry.push_manifest(REPOSITORY, "huge", json.dumps(manifest).encode(), entry["mediaType"])
    good, output = check(f"{registry.address}/{REPOSITORY}:huge", {"plain_http": [registry.address]})
    assert not good
    assert "it has 1099511627776 bytes; 33554432 are allowed" in output


class HostileRegistry(BaseHTTPRequestHandler):
    """A registry that has been taken over. What it does depends on the repository."""

    def do_GET(self):
        what, part = self.path.removeprefix("/v2/").split("/", 1)
        blob = b"not what was asked for"
        digest = f"sha256:{hashlib.sha256(b'what was asked for').hexdigest()}"
        layer = {"mediaType": "application/wasm", "digest": digest, "size": len(blob)}
        manifest = {"schemaVersion": 2, "mediaType": artifact.MANIFEST, "config": layer, "layers": [layer]}
        if what == "silent":
            self.server.ended.wait(60)
        elif what == "html":
            self.answer(b"<html>Please log in</html>", "text/html")
        elif what == "endless-manifest" or (part.startswith("blobs/") and what == "endless"):
            self.send_endless_answer()
        elif what == "token" and "Authorization" not in self.headers:
            self.send_response(401)
            self.send_header("WWW-Authenticate", f'Bearer realm="http://{self.headers["Host"]}/v2/{self.token}/for"')
            self.end_headers()
        elif what in ("names", "redirects"):
            # To a host that is no registry, such as one on a link-local address that hands out credentials.
            elsewhere = f"http://{self.headers['Host'].replace('127.0.0.1', 'localhost')}/v2/endless-token/for"
            self.send_response(401 if what == "names" else 307)
            self.send_header("Location", elsewhere)
            self.send_header("WWW-Authenticate", f'Bearer realm="{elsewhere}"')
            self.end_headers()
        elif what in ("newline", "endless-token", "away"):
            self.answer_as_service_for_tokens(what)
        elif part.startswith("blobs/"):
            self.answer(blob, "application/octet-stream")
        else:
            self.answer(json.dumps(manifest).encode(), artifact.MANIFEST)

    @property
    def token(self):
        """What the service for tokens does, which the tag says."""
        return self.path.rsplit("/", 1)[1]

    def answer_as_service_for_tokens(self, how):
        if how == "newline":
            self.answer(json.dumps({"token": "a\nb"}).encode(), "application/json")
        elif how == "away":
            self.send_error(503)
        else:
            self.send_endless_answer()

    def send_endless_answer(self):
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            for _ in range(1 << 10):
                self.wfile.write(bytes(1 << 20))

    def answer(self, body, media_type):
        self.send_response(200)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def hostile():
    with taken_over_registry(HostileRegistry) as address:
        yield address


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wrong:1", "the registry has sent something else"),
        ("wrong@sha256:" + 64 * "0", "the registry has sent something else"),
        ("endless-manifest:1", "4194304 are allowed"),
        ("token:newline", "a credential has characters that no header can have"),
        ("token:endless-token", "65536 are allowed"),
        ("token:away", "the registry does not answer: its answer has the status 503"),
        ("endless:1", "33554432 are allowed"),
        ("names:1", "it names another host without TLS that is not in registries.plain_http"),
        ("redirects:1", "it names another host without TLS that is not in registries.plain_http"),
        ("html:1", "the registry has sent something that is no manifest"),
        ("silent:1", "the registry does not answer: it t"),
    ],
)
def test_a_registry_cannot_pass_off_something_else_or_keep_the_service_busy(hostile, check, name, expected):
    timeout = "2s" if "silent" in name else "1m"
    good, output = check(f"{hostile}/{name}", {"plain_http": [hostile], "timeout": timeout})
    assert not good
    assert expected in output, output
