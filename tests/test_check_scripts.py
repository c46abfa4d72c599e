"""Commands against their comments and headings, and labels of rows that were copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from kleash.imports.markdown import document
from kleash.written.check import check
from kleash.written.page import read_page


def wrong(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    path = tmp_path / "report.md"
    path.write_text(text)
    marks = check(document.drafted(path), read_page(path))
    return [(mark.code, mark.text) for mark in marks if mark.state == "wrong"]


ARGUMENTS = """# Commands

```bash
bash eval.sh 1 0 100  # epoch 1, GPU 0, 100 samples
bash eval.sh 1 0 200  # epoch 1, GPU 0, 200 samples
bash eval.sh {}
bash eval.sh 2 1 800  # epoch 2, GPU 1, 800 samples
```
"""


def test_the_arguments_of_a_command_are_those_of_its_comment(tmp_path: Path) -> None:
    assert wrong(tmp_path, ARGUMENTS.format("2 1 400  # epoch 2, GPU 1, 400 samples")) == []
    found = wrong(tmp_path, ARGUMENTS.format("2 1 400  # epoch 1, GPU 1, 400 samples"))
    assert found == [("check.argument", "epoch 1")]


def test_a_comment_that_is_of_something_else_teaches_nothing(tmp_path: Path) -> None:
    text = ARGUMENTS.format("2 1 400  # about 30 minutes, 3 epochs left")
    assert wrong(tmp_path, text) == []


ARMS = """# Commands

## KL_BETA=0.145

```bash
# Epoch 1
bash eval_kl0145.sh 1 0 200
```

## KL_BETA=0.155

```bash
# Epoch 1
bash eval_{}.sh 1 0 200
```

- Metrics (KL_BETA=0.145): `results/metrics_kl0145.json`
- Metrics (KL_BETA=0.155): `results/metrics_{}.json`
"""


def test_scripts_and_files_are_of_the_arm_that_they_stand_under(tmp_path: Path) -> None:
    assert wrong(tmp_path, ARMS.format("kl0155", "kl0155")) == []
    assert wrong(tmp_path, ARMS.format("kl0145", "kl0155")) == [
        ("check.other-arm", "eval_kl0145.sh")
    ]
    assert wrong(tmp_path, ARMS.format("kl0155", "kl0145")) == [
        ("check.other-arm", "metrics_kl0145.json")
    ]


LABELS = """# To be filled

| samples | shot 1 | shot 2 |
|---|---|---|
| **100** | ? | ? |
| **200** | ? | ? |
| **400** | ? | ? |
| **800** | ? | ? |

| samples | shot 1 | shot 2 |
|---|---|---|
| **100** | ? | ? |
| **200** | ? | ? |
| **{}** | ? | ? |
| **800** | ? | ? |
"""


@pytest.mark.parametrize(("label", "codes"), [("400", []), ("200", ["check.label-twice"])])
def test_a_label_is_not_told_twice(tmp_path: Path, label: str, codes: list[str]) -> None:
    assert [code for code, _ in wrong(tmp_path, LABELS.format(label))] == codes


RECITED = """# Epochs

## Epoch 1

| β | shot 1 | shot 2 | shot 3 | mean |
|---|---|---|---|---|
| 0.12 | 57.0% | 55.1% | 56.1% | 56.07% |
| 0.15 | 58.8% | 53.9% | 56.6% | 56.43% |

## Epoch 2

| β | shot 1 | shot 2 | shot 3 | mean |
|---|---|---|---|---|
| 0.12 | 57.4% | 55.0% | 56.3% | 56.23% |
| 0.15 | 58.1% | 54.4% | 56.0% | 56.17% |

- β 0.12, {}
"""


def recited(tmp_path: Path, said: str) -> set[str]:
    path = tmp_path / "report.md"
    path.write_text(RECITED.format(said))
    marks = check(document.drafted(path), read_page(path))
    return {
        mark.code for mark in marks if mark.line > 16 and mark.state in ("wrong", "unsupported")
    }


def test_a_line_recites_a_row_in_its_order_and_under_its_epoch(tmp_path: Path) -> None:
    assert recited(tmp_path, "Epoch 1: 57.0%, 55.1%, 56.1% (mean 56.07%)") == set()
    assert recited(tmp_path, "Epoch 1: 55.1%, 57.0%, 56.1%")
    assert "check.elsewhere" in recited(tmp_path, "Epoch 2: 57.0%, 55.1%, 56.1%")


ORIGINS = """# Two arms

## KL_BETA=0.18

| setting | value |
|---|---|
| base checkpoint | RCE epoch {} |

## KL_BETA=0.15

| setting | value |
|---|---|
| base checkpoint | RCE epoch 2 |

## Commands

```bash
bash train_kl018.sh 5 0 3  # from RCE epoch {}, 3 epochs
```
"""


def test_an_arm_begins_at_one_checkpoint(tmp_path: Path) -> None:
    assert wrong(tmp_path, ORIGINS.format(5, 5)) == []
    assert ("check.not-same", "RCE epoch 2") in wrong(tmp_path, ORIGINS.format(2, 5))
    assert ("check.not-same", "RCE epoch 2") in wrong(tmp_path, ORIGINS.format(5, 2))
