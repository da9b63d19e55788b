#!/bin/sh
# The operator's commands, from any folder. `make setup` puts this file beside the interpreter.
root=$(CDPATH='' cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.." && pwd) || exit 2
PYTHONPATH="$root" exec "$root/.venv/bin/python" -P -m ops "$@"
