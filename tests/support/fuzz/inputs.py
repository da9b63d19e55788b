"""Hostile inputs: valid inputs with changed parts, and valid inputs in which one part grows."""

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

SECRET = "zanzibar"
"""Text in the inputs that no error message may quote."""
PIECES = (
    "a",
    "漢",
    "é.",
    "a@",
    "1 ",
    "\x00",
    "a.b-",
    "://",
    '"<',
    "\\'",
    "%C3",
    "{{",
    ';name="',
    "̧́",
    'p","r\n',
)
"""Pieces that are repeated to make long texts, on which parsers and masks could backtrack repeatedly."""
RAW = {
    **{f"@{deep} deep@": "[" * deep + "]" * deep for deep in (20, 60, 120, 300, 600, 800, 900, 940, 980)},
    "@deep objects@": '{"a":' * 900 + "1" + "}" * 900,
    "@open@": "[" * 2000,
    "@large@": "9" * 4200,
    "@larger@": "9" * 5000,
    "@exponent@": "1E+400",
    "@negative exponent@": "-1E-400",
    "@beyond@": "1E+99999999999999999999",
    "@digits@": "0." + "1" * 60,
    "@nan@": "NaN",
    "@half a pair@": r'"\ud800"',
    "@twice@": '{"id": "a", "id": "b", "event_type": "mail", "event_type": "sms"}',
}
"""JSON that Python's encoder does not produce, by the placeholders that stand for it."""
TEMPTING = (
    *("", " ", "\0", "a\nb", "\u2028", "\ufffe\uffff", "\U0001f4a5", "0", "-1", "null", "..", "{}", "[]"),
    *("a@b.example", '"A" <a@b.example>', "a@xn--99999999999.example", "a@\u0131\u0307\u1e9e.example"),
    *("+16175551234", "tel:+1;ext=9", "\u0661\u0662\u0663", "+1 617 555 1234 x9"),
    *("2026-11-21T09:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-W47"),
    *("https://hooks.example.com/a", "https://[::1]/", "https://a:1:2/", "//[", "s3://b/k", "s3:///"),
    *("mail", "sms", "normal", "bulk", "stop", "Notification", "twilio", "twilio-text"),
)
NUMBERS = (0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**38, 10**130, 1.5, -0.0, 1e300, 1e-300)
strange_texts = (
    st.sampled_from(TEMPTING)
    | st.text(max_size=20)
    | st.builds(lambda piece, times: piece * times, st.sampled_from(PIECES), st.sampled_from((2, 70, 3000)))
)
wild: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from(sorted(RAW)),
    strange_texts,
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=6,
    ),
)
"""Any JSON value."""


def json_of(value: Any) -> str:
    """Return the value as JSON, with its placeholders replaced."""
    text = json.dumps(value)
    for name, raw in RAW.items():
        text = text.replace(json.dumps(name), raw)
    return text


@st.composite
def bent(draw: st.DrawFn, right: Sequence[Any], values: st.SearchStrategy[Any] = wild) -> Any:
    """Generate a valid value in which a few parts are replaced, removed, duplicated, added or lengthened."""
    value = copy.deepcopy(draw(st.sampled_from(right)))
    for _ in range(draw(st.integers(1, 4))):
        value = _bent(draw, value, values)
    return value


def _bent(draw: st.DrawFn, value: Any, values: st.SearchStrategy[Any]) -> Any:
    if isinstance(value, str) and value.startswith("{") and draw(st.booleans()):
        return json.dumps(_bent(draw, _loaded(value), values))  # An SQS envelope contains the letter as text.
    if not isinstance(value, dict | list) or not value:
        return draw(values)
    at: Any = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    if isinstance(value[at], dict | list) and draw(st.integers(0, 3)):
        value[at] = _bent(draw, value[at], values)
        return value
    change = draw(st.sampled_from(("replace", "replace", "within", "remove", "double", "longer")))
    if change == "remove":
        del value[at]
    elif change == "double":
        _add(draw, value, copy.deepcopy(value[at]))
    elif change == "longer" and isinstance(value[at], str):
        value[at] = draw(st.sampled_from((value[at] + "{}", "{}" + value[at]))).replace(
            "{}", draw(strange_texts)
        )
    else:
        value[at] = _bent(draw, value[at], values) if change == "within" else draw(values)
    return value


