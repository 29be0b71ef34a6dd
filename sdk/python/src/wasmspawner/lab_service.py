"""The service as a lab reaches it: its URL, the lab's name and the token are in variables of the lab."""

import os
from dataclasses import dataclass
from pathlib import Path

from .errors import Unreachable
from .lab import Lab


class NoService(RuntimeError):
    """A setting is missing without which the service cannot be reached."""


def token_file_of_lab() -> str:
    """The file with the lab's token. Where labs are processes of one machine, the folder that is mounted in a pod is
    another one, and a variable says which."""
    file = os.environ.get("WASMSPAWNER_TOKEN_FILE", "")
    mounted = os.environ.get("WASMSPAWNER_MOUNT_WASMSPAWNER_SECRETS", "")
    return str(Path(mounted) / Path(file).name) if file and mounted else file


def read_token(path: str) -> str:
    """The token in a file. It is read for each request, because it may change."""
    try:
        return Path(path).read_text().strip()
    except OSError as error:
        raise Unreachable(f"the token for the service cannot be read: {error}", unsent=True) from error


def token_refused(why: str) -> str:
    """What the user is told about an answer 401. `why` is what the service says; empty if an ingress has answered."""
    return (
        f"The service does not accept the token of this Jupyter server{f' ({why})' if why else ''}. It may have expired: save "
        "your work, stop the server in JupyterHub, and start it again."
    )


@dataclass(frozen=True, slots=True)
class LabService:
    """How a lab reaches the service."""

    url: str
    lab: Lab
    token_file: str = ""
    token: str = ""

    @classmethod
    def of_environment(cls) -> "LabService":
        """The service of this lab. Raises `NoService` if a variable is missing."""
        environ = os.environ
        token_file, token = token_file_of_lab(), environ.get("WASMSPAWNER_TOKEN", "")
        for what, value, variable in (
            ("the service's URL", environ.get("WASMSPAWNER_URL"), "WASMSPAWNER_URL"),
            ("the name of the lab's user", environ.get("JUPYTERHUB_USER"), "JUPYTERHUB_USER"),
            ("a token for the service", token_file or token, "WASMSPAWNER_TOKEN_FILE or WASMSPAWNER_TOKEN"),
        ):
            if not value:
                raise NoService(
                    f"The environment variable {variable}, which has {what}, is not set. It is set in labs that "
                    "wasmspawner has started; elsewhere, set it yourself."
                )
        lab = Lab(environ["JUPYTERHUB_USER"], environ.get("JUPYTERHUB_SERVER_NAME", ""))
        return cls(environ["WASMSPAWNER_URL"].rstrip("/"), lab, token_file, token)

    @property
    def lab_url(self) -> str:
        """The URL of the lab's own resource."""
        return self.url.rstrip("/") + self.lab.path

    def read_token(self) -> str:
        """The token, for one request."""
        return read_token(self.token_file) if self.token_file else self.token
