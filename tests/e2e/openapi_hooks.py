"""Hooks that schemathesis loads by name, for rules that the API's description cannot express."""

import os

import schemathesis

LONGEST_NAME = 255


@schemathesis.hook
def filter_path_parameters(context, path_parameters):
    """Leave out names that are too long in bytes only: a schema counts characters, the service counts bytes of
    UTF-8."""
    too_long = [
        name
        for name in (path_parameters or {}).values()
        if isinstance(name, str) and len(name) <= LONGEST_NAME < len(name.encode(errors="surrogatepass"))
    ]
    return not too_long


@schemathesis.hook
def after_call(context, case, response):
    """Record the status that each operation was answered with, for the test to check."""
    with open(os.environ["OPENAPI_ANSWERS"], "a") as answers:
        answers.write(f"{case.operation.label}\t{response.status_code}\n")
