import math

import pytest
import torch

from answerer_episodes import EpisodeMaker, make_bank, told
from fit_answerer import Fit, accuracies, all_seen, fit, logits_of, save
from kleash.algo.policy import fingerprint
from kleash.config import build
from kleash.errors import CheckpointError
from kleash.models.answer.embedded import WEIGHTS, Embedded, load
from kleash.models.answer.network import MAX_BLOCKS, TOKEN, VOCABULARY, Network, Size, answer_tokens
from kleash.runs.run import read_json
from kleash.seeds import torch_generator
from kleash.tasks.data.scenes import (
    ATTRIBUTES,
    FRAMES,
    LANGUAGES,
    PLACES,
    VILLAGES,
    WORDS,
    Scenes,
    say,
)
from kleash.types import Prompt

SMALL = Size(width=16, layers=1, picture_layers=1, heads=2, hidden=16, patch=16)
TINY = Fit(size=SMALL, seed=3, seeing_steps=4, steps=12, batch=8, lr=1e-2, pictures=2)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def maker():
    return EpisodeMaker(make_bank(3, 0, "cpu"), "cpu", 0)


@pytest.fixture(scope="module")
def episodes(maker):
    return maker.make(400)


# --- episodes


def test_a_bank_has_every_village_and_frame_and_tells_what_it_shows():
    bank = make_bank(3, 0, "cpu")
    assert bank.each == 3
    assert len(bank.pictures) == 3 * VILLAGES * (FRAMES + 1)
    assert bank.values.shape == (len(bank.pictures), len(PLACES), len(ATTRIBUTES))
    # The corner of a quarter is ground, and ground tells the village.
    corners = bank.pictures[:, 4, 4].unflatten(0, (VILLAGES, -1))
    assert (corners == corners[:, :1]).all()
    assert len({tuple(row) for row in corners[:, 0].tolist()}) == VILLAGES


def test_the_bank_shares_no_picture_with_the_data_set():
    scenes = Scenes()
    ours = {scenes.image(item.image).tobytes() for item in scenes.queries("test")}
    bank = make_bank(30, 1, "cpu")
    assert not ours & {picture.numpy().tobytes() for picture in bank.pictures}


def test_within_an_episode_words_and_manners_keep_their_meaning(episodes):
    """The same village and word ask the same attribute; what is said follows from what is seen."""
    kind = episodes.picture // 3
    village, frame = kind // (FRAMES + 1), kind % (FRAMES + 1)
    for row in range(100):
        ways = {}
        for block in range(MAX_BLOCKS):
            if episodes.plain[row, block]:
                assert frame[row, block] == FRAMES
                continue
            first, second = (VOCABULARY[t] for t in episodes.answer[row, block].tolist())
            way = (first == "mo", second == "ti", first.endswith("rou"))
            key = (int(village[row, block]), int(frame[row, block]))
            assert ways.setdefault(key, way) == way


def test_answers_name_the_object_at_the_place_asked(maker, episodes):
    bank = maker.bank
    names = [list(values) for values in ATTRIBUTES.values()]
    for row in range(50):
        for block in range(MAX_BLOCKS):
            picture = int(episodes.picture[row, block])
            place = int(episodes.question[row, block, 1]) - TOKEN[PLACES[0]]
            assert bank.present[picture, place]
            shown = {names[a][int(bank.values[picture, place, a])] for a in range(4)}
            sayable = {
                tuple(answer_tokens(said))
                for value in shown
                for said in (say(value, language) for language in range(LANGUAGES))
            }
            assert tuple(episodes.answer[row, block].tolist()) in sayable


def test_plain_blocks_speak_as_some_earlier_block_did(maker):
    language = torch.tensor([[1, 2, 3, 0], [1, 2, 3, 0]]).repeat(200, 1)
    plain = torch.tensor([[False, True, False, True], [True, False, True, False]]).repeat(200, 1)
    spoken = maker.imitate(language, plain)
    even, odd = spoken[0::2], spoken[1::2]
    assert (even[:, 1] == 1).all()  # only one block stands before
    assert set(even[:, 3].tolist()) == {1, 3}
    assert (odd[:, 0] == 0).all()  # nobody to imitate: plainly
    assert set(odd[:, 2].tolist()) == {0, 2}


def test_told_means_that_an_earlier_coded_block_has_the_same_key():
    key = torch.tensor([[5, 5, 7, 5, 7]])
    plain = torch.tensor([[True, False, False, False, False]])
    assert told(key, plain).tolist() == [[False, False, False, True, True]]


