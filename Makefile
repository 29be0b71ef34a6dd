# What people run. The same work for machines is in .ci/run.
PYTHON ?= python3
CARGO ?= cargo
# The bin folder of the virtual environment of the tests, which is made where it is missing.
VENV = $(shell $(PYTHON) -c 'import sys; sys.path.insert(0, "deploy/local"); import toolchain; print(toolchain.environment(tests=True))' | tail -n 1)
# The folder in which cargo puts what it builds.
TARGET = $(shell $(PYTHON) -c 'import sys; sys.path.insert(0, "deploy/local"); import toolchain; print(toolchain.target_dir())')
# The same with the other JupyterHub that the spawner is for.
HUB5_VENV = $(shell $(PYTHON) tests/suites/prepare.py hub5 | tail -n 1)
# What runs the Rust tests (.config/nextest.toml).
NEXTEST = $(shell $(PYTHON) tests/suites/prepare.py nextest | tail -n 1)

export HUB_PORT HUB_PASSWORD SPAWNER_PORT STATE_DIR RUNTIME POLICY

.DEFAULT_GOAL := help
.PHONY: help run serve cluster test check build guests format rules lint clippy documentation units black-box sdk-python e2e hub5 chart image node languages profiles signatures soak policy-soak environments workloads fuzz mutants control-plane bench scale environment fmt clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1	/p' $(MAKEFILE_LIST) | expand -t 15
	@echo
	@echo 'Variables: HUB_PORT=8000  HUB_PASSWORD=(random)  SPAWNER_PORT=8090  STATE_DIR=~/.local/state/wasmspawner  RUNTIME=process|simulated  POLICY=(a folder)  PYTHON=python3'

# The components of the tests, built once for all of them.
GUESTS := --profile guest --target wasm32-wasip2 -p 'policy-*' -p guest-hostile -p guest-stagehand -p guest-wrong-type -p guest-foreign-import
export WASMSPAWNER_TEST_COMPONENTS := $(TARGET)/wasm32-wasip2/guest

run: ## JupyterHub, the service and its one-machine cluster; Ctrl-C ends all
	@exec $(PYTHON) deploy/local/run.py run

serve: ## the service and its one-machine cluster alone
	@exec $(PYTHON) deploy/local/run.py serve

cluster: ## a Kubernetes with one real node, to try things on; needs root; Ctrl-C ends and removes it
	@exec $(PYTHON) tests/node/run.py cluster

test: ## all tests, except those that have a command of their own below; tests/suites/suites.toml has their order and budgets
	@exec $(PYTHON) tests/suites/run.py test

check: ## after an edit: format, lints and unit tests of one package, such as `make check CRATE=wasmspawner-core`; seconds
	@test -n "$(CRATE)" || { echo 'error: CRATE is not set; give the name of a package: make check CRATE=wasmspawner-core'; exit 2; }
	$(CARGO) fmt --check -p $(CRATE)
	$(CARGO) clippy --locked -p $(CRATE) --lib --bins --tests -- -D warnings
	$(NEXTEST) nextest run --locked -p $(CRATE) --lib --bins --no-tests=pass

build: guests ## the service and all tests
	$(CARGO) test --locked --workspace --no-run
	$(CARGO) build --locked --workspace --bin wasmspawner --example profile_answers

guests: ## the policies, and the components that only tests use
	$(CARGO) build --locked $(GUESTS)

rules: ## rules of the repository that no compiler knows, and the runner of the suites
	$(CARGO) test --locked -p wasmspawner-tidy
	$(VENV)/python -m pytest -q tests/suites

units: ## tests of the Rust packages themselves: seconds, once they are built
	$(NEXTEST) nextest run --locked --workspace --lib --bins
	$(CARGO) test --locked --doc -p wasmspawner-sdk

black-box: guests ## the rules of the core, the service as a process, real policies, a real Kubernetes API server
	$(PYTHON) tests/control-plane/run.py with-two $(NEXTEST) nextest run --locked --workspace -E 'not (kind(lib) | kind(bin) | package(wasmspawner-tidy))'
	@echo "==> The times of the tests are in $(CURDIR)/target/nextest/default/junit.xml"

sdk-python: ## tests of the package for JupyterHub and labs
	cd sdk/python && $(VENV)/python -m pytest -q -n 2

e2e: guests ## real JupyterHub, JupyterLab and browser against the service
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(VENV)/python -m pytest -q -rfEs --durations=15 -n 2 --dist loadfile tests/e2e

hub5: guests ## the spawner class in the other JupyterHub
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(HUB5_VENV)/python -m pytest -q -rfEs --durations=10 tests/e2e/test_hub.py tests/e2e/adversaries

chart: guests ## the Helm chart, with Helm and a real Kubernetes API server (UPDATE_GOLDEN=1 writes its schema anew)
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(PYTHON) tests/control-plane/run.py with $(VENV)/python -m pytest -q -rfEs --durations=10 tests/chart

image: ## the container images of the service and its policies, as OCI layouts; needs umoci and no container engine
	@$(PYTHON) deploy/image/build.py

node: image guests ## the chart and labs on a real node: containerd, kubelet, real images; skipped without root
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(VENV)/python -m pytest -q tests/node

languages: ## policies in Python and JavaScript: their SDKs, the policies of plugins, new projects; installs the compilers of both
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(PYTHON) tests/languages/run.py test $(TARGET)/debug/wasmspawner

