"""What lets a recipe name data, answerers and encoders with options of their own."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

import tiny
from kleash.errors import ConfigError, DataError
from kleash.models.answer import ANSWERERS, answerer
from kleash.models.answer.asking import Asker
from kleash.models.answer.serving import Model
from kleash.models.embed import ENCODERS, CachedEncoder, encoder
from kleash.runs.ledger import Ledger
from kleash.tasks.data import DATASETS, dataset
from kleash.tasks.demos.embeddings import Embeddings, unit_rows
from kleash.tasks.demos.pool import Pooling, make_pools
from kleash.tasks.demos.reward import facts
from kleash.tasks.demos.score import item_score
from kleash.train.recipe import recipe_from
from kleash.train.rollout.selector import SelectorWorld
from kleash.train.training import facts as run_facts
from kleash.types import Answer, Item
from tiny import Reader, Topics, tiny_recipe


class Coloured(Topics):
    """A data set with options."""

    def __init__(self, seed: int, *, folder: str, colour: str = "red") -> None:
        super().__init__(seed)
        self.folder, self.colour = folder, colour


class Blind:
    """An answerer that reads captions, and makes no vectors."""

    looks = False

    def __init__(self, images, *, model: str, device: str = "cpu") -> None:
        self.identity, self.device = f"blind {model}", device

    def answer(self, prompts):
        return [Answer(prompt.query.caption, -1.0) for prompt in prompts]


class Letters:
    """An encoder that reads and does not see."""

    sees, joint = False, "beside"

    def __init__(self, *, letters: int = 26, device: str = "cpu") -> None:
        self.identity, self.letters, self.read_so_far = f"letters {letters}", letters, []

    def text(self, item):
        return item.question

    def read(self, texts):
        self.read_so_far += texts
        rows = [[text.count(chr(97 + at)) + 0.01 for at in range(self.letters)] for text in texts]
        return unit_rows(np.array(rows, np.float32))

    def see(self, pictures):
        raise AssertionError("it sees nothing")


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(DATASETS, "coloured", "test_seams:Coloured")
    monkeypatch.setitem(ANSWERERS, "blind", "test_seams:Blind")
    monkeypatch.setitem(ENCODERS, "letters", "test_seams:Letters")


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def test_a_recipe_that_names_no_options_is_the_recipe_it_was_before():
    kept = recipe_from({}).resolved()
    assert not {"data_options", "answerer_options", "encoder", "encoder_options"} & kept.keys()
    given = {"encoder": "clip", "encoder_options": {"model": "x"}, "data_options": {"folder": "y"}}
    made = recipe_from(given)
    assert recipe_from(made.resolved()) == made
    assert made.resolved()["encoder_options"] == {"model": "x"}


def test_options_reach_the_class_and_a_wrong_one_is_answered_with_the_right_ones(named):
    made = dataset("coloured", 3, {"folder": "here"})
    assert (made.seed, made.folder, made.colour) == (3, "here", "red")
    with pytest.raises(ConfigError, match="no option 'color': its options are folder, colour"):
        dataset("coloured", 0, {"color": "blue", "folder": ""})
    with pytest.raises(ConfigError, match="needs the option 'folder'"):
        dataset("coloured")
    with pytest.raises(ConfigError, match="data set 'scenes' has no option 'folder'"):
        dataset("scenes", 0, {"folder": "here"})
    asked = answerer("blind", made.image, "cuda", {"model": "m"})
    assert (asked.identity, asked.device) == ("blind m", "cuda")
    with pytest.raises(ConfigError, match="answerer 'blind' has no option 'beams'"):
        answerer("blind", made.image, options={"model": "m", "beams": 3})
    with pytest.raises(ConfigError, match="no encoder 'clop'"):
        encoder("clop", made.image, lambda: asked, kept=None)


def test_a_server_builds_the_same_model(named):
    model = Model("blind", "coloured", 0, {"model": "m"}, {"folder": "f"})
    assert model.made("cpu").identity == "blind m"


def test_a_run_is_told_apart_by_what_the_options_stand_for(named, ledger):
    plain = tiny_recipe()
    before = run_facts(plain, SelectorWorld(plain, ledger))["identity"]

    def identity(*keys):
        recipe = tiny_recipe("data=coloured", "answerer=blind", "encoder=letters", *keys)
        world = SelectorWorld(recipe, ledger)
        told = run_facts(recipe, world)
        assert told["encoder"] == world.encoder.identity
        return told["identity"]

    here = identity("answerer_options.model=m", "data_options.folder=here")
    there = identity("answerer_options.model=m", "data_options.folder=there")
    other = identity("answerer_options.model=n", "data_options.folder=here")
    letters = ("answerer_options.model=m", "data_options.folder=here", "encoder_options.letters=20")
    assert here == there  # the same items in another folder
    assert len({before, here, other, identity(*letters)}) == 4


def test_an_answerer_without_vectors_says_what_to_do(named, ledger):
    keys = ("data=coloured", "answerer=blind", "data_options.folder=f", "answerer_options.model=m")
    world = SelectorWorld(tiny_recipe(*keys), ledger)
    with pytest.raises(ConfigError, match="set encoder to clip"):
        world.pooled("test")


def test_who_does_not_look_is_asked_by_captions(named, ledger):
    def images(name):
        raise AssertionError("nobody looks")

    blind = answerer("blind", images, options={"model": "m"})
    ask = Asker(blind, ledger, images)
    one = Item("a", "a", "what?", ("x",), "x", scores=(("x", 1.0),), caption="a cat")
    other = Item("a", "a", "what?", ("x",), "x", scores=(("x", 1.0),), caption="a dog")
    assert ask.content(one) != ask.content(other)


def test_what_an_item_is_kept_under_has_not_changed(ledger):
    data = Topics(0)
    item = data.queries("test")[0]
    digest = hashlib.sha256(data.image(item.image).tobytes())
    digest.update(f"{item.question}\x1f{item.answer}".encode())
    ask = Asker(Reader(data.image), ledger, data.image)
    assert ask.content(item) == digest.hexdigest()


def test_rows_are_made_once_and_kept_by_content(tmp_path):
    items = Topics(0).queries("test")[:5]
    first, again = Letters(), Letters()
    made = CachedEncoder(first, None, tmp_path / "rows").embed(items)
    kept = CachedEncoder(again, None, tmp_path / "rows").embed([items[3], items[0], items[3]])
    assert (len(first.read_so_far), again.read_so_far) == (5, [])
    assert (kept.text_ND == made.text_ND[[3, 0, 3]]).all()
    other = Letters(letters=20)
    CachedEncoder(other, None, tmp_path / "rows").embed(items)
    assert len(other.read_so_far) == 5
    (tmp_path / "text").write_text("no database at all, but a text that is long enough" * 50)
    with pytest.raises(DataError, match="cannot use the file of embeddings"):
        CachedEncoder(first, None, tmp_path / "text").embed(items)


def test_pools_baselines_and_parts_do_without_images(named, ledger):
    keys = ("data=coloured", "answerer=tiny", "data_options.folder=f", "encoder=letters")
    world = SelectorWorld(tiny_recipe(*keys, "pool.kind=mixed"), ledger)
    pooled = world.pooled("test")
    assert pooled.query_rows.kinds == ("text",)
    assert (pooled.query_rows.part("both") == pooled.query_rows.part("text")).all()
    with pytest.raises(DataError, match="nothing to compare by image"):
        pooled.query_rows.part("image")
    from kleash.train.evaluate.selector import BASELINES

    chosen = {name: choose(pooled, world.data, 2, world.ask) for name, choose in BASELINES.items()}
    assert chosen["similar-image"] is None and chosen["similar-both"] is None
    assert len(chosen["similar-text"]) == len(pooled)
    assert {p.method for group in world.proposals("train", 4) for p in group} >= {"retrieval"}
    rows = world.demonstration_rows
    with pytest.raises(DataError, match="nothing to compare by image"):
        items = world.data.queries("test")
        pooling = Pooling(kind="image", size=8)
        make_pools(pooling, 0, items, rows.rows(np.arange(len(items))), items, rows)


def test_both_are_the_mean_where_image_and_text_share_a_space():
    image = unit_rows(np.array([[1, 0], [0, 1]], np.float32))
    text = unit_rows(np.array([[0, 1], [0, 1]], np.float32))
    both = Embeddings(image, text, "mean").rows(np.array([1, 0])).part("both")
    assert both == pytest.approx(np.array([[0, 1], [0.5**0.5, 0.5**0.5]]))


def test_soft_labels_are_scored_and_rewarded_as_they_are():
    item = Item(
        "q", "i", "what?", ("race", "riding"), "race", scores=(("race", 1.0), ("riding", 2 / 3))
    )
    assert [item_score(said, item) for said in ("Race.", "the riding", "walking")] == [1, 2 / 3, 0]
    assert facts(Answer("riding", -1.0), item).accuracy == 2 / 3
    assert facts(Answer("riding", -1.0), item, lambda answer, item: 0.25).accuracy == 0.25


def test_a_scorer_of_the_data_set_is_the_one_that_counts(monkeypatch, ledger):
    monkeypatch.setattr(tiny.Topics, "score", lambda self, answer, item: 0.5, raising=False)
    world = SelectorWorld(tiny_recipe("reward=soft"), ledger)
    rewards, _ = world.rewards("test", [(0, (0, 1)), (1, (2, 3))])
    assert rewards == [0.5, 0.5]
