"""What the user says of metrics: the better end of one that no table knows, the unit of a share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kleash.compare.records import Because
from kleash.errors import ConfigError, DataError
from kleash.imports import Imported, Source, names
from kleash.imports.units import as_fractions, units_of, without_strays

SHOWN = 8  # names in a message


def wished(
    sources: Sequence[Source], on: str, units: Sequence[str], among: Sequence[str]
) -> tuple[Sequence[Source], str, list[Because]]:
    """The sources with the metric that is asked for, its name, and what is said of its unit."""
    sources, on = with_wished(sources, on)
    return sources, on, in_one_unit(sources, on, units, among)


def with_wished(sources: Sequence[Source], on: str) -> tuple[Sequence[Source], str]:
    """The sources, with what `+NAME` or `-NAME` asks for under a name of its own; and that name."""
    if on[:1] not in ("+", "-"):
        return sources, on
    name = on[1:].strip()
    if names.metric(name) is not None:
        return sources, name  # its better end is known
    measured = dict.fromkeys(one for source in sources for run in source.runs for one in _of(run))
    wanted = {one for one in measured if names.spelling(one) == names.spelling(name)}
    if not wanted:
        told = [one for one in measured if names.metric(one) is None]
        more = f": there are {', '.join(told[:SHOWN])}" if told else ""
        raise ConfigError(f"no run measured {name!r}{more}")
    called = names.asked(name, 1 if on[0] == "+" else -1)
    return [
        replace(source, runs=[_renamed(run, wanted, called) for run in source.runs])
        for source in sources
    ], called


def in_one_unit(
    sources: Sequence[Source], on: str, asked: Sequence[str], among: Sequence[str]
) -> list[Because]:
    """Make fractions of percentages, one unit for a metric in all sources; and what to say of it.

    A question that only the user can answer is an error where the metric may be judged by.
    """
    found = as_fractions(sources, units_of(asked))
    known = names.metric(on)
    wanted = (known.name,) if known else among
    for quantity in wanted:
        if quantity in found.questions:
            raise DataError(found.questions[quantity])
    made = [
        Because("read_as_percent", {"metric": metric, "most": f"{most:g}"})
        for metric, (quantity, most) in found.percents.items()
        if quantity in wanted
    ]
    for run, series in found.strays:
        gone = without_strays(run, series)
        at, value = gone[0]
        facts = {"arm": run.name, "metric": series.metric, "axis": series.axis, "step": at}
        made.append(Because("no_share", facts | {"value": value, "count": len(gone)}))
    return made


def known_metric(wanted: str, among: Sequence[str]) -> names.Metric:
    """The metric that is asked for; an error that says what can be where no table has it."""
    known = names.metric(wanted)
    if known is None:
        raise ConfigError(
            f"no metric {wanted!r} is known: try {', '.join(among)}; or say which end is better:"
            f" +{wanted} or -{wanted}"
        )
    return known


def _of(run: Imported) -> list[str]:
    told = [each.metric for each in run.series] + [each.metric for each in run.cells]
    return told + [each.metric for each in run.scores]


def _renamed(run: Imported, wanted: set[str], called: str) -> Imported:
    def under(metric: str) -> str:
        return called if metric in wanted else metric

    return replace(
        run,
        series=[replace(each, metric=under(each.metric)) for each in run.series],
        cells=[replace(each, metric=under(each.metric)) for each in run.cells],
        scores=[replace(each, metric=under(each.metric)) for each in run.scores],
    )
