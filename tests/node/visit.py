#!/usr/bin/env python3
"""What a user does at JupyterHub, for a program in the node's network. It prints JSON.

visit.py wait               wait until the Hub answers
visit.py start USER         log in, submit the form, and follow the progress
visit.py crowd USER...      the same for many users at once, each with a result
visit.py compute USER CODE  run code in a new kernel of the user's lab
visit.py stop USER          stop the user's server
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import requests

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from jupyter_lab import JupyterLab
from world import Visitor, eventually

HUB = "http://127.0.0.1:8000"
PATIENCE = 120.0  # seconds
TOKEN = os.environ["HUB_TEST_TOKEN"]
HEADERS = {"Authorization": f"token {TOKEN}"}


def wait() -> dict:
    """Wait until the Hub answers."""

    def answers():
        try:
            return requests.get(f"{HUB}/hub/api", timeout=5).ok
        except requests.RequestException:
            return False

    eventually(answers, PATIENCE, "the Hub answers")
    return {}


def start(user: str) -> dict:
    """Start the user's server as the page does. Returns the messages, and the seconds from the click to the lab."""
    world = SimpleNamespace(url=HUB, password=os.environ["HUB_PASSWORD"], take_user=lambda _: None)
    visitor = Visitor(world, user)
    begun = time.monotonic()
    page = visitor.submit()
    page.raise_for_status()
    events = [event for _, event in visitor.progress()]
    return {"ready": events[-1].get("ready"), "seconds": time.monotonic() - begun, "events": events}


def crowd(*users: str) -> dict:
    """Start the servers of many users at once."""
    with ThreadPoolExecutor(len(users)) as pool:
        return dict(zip(users, pool.map(start, users), strict=True))


def compute(user: str, code: str) -> dict:
    """Run code in a new kernel, as JupyterLab does. Returns what it printed."""
    lab = JupyterLab(SimpleNamespace(url=HUB, hub_token=TOKEN), user)
    return {"printed": lab.run(lab.start_kernel("python3"), code)}


def stop(user: str) -> dict:
    """Stop the user's server, and wait until the Hub knows that it is gone."""
    url = f"{HUB}/hub/api/users/{user}"
    requests.delete(f"{url}/server", headers=HEADERS, timeout=120).raise_for_status()
    eventually(lambda: not requests.get(url, headers=HEADERS, timeout=10).json()["servers"], PATIENCE, "it is gone")
    return {}


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["wait"]:
            result = wait()
        case ["start", user]:
            result = start(user)
        case ["crowd", *users]:
            result = crowd(*users)
        case ["compute", user, code]:
            result = compute(user, code)
        case ["stop", user]:
            result = stop(user)
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(result))
