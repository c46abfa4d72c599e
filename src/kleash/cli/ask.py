"""`kleash study from REPORT.md…`: the study file that would settle reports."""

from __future__ import annotations

import string
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.cli.console import language_of
from kleash.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kleash.report.words import Language


def study_from(paths: Sequence[str], out: Path | None, lang: str) -> tuple[Path | None, Language]:
    """Write the study that would settle reports, or print it; the file, and its language."""
    from kleash.compare.documents.study import study_of
    from kleash.compare.read import markdown
    from kleash.report.words import CODES, LANGUAGES
    from kleash.study.plan.file import NAME

    if not paths:
        raise ConfigError("kleash study from REPORT.md…: which reports?")
    if out is not None and out.exists():
        raise DataError(f"{out} is there already: give another --out, or move it away")
    for path in map(Path, paths):
        if not path.is_file() or not markdown.fits(path):
            raise DataError(f"{path} is no report in Markdown")
    sources = [markdown.read(Path(path)) for path in paths]
    if not any(run.arm for source in sources for run in source.runs):
        raise DataError(f"{', '.join(paths)}: no arms are told of, so there is nothing to study")
    language = language_of(lang, sources)

    def say(code: str, facts: dict[str, Any]) -> str:
        # Values are quoted whole: a question that is cut off cannot be answered.
        return string.Formatter().vformat(CODES[code][LANGUAGES.index(language)], (), facts)

    stem = out.stem if out is not None else Path(paths[0]).stem
    text = study_of(sources, stem if NAME.fullmatch(stem) else "from-reports", say)
    if out is None:
        print(text, end="")
        return None, language
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot write {out}: {error.strerror}") from None
    print(out)
    return out, language
