"""The commands of the pages, which the tests run as they are written."""

import re

import toolchain

INSTALLING = toolchain.ROOT / "deploy/README.md", "On a Kubernetes"
CERTIFICATES = toolchain.ROOT / "deploy/README.md", "Names and certificates of labs"


def commands(page_and_heading: tuple) -> list[str]:
    """The commands in the first block of shell commands below a heading, without comments."""
    page, heading = page_and_heading
    below = re.split(rf"\n#+ {heading}\n", page.read_text(), maxsplit=1)[1]
    block = re.search(r"(?ms)^```sh\n(.*?)^```$", below)[1].replace("\\\n", " ")
    lines = (line.split("  #")[0].strip() for line in block.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
