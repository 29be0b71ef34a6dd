"""What a policy costs in each language: `sizes-by-group` in Rust, Python and JavaScript.

    python tests/bench/policy_languages.py [--calls 2000] [--program FILE]

For each language: the size of the component, how long it takes to load it without a cache (compiled, prepared and checked),
and the times of its hooks as `wasmspawner policy bench` measures them, also as ratios to Rust in the same run. It needs
`make languages` before, which installs the compilers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/languages"), str(ROOT / "deploy/local")]

import run as languages  # noqa: E402
from bench_arguments import arguments  # noqa: E402

HOOKS = ("form.render", "form.parse", "build-pod.customize")


def main() -> None:
    """Measure, and print."""
    options = arguments(__doc__, "--calls", 2000, "how often each hook is called")
    if not languages.cached():
        return
    with tempfile.TemporaryDirectory() as folder:
        components = built(options.program, Path(folder))
        measured = {language: measure(options, component) for language, component in components.items()}
    reference = measured["Rust"]
    for language, figures in measured.items():
        print(f"{language}: {figures['bytes'] / 1e6:.1f} MB, loaded in {figures['load']:.1f} s without a cache")
        for hook in HOOKS:
            times, of_rust = figures[hook], reference[hook]["median_us"]
            ratio = times["median_us"] / of_rust
            print(
                f"  {hook:20} median {times['median_us']:8.1f} us  p99 {times['p99_us']:8.1f} us  {ratio:5.0f} x Rust"
            )


def built(program: Path, to: Path) -> dict[str, Path]:
    """The components of the policy."""
    print("building the policy in each language", file=sys.stderr)
    plugins, name = ROOT / "plugins", "sizes-by-group"
    subprocess.run([program, "policy", "build", plugins / name], check=True, stdout=sys.stderr)
    python, javascript = to / "python.wasm", to / "javascript.wasm"
    path = {"PYTHONPATH": str(languages.PYTHON_SDK / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [languages.python_compiler() / "python", "-m", "wasmspawner_policy", "build"]
    subprocess.run([*command, plugins / "python" / name, "-o", python], env=os.environ | path, check=True)
    languages.link_javascript()
    command = ["node", languages.JAVASCRIPT_SDK / "bin/wasmspawner-policy.js", "build"]
    subprocess.run([*command, plugins / "javascript" / name, "-o", javascript], check=True)
    return {"Rust": plugins / name / f"{name}.wasm", "Python": python, "JavaScript": javascript}


def measure(options: argparse.Namespace, component: Path) -> dict:
    """The size, the time of a load and the times of the hooks."""
    policy = [component, "--config", ROOT / "plugins/sizes-by-group/config.yaml"]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"XDG_CACHE_HOME": cache}
        begun = time.monotonic()
        load = [options.program, "policy", "validate", *policy]
        subprocess.run(load, env=environment, check=True, stdout=sys.stderr)
        seconds = time.monotonic() - begun
        bench = [options.program, "policy", "bench", *policy, "--json", "--calls", str(options.calls)]
        times = json.loads(subprocess.check_output(bench, env=environment))
    return {"bytes": component.stat().st_size, "load": seconds} | times


if __name__ == "__main__":
    main()
