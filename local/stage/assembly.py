"""A synthesized cloud assembly: its stacks in the order of their dependencies, and their assets."""

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.aws import ACCOUNT, REGION


@dataclass(frozen=True)
class Asset:
    """A file, or a folder to be zipped, and the place in S3 where its stack looks for it."""

    source: Path
    zipped: bool
    bucket: str
    key: str

    def content(self) -> bytes:
        """What is uploaded. Stored, not deflated: the emulator unpacks it at once, on this machine."""
        if not self.zipped:
            return self.source.read_bytes()
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
            for path in sorted(self.source.rglob("*")):
                archive.write(path, path.relative_to(self.source))
        return buffer.getvalue()


@dataclass(frozen=True)
class StackArtifact:
    """One stack of the assembly."""

    name: str
    template: Path
    assets: tuple[Asset, ...]


def read(folder: Path) -> list[StackArtifact]:
    """All stacks, each after those it depends on."""
    artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
    stacks = {name for name, each in artifacts.items() if each["type"] == "aws:cloudformation:stack"}
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name in ordered:
            return
        for dependency in artifacts[name].get("dependencies", []):
            visit(dependency)
        ordered.append(name)

    for name in sorted(stacks):
        visit(name)
    return [_stack(folder, name, artifacts) for name in ordered if name in stacks]


def _stack(folder: Path, name: str, artifacts: dict[str, Any]) -> StackArtifact:
    properties = artifacts[name]["properties"]
    manifests = [
        folder / artifacts[dependency]["properties"]["file"]
        for dependency in artifacts[name].get("dependencies", [])
        if artifacts[dependency]["type"] == "cdk:asset-manifest"
    ]
    assets = [asset for manifest in manifests for asset in _assets(folder, manifest)]
    return StackArtifact(
        properties.get("stackName", name), folder / properties["templateFile"], tuple(assets)
    )


def _assets(folder: Path, manifest: Path) -> list[Asset]:
    return [
        Asset(
            source=folder / each["source"]["path"],
            zipped=each["source"].get("packaging") == "zip",
            bucket=_resolved(destination["bucketName"]),
            key=_resolved(destination["objectKey"]),
        )
        for each in json.loads(manifest.read_text())["files"].values()
        for destination in each["destinations"].values()
    ]


def _resolved(text: str) -> str:
    """An environment-agnostic stack names its bucket by these placeholders."""
    for placeholder, value in (("AccountId", ACCOUNT), ("Region", REGION), ("Partition", "aws")):
        text = text.replace("${AWS::" + placeholder + "}", value)
    return text
