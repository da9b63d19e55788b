"""Builds the folder of a function's code without Docker: its handler, the modules of our library that the
handler imports, and the packages of its requirements."""

import ast
import compileall
import hashlib
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import jsii
from aws_cdk import BundlingOptions, DockerImage, ILocalBundling
from aws_cdk import aws_lambda as lambda_

from mailroom.content.templates import EXAMPLES
from mailroom_stacks.paths import BUNDLES, CHANNELS, LAMBDAS, LIBRARY, PROJECT, TEMPLATES

# Packages of Twilio's asynchronous client, which no function uses.
ASYNC = (
    *("aiohttp", "aiohttp-*", "aiohttp_retry*", "aiosignal*", "aiohappyeyeballs*"),
    *("attr", "attrs*", "frozenlist*", "multidict*", "propcache*", "yarl*"),
)
ALWAYS = (
    *ASYNC,
    # Classes of Twilio's package for API resources, 23 MB. Its client signs and sends requests without them.
    "twilio/rest/*/",
    # Modules of Twilio's package for voice menus, and for access tokens of browsers with the package they
    # need.
    *("twilio/twiml", "twilio/jwt", "jwt", "pyjwt-*"),
    # Data of short numbers (112, 911), which cannot be parsed or dialled from abroad.
    "phonenumbers/shortdata/region_*",
    # Time zone data for compilers and maps. The files of the single time zones are not deleted.
    *("tzdata/zones", "tzdata/zoneinfo/*.tab", "tzdata/zoneinfo/tzdata.zi", "tzdata/zoneinfo/leapseconds"),
    # Compilers of PyNaCl's interface to libsodium, which is compiled already.
    *("cffi", "pycparser", "pycparser-*"),
    # All modules of Powertools except the logger, the metrics and their imports.
    *("aws_lambda_powertools/utilities/[!_j]*", "aws_lambda_powertools/event_handler"),
)
BY_HANDLER = {
    # Of cffi, cryptography needs only the extension module.
    "console": ("cffi", "cffi-*", "pycparser*"),
    # To check a signature, the handler needs one module of Twilio's package, and otherwise only the standard
    # library.
    "twilio_callbacks": (
        *("twilio/rest", "twilio/http", "twilio/base", "twilio/auth_strategy", "twilio/credential"),
        *("requests*", "urllib3*", "certifi*", "idna*", "charset_normalizer*"),
    ),
}
"""Globs of unused files and folders in the folder of installed packages, by handler. A glob that ends with a
slash matches only folders. To include a file in the bundle after all, remove its glob."""

USED = {"console": ("jwt", "pyjwt-*")}
"""Globs of ALWAYS whose files a handler uses after all, by handler."""


