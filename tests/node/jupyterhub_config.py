"""The Hub of `make run`, at an address that labs in pods reach, with an API token for the tests."""

import os

c = get_config()  # noqa: F821
load_subconfig(os.environ["BASE_CONFIG"])  # noqa: F821

c.JupyterHub.hub_bind_url = f"http://{os.environ['HUB_ADDRESS']}:{os.environ['HUB_INTERNAL_PORT']}"
c.JupyterHub.services += [{"name": "tests", "api_token": os.environ["HUB_TEST_TOKEN"]}]
c.JupyterHub.load_roles += [
    {"name": "tests", "services": ["tests"], "scopes": ["admin:servers", "access:servers", "list:users"]}
]
