"""What schemathesis is to know beyond the API's description; it loads this by name."""

import os

import schemathesis

LONGEST_NAME = 255


@schemathesis.hook
def filter_path_parameters(context, path_parameters):
    """Leave out names that only their bytes make too long: a schema counts characters, the service bytes of UTF-8."""
    too_long = [
        name
        for name in (path_parameters or {}).values()
        if isinstance(name, str) and len(name) <= LONGEST_NAME < len(name.encode(errors="surrogatepass"))
    ]
    return not too_long


@schemathesis.hook
def after_call(context, case, response):
    """Write down which operation was answered with what, for the test to look at."""
    with open(os.environ["OPENAPI_ANSWERS"], "a") as answers:
        answers.write(f"{case.operation.label}\t{response.status_code}\n")
