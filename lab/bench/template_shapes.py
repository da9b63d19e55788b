"""Highest CPU time and memory of a rendering: of hostile templates and of random ones, with variables of the
maximum size. Each rendering has a process of its own.

Besides, it computes the memory that synth requires for a mail sender, and the CPU time that a batch has with
that memory.
"""

import json
import random
import re
import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lab import REPOSITORY, size
from lab.bench.functions import clean
from lab.bench.memory import most_megabytes, most_megabytes_until_its_end
from mailroom.content.templates import engine_of
from mailroom.content.variables import values_of
from mailroom.errors import MAX_VARIABLES_BYTES, Invalid
from mailroom.message.message import encode
from mailroom_ops.costs.prices import WHOLE_VCPU_MB
from mailroom_stacks.settings.channels import Channel, Lane, Mail, least_memory

SHAPES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
COUNT = size(len(SHAPES), 2)
"""Number of hostile templates."""
RANDOM = size(200, 2)
"""Number of random templates."""
CUT_OFF_SECONDS = 10
"""Seconds of CPU time after which a rendering is killed, more than a sender has for a batch."""
ROUNDS = size(3, 1)
"""Number of renderings of an expensive template, of which the lowest cost is used: other load can only
increase it."""
MUCH_SECONDS = 1.0
MUCH_MEGABYTES = 150
"""Limits of CPU seconds and megabytes. Templates above them are named in docs/reference/limits.md."""


class Cost(NamedTuple):
    """CPU time and memory of a rendering, and its result."""

    seconds: float
    megabytes: int
    result: str

    @property
    def much(self) -> bool:
        """Whether the template is expensive, so that it is named in docs/reference/limits.md."""
        return self.seconds > MUCH_SECONDS or self.megabytes > MUCH_MEGABYTES


def measure() -> dict[str, Any]:
    """Return the figures. The highest values do not include the expensive templates (`Cost.much`), which are
    listed instead."""
    hostile = {name: _least(name) for name in [*SHAPES][:COUNT]}
    generated = {name: _least(name) for name in (f"random {seed}" for seed in range(RANDOM))}
    channel = Channel(handler="send_mail", lanes={"normal": Lane(share=1)})
    memory = least_memory("mail", channel, Mail(senders=("mailroom@example.com",)))
    return {
        "template_shapes": _worst(hostile),
        "template_random": _worst(generated),
        "template_sender": {
            "memory_mb": memory,
            "batch_cpu_seconds": round(channel.timeout_seconds * memory / WHOLE_VCPU_MB, 1),
        },
    }


def _worst(costs: Mapping[str, Cost]) -> dict[str, Any]:
    usual = [cost for cost in costs.values() if not cost.much]
    return {
        "templates": len(costs),
        "rendered": sum(cost.result == "rendered" for cost in costs.values()),
        "seconds": max(cost.seconds for cost in usual),
        "megabytes": max(cost.megabytes for cost in usual),
        "much": {name: cost for name, cost in costs.items() if cost.much},
    }


def _least(name: str) -> Cost:
    costs = [cost(name)]
    while costs[-1].much and len(costs) < ROUNDS:
        costs.append(cost(name))
    return min(costs)


def cost(name: str) -> Cost:
    """Render a template in a new process, and return the cost."""
    command = [sys.executable, "-m", "lab.bench.template_shapes", name]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=clean(), stdout=subprocess.PIPE)
    peak = most_megabytes_until_its_end(process)
    before, *after = process.communicate()[0].splitlines()
    if after:
        return Cost(*json.loads(after[0]))
    return Cost(CUT_OFF_SECONDS, round(peak - float(before)), f"killed by signal {-process.returncode}")


def main() -> None:
    """Render one template in this process. Write the memory before the rendering, and the cost."""
    name = sys.argv[1]
    sources, variables = _random(int(name.split()[1])) if name.startswith("random ") else _shape(name)
    engine, body = engine_of(sources), next(part for part in sources if part.startswith("a/"))
    engine_of({"a/body.txt": "x"}).render("a/body.txt", {})  # loads the engine before the measurement begins
    resource.setrlimit(resource.RLIMIT_CPU, (CUT_OFF_SECONDS, CUT_OFF_SECONDS + 1))
    before = most_megabytes()
    print(before, flush=True)
    started = time.process_time()
    try:
        for fault in engine.faults():
            raise fault
        engine.render(body, values_of(variables))
        result = "rendered"
    except Invalid as fault:
        result = f"{fault}"
    seconds = round(time.process_time() - started, 2)
    print(json.dumps(Cost(seconds, round(most_megabytes() - before), result)))


# --- Sources of hostile templates


