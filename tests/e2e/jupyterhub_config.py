"""The Hub of `make run`, with an API token for the tests and frequent polls."""

import os

c = get_config()  # noqa: F821
load_subconfig(os.environ["BASE_CONFIG"])  # noqa: F821

c.Spawner.poll_interval = 1
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