def prune(packages: Path, patterns: tuple[str, ...]) -> None:
    """Delete files and folders that match `patterns` from the folder `packages`."""
    for pattern in patterns:
        for path in list(packages.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


PYTHON = "3.14"  # a bundle for `host` has the version of this machine
# Options with which uv installs only locked packages: no further dependencies, no file with another hash, no
# source build.
LOCKED = ("--no-deps", "--require-hashes", "--only-binary", ":all:")
REFUSED = """Is a hash missing or different? If you changed the *.in file of this lock file, run `make lock`.
If not, the registry returned another file than the locked one: do not deploy it."""
REQUIREMENTS = (PROJECT / "requirements", LAMBDAS / "requirements")
"""Folders with the lock files of handlers' packages. A lock file of the project overrides one of Mailroom."""
# Files in packages that no function uses. A RECORD lists the files as they were installed.
USELESS = shutil.ignore_patterns("tests", "bin", ".lock", "*.pyi", "RECORD")


@dataclass(frozen=True)
class Target:
    """Machine that runs a bundle. `platform` is a platform name of uv, or "host" for this machine."""

    platform: str

    @property
    def python(self) -> str:
        """Version of Python on the machine, such as 3.14."""
        return platform.python_version().rpartition(".")[0] if self.platform == "host" else PYTHON

    @property
    def runtime(self) -> lambda_.Runtime:
        """Lambda runtime with the machine's version of Python."""
        return lambda_.Runtime(f"python{self.python}", lambda_.RuntimeFamily.PYTHON)

    @property
    def architecture(self) -> lambda_.Architecture:
        """Processor architecture of the machine."""
        machine = platform.machine() if self.platform == "host" else self.platform
        return (
            lambda_.Architecture.ARM_64
            if machine.startswith(("aarch64", "arm"))
            else lambda_.Architecture.X86_64
        )

    @property
    def compiles(self) -> bool:
        """Whether this interpreter can compile bytecode for the function. The function's folder is read-only,
        so Lambda would compile a module without bytecode again at every cold start."""
        return self.python == platform.python_version().rpartition(".")[0]

    def uv_arguments(self) -> list[str]:
        """Return the arguments with which uv chooses wheels for the machine."""
        if self.platform == "host":
            return ["--python", sys.executable]
        return ["--python-platform", self.platform, "--python-version", PYTHON]


@jsii.implements(ILocalBundling)
class Bundle:
    """Files of the code of one function."""

    def __init__(
        self,
        handler: str,
        target: Target,
        templates: str = "",
        *,
        extras: Mapping[str, bytes] | None = None,
        channels: Mapping[str, str] | None = None,
        modules: Iterable[str] = (),
    ) -> None:
        """`handler` is the name, without .py, of a file in the project's channels/ or else in lambdas/.
        `templates` is the folder in templates/ to include, if any. `extras` maps further paths in the bundle
        to their contents. `channels` maps the names of the project's channels to their modules. `modules` are
        modules of the library that the handler imports by name."""
        self.handler = handler
        self.channels = channels or {}
        self.modules = tuple(modules)
        self.folder = CHANNELS if (CHANNELS / f"{handler}.py").is_file() else LAMBDAS
        self.target = target
        self.templates = templates
        self.extras = extras or {}
        used = USED.get(handler, ())
        self.unused = tuple(glob for glob in (*ALWAYS, *BY_HANDLER.get(handler, ())) if glob not in used)
        """Globs of files that the function does not use."""
        locked = (folder / f"{handler}.txt" for folder in REQUIREMENTS)
        self.requirements = next(filter(Path.is_file, locked), REQUIREMENTS[-1] / "common.txt")

    def code(self) -> lambda_.Code:
        """Return the bundle as an asset, whose hash changes if and only if an input changes."""
        return lambda_.Code.from_asset(
            str(LAMBDAS),
            asset_hash=self.fingerprint(),
            bundling=BundlingOptions(image=DockerImage.from_registry("unused"), local=self),
        )

    def fingerprint(self) -> str:
        """Return a hash of all files, of the code of this module, and of the globs of unused files."""
        target = self.target
        rules = f"{target.platform} {target.python} {target.compiles} {self.unused}"
        digest = hashlib.sha256(rules.encode())
        digest.update(Path(__file__).read_bytes())
        for inside, file in sorted({"requirements.txt": self.requirements, **self._sources()}.items()):
            digest.update(f"\0{inside}\0".encode())
            digest.update(file.read_bytes() if file.exists() else b"")
        for path, content in sorted(self.extras.items()):
            digest.update(f"\0{path}\0{len(content)}\0".encode())
            digest.update(content)
        return digest.hexdigest()

    def try_bundle(self, output_dir: str, *_: object, **__: object) -> bool:
        """Write the bundle into `output_dir`. The CDK calls this method if a bundle with the same hash does
        not exist."""
        self.build(Path(output_dir))
        return True

    def build(self, output: Path) -> None:
        """Write the bundle into `output`. Raises FileNotFoundError for a missing handler, and RuntimeError if
        uv cannot install a package or gets another file than the locked one."""
        shutil.copytree(self.packages(), output, ignore=USELESS, dirs_exist_ok=True)
        for inside, source in self._sources().items():
            (output / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, output / inside)
        for path, content in self.extras.items():
            (output / path).parent.mkdir(parents=True, exist_ok=True)
            (output / path).write_bytes(content)
        for ours in (*TOOLS, "mailroom", f"{self.handler}.py", "campaigns", CHANNELS.name):
            if (output / ours).exists():
                self._compile(output / ours, output)

    def _sources(self) -> dict[str, Path]:
        """Return the source files by their paths in the bundle: the handler, the library modules that the
        handler or a campaign's code imports, and templates."""
        handler = self.folder / f"{self.handler}.py"
        code = [content for path, content in self.extras.items() if path.endswith(".py")]
        # Synth does not need the handler's file; the build then reports that it is missing.
        code += [f"import {module}".encode() for module in self.modules]
        imported = library_files([*code, handler.read_bytes() if handler.exists() else b""])
        if self.channels and TABLE in imported:
            imported |= library_files([f"import {module}".encode() for module in self.channels.values()])
        sources = {handler.name: handler, **imported}
        if self.templates:
            files = (TEMPLATES / self.templates).rglob("*")
            templates = (file for file in files if file.is_file() and file.parent.name != EXAMPLES)
            sources |= {f"{file.relative_to(TEMPLATES.parent)}": file for file in templates}
        return sources

    def packages(self) -> Path:
        """Return the folder of the installed requirements, which later builds reuse."""
        target = self.target
        rules = f"{LOCKED}{target.uv_arguments()}{target.python}{target.compiles}{self.unused}"
        folder = BUNDLES / hashlib.sha256(f"{self.requirements.read_text()}{rules}".encode()).hexdigest()[:16]
        if not folder.exists():
            BUNDLES.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=BUNDLES) as fresh:
                packages = Path(fresh) / "packages"
                self._install(packages)
                prune(packages, self.unused)
                self._compile(packages, packages)
                try:
                    packages.rename(folder)
                except OSError:
                    # Another synth may have created the same folder in the meantime.
                    if not folder.exists():
                        raise
        return folder

    def _install(self, folder: Path) -> None:
        process = subprocess.run(  # noqa: S603 - our own files and settings, no shell
            [
                *(str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet"),
                *("--target", str(folder), "--requirements", str(self.requirements)),
                *LOCKED,
                *self.target.uv_arguments(),
            ],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if process.returncode:
            raise RuntimeError(f"{self.requirements}: {process.stderr.strip()}\n{REFUSED}")

    def _compile(self, path: Path, root: Path) -> None:
        """Write bytecode that stays valid if the times of files change. `root` becomes /var/task in the
        function."""
        if not self.target.compiles:
            return
        compiler = compileall.compile_dir if path.is_dir() else compileall.compile_file
        compiler(
            path,
            quiet=1,
            stripdir=str(root),
            prependdir="/var/task",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )


def _folder(package: str) -> Path:
    spec = find_spec(package)  # not imported, because commands import the stacks
    return Path(spec.origin).parents[1] if spec and spec.origin else PROJECT


TOOLS = ("mailroom_ops", "mailroom_stacks")
"""Packages of which only the console's handler imports modules."""
ROOTS = {"mailroom": LIBRARY, CHANNELS.name: CHANNELS.parent, **{name: _folder(name) for name in TOOLS}}
"""Folders of code that is bundled from sources instead of installed, by top-level package name: the library,
the project's own channels, and the tools."""
TABLE = "mailroom/channels/contracts.py"


def library_files(sources: Iterable[bytes]) -> dict[str, Path]:
    """Return the files of ROOTS that the Python code `sources` imports, directly or indirectly, by their
    paths in a bundle. Returns all files if this Python version cannot parse a source: a campaign may be
    written for the functions' Python version, which is newer."""
    files: dict[str, Path] = {}
    try:
        waiting = [name for source in sources for name in _imported(source)]
    except SyntaxError:
        everything = (root / name for name, root in ROOTS.items() if name not in TOOLS)
        return {f"{file.relative_to(top.parent)}": file for top in everything for file in top.rglob("*.py")}
    visited: set[str] = set()
    while waiting:
        name = waiting.pop()
        if not name or name in visited:
            continue
        visited.add(name)
        # The import of a module imports its parent packages.
        waiting.append(name.rpartition(".")[0])
        root = ROOTS[name.partition(".")[0]]
        path = root.joinpath(*name.split("."))
        # A folder without these files is not a package: it may contain only the bytecode of a module that was
        # moved.
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                files[f"{file.relative_to(root)}"] = file
                waiting += _imported(file.read_bytes())
    return files


@cache
def _imported(source: bytes) -> tuple[str, ...]:
    """Return the names in ROOTS that `source` imports, also inside functions, but not under `if
    TYPE_CHECKING`."""
    names: list[str] = []
    waiting: list[ast.AST] = [ast.parse(source)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # The name after `import` is a module, or a name in a module.
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        waiting += ast.iter_child_nodes(node)
    return tuple(name for name in names if name.partition(".")[0] in ROOTS)