profiles: guests ## the default policy against KubeSpawner itself, on 240 generated profile lists; a minute (PROFILE_LISTS=240); PROFILE_SEED=N makes other lists
	$(CARGO) build --locked --workspace --bin wasmspawner --example profile_answers
	$(PYTHON) tests/profiles/run.py test $(TARGET)/debug/wasmspawner $(TARGET)/wasm32-wasip2/guest/policy_default.wasm

signatures: ## policies that cosign itself has signed; builds it the first time, which takes five minutes
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(VENV)/python tests/signatures/run.py test $(TARGET)/debug/wasmspawner

soak: ## random faults of the cluster and of one process or two, 1000 schedules each (SOAK_RUNS=1000); SOAK_SEED=N repeats one that failed
	SOAK_RUNS=$${SOAK_RUNS:-1000} $(CARGO) test --locked --workspace --test faults -- soak --nocapture

policy-soak: ## a million calls of policies that are replaced every second (POLICY_CALLS=1000000); a minute, with figures
	POLICY_CALLS=$${POLICY_CALLS:-1000000} $(CARGO) test --locked --release --workspace --test policy_soak -- --nocapture

environments: guests ## labs in two clusters of which one is away for a minute, a deletion that is stuck, and what a pool saves; six minutes, with figures
	$(PYTHON) tests/control-plane/run.py with $(CARGO) test --locked --workspace --test kubernetes -- --ignored --nocapture measured

workloads: guests ## labs put into workloads and taken out in 500 random orders, with all that owners do meanwhile (WORKLOAD_SCHEDULES=500); SEED=N repeats one that failed
	WORKLOAD_SCHEDULES=$${WORKLOAD_SCHEDULES:-500} $(PYTHON) tests/control-plane/run.py with $(CARGO) test --locked --workspace --test kubernetes -- --nocapture interleavings

fuzz: ## feeds every parser of foreign input with what nobody thought of, a minute each (SECONDS=60)
	$(PYTHON) tests/fuzz/run.py $${SECONDS:-60}

mutants: ## changes the core in some 150 ways, one at a time (SHARD=0/13); a test has to notice each change
	@$(CARGO) mutants --version || { echo 'cargo-mutants is missing: cargo install --locked cargo-mutants'; exit 1; }
	$(CARGO) mutants -p wasmspawner-core --shard $${SHARD:-0/13} --sharding round-robin --minimum-test-timeout 60 -- --locked

control-plane: ## builds the Kubernetes control plane of the tests where it is missing, and prints its folder
	@$(PYTHON) tests/control-plane/run.py programs

bench: ## what things cost: policy calls in three languages, loads of policies and calls beside hostile ones, images, the embedded cluster, many readers, one user at full blast, the spawner class
	$(CARGO) bench --locked -p wasmspawner-embedded --bench apiserver
	$(CARGO) bench --locked --workspace --bench policy_call
	$(PYTHON) tests/bench/policy_languages.py
	$(CARGO) bench --locked --workspace --bench policy_load
	$(CARGO) bench --locked --workspace --bench policy_neighbours
	$(CARGO) bench --locked --workspace --bench images
	$(CARGO) bench --locked --workspace --bench scale -- readers
	$(CARGO) bench --locked --workspace --bench scale -- fairness
	$(CARGO) build --locked --workspace --bin wasmspawner
	$(VENV)/python tests/bench/hub_load.py
	$(VENV)/python tests/bench/image_refresh.py
	$(VENV)/python tests/bench/kernel_start.py
	$(VENV)/python tests/bench/dask_pool.py

scale: guests ## a thousand spawns and stops at once, a hundred thousand labs, take-overs; against references, on a real control plane
	$(CARGO) bench --locked --workspace --bench scale --no-run
	$(PYTHON) tests/control-plane/run.py with $(CARGO) bench --locked --workspace --bench scale
	$(PYTHON) tests/control-plane/run.py with $(VENV)/python tests/bench/hub_load.py \
		--program $(TARGET)/release/wasmspawner-under-test sleeper service
	$(PYTHON) tests/control-plane/run.py with $(VENV)/python tests/bench/hand_over.py \
		--program $(TARGET)/release/wasmspawner-under-test

environment: ## prints the folder with the programs of the tests' virtual environment
	@echo $(VENV)

format: ## formats, and lints of Python
	$(CARGO) fmt --all --check
	$(VENV)/ruff check sdk/python sdk/python-policy plugins/python deploy tests
	$(VENV)/ruff format --check sdk/python sdk/python-policy plugins/python deploy tests

lint: clippy documentation ## `clippy` and `documentation`

clippy: ## lints of Rust; warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets --features wasmspawner-fuzz/engine -- -D warnings

documentation: ## lints of the service without its one-machine cluster, and the documentation of Rust
	$(CARGO) clippy --locked -p wasmspawner --no-default-features -- -D warnings
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --workspace --no-deps

fmt: ## formats everything
	$(CARGO) fmt --all
	$(VENV)/ruff format sdk/python sdk/python-policy plugins/python deploy tests

clean: ## removes what was built here; state and caches elsewhere stay
	$(CARGO) clean
	find sdk deploy tests -name __pycache__ -prune -exec rm -rf {} +
