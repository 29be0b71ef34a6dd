"""The same site on the one-machine cluster, whose pods only look as if they ran."""

import json

from lab_service import LabService

API_PORT, HEALTH_PORT, CLUSTER_PORT = 8190, 8191, 8192


class SimulatedSite(LabService):
    """A site like another one, where profiles have faults: the annotations of their pods for the simulated kubelet."""

    def configure(self, like: dict, faults: dict[str, dict[str, str]]) -> dict:
        """The configuration of the other site, changed for the one-machine cluster."""
        config = json.loads(json.dumps(like))
        address = self.node.address
        config["http"] = {"listen": f"{address}:{API_PORT}", "health_listen": f"{address}:{HEALTH_PORT}"}
        config["auth"]["static"]["tokens_file"] = str(self.folder / "tokens.yaml")
        config["state_dir"] = str(self.folder)
        del config["kubernetes"], config["lab"]["secrets"]
        config["embedded"] = {
            "listen": f"127.0.0.1:{CLUSTER_PORT}",
            "runtime": "simulated",
            "simulated": {"schedule": "100ms", "init": "300ms", "ready": "1s"},
        }
        policy = config["policies"][0]
        policy["grants"] = {"metadata": ["simulated.kubelet/"]}
        for profile in policy["config"]["profile_list"]:
            annotations = {f"simulated.kubelet/{key}": value for key, value in faults.get(profile["slug"], {}).items()}
            profile["kubespawner_override"]["extra_annotations"] = annotations
        return config
