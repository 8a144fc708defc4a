# Every command of the project. Each target does its own set-up in .venv; a second call starts at once.
#
# PYTHON=python3.12 names the interpreter for .venv; ARGS="..." goes to the command.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

packages := rfhbridge gateway mappings mq_adapters spark_audit
environment := deploy/setup/environment.sh
# Some tests wait for seconds, so two cores run six processes of pytest. A file stays in one; two have a Spark.
workers := -n 6 --dist loadfile
spark := SPARK_LOCAL_IP=127.0.0.1 JAVA_HOME="$$(cat .venv/java-home)"

# Some thousand processes of Python start in a run of the tests: none is to compile the same modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test prove fuzz bench lint format docs pictures audit setup compile wheel sbom lock image-digests clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## start the gateway on 127.0.0.1:1883, data in ./var, and compile for its next start (ARGS="--listen 127.0.0.1:1884")
	@$(environment) run
	@exec deploy/setup/compiled.sh beside .venv/bin/rfhbridge run $(ARGS)

test: setup ## run every test, long proofs in a short form (ARGS="tests/mappings -k topic")
	@$(spark) .venv/bin/python -m pytest $(workers) $(ARGS)

prove: setup ## run the long proofs in full
	@$(spark) RFHBRIDGE_PROOF=full .venv/bin/python -m pytest -m proof $(ARGS)

fuzz: ARGS ?= 600
fuzz: ## fuzz headers, MQTT connections, the bridge and the gateway's rim, compare sources and compiled, for so many seconds each (ARGS=3600)
	@$(environment) test fuzz
	@nice -n 19 .venv/bin/python tests/fuzz/readers.py $(ARGS)
	@nice -n 19 .venv/bin/python tests/fuzz/connections.py $(ARGS)
	@nice -n 19 .venv/bin/python tests/fuzz/bridge.py $(ARGS)
	@nice -n 19 .venv/bin/python tests/fuzz/gateway.py $(ARGS)
	@deploy/setup/compiled.sh
	@nice -n 19 .venv/bin/python -m tests.fuzz.two_builds $(ARGS)

bench: ## measure speed, and the audit of ten million records (ARGS="--seconds 30 latency", ARGS="--records 1000000 audit", ARGS="--against main")
	@$(environment) audit test
	@deploy/setup/java.sh
	@deploy/setup/load-generator.sh
	@$(spark) .venv/bin/python -m benchmarks $(ARGS)

lint: ## check style, format, types and the floors
	@$(environment) audit test
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy --strict $(addprefix --package ,$(packages))
	@.venv/bin/lint-imports

format: ## mend what lint can mend by itself
	@$(environment) audit test
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

docs: ## write docs/reference anew from the code, then build all pages: build/docs/index.html
	@$(environment) audit docs
	@.venv/bin/python -m docs.generator
	@.venv/bin/sphinx-build -b html -d build/doctrees -c docs -q -W --keep-going . build/docs || { rm -rf build/doctrees; exit 1; }

pictures: ## draw docs/pictures/*.mmd anew where they have changed (ARGS=--all)
	@$(environment) run
	@deploy/setup/mermaid.sh
	@.venv/bin/python docs/pictures/render.py $(ARGS)

audit: ARGS ?= run
audit: ## set up Spark and audit the trail (ARGS="run --data var --out report")
	@$(environment) audit
	@deploy/setup/java.sh
	@$(spark) .venv/bin/rfhbridge audit $(ARGS)

setup: ## set up everything for tests and work on the code
	@$(environment) audit test docs
	@deploy/setup/java.sh
	@$(MAKE) -j 2 $(beside_others)

# What tests need beside, each in a folder of its own; the one that takes longest comes first.
beside_others := $(addprefix setup-,clients java-classes mqtt-js ibm-mq-stand-in mosquitto-clients softhsm crash-points load-generator compiled)
.PHONY: $(beside_others)
$(beside_others): setup-%:
	@deploy/setup/$*.sh

compile: ## compile what takes most of a message's time now; `make run` takes it from its next start on
	@$(environment) run
	@deploy/setup/compiled.sh must

wheel: ## write a wheel for this interpreter and kind of machine, with what is compiled: dist/*.whl
	@$(environment) run
	@deploy/setup/compiled.sh must
	@RFHBRIDGE_COMPILED=1 .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	@ls -t dist/*.whl | head -n 1

sbom: ## write the software bill of materials and all licences: build/sbom.json, build/licences.txt
	@$(environment) audit
	@deploy/setup/sbom.sh

lock: ## make the lock files anew from pyproject.toml and requirements/*.in
	@$(environment) test
	@deploy/setup/lock.sh

image-digests: ## write the digests of the Dockerfile's base images, where an image registry can be reached
	@deploy/setup/image-digests.sh

clean: ## remove the environment and all that tools left, never ./var
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage htmlcov build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
