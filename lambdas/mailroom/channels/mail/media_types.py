"""Media types of attached files by extension. The table is part of the bundle: Python's `mimetypes` differs
between versions of Python, and reads files of the machine that Lambda lacks.

Source: IANA's registry (https://www.iana.org/assignments/media-types, read on 2026-11-29). The types with x-
are not registered, but usual.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath

_OOXML = "application/vnd.openxmlformats-officedocument"
_ODF = "application/vnd.oasis.opendocument"

TYPES: Mapping[str, str] = {
    # text and data
    ".css": "text/css",
    ".csv": "text/csv",
    ".eml": "message/rfc822",
    ".geojson": "application/geo+json",
    ".htm": "text/html",
    ".html": "text/html",
    ".ics": "text/calendar",
    ".json": "application/json",
    ".log": "text/plain",
    ".md": "text/markdown",
    ".tsv": "text/tab-separated-values",
    ".txt": "text/plain",
    ".vcf": "text/vcard",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    # documents
    ".doc": "application/msword",
    ".docm": "application/vnd.ms-word.document.macroEnabled.12",
    ".docx": f"{_OOXML}.wordprocessingml.document",
    ".dotx": f"{_OOXML}.wordprocessingml.template",
    ".eps": "application/postscript",
    ".epub": "application/epub+zip",
    ".key": "application/vnd.apple.keynote",
    ".msg": "application/vnd.ms-outlook",
    ".numbers": "application/vnd.apple.numbers",
    ".odg": f"{_ODF}.graphics",
    ".odp": f"{_ODF}.presentation",
    ".ods": f"{_ODF}.spreadsheet",
    ".odt": f"{_ODF}.text",
    ".pages": "application/vnd.apple.pages",
    ".pdf": "application/pdf",
    ".pkpass": "application/vnd.apple.pkpass",
    ".ppsx": f"{_OOXML}.presentationml.slideshow",
    ".ppt": "application/vnd.ms-powerpoint",
    ".pptm": "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
    ".pptx": f"{_OOXML}.presentationml.presentation",
    ".ps": "application/postscript",
    ".rtf": "application/rtf",
    ".xls": "application/vnd.ms-excel",
    ".xlsb": "application/vnd.ms-excel.sheet.binary.macroEnabled.12",
    ".xlsm": "application/vnd.ms-excel.sheet.macroEnabled.12",
    ".xlsx": f"{_OOXML}.spreadsheetml.sheet",
    ".xltx": f"{_OOXML}.spreadsheetml.template",
    # images
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".gif": "image/gif",
    ".heic": "image/heic",
    ".heif": "image/heif",
    ".ico": "image/vnd.microsoft.icon",
    ".jpeg": "image/jpeg",
    ".jpg": "image/jpeg",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
    ".webp": "image/webp",
    # sound and video
    ".aac": "audio/aac",
    ".avi": "video/vnd.avi",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".mp3": "audio/mpeg",
    ".mp4": "video/mp4",
    ".mpeg": "video/mpeg",
    ".mpg": "video/mpeg",
    ".ogg": "audio/ogg",
    ".wav": "audio/vnd.wave",
    ".webm": "video/webm",
    # compressed files and archives
    ".7z": "application/x-7z-compressed",
    ".bz2": "application/x-bzip2",
    ".gz": "application/gzip",
    ".rar": "application/vnd.rar",
    ".tar": "application/x-tar",
    ".tgz": "application/gzip",
    ".xz": "application/x-xz",
    ".zip": "application/zip",
    ".zst": "application/zstd",
    # signatures and keys
    ".p12": "application/pkcs12",
    ".p7c": "application/pkcs7-mime",
    ".p7m": "application/pkcs7-mime",
    ".p7s": "application/pkcs7-signature",
    ".pfx": "application/pkcs12",
}
"""Media types by extension in lower case."""


def type_of(filename: str) -> str:
    """Return the media type for a file's last extension, so that `report.csv.gz` is a gzip file."""
    return TYPES.get(PurePosixPath(filename).suffix.lower(), "application/octet-stream")