def _add(draw: st.DrawFn, holder: Any, value: Any) -> None:
    if isinstance(holder, list):
        holder.append(value)
    else:
        holder[draw(strange_texts)] = value


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@st.composite
def nearly_valid_texts(draw: st.DrawFn, right: Sequence[str]) -> str:
    """Generate a valid text with a part replaced by another text, or any text."""
    text = draw(st.sampled_from(right))
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 8)))
        text = text[:begin] + draw(strange_texts | st.sampled_from(right)) + text[end:]
    return text


@st.composite
def bodies(draw: st.DrawFn, right: Sequence[Any]) -> str:
    """Generate the JSON of a changed value, sometimes with damage to the JSON text itself."""
    text = json_of(draw(bent(right)))
    damage = draw(st.sampled_from(("none", "none", "none", "cut", "insert", "no JSON")))
    if damage == "cut":
        return text[: draw(st.integers(0, len(text)))]
    if damage == "insert":
        at = draw(st.integers(0, len(text)))
        return text[:at] + draw(strange_texts) + text[at:]
    return draw(strange_texts) if damage == "no JSON" else text


@dataclass(frozen=True)
class Growing:
    """A valid value whose part at `path` grows in the way of `shape`.

    `of` builds one with about the given number of characters.
    """

    value: Any
    path: tuple[Any, ...]
    shape: str
    piece: str

    def of(self, size: int) -> Any:
        """Return the value at this size."""
        value = copy.deepcopy(self.value)
        if self.shape == "all lists":
            return _longer_lists(value, max(2, size // 40))
        if not self.path:
            return self._grown(value, size)
        holder = value
        for each in self.path[:-1]:
            holder = holder[each]
        holder[self.path[-1]] = self._grown(holder[self.path[-1]], size)
        return value

    def _grown(self, part: Any, size: int) -> Any:
        long = self.piece * (size // len(self.piece))
        text = part if isinstance(part, str) else ""
        half = len(text) // 2
        shapes: dict[str, Callable[[], Any]] = {
            "text": lambda: long,
            "before": lambda: long + text,
            "behind": lambda: text + long,
            "between": lambda: text[:half] + long + text[half:],
            "list": lambda: [part] * (size // (len(str(part)) + 4)),
            "different": lambda: [f"{self.piece}{at}{text}" for at in range(size // (len(text) + 10))],
            "names": lambda: {f"{self.piece}{at}": part for at in range(size // (len(str(part)) + 10))},
        }
        return shapes[self.shape]()


def _longer_lists(value: Any, times: int) -> Any:
    """Return the value with all its lists lengthened by the factor `times`, without equal entries in a
    list."""
    if isinstance(value, dict):
        return {name: _longer_lists(each, times) for name, each in value.items()}
    if isinstance(value, list) and value:
        return [_renamed(value[at % len(value)], at) for at in range(times)]
    return value


def _renamed(value: Any, at: int) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(each, at) for name, each in value.items()}
    return f"n{at}{value}" if isinstance(value, str) else value


SHAPES = ("text", "before", "behind", "between", "list", "different", "names")


@st.composite
def growing(draw: st.DrawFn, right: Sequence[Any]) -> Growing:
    """Generate a growing part of a valid value."""
    value = draw(st.sampled_from(right))
    paths = [*_paths(value)]
    only_text = isinstance(value, str)
    shape = draw(st.sampled_from(SHAPES[:4] if only_text else (*SHAPES, "all lists")))
    return Growing(value, draw(st.sampled_from(paths)), shape, draw(st.sampled_from(PIECES)))


def _paths(value: Any) -> Iterable[tuple[Any, ...]]:
    inner = (
        [*value.items()]
        if isinstance(value, dict)
        else [*enumerate(value)]
        if isinstance(value, list)
        else []
    )
    found = [(at, *path) for at, each in inner for path in _paths(each)]
    return [*found, *((at,) for at, each in inner if isinstance(each, dict | list))] or [()]
