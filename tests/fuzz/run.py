#!/usr/bin/env python3
"""Fuzzes the parsers of foreign input: `run.py [SECONDS]`, for each target; 60 by default.

The targets are compiled with the compiler's coverage instrumentation, for libFuzzer. What was found to reach new code is
kept in the cache folder for the next time. The exit code is 1 if a target fails; then the input that made it fail is
there, too.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wasmspawner/fuzz"
TARGETS = ("answer", "submission", "names", "pod", "configuration", "blueprint")
INSTRUMENTED = (
    "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
    " -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
    " -Cllvm-args=-sanitizer-coverage-trace-compares"
)


def built() -> Path:
    """Build the targets, and return their folder."""
    # With a target, the flags are not used for build scripts and macros.
    host = re.search(r"host: (\S+)", subprocess.check_output(["rustc", "-vV"], text=True))[1]
    environment = os.environ | {"RUSTFLAGS": INSTRUMENTED, "CARGO_TARGET_DIR": str(CACHE / "target")}
    command = [
        "cargo",
        "build",
        "--locked",
        "--profile",
        "fuzz",
        "-p",
        "wasmspawner-fuzz",
        "--features",
        "engine",
        "--target",
        host,
    ]
    subprocess.run(command, cwd=HERE, env=environment, check=True)
    return CACHE / "target" / host / "fuzz"


def seeds(target: str) -> Path:
    """The inputs that the target begins with, which are those of the tests of the core."""
    folder = CACHE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    if target == "configuration":
        example = (HERE.parents[1] / "deploy/wasmspawner.example.yaml").read_text()
        # Lines that begin with `#:` are settings that are commented out.
        (folder / "example").write_text(re.sub(r"(?m)^#:", "", example))
    else:
        for seed in (HERE / "seeds" / target).iterdir():
            (folder / seed.name).write_bytes(seed.read_bytes())
    return folder


def fuzz(program: Path, seconds: int) -> bool:
    """Run one target; true if nothing was found."""
    target = program.name
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-max_len=8192"]
    found = CACHE / "found" / target
    found.mkdir(parents=True, exist_ok=True)
    command = [program, *limits, f"-artifact_prefix={found}/", "-print_final_stats=1", seeds(target)]
    result = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, errors="replace")
    runs = re.search(r"number_of_executed_units: *(\d+)", result.stderr)
    covered = re.findall(r"cov: (\d+)", result.stderr)
    summary = {"target": target, "runs": int(runs[1]) if runs else 0, "covered": int(covered[-1]) if covered else 0}
    print(json.dumps(summary), flush=True)
    if result.returncode or not summary["runs"]:
        print(result.stderr[-4000:], flush=True)
        print(f"error: {target} failed; the input is in {found}; repeat it with: {program} FILE", flush=True)
    return result.returncode == 0 and summary["runs"] > 0


def main() -> int:
    """Fuzz all targets, as many at a time as there are cores."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    folder = built()
    programs = [folder / target for target in TARGETS]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return 0 if all(list(pool.map(lambda program: fuzz(program, seconds), programs))) else 1


if __name__ == "__main__":
    raise SystemExit(main())
