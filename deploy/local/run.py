#!/usr/bin/env python3
"""Run everything on one machine, for `make run` and `make serve`, and stop all of it at the end.

Environment variables: HUB_PORT, HUB_PASSWORD, SPAWNER_PORT, STATE_DIR, RUNTIME, POLICY (see the README).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from own_policy import OwnPolicy

import stack
import toolchain

STOP_LABS_WITHIN = 20  # seconds
PR_SET_CHILD_SUBREAPER = 36


def settings() -> stack.Settings:
    """The settings from the environment, checked before anything slow begins."""
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    state = Path(os.environ.get("STATE_DIR") or home / "wasmspawner").absolute()
    chosen = stack.Settings(state=state, program=Path(), venv=Path())
    for variable, attribute in (("HUB_PORT", "hub_port"), ("SPAWNER_PORT", "spawner_port")):
        if value := os.environ.get(variable):
            if not value.isdigit() or not 0 < int(value) < 65536:
                raise SystemExit(f"error: {variable} is {value!r}; it must be a port number")
            setattr(chosen, attribute, int(value))
    chosen.password = os.environ.get("HUB_PASSWORD", "")
    if chosen.password.strip() != chosen.password or not chosen.password.isprintable():
        raise SystemExit("error: HUB_PASSWORD must be printable and have no space at its ends")
    chosen.runtime = os.environ.get("RUNTIME") or "process"
    if chosen.runtime not in ("process", "simulated"):
        raise SystemExit(f"error: RUNTIME is {chosen.runtime!r}; it must be process or simulated")
    if place := os.environ.get("POLICY"):
        chosen.own_policy = OwnPolicy.find(place)
    return chosen


def lock_state_and_check_ports(chosen: stack.Settings, ports: dict[str, int]):
    """Lock the state folder for this run, and check that the ports are free."""
    chosen.state.mkdir(parents=True, mode=0o700, exist_ok=True)
    chosen.state.chmod(0o700)
    lock = open(chosen.state / "run.lock", "w")  # noqa: SIM115 - held until the end
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"error: another run uses {chosen.state}; end it, or choose another STATE_DIR") from None
    for variable, port in ports.items():
        if not stack.is_free(port):
            raise SystemExit(f"error: port {port} is in use; choose another with `make run {variable}=...`")
    return lock


def become_reaper() -> None:
    """Adopt orphaned descendants, so that `end_descendants` finds all of them."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> list[int]:
    """All descendants of this process, according to /proc."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, unvisited = [], [os.getpid()]
    while unvisited:
        unvisited += (children := parents.get(unvisited.pop(), []))
        found += children
    return found


def end_descendants() -> None:
    """End all remaining descendants: first with SIGTERM, then with SIGKILL."""
    for signal_number, seconds in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 1.0)):
        give_up = time.monotonic() + seconds
        for pid in descendants():
            with suppress(ProcessLookupError):
                os.kill(pid, signal_number)
        while descendants() and time.monotonic() < give_up:
            time.sleep(0.05)


def what_to_try(chosen: stack.Settings, *, hub: bool) -> str:
    """The text that is shown when everything is ready: addresses and commands to try."""
    program = chosen.program
    token = f"$({program} token --state-dir {chosen.state} --admin)"
    lines = [
        f"The API:    {chosen.api_url}",
        f'              curl -H "Authorization: Bearer {token}" {chosen.api_url}/labs',
        f"The cluster:  KUBECONFIG={chosen.state}/kubeconfig kubectl get pods -A",
        f"Logs:         {chosen.state}/logs",
    ]
    if hub:
        lines[:0] = [
            f"JupyterHub: {chosen.hub_url}",
            "              log in with any name (ada.lovelace@example.org, say) and the password",
            f"              {stack.hub_password(chosen)}",
            "              choose options and start; stop the lab under File > Hub Control Panel",
        ]
    return "\n".join(["", *(f"  {line}" for line in lines), "", "Ctrl-C ends everything.", ""])


def prepare(chosen: stack.Settings, *, jupyter: bool) -> None:
    """Install and build in parallel: installing waits for the network, and building needs the processors."""
    with ThreadPoolExecutor(max_workers=1) as executor:
        environment = executor.submit(toolchain.environment) if jupyter else None
        chosen.program = toolchain.build() / "wasmspawner"
        if environment:
            chosen.venv = environment.result()


def main(what: str) -> None:
    """Prepare, start, wait, end."""
    begun = time.monotonic()
    hub_wanted = what == "run"
    chosen = settings()
    chosen.hub = hub_wanted
    toolchain.check_tools()
    ports = {"SPAWNER_PORT": chosen.spawner_port} | ({"HUB_PORT": chosen.hub_port} if hub_wanted else {})
    lock = lock_state_and_check_ports(chosen, ports)
    toolchain.add_guest_target()
    prepare(chosen, jupyter=hub_wanted or chosen.runtime == "process" or chosen.own_policy is not None)
    if own := chosen.own_policy:
        chosen.adapt = lambda config: own.add(config, chosen.program, chosen.venv / "python")

    become_reaper()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.default_int_handler)
    running: list[stack.Process] = []
    failure = ""
    try:
        with toolchain.step("Starting the service and JupyterHub" if hub_wanted else "Starting the service"):
            running.append(stack.launch_service(chosen))
            if hub_wanted:
                running.append(stack.launch_hub(chosen))
            stack.await_service(chosen, running[0])
            if hub_wanted:
                stack.await_hub(chosen, running[1])
        print(what_to_try(chosen, hub=hub_wanted) + f"(ready after {time.monotonic() - begun:.0f} s)", flush=True)
        while not (ended := [process for process in running if process.child.poll() is not None]):
            time.sleep(0.2)
        failure = f"{ended[0].name} ended by itself; its log {ended[0].log} ends:\n{ended[0].tail()}"
    except KeyboardInterrupt:
        pass
    except stack.NotReady as error:
        failure = str(error)
    try:
        end(chosen, running)
    except KeyboardInterrupt:
        print("Ending at once; labs are not stopped in order.", flush=True)
    finally:
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(name, signal.SIG_IGN)
        end_descendants()
        lock.close()
    if failure:
        raise SystemExit(f"error: {failure}")


def end(chosen: stack.Settings, running: list[stack.Process]) -> None:
    """End the Hub first (it stops its labs), then labs that the Hub does not know, then the service."""
    print("\nEnding: labs are stopped first (Ctrl-C again to hurry).", flush=True)
    for process in reversed(running[1:]):
        process.stop(STOP_LABS_WITHIN)
    if running and running[0].child.poll() is None:
        try:
            stack.stop_all_labs(chosen, STOP_LABS_WITHIN)
        except OSError as error:
            print(f"warning: labs could not be stopped: {error}", flush=True)
        running[0].stop(10)


if __name__ == "__main__":
    try:
        main(sys.argv[1] if len(sys.argv) > 1 else "run")
    except toolchain.Missing as error:
        raise SystemExit(str(error)) from None
