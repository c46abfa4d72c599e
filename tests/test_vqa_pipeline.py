"""The whole way on a miniature OK-VQA: official files, a tiny Qwen2.5-VL and CLIP, on a CPU."""

from __future__ import annotations

import json

import pytest

from kleash.config import build
from kleash.report import write
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.study.estimate import estimate
from kleash.study.plan import StudyFile
from kleash.study.results import results
from kleash.study.running import Asked, run_study
from kleash.train.evaluate import Wanted, table
from made_data import official_vqa
from made_encoders import clip_folder
from made_models import made_qwen, saved
from study_tools import inline

__all__ = ["inline"]


@pytest.fixture
def file(tmp_path):
    """A study of two arms; weights are drawn, so what it answers means nothing."""
    model, *beside = made_qwen()
    base = {
        "data": "okvqa",
        "data_options": official_vqa(tmp_path / "okvqa"),
        "answerer": "transformers",
        "answerer_options": {"model": str(saved(tmp_path / "qwen", model, *beside)), "beams": 3},
        "encoder": "clip",
        "encoder_options": {"model": str(clip_folder(tmp_path / "clip"))},
        "selector": "v3",
        "queries": 6,
        "batch": 3,
        "reward": "hard_plus_gtprob",
        "pool": {"size": 6},
        "propose": {"random": 2, "retrieval": 1, "beams": 1, "width": 2},
        "supervised": {"epochs": 1},
        "rce": {"epochs": 1},
    }
    arms = {"none": {"leash": {"coefficient": 0.0}}, "kl": {"leash": {"coefficient": 0.15}}}
    measure = {"shots": [1, 2], "items": [6], "validation": 4, "greedy_items": 1}
    grpo = {"group": 2, "epochs": 1, "lr": 1e-3}
    whole = {"name": "mini", "seeds": 2, "base": base, "arms": arms, "measure": measure}
    return build(StudyFile, whole | {"grpo": grpo})


def test_from_official_files_to_a_report(file, tmp_path, inline):
    folder = tmp_path / "study"
    before = estimate(folder, file)
    ran = run_study(Asked(file, folder))
    assert ran.failures == {}
    assert ran.overview.counts()["done"] == len(ran.overview.cells)
    assert (folder / "embeddings.sqlite").is_file()
    meta = json.loads((folder / "base-s0" / "meta.json").read_text())
    assert meta["counts"]["demonstrations"] == 60 and meta["encoder"].startswith("clip ")
    lines = [
        json.loads(line) for line in (folder / "runs/kl-s0/scores.jsonl").read_text().splitlines()
    ]
    tested = [line for line in lines if line["split"] == "test" and line["shots"] == 2]
    assert len(tested) == 6
    assert all(line["weights"] and len(line["pointer"]) == 2 for line in tested)
    assert all({"answer", "score", "truth_logp", "lemmatised"} <= line.keys() for line in tested)
    with Ledger(folder / "ledger.sqlite") as ledger:
        assert ledger.lookup(meta["answerer"], [tested[0]["prompt"]])
    assert before["answers"] >= sum(
        json.loads(line)["bought"] for line in (folder / "spent.jsonl").read_text().splitlines()
    )
    shown = table(Run.open(folder / "runs/kl-s0"), Wanted(["epoch-1"], [2], "test", 6))[0]
    assert shown["lemmatised"] == pytest.approx(sum(line["lemmatised"] for line in tested) / 6)
    write(results(folder))
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert "| kl " in report and "| no KL " in report
    again = run_study(Asked(file, folder))
    assert again.outcomes == {}
