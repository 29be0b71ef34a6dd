"""What happens to a user's files on the volumes of a real node."""

import pytest
from lab_site import SHARED_NAMESPACE, eventually
from local_volume import STORAGE_CLASS, LocalVolume


def claim(name, on_server_deletion="retain", **create):
    """A claim that the policy makes for each server."""
    create = {"storage": "1Gi", "storage_class": STORAGE_CLASS, "on_server_deletion": on_server_deletion} | create
    return {"name": name, "create": create}


def with_volumes(namespaces, **claims):
    """A site whose labs are in namespaces of this kind, and mount these claims under their names in `/home`."""

    def change(config):
        config["kubernetes"]["namespaces"] = namespaces
        if namespaces != "delete":
            config["names"] = {"namespace": SHARED_NAMESPACE}
        policy = config["policies"][0]["config"]
        policy["volumes"] = [{"name": name, "claim": claim} for name, claim in claims.items()]
        policy["mounts"] = [{"volume": name, "path": f"/home/{name}"} for name in claims]

    return change


def problems(events):
    """The problems that the user was told."""
    return [event.data for event in events if event.kind == "error"]


@pytest.mark.parametrize(("namespaces", "user"), [("retain", "una"), ("single", "ute")])
def test_kept_files_outlive_lab_and_server(site, reconfigure, running, spawned, namespaces, user):
    kept, own = f"claim-{user}", f"scratch-{user}"
    reconfigure(with_volumes(namespaces, files=claim("{pvc_name}"), scratch=claim("scratch-{username}", "delete")))
    volumes = {LocalVolume(site.node, f"{user}-{number}") for number in (1, 2)}
    started = spawned(user, "plain")
    assert (started[-1].kind, problems(started)) == ("complete", [])
    assert {volume.claim for volume in volumes} == {f"{SHARED_NAMESPACE}/{kept}", f"{SHARED_NAMESPACE}/{own}"}
    # The folders of both volumes belonged to root; the kubelet has given them to the lab's group.
    site.run_inside(user, "id -u > /home/files/kept; touch /home/scratch/kept")

    site.stop_to_end(user)
    running(user, "plain")
    assert site.run_inside(user, "cat /home/files/kept; ls /home/scratch") == "1000\nkept\n"

    # JupyterHub deletes the server: what belongs to the server alone is deleted with it.
    site.stop_to_end(user)
    released = site.release_volumes(user)
    assert [gone["name"] for gone in released["deleted"]] == [own]
    assert [(left["name"], left["reason"]) for left in released["kept"]] == [(kept, "retained")]
    eventually(lambda: not site.node.get("pvc", own, "-n", SHARED_NAMESPACE), "the claim's end")
    another = LocalVolume(site.node, f"{user}-3")
    running(user, "plain")
    assert another.claim == f"{SHARED_NAMESPACE}/{own}", "nobody gets a volume with the files of somebody else"
    assert site.run_inside(user, "cat /home/files/kept; ls /home/scratch") == "1000\n"


def test_a_volume_goes_with_the_namespace_of_its_lab(site, reconfigure, running):
    reconfigure(with_volumes("delete", files=claim("{pvc_name}")))
    volume = LocalVolume(site.node, "uwe-1")
    running("uwe", "plain")
    site.run_inside("uwe", "touch /home/files/lost")
    assert volume.claim == "nublado-uwe/claim-uwe"

    site.stop_to_end("uwe")
    assert not site.node.get("pvc", "claim-uwe", "-n", "nublado-uwe")
    eventually(lambda: volume.phase == "Released", "the volume is released")
    # What becomes of the files is the storage class's affair. This one keeps them for the administrator.
    assert [path.name for path in volume.folder.iterdir()] == ["lost"]
    another = LocalVolume(site.node, "uwe-2")
    running("uwe", "plain")
    assert another.phase == "Bound"
    assert site.run_inside("uwe", "ls /home/files") == ""


