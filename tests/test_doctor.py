"""The doctor: what is there, what is missing, and how to get it."""

import importlib.metadata

import pytest

from kleash.cli import machine as doctor
from kleash.cli.machine import EXTRAS, Examined, examine
from kleash.errors import KleashError
from kleash.report.words import Language
from kleash.types import Answer, Prompt

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def found() -> dict[str, Examined]:
    return {examined.what: examined for examined in examine()}


def test_everything_that_is_looked_at_has_a_state(found: dict[str, Examined]) -> None:
    assert {"python", "machine", "sqlite", "torch", "embedded answerer"} <= set(found)
    assert {name for name, _, _ in EXTRAS} <= set(found)
    assert all(examined.state for examined in found.values())
    assert importlib.metadata.version("torch") in found["torch"].state


def test_the_shipped_answerer_works_here(found: dict[str, Examined]) -> None:
    assert found["embedded answerer"] == Examined("embedded answerer", "loads and answers")


def test_what_is_missing_comes_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    monkeypatch.setattr(doctor, "find_spec", lambda name: None)
    by_name = {examined.what: examined for examined in examine()}
    assert by_name["torch"].state == "missing, for training and evaluating"
    assert by_name["torch"].remedy == "pip install 'kleash[train]'"
    assert all(by_name[name].remedy.startswith("pip install") for name, _, _ in EXTRAS)
    # Without torch nothing is computed, so nothing is said about it.
    assert not {"gpu", "embedded answerer"} & set(by_name)


def test_the_hub_is_named_with_its_mirror_and_modelscope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert "HF_ENDPOINT is not set: huggingface.co" in doctor.model_hub().state
    monkeypatch.setenv("HF_ENDPOINT", "https://hf-mirror.com")
    examined = doctor.model_hub()
    assert "HF_ENDPOINT is https://hf-mirror.com" in examined.state
    assert "modelscope download --model NAME --local_dir FOLDER" in examined.remedy


def test_an_answerer_that_answers_wrongly_is_told_from_a_good_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kleash.models.answer.embedded import Embedded

    def wrong(self: object, prompts: list[Prompt]) -> list[Answer]:
        return [Answer("nonsense", -1.0) for _ in prompts]

    monkeypatch.setattr(Embedded, "answer", wrong)
    examined = doctor.embedded_answerer()
    assert "answers 'nonsense' where" in examined.state
    assert examined.remedy == "pip install --force-reinstall kleash"


def test_an_answerer_that_does_not_load_is_a_finding_and_not_a_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from kleash.models.answer import embedded

    def torn(*args: object) -> None:
        raise KleashError("the weights are torn")

    monkeypatch.setattr(embedded.Embedded, "__init__", torn)
    examined = doctor.embedded_answerer()
    assert "the weights are torn" in examined.state
    assert examined.remedy == "pip install --force-reinstall kleash"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_fits_names_the_most_demanding_way(language: Language) -> None:
    sheet = doctor.what_fits(language)
    assert sheet.head[1:] == ["24 GB", "40 GB", "80 GB", "141 GB"]
    by_size = {row[0]: row[1:] for row in sheet.rows}
    assert list(by_size) == ["0.6B", "1.7B", "4B", "8B", "14B", "32B"]
    packed, full = ("LoRA on nf4", "full") if language == "en" else ("nf4 底座上的 LoRA", "全参数")
    assert by_size["8B"][0].startswith(f"{packed}\n") and "36" in by_size["8B"][0]
    assert by_size["8B"][3].startswith(f"{full}\n")
    assert ("computed, not measured" if language == "en" else "并非实测") in sheet.title


def test_the_parts_of_a_model_are_its_plan() -> None:
    sheet = doctor.parts_of("8B", "en")
    full = {row[0]: row[1] for row in sheet.rows}
    # 8.19 billion weights: 2 bytes each, gradients 4, moments 4; the reference lies on the host.
    parts = [full[name] for name in ("weights", "gradients", "moments", "on the host")]
    assert parts == ["15.3", "30.5", "30.5", "15.3"]
    assert full["80 GB"].startswith("no: ")
