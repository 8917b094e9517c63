# Two commands are enough for a newcomer: make demo, make test. `make help` lists the rest.
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
SHELL := /bin/bash

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadfile
ARGS ?=
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' lib/laggard/__init__.py)
ENGINE ?= $(firstword $(foreach name,docker podman buildah,$(if $(shell command -v $(name)),$(name))))
export PYTHONPATH := $(CURDIR)/lib
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# of the longer tests, beyond Python and Java: command:Debian packages
TOOLS := javac:default-jdk-headless gcc:gcc,libc6-dev buildah:buildah debootstrap:debootstrap promtool:prometheus chromium:chromium zsh:zsh
# built by Go: the chart's renderer and the tests' S3 server
HELM := helm.sh/helm/v3/cmd/helm@v3.19.2
KUSTOMIZE := sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
VERSITYGW := github.com/versity/versitygw/cmd/versitygw@v1.8.0

.PHONY: help venv jars tools demo demo-options test test-all test-nightly test-release test-unit test-fuzz lint docs dashboards pictures pictures-ui pictures-dashboards bench scenarios drawn frozen images image-job image-exporter image-spark pins audit zip wheel clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

venv: $(STAMP) ## build .venv, again when setup.cfg changed

$(STAMP): setup.cfg pyproject.toml
	@echo "laggard: building .venv (about two minutes the first time)"
	@$(PYTHON) -c 'import sys; sys.exit("laggard: Python 3.10 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 10) else 0)'
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --editable '.[dev,docs]'
	@touch $@

jars: venv ## fetch the jars of Spark's connectors and of the demo broker, once; STORAGE=s3: and those of Spark's own readers of a bucket
	@$(BIN)/python -m laggard.jars $(if $(STORAGE),spark broker $(STORAGE))

demo: demo-options jars ## real broker, load, job, exporter and live view; options in ARGS='...'
	@$(BIN)/python -m laggard demo $(ARGS)

demo-options: # wrong ones show before minutes of set-up; so does a Python that is too old
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 10) and sys.exit("laggard: Python 3.10 or newer is needed, this is " + sys.version.split()[0]); from laggard.cli.main import check_use; sys.exit(check_use(["demo", *sys.argv[1:]]))' $(ARGS)

test: jars lint ## lint, then the tests that prove the product: 7 minutes on two idle cores
	@echo "laggard: tests"
	@LINT_SECONDS=$$(cat .venv/lint.seconds) $(PYTEST) --junitxml=build/test.xml -m 'not (full or nightly or release)' $(ARGS)

test-all: jars ## the longer tests, which `make test` leaves out and CI runs: 22 minutes
	@echo "laggard: the longer tests"
	@ALL_EXAMPLES=1 $(PYTEST) --junitxml=build/test-all.xml -m '(full or examples) and not (nightly or release)' $(ARGS)

test-nightly: jars ## what takes long and seldom changes; CI leaves it out
	@echo "laggard: the tests of a night"
	@ALL_EXAMPLES=1 $(PYTEST) --junitxml=build/test-nightly.xml -m 'nightly and not release' $(ARGS)

test-release: jars ## images, and what is proved before a release
	@echo "laggard: the tests of a release"
	@ALL_EXAMPLES=1 $(PYTEST) --junitxml=build/test-release.xml -m release $(ARGS)

