"""The Hub of `make run`, with an API token for the tests and frequent polls."""

import os

from jupyterhub.auth import DummyAuthenticator

c = get_config()  # noqa: F821
load_subconfig(os.environ["BASE_CONFIG"])  # noqa: F821


class WithTokens(DummyAuthenticator):
    """Stores a token of an identity provider for one user."""

    async def authenticate(self, handler, data):
        name = await super().authenticate(handler, data)
        state = {"token": "that-has-expired"} if name == os.environ["EXPIRED_USER"] else None
        return name and {"name": name, "auth_state": state}


c.JupyterHub.authenticator_class = WithTokens
c.Authenticator.enable_auth_state = True
c.Spawner.poll_interval = 1
# These have no effect, and the Hub's log says so.
c.KubeSpawner.image = "lab:1"
c.Spawner.mem_limit = "1G"
c.WasmSpawner.status_interval = 0.5
c.JupyterHub.services += [
    {"name": "e2e", "api_token": os.environ["E2E_TOKEN"]},
    {"name": "limited", "api_token": os.environ["E2E_TOKEN"] + "limited"},
]
c.JupyterHub.load_groups = {"staff": {"users": []}, "helpers": {"users": []}}
c.JupyterHub.load_roles += [
    {
        "name": "e2e",
        "services": ["e2e"],
        "scopes": [
            "admin:users",
            "admin:groups",
            "admin:servers",
            "access:servers",
            "shares",
            "read:hub",
            "list:users",
        ],
    },
    {"name": "staff", "groups": ["staff"], "scopes": ["access:servers"]},
    {"name": "limited", "services": ["limited"], "scopes": ["list:users!user=ada", "read:servers"]},
]
