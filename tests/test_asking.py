import dataclasses
import math
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kleash.models.answer import asking
from kleash.models.answer.asking import Asker, as_answer, as_fact
from kleash.models.answer.embedded import Embedded
from kleash.runs.ledger import Fact, Ledger, Usage
from kleash.seeds import generator
from kleash.tasks.data.scenes import Scenes
from kleash.types import Answer, Prompt

pytestmark = pytest.mark.usefixtures("one_thread")


def made_prompts(scenes):
    """200 different prompts of 0 to 4 shots."""
    rng = generator("test", "asking")
    shown, queries = scenes.demonstrations, scenes.queries("test")
    return [
        Prompt(
            tuple(shown[row] for row in rng.choice(len(shown), i % 5, replace=False)), queries[i]
        )
        for i in range(200)
    ]


SCENES = Scenes(seed=2, sizes={"demonstrations": 60, "train": 1, "validation": 1, "test": 200})


@pytest.fixture(scope="module")
def prompts():
    return made_prompts(SCENES)


class Counting:
    """Says how long a prompt is; keeps all that it was asked; breaks where it is told to."""

    identity = "counting"

    def __init__(self, broken=()):
        self.asked = []
        self.broken = set(broken)

    def answer(self, prompts):
        self.asked += prompts
        return [
            Answer(
                str(len(prompt.demonstrations)),
                math.nan if prompt.query.id in self.broken else -1.0,
            )
            for prompt in prompts
        ]


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


# --- never twice


def test_no_prompt_is_paid_for_twice(ledger, prompts, tmp_path):
    model = Counting()
    asker = Asker(model, ledger, SCENES.image)
    first = asker([*prompts, *prompts[:50]])
    assert model.asked == prompts
    assert asker(prompts[::-1]) == first[:200][::-1]
    assert len(model.asked) == 200
    assert ledger.usage() == Usage(asked=450, bought=200)
    with Ledger(tmp_path / "ledger.sqlite") as again:
        assert Asker(model, again, SCENES.image)(prompts) == first[:200]
    assert len(model.asked) == 200


def test_another_model_is_asked_again(ledger, prompts):
    one, two = Counting(), Counting()
    two.identity = "another"
    for model in (one, two):
        Asker(model, ledger, SCENES.image)(prompts[:10])
        assert len(model.asked) == 10


def test_the_key_sees_all_that_the_model_sees_and_no_more(prompts):
    asker = Asker(Counting(), None, SCENES.image)
    prompt = prompts[2]
    assert len(prompt.demonstrations) == 2
    first, second = prompt.demonstrations
    key = asker.key(prompt)

    def keyed(*shown, query=prompt.query):
        return asker.key(Prompt(shown, query))

    replace = dataclasses.replace
    others = [
        keyed(second, first),
        keyed(first),
        keyed(first, second, query=replace(prompt.query, question="bax northeast?")),
        keyed(first, second, query=replace(prompt.query, answer="red?")),
        keyed(first, second, query=replace(prompt.query, image=first.image)),
        keyed(replace(first, answer="mo mo"), second),
    ]
    assert len({key, *others}) == 1 + len(others)
    # Names and annotators are not seen by the model.
    assert keyed(replace(first, id="renamed", answers=("x",) * 10), second) == key


def test_prompts_are_bought_in_parts_and_progress_is_heard(ledger, prompts, monkeypatch):
    monkeypatch.setattr(asking, "AT_ONCE", 64)
    heard = []
    model = Counting()
    Asker(model, ledger, SCENES.image, progress=heard.append)(prompts)
    assert heard == [64, 64, 64, 8]
    assert model.asked == prompts


def test_what_was_bought_before_an_error_is_kept(ledger, prompts, monkeypatch):
    monkeypatch.setattr(asking, "AT_ONCE", 50)

    class Failing(Counting):
        def answer(self, prompts):
            if len(self.asked) >= 100:
                raise RuntimeError("out of memory")
            return super().answer(prompts)

    model = Failing()
    with pytest.raises(RuntimeError, match="out of memory"):
        Asker(model, ledger, SCENES.image)(prompts)
    healed = Counting()
    Asker(healed, ledger, SCENES.image)(prompts)
    assert healed.asked == prompts[100:]


# --- broken answers


def test_a_broken_answer_stays_none_and_is_counted(ledger, prompts):
    model = Counting(broken=[prompts[3].query.id, prompts[8].query.id])
    asker = Asker(model, ledger, SCENES.image)
    for _ in range(2):
        answers = asker(prompts[:10])
        assert [place for place, answer in enumerate(answers) if answer is None] == [3, 8]
    assert len(model.asked) == 10
    assert ledger.usage() == Usage(asked=20, bought=10, broken=4)
    errors = [fact.error for fact in asker.facts(prompts[:10])]
    assert "NaN" in errors[3]
    assert errors[0] is None


def test_facts_and_answers_are_each_others_reverse():
    answer = Answer("mo red", -0.25)
    assert as_answer(as_fact(answer)) == answer
    assert as_answer(as_fact(Answer("mo red", math.nan))) is None
    assert as_answer(as_fact(Answer("mo red", -math.inf))) == Answer("mo red", -math.inf)
    assert as_answer(Fact("mo red")) is None  # an answer of which nobody asked the probability


# --- a kill

CHILD = """
import sys
import torch
from pathlib import Path
torch.set_num_threads(1)
from kleash.models.answer import asking
from kleash.models.answer.embedded import Embedded
from kleash.runs.ledger import Ledger
from test_asking import SCENES, made_prompts
asking.AT_ONCE = 16
prompts = made_prompts(SCENES)
class Slow(Embedded):
    batches = 0
    def answer(self, prompts):
        self.batches += 1
        if self.batches == 4:
            print("answering", flush=True)
            sys.stdin.read()  # as a model that takes its time
        return super().answer(prompts)
with Ledger(Path(sys.argv[1])) as ledger:
    asking.Asker(Slow(SCENES.image), ledger, SCENES.image)(prompts)
"""


def known(path, asker, prompts):
    """How many of the prompts the ledger at `path` knows by now."""
    if not path.exists():
        return 0
    with Ledger(path) as ledger:
        return len(ledger.lookup(asker.answerer.identity, [asker.key(p) for p in prompts]))


@pytest.mark.slow
def test_answers_after_a_kill_have_the_same_bytes(tmp_path, prompts):
    path = tmp_path / "killed.sqlite"
    model = Embedded(SCENES.image)
    straight = model.answer(prompts)
    folder = Path(__file__).parent
    command = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "answering\n"
        process.kill()
        assert process.wait() == -signal.SIGKILL
    asker = Asker(model, None, SCENES.image)
    before = known(path, asker, prompts)
    assert 30 <= before < 200

    with Ledger(path) as ledger:
        answers = Asker(Embedded(SCENES.image), ledger, SCENES.image)(prompts)
        assert ledger.usage().bought == 200 - before
    assert [answer.text for answer in answers] == [answer.text for answer in straight]
    ours = np.array([answer.truth_logp for answer in answers])
    theirs = np.array([answer.truth_logp for answer in straight])
    assert ours.tobytes() == theirs.tobytes()