def test_a_lab_waits_for_a_volume_and_says_so(site, reconfigure, requested):
    reconfigure(with_volumes("delete", files=claim("{pvc_name}")))
    LocalVolume(site.node, "too-small", size="1Mi")
    requested("vic", "plain")
    eventually(lambda: site.lab("vic")["reason"] == "Unschedulable", "it waits")
    lab = site.lab("vic")
    assert lab["status"] == "starting"
    assert "didn't find available persistent volumes to bind" in lab["message"]
    volume = LocalVolume(site.node, "vic-1")
    last = site.events("vic")[-1]
    assert last.kind == "complete", last.data
    assert volume.phase == "Bound"


def test_a_lab_whose_volume_can_never_come_fails_and_says_why(site, reconfigure, spawned):
    reconfigure(with_volumes("delete", files={"name": "{pvc_name}", "create": {"storage": "1Gi"}}))
    events = spawned("wim", "plain")
    assert events[-1].kind == "failed"
    assert "There is no storage for your volume claim-wim; please tell the site's administrators" in events[-1].data
    assert site.lab("wim")["reason"] == "FailedBinding"


# The site's own storage, in which root makes a folder for each user. It waits until the storage is open.
PROVISION = """
    until test -e /homes/open; do sleep 0.2; done
    mkdir -m 0700 /homes/$0 && chown 1000:1000 /homes/$0 && echo "user $(id -u) made the home of $0"
"""


def with_provisioned_homes(config):
    """A site that makes each user's home before the user's first lab, on a volume of its own."""
    with_volumes("retain")(config)
    policy = config["policies"][0]
    policy["grants"] = {"run-as-root-init": True}
    policy["config"]["volumes"] = [{"name": "homes", "claim": {"name": "homes"}}]
    policy["config"]["mounts"] = [{"volume": "homes", "path": "/home/{username}", "sub_path": "{username}"}]
    policy["config"]["init_containers"] = [
        {
            "name": "provision",
            "image": policy["config"]["init_containers"][0]["image"],
            "command": ["sh", "-c", PROVISION, "{username}"],
            "mounts": [{"volume": "homes", "path": "/homes"}],
            "profile": "baseline",
            "run": "until-provisioned",
        }
    ]


def test_root_makes_a_home_before_the_first_lab(site, reconfigure, requested):
    reconfigure(with_provisioned_homes)
    volume = LocalVolume(site.node, "homes")
    spec = {
        "storageClassName": STORAGE_CLASS,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    metadata = {"name": "homes", "namespace": SHARED_NAMESPACE}
    site.node.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})

    requested("xia", "plain")
    eventually(lambda: initial_container(site, "xia")["state"].get("running"), "it waits for the storage")
    lab = site.lab("xia")
    assert (lab["status"], lab["stage"]) == ("starting", "Initializing")
    assert lab["message"] == "Preparing your lab: provision."
    (volume.folder / "open").touch()
    last = site.events("xia")[-1]
    assert last.kind == "complete", last.data
    logs = site.node.kubectl("logs", "nb-xia", "-n", SHARED_NAMESPACE, "-c", "provision")
    assert logs == "user 0 made the home of xia\n"

    # The lab itself is an ordinary user without any capability, and has nothing but its home.
    assert site.run_inside("xia", "id -u; grep CapEff /proc/self/status") == "1000\nCapEff:\t0000000000000000\n"
    site.run_inside("xia", "echo mine > /home/xia/file")
    home = (volume.folder / "xia").stat()
    assert (home.st_uid, home.st_gid, home.st_mode & 0o777) == (1000, 1000, 0o700)
    assert (
        site.run_inside("xia", "ls /home /homes 2>&1 || true") == "ls: /homes: No such file or directory\n/home:\nxia\n"
    )

    site.stop_to_end("xia")
    requested("xia", "plain")
    last = site.events("xia")[-1]
    assert last.kind == "complete", last.data
    assert "initContainers" not in site.pod("xia")["spec"], "the home is made only once"
    assert site.run_inside("xia", "cat /home/xia/file") == "mine\n"


def initial_container(site, user):
    """The status of the container that makes the user's home."""
    return site.pod(user).get("status", {}).get("initContainerStatuses", [{"state": {}}])[0]
