"""The API of the cluster that a service has on one machine."""

import base64
from pathlib import Path

import requests
import yaml


def ask(state: Path, method: str, path: str, **options) -> requests.Response:
    """A request to the cluster of the service with this state folder. It has to succeed."""
    kubeconfig = yaml.safe_load((state / "kubeconfig").read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    authority = state / "cluster.pem"
    authority.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    session = requests.Session()
    session.trust_env, session.verify = False, str(authority)
    session.headers["Authorization"] = f"Bearer {kubeconfig['users'][0]['user']['token']}"
    answer = session.request(method, f"{cluster['server']}{path}", timeout=30, **options)
    answer.raise_for_status()
    return answer
