"""Checks the API against its own description: schemathesis sends requests to every route as every kind of caller,
some that the description allows and some that it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from world import eventually, free_port

import compiled_policies
import stack
import toolchain

HERE = Path(__file__).parent
# The labs in the examples of the description.
LABS = ("ada", "ada/servers/second")
# Number of cases for each operation. A few take less than a minute; OPENAPI_CASES=500 tests much more.
CASES = os.environ.get("OPENAPI_CASES", "3")
ALL = "examples,coverage,fuzzing,stateful"
# Callers with fewer permissions than an administrator get fewer cases, unless OPENAPI_CASES is set.
PHASES = {"owner": "examples,coverage,fuzzing", "hub": "coverage,fuzzing", "administrator": ALL, "nobody": "coverage"}
SEED = os.environ.get("OPENAPI_SEED", "1")
# Statuses that must be among the answers; otherwise too little was tested.
EXPECTED = {
    "owner": {
        ("GET /labs/{username}", "200"),
        ("GET /labs/{username}/events", "200"),
        ("GET /labs/{username}/history", "200"),
        ("GET /spawn-form/{username}", "200"),
        ("POST /labs/{username}/spawn", "422"),
        ("GET /labs", "403"),
    },
    "hub": {
        ("GET /labs", "200"),
        ("GET /labs", "422"),
        ("GET /lab-status", "200"),
        ("GET /labs/{username}/events", "200"),
        ("GET /policies", "403"),
        ("POST /labs/{username}/spawn", "403"),
    },
    "administrator": {
        ("GET /retained", "200"),
        ("GET /orphans", "200"),
        ("GET /policies", "200"),
        ("POST /policies/reload", "200"),
        ("POST /config/reload", "200"),
        ("POST /labs/{username}/spawn", "303"),
        ("POST /labs/{username}/spawn", "415"),
        ("DELETE /labs/{username}", "202"),
        ("DELETE /labs/{username}", "404"),
    },
    "nobody": {("GET /labs", "401"), ("GET /docs", "200")},
}


def operations(settings):
    """All operations of the description, such as `GET /labs`."""
    paths = requests.get(f"{settings.api_url}/openapi.json", timeout=30).json()["paths"]
    return {f"{method.upper()} {path}" for path, item in paths.items() for method in item if method != "parameters"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A separate service with simulated pods, because the labs of the Hub's tests must not be stopped."""
    settings = stack.Settings(
        state=tmp_path_factory.mktemp("openapi"),
        program=toolchain.target_dir() / "debug/wasmspawner",
        venv=Path(sys.executable).parent,
        spawner_port=free_port(),
        runtime="simulated",
        hub=False,  # there is none here that the service could call
    )
    process = compiled_policies.start_service(settings)
    yield settings
    process.stop(30)


def start_labs(settings):
    """Start the labs in the examples of the description, if they do not run."""
    headers = {"Authorization": f"Bearer {stack.token(settings, '--admin')}"}

    def spawned(lab):
        url = f"{settings.api_url}/labs/{lab}/spawn"
        answer = requests.post(url, json={}, headers=headers, timeout=30, allow_redirects=False)
        return answer.status_code == 303 or "lab_exists" in answer.text

    for lab in LABS:
        eventually(lambda lab=lab: spawned(lab), what=f"a lab {lab}")


def credential(settings, caller):
    """The caller's token, as command line arguments."""
    match caller:
        case "nobody":
            return []
        case "hub":
            token = stack.token(settings, "--hub")
        case "administrator":
            token = stack.token(settings, "--admin")
        case _:
            token = stack.token(settings, "--user", "ada")
    return ["-H", f"Authorization: Bearer {token}"]


@pytest.mark.parametrize("caller", EXPECTED)
def test_the_service_conforms_to_its_openapi_description(service, tmp_path, caller):
    start_labs(service)
    phases = ["--phases", ALL if "OPENAPI_CASES" in os.environ else PHASES[caller]]
    answers = tmp_path / "answers"
    run = subprocess.run(
        [
            Path(sys.executable).parent / "st",
            *("--config-file", HERE / "schemathesis.toml"),
            *("run", f"{service.api_url}/openapi.json", "--no-color"),
            *("--seed", SEED, "--max-examples", CASES),
            *phases,
            *credential(service, caller),
        ],
        cwd=tmp_path,
        env=os.environ
        | {"PYTHONPATH": str(HERE), "SCHEMATHESIS_HOOKS": "openapi_hooks", "OPENAPI_ANSWERS": str(answers)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60 * (2 + int(CASES)),
    )
    assert run.returncode == 0, run.stdout
    answered = {tuple(line.split("\t")) for line in answers.read_text().splitlines()}
    # schemathesis does not test the operation from which it reads the description.
    assert {operation for operation, _ in answered} == operations(service) - {"GET /openapi.json"}
    assert answered >= EXPECTED[caller], run.stdout
    if caller == "nobody":
        let_in = {operation for operation, status in answered if status[0] in "23"}
        assert let_in == {"GET /docs"}
