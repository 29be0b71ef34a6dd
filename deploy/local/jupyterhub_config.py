"""JupyterHub on one machine, for trying it out: any username can log in with one password. `make run` starts it."""

import os
import sys
from pathlib import Path

c = get_config()  # noqa: F821

here = Path(__file__).resolve().parent
port = os.environ["HUB_PORT"]

c.JupyterHub.spawner_class = "wasmspawner.WasmSpawner"
c.WasmSpawner.api_url = os.environ["WASMSPAWNER_API_URL"]
c.WasmSpawner.token_file = os.environ["WASMSPAWNER_TOKEN_FILE"]

# The service asks this Hub about users' groups and for the list of servers (`wasmspawner labs forgotten`).
c.JupyterHub.services = [
    {"name": "wasmspawner", "api_token": Path(os.environ["SERVICE_TOKEN_FILE"]).read_text().strip()}
]
# It is random, so the Hub need not make guesses of it expensive: without this, each question costs it 16,384 hashes.
c.JupyterHub.trust_user_provided_tokens = True
c.JupyterHub.load_roles = [
    {
        "name": "wasmspawner",
        "services": ["wasmspawner"],
        "scopes": ["list:users", "read:servers", "read:users:groups"],
    }
]

# Other users of this machine can reach loopback, too, so there is a password.
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = Path(os.environ["HUB_PASSWORD_FILE"]).read_text().strip()
c.Authenticator.allow_all = True
c.JupyterHub.allow_named_servers = True

c.JupyterHub.bind_url = f"http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{os.environ['HUB_INTERNAL_PORT']}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{os.environ['HUB_PROXY_PORT']}"
c.ConfigurableHTTPProxy.command = [sys.executable, str(here / "proxy.py")]

c.JupyterHub.cleanup_servers = not os.environ.get("KEEP_LABS")
