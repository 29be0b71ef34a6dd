import json

import pytest

from wasmspawner.errors import LoginExpired, Refused, Unreachable
from wasmspawner.lab_error import LabError, for_user


def refused(status, *entries, **headers):
    return Refused(status, json.dumps({"detail": list(entries)}).encode(), headers)


def entry(msg, *loc, type_="x"):
    return {"loc": list(loc), "msg": msg, "type": type_}


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (
            Unreachable("connection refused"),
            503,
            "The service that starts labs cannot be reached at the moment. Please try again in a minute.",
        ),
        (refused(403, entry("Ask your group for access.")), 403, "Ask your group for access."),
        (refused(422, entry("no such size", "body", "options", "size")), 422, "size: no such size"),
        (
            refused(422, entry("no", "body", "options", "a"), entry("nor", "body", "env", "B C")),
            422,
            "a: no; env.B C: nor",
        ),
        (refused(401, entry("invalid token 100%")), 500, "JupyterHub may not use the service that starts labs."),
        (
            LoginExpired("401"),
            403,
            "Your login has expired. Log out of JupyterHub, log in again, and start your server then.",
        ),
        (refused(500, entry("secret trace")), 502, "The service that starts labs failed to answer this request."),
        (Refused(404, b"<html>nginx</html>", {}), 502, "The service that starts labs failed to answer this request."),
        (Refused(400, b'{"detail": "short"}', {}), 400, "short"),
        (Refused(400, b'{"detail": [1, null, {"msg": "kept", "loc": 3}]}', {}), 400, "kept"),
    ],
)
def test_each_error_has_its_status_and_message(error, status, message):
    raised = for_user(error, "starting the lab of ada")
    assert (raised.status_code, raised.jupyterhub_message) == (status, message)
    assert "starting the lab of ada" in str(raised)


def test_several_problems_become_an_escaped_list():
    raised = for_user(refused(422, entry("<b>", "body", "options", "a"), entry("two")), "x")
    assert raised.jupyterhub_html_message == "<ul><li>a: &lt;b&gt;</li><li>two</li></ul>"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Unreachable("connection refused"), "unreachable"),
        (refused(403, entry("Ask your group.", type_="permission_denied")), "permission_denied"),
        (refused(403, entry("Ask your group.", type_="any text of 7 words")), "other"),
        (refused(500, entry("oops", type_="internal")), "service_failed"),
        (Refused(403, b"", {}), "no_access"),
    ],
)
def test_each_error_has_a_word_for_the_metrics_of_the_hub(error, reason):
    assert for_user(error, "x").reason == reason


def test_retry_after_and_request_id_are_passed_on():
    raised = for_user(refused(429, entry("Too many spawns."), **{"retry-after": "7", "x-request-id": "r-1"}), "x")
    assert raised.headers == {"Retry-After": "7"}
    assert "r-1" in str(raised)


@pytest.mark.parametrize(
    ("header", "pause"),
    [("7", 7), ("999999999", 60), ("9" * 5000, 60), ("-1", 0), ("1e9", 0), ("soon", 0), ("٣", 0), ("", 0)],
)
def test_no_answer_asks_for_a_pause_of_more_than_a_minute(header, pause):
    error = refused(429, entry("Too many spawns."), **{"retry-after": header})
    assert error.retry_after == pause
    assert for_user(error, "x").headers == ({"Retry-After": str(pause)} if pause else {})


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"detail": ' + b"9" * 5000 + b"}",
        b'{"detail": "\\ud800"}',
        b'{"detail": 1e999}',
        b"\xff",
        b"[]",
    ],
)
def test_a_refusal_that_is_not_understood_has_no_text(body):
    assert for_user(Refused(403, body, {}), "x").jupyterhub_message == (
        "JupyterHub may not use the service that starts labs."
    )


def test_percent_signs_survive():
    assert "100% and %s" in str(LabError(500, "100% and %s", reason="x"))