tools: .tools/helm .tools/kustomize .tools/versitygw .tools/amtool ## install what only test-all needs, by apt-get and Go
	@missing=$$(for tool in $(TOOLS); do command -v $${tool%%:*} > /dev/null || echo $${tool##*:}; done | tr , ' ' | xargs); \
	if [ -z "$$missing" ]; then echo "laggard: the tools of make test-all are installed"; exit 0; fi; \
	run=(); [ "$$(id -u)" = 0 ] || run=(sudo -n); \
	if ! command -v apt-get > /dev/null || ! "$${run[@]}" true 2> /dev/null; then \
		echo "laggard: make test-all needs these Debian packages: $$missing"; \
		echo "  as root: apt-get install $$missing"; exit 1; fi; \
	echo "laggard: installing $$missing"; \
	"$${run[@]}" apt-get update -qq; \
	"$${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $$missing

.tools/helm: PACKAGE := $(HELM)
.tools/kustomize: PACKAGE := $(KUSTOMIZE)
.tools/versitygw: PACKAGE := $(VERSITYGW)
.tools/%:
	@echo "laggard: building $(@F) (two minutes)"
	@command -v go > /dev/null || { echo "laggard: $(@F) needs Go 1.26 or newer: https://go.dev/doc/install"; exit 1; }
	@GOBIN=$(CURDIR)/.tools go install $(PACKAGE)

.tools/amtool: # out of Debian's package of Alertmanager, which would start a server if it were installed
	@command -v apt-get > /dev/null || { echo "laggard: amtool comes with Alertmanager: https://prometheus.io/download, then put it on the path"; exit 1; }
	@mkdir -p $(@D) && folder=$$(mktemp -d) && cd $$folder && { apt-get download -qq prometheus-alertmanager || { $$([ "$$(id -u)" = 0 ] || echo sudo -n) apt-get update -qq && apt-get download -qq prometheus-alertmanager; }; } && \
		dpkg-deb -x prometheus-alertmanager_*.deb . && mv usr/bin/amtool $(CURDIR)/.tools/ && rm -rf $$folder

test-unit: venv ## the tests of `make test` that start no JVM
	@$(PYTEST) -m 'not (broker or spark or full or nightly or release)' $(ARGS)

test-fuzz: jars ## a million damaged records, then 100,000 beside Kafka's own classes; ARGS='--seed 8'
	@echo "laggard: the decoder alone"
	@$(BIN)/python tests/wire/fuzz.py --records 1000000 $(ARGS)
	@echo "laggard: the decoder beside Kafka's"
	@PYTHONPATH=lib:tests:tests/wire $(BIN)/python -m differential.compare --records 100000 $(ARGS)

lint: venv ## ruff, mypy, import directions: 10 seconds
	@echo "laggard: lint"
	@date +%s > .venv/lint.seconds
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo > .venv/lint-imports.log || { cat .venv/lint-imports.log; exit 1; }
	@echo $$(($$(date +%s) - $$(cat .venv/lint.seconds))) > .venv/lint.seconds

images: image-job image-exporter image-spark ## the images, by docker, podman or buildah: ENGINE=buildah ARGS='--build-arg BASE=...'

image-spark: image-job
image-job image-exporter image-spark: image-%: # the job's Dockerfile has no prefix
	@[ -n "$(ENGINE)" ] || { echo "laggard: none of docker, podman and buildah is on the path"; exit 1; }
	@$(ENGINE) build $(ARGS) --file docker/$(if $(filter-out job,$*),$*.)Dockerfile --tag laggard$(if $(filter-out job,$*),-$*):$(VERSION) .

pins: jars ## write conf/jars.sha256 from conf/ivy.xml, docker/requirements-*.txt from setup.cfg, and docker/licences.csv
	@$(BIN)/python docker/pins.py
	@$(BIN)/python -m laggard.ivy
	@$(BIN)/python -m laggard.jars spark broker s3
	@$(BIN)/python docker/licences.py

audit: venv ## look the pinned packages up among known weaknesses; docker/exceptions.toml has those we ship all the same
	@$(BIN)/python docker/known_weaknesses.py

docs: venv ## write the generated pages, dashboards and rules, then build the site in build/site
	@$(BIN)/python docs/build/reference_pages.py
	@$(BIN)/python docs/build/cli_json.py
	@$(BIN)/python docs/build/questions_page.py
	@$(BIN)/python docs/build/completion_files.py
	@$(BIN)/python docs/build/migrate_pages.py
	@$(BIN)/python docs/build/tables_page.py
	@$(BIN)/python conf/grafana/build.py
	@$(BIN)/python conf/rules/rule_files.py
	@[ -x $(BIN)/sphinx-build ] || { echo "laggard: the site needs Python 3.11 or newer"; exit 1; }
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site . build/site
	@echo "laggard: build/site/index.html"

pictures: pictures-ui pictures-dashboards ## write docs/pictures/: the web page and the dashboards; needs what make tools installs

pictures-ui: venv # the web page, by Chromium
	@$(BIN)/python docs/build/pictures.py

dashboards: jars ## each panel and alert in a real Prometheus (`make tools`) beside clusters in trouble, as two tables; ARGS=--live
	@PYTHONPATH=lib:tests:tests/wire $(BIN)/python -m dashboards.report $(ARGS)

pictures-dashboards: jars # the dashboards, from Prometheus beside real consumers in trouble; needs an idle machine
	@PYTHONPATH=lib:tests:tests/wire $(BIN)/python -m dashboards.report --live --pictures docs/pictures $(ARGS)

bench: jars ## the benchmarks; each prints a table
	@for file in bench/group_records.py bench/diagnose.py bench/tick.py bench/catch_up.py bench/restart.py bench/abuse.py; do echo "laggard: $$file"; $(BIN)/python $$file $(ARGS) || exit 1; done

scenarios: venv ## simulated faults and look-alikes, what the rules make of them; ARGS='--seeds 20 --write docs/scenarios.md'
	@$(BIN)/python tests/scenarios/report.py $(ARGS)

drawn: venv ## clusters drawn at random, scored; ARGS='--seeds 200 --keep FILE --write docs/scenarios.md'
	@$(BIN)/python tests/scenarios/drawn_report.py $(ARGS)

frozen: venv ## compare what the rules find in all scenarios with tests/scenarios/frozen.json; ARGS='--rows DIR' or '--write'
	@$(BIN)/python tests/scenarios/frozen.py $(ARGS)

zip: ## dist/laggard.zip for spark-submit --py-files
	@mkdir -p dist
	@rm -f dist/laggard.zip
	@find lib -name __pycache__ -type d -prune -exec rm -r {} +
	@cd lib && $(PYTHON) -m zipfile -c ../dist/laggard.zip laggard
	@echo "laggard: dist/laggard.zip"

wheel: venv ## dist/laggard-*.whl
	@$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .
	@rm -rf build
	@ls dist/laggard-*.whl

clean: ## remove .venv and everything built; keeps .jars
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache .coverage lib/*.egg-info
	@find lib tests -name __pycache__ -type d -prune -exec rm -r {} +
