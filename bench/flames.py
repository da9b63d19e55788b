"""Makes one flame graph of several by py-spy. It shows whose each frame is, and so each library's share."""

import html
import re
from collections import Counter
from collections.abc import Sequence

LIBRARIES = {
    "Mailroom": (r"\((mailroom/|send_mail\.py)", "#7fb2e5"),
    "msgspec": (r"\(msgspec/", "#b39ddb"),
    "Jinja2": (r"\((jinja2|markupsafe)/", "#e58f8f"),
    "Powertools": (r"\(aws_lambda_powertools/", "#a5d6a7"),
    "Python": (r"^all$", "#dddddd"),
    "botocore import": (r"^<module> \((botocore|boto3|s3transfer|urllib3|jmespath|dateutil)/", "#cfb58c"),
    "botocore clients": (r"create_client|^client \(boto3", "#ecd3a0"),
    "botocore serialise": (r"\(botocore/(serialize|validate)\.py", "#ffe082"),
    "botocore endpoint": (r"\(botocore/(endpoint_provider|regions)\.py|_resolve_endpoint", "#fff59d"),
    "botocore sign": (r"\(botocore/(auth|signers)\.py", "#ffb74d"),
    "botocore send": (r"\((botocore/httpsession\.py|urllib3/)", "#ffcc99"),
    "botocore parse": (r"\(botocore/parsers\.py", "#dce775"),
    "botocore rest": (r"\((botocore|boto3)/", "#e6dfc8"),
}
"""The frames that begin each one's part, and its colour. Another's part can begin below; but within a step of
botocore, no other step begins."""
_FRAME = re.compile(
    r'<g><title>([^<]*) \([\d,]+ samples?, [^<]*</title><rect [^>]* y="(\d+)" [^>]*fg:x="(\d+)" fg:w="(\d+)"'
)
Stack = tuple[str, ...]
_NONE: Stack = ()
_IMPORT = "(<frozen importlib."
_TOP, _ROW = 52, 16
_LETTERS = 1180 / (12 * 0.59)
"""Letters that fit into the whole width."""
_LEAST_SHARE = 0.001
"""Narrower frames are not drawn."""


def merged(graphs: Sequence[str]) -> tuple[str, Counter[str]]:
    """One graph, without Python's own frames of imports; and the samples by library."""
    stacks: Counter[Stack] = Counter()
    for graph in graphs:
        rows: dict[int, dict[range, Stack]] = {}
        for frame in sorted(_FRAME.finditer(graph), key=lambda each: int(each[2])):
            name, y, x, width = html.unescape(frame[1]), int(frame[2]), int(frame[3]), int(frame[4])
            above = next((each for wide, each in rows.get(y - _ROW, {}).items() if x in wide), _NONE)
            shown = _IMPORT not in name
            stack = (*above, name) if shown else above
            rows.setdefault(y, {})[range(x, x + width)] = stack
            stacks[stack] += width * shown
    samples: Counter[str] = Counter()
    free: dict[Stack, int] = {_NONE: 0}
    whose: dict[Stack, str] = {_NONE: "Python"}
    drawn: list[str] = []
    total = stacks[("all",)]
    for stack, width in sorted(stacks.items()):
        above = stack[:-1]
        free[stack], whose[stack] = free[above], _library(stack[-1], whose[above])
        samples[whose[stack]] += width
        samples[whose[above]] -= width * bool(above)
        if width >= total * _LEAST_SHARE:
            drawn.append(_frame(stack, free[stack] / total, width / total, whose[stack], total))
        free[above] += width
    lowest = max(len(stack) for stack, width in stacks.items() if width >= total * _LEAST_SHARE)
    return _graph(graphs[0], drawn, lowest, samples), samples


def percent(samples: Counter[str]) -> dict[str, float]:
    return {each: round(samples[each] / samples.total() * 100, 1) for each in LIBRARIES}


def _library(name: str, above: str) -> str:
    """The library that a frame belongs to, below a frame of `above`."""
    found = next((each for each, (begins, _) in LIBRARIES.items() if re.search(begins, name)), above)
    step = above.startswith("botocore") and above != "botocore rest" and found.startswith("botocore")
    return above if step else found


def _frame(stack: Stack, left: float, share: float, library: str, total: int) -> str:
    """As py-spy draws one, but in its library's colour."""
    name, y, fit = stack[-1], _TOP + _ROW * (len(stack) - 1), int(share * _LETTERS) - 1
    text = name if len(name) <= fit else f"{name[: fit - 2]}.." if fit > 2 else ""
    return (
        f"<g><title>{html.escape(name)} ({share * total:,.0f} samples, {share:.2%})</title>"
        f'<rect x="{left:.4%}" y="{y}" width="{share:.4%}" height="15" fill="{LIBRARIES[library][1]}" '
        f'fg:x="{left * total:.0f}" fg:w="{share * total:.0f}"/>'
        f'<text x="{left + 0.0025:.4%}" y="{y + 10.5}">{html.escape(text)}</text></g>'
    )


def _graph(drawn: str, frames: Sequence[str], rows: int, samples: Counter[str]) -> str:
    """A graph by py-spy with other frames, on white, and with a legend for its title."""
    legend = "".join(
        f'<tspan fill="{LIBRARIES[each][1]}">■</tspan> {each.removeprefix("botocore ")} {share} % '
        for each, share in percent(samples).items()
        if share >= 1
    )
    title = f'<tspan x="100" style="font-size:12px;text-anchor:start">{legend}</tspan>'
    height = _TOP + _ROW * (rows + 1)
    for pattern, new in (
        (r'(<text id="title" [^>]*>)[^<]*', rf"\g<1>{title}"),
        (r'(<svg version[^>]* height=")\d+("[^>]* viewBox="0 0 1200 )\d+', rf"\g<1>{height}\g<2>{height}"),
        (r'height="\d+" fill="url\(#background\)"', f'height="{height}" fill="white"'),
        (r'(id="matched" [^>]* y=")[\d.]+', rf"\g<1>{height - 11}"),
        ("truncate_text_right = false", "truncate_text_right = true"),
        (r'total_samples="\d+"', f'total_samples="{samples.total()}"'),
        (r"<g>.*</g>", lambda _: "".join(frames)),
    ):
        drawn = re.sub(pattern, new, drawn, count=1)
    return drawn + "\n"