def _shape(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the sources and the variables of a hostile template."""
    shape = dict(SHAPES[name])
    part = {"p.txt": shape.pop("part", "")}
    body = "html" if "html" in shape else "text"
    return {f"a/body.{body.replace('text', 'txt')}": shape.pop(body), **part}, _fitted(shape)


def _fitted(forms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the largest size that is within the limit."""
    fits, over = 1, 2
    while over < MAX_VARIABLES_BYTES and _bytes(_variables(forms, over)) <= MAX_VARIABLES_BYTES:
        fits, over = over, over * 2
    while over - fits > 1:
        middle = (fits + over) // 2
        if _bytes(_variables(forms, middle)) <= MAX_VARIABLES_BYTES:
            fits = middle
        else:
            over = middle
    return _variables(forms, fits)


def _bytes(variables: Mapping[str, Any]) -> int:
    return len(encode(variables).encode())


def _variables(forms: Mapping[str, Any], n: int) -> dict[str, Any]:
    variables = {name: _value(value, n) for name, value in forms.items()}
    attributes: dict[str, int] = variables.pop("*", {})
    return variables | attributes


def _value(form: Any, n: int) -> Any:
    """Return a variable of size `n`. template_shapes.toml describes the forms."""
    match form:
        case {"of": value, "by": times, **more}:
            return value * (times * n) + more.get("end", type(value)())
        case {"names": times}:
            return {f"a{number}": number for number in range(times * n)}
        case {"numbered": str(text), "by": times}:
            return [f"{text}{number * 7919 % 9973}" for number in range(times * n)]
        case {"numbered": {"a": text}, "by": times}:
            return [{"a": f"{text}{number * 7919 % 9973}"} for number in range(times * n)]
    return form


# --- Sources of random templates

FILTERS = {
    "text text": "capitalize lower upper title trim trim(TEXT) format(TEXT) replace(TEXT,TEXT) "
    "truncate(length=9) indent(2) urlencode e escape safe string striptags wordwrap(width=9) reverse "
    "default(TEXT) d(TEXT)",
    "text words": "split split(TEXT) lines list",
    "text number": "length count int(0) float(0)",
    "words words": "sort unique reverse list batch(3) slice(3) map('upper') map('replace','a',TEXT) select "
    "select('in',WORDS) reject('eq',TEXT) zip(WORDS) chain(WORDS)",
    "words text": "join join(TEXT) first last min max string tojson pprint",
    "words number": "length count",
    "rows rows": "sort(attribute='a') sort(attribute=TEXT) unique(attribute='a') selectattr('a') "
    "rejectattr('b','eq',NUMBER) reverse list",
    "rows words": "map(attribute='a') groupby('a') groupby(TEXT,default='') map('tojson') batch(9)",
    "rows number": "sum(attribute='b') length",
    "rows text": "tojson pprint string join",
    "map map": "default(MAP)",
    "map text": "tojson pprint string join(TEXT)",
    "map words": "items dictsort dictsort(by='value') list",
    "map number": "length count attr('a1') bool",
    "number number": "abs round round(1) int float",
    "number text": "string filesizeformat pluralize tojson pprint",
}
"""Filters of the template language, by the kinds of their input and output."""
WAYS = [(*kinds.split(), use) for kinds, uses in FILTERS.items() for use in uses.split()]
KINDS = ("text", "words", "rows", "map", "number")


def _random(seed: int) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the sources of a random template, and its variables."""
    chance = random.Random(seed)
    letters = chance.choice(("ab ", "é\n", "😀", "<&", "a,b.c"))
    forms = {
        "text": {"of": letters, "by": chance.choice((1, 9, 99))},
        "words": {"numbered": letters * chance.choice((1, 20)), "by": chance.choice((1, 9))},
        "rows": {"of": [{"a": letters, "b": 1.5}, {"a": "x", "b": 2}], "by": chance.choice((1, 9))},
        "map": {"names": chance.choice((2, 9))},
        "number": chance.choice((0, 3, 1000, 2.5, 10**9)),
    }
    macro = f"{{% macro m(text) %}}{_statements(chance, 1)}{{% endmacro %}}"
    sources = {"p.txt": _statements(chance, 0), "a/body.html": macro + _statements(chance, 3)}
    return sources, _fitted(forms)


def _statements(chance: random.Random, depth: int) -> str:
    return "".join(_statement(chance, depth) for _ in range(chance.randint(1, 3)))


def _statement(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.4:
        return f"{{{{ {_expression(chance, chance.choice(KINDS), 2)} }}}}"
    inner = _statements(chance, depth - 1)
    return chance.choice(
        (
            f"{{% for text in {_expression(chance, 'words', 2)} %}}{inner}{{% endfor %}}",
            f"{{% for map in {_expression(chance, 'rows', 1)} %}}{inner}{{% endfor %}}",
            f"{{% if {_expression(chance, 'text', 2)} in {_expression(chance, 'words', 2)} %}}{inner}"
            "{% endif %}",
            f"{{% set text = {_expression(chance, 'text', 2)} ~ text %}}{inner}",
            "{% include 'p.txt' %}",
            f"{{{{ m({_expression(chance, 'text', 2)}) }}}}" if depth > 1 else inner,
        )
    )


def _expression(chance: random.Random, kind: str, depth: int) -> str:
    """Return a random expression whose value is of this kind: a variable, or an expression with a filter."""
    if depth == 0 or chance.random() < 0.2:
        return kind
    takes, _, use = chance.choice([way for way in WAYS if way[1] == kind])
    use = re.sub(r"[A-Z]{3,}", lambda name: name[0].lower(), use)
    return f"{_expression(chance, takes, depth - 1)} | {use}"


if __name__ == "__main__":
    main()