def test_meanings_are_drawn_afresh_in_every_episode(maker):
    """One word in one village, over many episodes: every attribute comes up."""
    many = maker.make(4000)
    word = many.question[..., 0]
    chosen = (word == TOKEN[WORDS[0]]) & (many.picture // 3 // (FRAMES + 1) == 0)
    firsts = {VOCABULARY[t].removesuffix(" ti") for t in many.answer[chosen][:, 0].tolist()}
    seen = {name for name, values in ATTRIBUTES.items() if firsts & set(values)}
    assert seen == set(ATTRIBUTES)


# --- training


def test_a_tiny_fit_lowers_the_loss_and_repeats_byte_for_byte():
    heard = []
    network = fit(TINY, report=heard.append, every=4)
    again = fit(TINY)
    assert fingerprint(network.state_dict()) == fingerprint(again.state_dict())
    other = fit(TINY.but(seed=4))
    assert fingerprint(network.state_dict()) != fingerprint(other.state_dict())
    assert [record["step"] for record in heard] == [4, 8, 12]
    assert heard[-1].keys() >= {"loss", "seeing_loss", "both", "word_only", "neither", "seconds"}


def test_fitting_longer_fits_better():
    heard = []
    for steps in (1, 150):
        fit(TINY.but(steps=steps), report=heard.append, every=steps)
    blind = math.log(len(VOCABULARY))
    assert heard[0]["loss"] == pytest.approx(blind, rel=0.2)
    assert heard[-1]["loss"] < 0.8 * blind


def test_eyes_learn_first_and_then_stay_as_they_are():
    before = Network(SMALL)
    before.draw_weights(torch_generator("fit", "weights", TINY.seed))
    longer = fit(TINY.but(seeing_steps=30, steps=1))
    moved = [
        not torch.equal(a, b)
        for a, b in zip(before.eye_parameters(), longer.eye_parameters(), strict=True)
    ]
    assert all(moved)
    more_reading = fit(TINY.but(seeing_steps=30, steps=2))
    for a, b in zip(longer.eye_parameters(), more_reading.eye_parameters(), strict=True):
        assert torch.equal(a, b)
    parts = [*longer.eye_parameters(), *longer.reading_parameters()]
    assert {id(part) for part in parts} == {id(parameter) for parameter in longer.parameters()}


def test_accuracies_count_both_words_by_what_was_told():
    """The shipped network on episodes it never saw: as good as its recipe says."""
    network = load(WEIGHTS)
    bank = make_bank(2, 99, "cpu")
    found = accuracies(network, all_seen(network, bank), EpisodeMaker(bank, "cpu", 99), batches=1)
    assert found["both"] > 0.99
    assert found["plain_first"] == 1.0
    assert found["word_only"] < 0.4
    assert found["manner_only"] < 0.4
    assert found["neither"] < 0.15


def test_logits_are_those_before_each_word_of_an_answer(maker):
    """Changing an answer's words changes nothing that was asked before them."""
    network = fit(TINY)
    episodes = maker.make(4)
    seen = all_seen(network, maker.bank)[episodes.picture.flatten()]
    before = logits_of(network, seen, episodes)
    assert before.shape == (4, MAX_BLOCKS, 2, len(VOCABULARY))
    episodes.answer[:, 2, 0] = (episodes.answer[:, 2, 0] + 1) % len(VOCABULARY)
    after = logits_of(network, seen, episodes)
    assert torch.equal(before[:, :2], after[:, :2])
    assert torch.equal(before[:, 2, 0], after[:, 2, 0])
    assert not torch.equal(before[:, 2, 1], after[:, 2, 1])


# --- the files


def test_the_recorded_config_builds_the_default_fit():
    """So that the command as it stands trains what is shipped."""
    recipe = read_json(WEIGHTS.with_suffix(".json"))
    assert build(Fit, recipe["config"]) == Fit()
    assert fingerprint(load(WEIGHTS).state_dict()) == recipe["weights"]


def test_what_is_saved_answers(tmp_path):
    network = fit(TINY)
    path = tmp_path / "tiny.safetensors"
    save(network, TINY, {"both": 0.25}, path)
    scenes = Scenes(sizes={"demonstrations": 4, "train": 1, "validation": 1, "test": 1})
    made = Embedded(scenes.image, path)
    assert made.identity.startswith(fingerprint(network.state_dict()))
    answers = made.answer([Prompt(tuple(scenes.demonstrations), scenes.queries("test")[0])])
    assert answers[0].truth_logp < 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["tiny.json", "tiny.safetensors"]
    assert path.stat().st_mode & 0o044 == 0o044
    recipe = read_json(path.with_suffix(".json"))
    assert build(Fit, recipe["config"]) == TINY
    assert recipe["scores"] == {"both": 0.25}


def test_a_kill_between_the_two_files_does_not_pass(tmp_path, monkeypatch):
    path = tmp_path / "tiny.safetensors"
    save(fit(TINY), TINY, {"both": 0.25}, path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("fit_answerer.write_json", killed)
    with pytest.raises(KeyboardInterrupt):
        save(fit(TINY.but(seed=9)), TINY.but(seed=9), {"both": 1.0}, path)
    with pytest.raises(CheckpointError, match=r"not hold the weights that tiny\.json describes"):
        load(path)
