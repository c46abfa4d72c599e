"""The verb `coef`: what a KL coefficient of another project is in units of reward."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kleash.cli.console import AsJson, Lang, language_of, told
from kleash.errors import ConfigError

if TYPE_CHECKING:
    from kleash.report.words import Language

Reward = Annotated[
    float | None, typer.Option(help="SD of rewards within a group, as the run logs it.", min=0.0)
]
Size = Annotated[int | None, typer.Option(help="Answers sampled for each prompt.", min=2)]


def coef(
    project: Annotated[str, typer.Argument(help="trl, verl, nemo-rl or openrlhf.")],
    settings: Annotated[list[str], typer.Argument(metavar="KEY=VALUE...")],
    reward_sd: Reward = None,
    group: Size = None,
    as_json: AsJson = False,
    lang: Lang = "",
) -> None:
    """What a KL coefficient of TRL, verl, NeMo-RL or OpenRLHF is in units of reward.

    \b
    kleash coef verl kl_loss_coef=0.001
    kleash coef verl kl_loss_coef=0.001 norm_adv_by_std_in_grpo=False --group 8
    kleash coef trl beta=0.04 --reward-sd 0.3 --group 8
    """
    from kleash.report.words import LANGUAGES
    from kleash.report.words.coefficients import known_rows, rows_for

    language = language_of(lang, ())
    projects = dict.fromkeys(row.project for row in known_rows())
    if project.lower() not in {name.lower() for name in projects}:
        raise ConfigError(f"no project {project!r}: there is {', '.join(projects)}")
    given = dict(pair.partition("=")[::2] for pair in settings)
    key, rows = rows_for(project, given)
    if not key:
        keys = dict.fromkeys(r.key for r in known_rows() if r.project.lower() == project.lower())
        raise ConfigError(
            f"no coefficient in {' '.join(settings)}: {project} has {', '.join(keys)}"
        )
    if not rows:
        raise ConfigError(f"{' '.join(settings)} is not known: see docs/method.md")
    text = next(value for name, value in given.items() if name.rsplit(".", 1)[-1] == key)
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{key}={text} is not a number") from None
    at = LANGUAGES.index(language)
    found = []
    for row in rows:
        value = factor_of(row.factor, reward_sd, group)
        found.append(
            {
                "settings": row.settings[at].replace("`", ""),
                "here": row.here[at].replace("`", ""),
                "formula": row.amount(text),
                "coefficient": None if value is None else value * number,
                "note": row.note[at].replace("`", ""),
            }
        )
    if as_json:
        print(json.dumps({"project": rows[0].project, "key": key, "rows": found}))
        return
    show(rows[0].project, key, text, found, language)


def show(
    project: str, key: str, text: str, found: Sequence[dict[str, Any]], language: Language
) -> None:
    """The rows as lines."""
    from kleash.report.words.coefficients import NOTHING

    print(told(language, "coef.title", project=project, key=key, value=text))
    for each in found:
        print(f"\n  {each['settings']}")
        print(told(language, "coef.here", here=each["here"]))
        if each["formula"] == NOTHING:
            continue
        shown = each["formula"] if each["coefficient"] is None else f"{each['coefficient']:.4g}"
        shown += f" = {each['formula']}" if shown != each["formula"] else ""
        note = f" ({each['note']})" if each["note"] else ""
        print(f"    leash.coefficient = {shown}{note}")
    print("\n" + told(language, "coef.where"))


def factor_of(name: str | None, reward_sd: float | None, group: int | None) -> float | None:
    """A factor as a number, where all that it is made of was given."""
    from kleash.report.words.coefficients import FACTORS

    unknown = {"σ": reward_sd is None, "G": group is None}
    if name is None or any(unknown[each] for each in unknown if each in name):
        return None
    return FACTORS[name](reward_sd or 0.0, group or 2)
