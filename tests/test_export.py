"""A policy that leaves its run says the same elsewhere."""

import json

import pytest
import torch
from typer.testing import CliRunner

from agent_tools import trained
from kleash.cli import app
from kleash.errors import CheckpointError, DataError
from kleash.models.language.chat import load_speech
from kleash.models.language.models import merged
from kleash.models.language.policy import LanguagePolicy
from kleash.train.agent import passes_of
from kleash.train.evaluate import Wanted, evaluate
from kleash.train.export import export, load_selector
from kleash.train.recipe import recipe_from
from kleash.train.rollout import load_policy, world_of
from kleash.train.rollout.agent import Attempt

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module", params=["whole", pytest.param("lora", marks=pytest.mark.slow)])
def exported(request, tmp_path_factory):
    """An agent's run and its exported folder: trained whole, or as an adapter."""
    folder = tmp_path_factory.mktemp("agents")
    changes = {}
    if request.param == "lora":
        pytest.importorskip("peft")
        changes = {"lora": {"rank": 4, "alpha": 8}}
    changes["supervised"] = {"dialogues": 200}  # what it says need not be wise
    run, world = trained(folder, "run", epochs=1, **changes)
    export(run, "epoch-1", folder / "out")
    return run, world, folder / "out"


def test_an_agent_has_the_same_log_probabilities_after_loading(exported):
    run, world, folder = exported
    policy = load_policy(run, world, "epoch-1")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert not [name for name in model.state_dict() if "lora" in name]
    episodes = world.play(world.engine(policy), passes_of(world.tasks("test")[:8], 0, 1))
    batch = policy.gather([episode.turns for episode in episodes])
    loaded = LanguagePolicy(model, temperature=world.recipe.temperature)
    folded = merged(policy.model)
    with torch.no_grad():
        ours, theirs = (each.judge(batch).logp for each in (policy, loaded))
        assert (ours - theirs).abs().max() <= 1e-6
        # By transformers' own forward, every alternative: against the adapter folded in, whose
        # rounding is the sum's and not the export's.
        for episode in episodes:
            ids = [i for turn in episode.turns for i in (*turn.observation, *turn.choices)]
            whole, alone = (
                each(torch.tensor([ids])).logits.log_softmax(-1) for each in (folded, model)
            )
            assert torch.equal(whole, alone)


def test_its_tokenizer_gives_the_ids_that_were_trained_on(exported):
    _, world, folder = exported
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    speech = world.speech
    assert len(tokenizer) == speech.size
    assert tokenizer.get_vocab() == speech.number
    opening, said, reply = "TASK party ;", "ASK budget ;", "USER budget NOPREF ;"
    ids = speech.opening("", [], opening) + speech.ids(said) + speech.reply(reply)
    roles = ("user", "assistant", "user")
    talk = [
        {"role": role, "content": text}
        for role, text in zip(roles, (opening, said, reply), strict=True)
    ]
    assert tokenizer.apply_chat_template(talk, return_dict=False) == ids
    assert tokenizer(reply).input_ids == speech.reply(reply)
    assert tokenizer.decode(speech.ids(said)) == said
    with pytest.raises(Exception, match=r"unk|UNK"):
        tokenizer("TASK zeppelin ;")


def test_it_can_be_trained_and_measured_again_from_its_folder(exported, tmp_path):
    _, world, folder = exported
    speech = load_speech(folder)
    assert speech.identity == world.speech.identity and speech.words == world.speech.words
    run, again = trained(tmp_path, "again", model=str(folder), epochs=1, steps=1)
    assert run.checkpoints() == ["epoch-1"]  # it can talk: there is no supervised phase
    asked = [Attempt(task, 0, 0, None) for task in world.tasks("test")[:4]]
    policies = load_policy(*exported[:2], "epoch-1"), again.fresh_policy()
    ours, theirs = (world.play(world.engine(each), asked) for each in policies)
    assert [e.turns[0].choices for e in ours] == [e.turns[0].choices for e in theirs]
    evaluate(run, again, Wanted(["epoch-1"], [0], "test", 2))
    export(run, "epoch-1", tmp_path / "twice")
    assert load_speech(tmp_path / "twice").identity == speech.identity


def test_it_generates_turns_that_end_where_the_agent_stops(exported):
    _, world, folder = exported
    model = transformers.AutoModelForCausalLM.from_pretrained(folder)
    assert model.generation_config.eos_token_id == sorted(world.speech.stops)
    ids = torch.tensor([world.speech.opening("", [], "TASK party ;")])
    with torch.random.fork_rng():
        said = model.generate(ids, do_sample=False, temperature=None, top_k=None)
    said = said[0, ids.shape[1] :].tolist()
    assert said[-1] in world.speech.stops or len(said) == world.recipe.turn_tokens


def test_what_is_exported_names_its_run_and_nothing_is_overwritten(exported):
    run, _, folder = exported
    facts = json.loads((folder / "kleash.json").read_text(encoding="utf-8"))
    assert facts["identity"] == run.meta["identity"]
    assert facts["weights"] == run.state("epoch-1")["weights_hash"]
    assert facts["apart"] <= 1e-6
    with pytest.raises(DataError, match="nothing is overwritten"):
        export(run, "epoch-1", folder)
    assert not list(folder.parent.glob(".*.tmp"))


def test_a_model_that_says_otherwise_is_not_exported(exported, tmp_path, monkeypatch):
    run, _, _ = exported
    monkeypatch.setattr("kleash.train.export.merged", spoiled)
    with pytest.raises(CheckpointError, match="says otherwise"):
        export(run, "epoch-1", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def spoiled(model):
    made = merged(model)
    with torch.no_grad():
        made.get_input_embeddings().weight.mul_(1.01)
    return made


# --- selectors


def test_a_selector_loads_in_two_lines_and_chooses_the_same(tiny_run, ledger, tmp_path):
    name = tiny_run.checkpoints()[-1]
    told = CliRunner().invoke(app, ["export", str(tiny_run.path), "--out", str(tmp_path / "out")])
    assert told.exit_code == 0, told.output
    selector = load_selector(tmp_path / "out")
    world = world_of(recipe_from(tiny_run.given), ledger)
    policy = load_policy(tiny_run, world, name)
    queries = world.queries("test")
    ours, theirs = (each.choose(queries, 2)[0].lists() for each in (policy, selector))
    assert ours == theirs


def test_weights_that_are_not_the_trained_ones_do_not_load(tiny_run, tmp_path):
    export(tiny_run, tiny_run.checkpoints()[-1], tmp_path / "out")
    config = tmp_path / "out/config.json"
    other = json.loads(config.read_text(encoding="utf-8")) | {"weights": "0" * 64}
    config.write_text(json.dumps(other), encoding="utf-8")
    with pytest.raises(CheckpointError):
        load_selector(tmp_path / "out")
    with pytest.raises(DataError, match="no exported selector"):
        load_selector(tmp_path)
