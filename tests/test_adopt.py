"""What other projects left becomes a run that eval, study and compare take; strictly."""

import json
import os
import shutil

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from typer.testing import CliRunner

from kleash.cli import app
from kleash.compare.comparison import Wish, compare
from kleash.compare.read import read
from kleash.errors import CheckpointError, ConfigError, DataError
from kleash.models.answer import ANSWERERS
from kleash.models.embed import ENCODERS
from kleash.models.selector import Queries, Selector
from kleash.runs.run import Run
from kleash.seeds import torch_generator
from kleash.tasks.demos.score import item_score
from kleash.train.adopt import adopt
from kleash.train.adopt.files import torch_object
from kleash.train.propose import propose_all
from kleash.train.rollout.adopted import AdoptedFacts
from kleash.train.rollout.proposed import buy_proposals
from kleash.train.rollout.selector import SelectorWorld
from kleash.types import Item
from test_data_check import made as made_rl_data
from tiny import tiny_recipe

pytestmark = pytest.mark.usefixtures("one_thread")

WIDTH = 12  # of the tiny world's vectors
TINY = {
    "data": "tiny",
    "answerer": "tiny",
    "encoder": "answerer",
    "pool": {"size": 8},
    "queries": 24,
    "propose": {"random": 3, "retrieval": 1, "beams": 1, "width": 3},
}


class Theirs(nn.Module):
    """The documents' network under its own names, as their code scores."""

    def __init__(self, width=WIDTH, layers=1, gate=False, gru=False, seed=0, hidden=256):
        super().__init__()
        self.input_proj = nn.Linear(width, hidden, bias=False)
        self.cross_attn_layers = nn.ModuleList(
            nn.MultiheadAttention(hidden, 1, batch_first=True) for _ in range(layers)
        )
        self.attn_norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(layers))
        self.query_proj = nn.Linear(hidden, hidden, bias=False)
        self.cand_proj = nn.Linear(hidden, hidden, bias=False)
        if gate:
            self.query_update_gate = nn.Linear(2 * hidden, hidden)
        if gru:
            self.decoder_gru = nn.GRUCell(hidden, hidden)
            self.step_emb = nn.Embedding(2, hidden)
        rng = torch_generator("test", "theirs", seed)
        with torch.no_grad():
            for weight in self.parameters():
                weight.copy_(torch.randn(weight.shape, generator=rng) / weight.shape[-1] ** 0.5)

    @torch.no_grad()
    def forward(self, query, pool, shots):
        """The greedy choices."""
        q, c = self.input_proj(query)[:, None], self.input_proj(pool)
        for attention, norm in zip(self.cross_attn_layers, self.attn_norms, strict=True):
            q = norm(attention(q, c, c)[0] + q)
        state = F.normalize(self.query_proj(q[:, 0]), dim=-1)
        c = F.normalize(self.cand_proj(c), dim=-1)
        taken, chosen = torch.zeros(c.shape[:2], dtype=torch.bool), []
        for step in range(shots):
            seen = state
            if hasattr(self, "step_emb"):
                seen = F.normalize(state + self.step_emb.weight[step], dim=-1)
            scores = (seen[:, None] @ c.mT)[:, 0] / 0.1
            best = scores.masked_fill(taken, -100.0).argmax(-1)
            taken = taken.scatter(1, best[:, None], True)
            chosen.append(best)
            picked = c[torch.arange(len(c)), best]
            if hasattr(self, "query_update_gate"):
                g = self.query_update_gate(torch.cat([state, picked], -1)).sigmoid()
                state = F.normalize(g * state + (1 - g) * picked, dim=-1)
            if hasattr(self, "decoder_gru"):
                state = F.normalize(self.decoder_gru(picked, state), dim=-1)
        return torch.stack(chosen, 1)


def save(path, net, **facts):
    """As their trainer saves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save({"model_state_dict": net.state_dict()} | facts, path)
    return path


def converted(path):
    """As their converter writes: the first layer alone, under other names."""
    state = torch.load(path, weights_only=True)["model_state_dict"]
    kept = {}
    for name, tensor in state.items():
        if "layers.1" in name or "layers.2" in name or "norms.1" in name or "norms.2" in name:
            continue
        name = name.replace("cross_attn_layers.0.", "cross_attn.")
        name = name.replace("attn_norms.0.", "attn_norm.")
        kept[f"lever_lm.pointer_selector.{name}"] = tensor
    to = path.with_name(f"{path.stem}_v2format.ckpt")
    torch.save({"epoch": 0, "state_dict": kept, "hyper_parameters": {"lr": 1e-4}}, to)
    return to


def moved(net, seed, *names):
    """The same network with some tensors changed, as training would."""
    other = Theirs(WIDTH, len(net.attn_norms), hasattr(net, "query_update_gate"), seed=seed)
    state = net.state_dict() | {n: other.state_dict()[n] for n in names}
    other.load_state_dict(state)
    return other


@pytest.fixture
def folder(tmp_path):
    """A whole run of theirs: RCE, two epochs of GRPO, curves, an accuracy file."""
    path = tmp_path / "kl012"
    first = Theirs()
    attention = [n for n in first.state_dict() if "attn" in n]
    save(path / "rce_epoch5.pt", first, epoch=5, phase="rce")
    for epoch in (1, 2):
        net = moved(first, epoch, *attention)
        facts = {"kl_beta": 0.12, "metrics": {"kl": 0.08 / epoch, "val_loss": 8.0}}
        save(path / f"grpo_epoch{epoch}.pt", net, epoch=epoch, phase="grpo", **facts)
    curves = [{"epoch": n, "kl": 0.08 / n, "ppo_loss": 0.01, "grpo_loss": 0.02} for n in (1, 2)]
    (path / "training_metrics_kl012.json").write_text(json.dumps(curves))
    accuracy = {"2025-test_data_num=200-LeverLM": {"shot_num=1": 0.57, "shot_num=2": 0.561}}
    (path / "kl012_epoch1_metrics.json").write_text(json.dumps(accuracy))
    return path


def codes(adopted):
    return {each.code: each.facts for each in adopted.said}


# --- weights


@pytest.mark.parametrize(
    ("kind", "preset", "parameters"),
    [
        ({}, "v3", 525_824),
        ({"gate": True}, "v4-1", 657_152),
        ({"gru": True}, "v4-2", 921_088),
        ({"layers": 3}, "v2", 1_053_184),
    ],
)
def test_an_adopted_network_chooses_what_theirs_chose(tmp_path, kind, preset, parameters):
    net = Theirs(512, **kind)
    made = adopt(save(tmp_path / "grpo_epoch3.pt", net), {}, tmp_path / "runs")
    assert made.run.config["selector"] == preset
    assert codes(made)["adopt.checkpoint"]["parameters"] == parameters
    kept = made.run.load("epoch-3")
    from kleash.tasks.demos.presets import preset as blocks

    ours = Selector(blocks(preset, shots=2), 512, None)
    ours.load_state_dict(kept.weights, strict=True)
    rng = torch_generator("test", "queries")
    query, pool = torch.randn(40, 512, generator=rng), torch.randn(40, 16, 512, generator=rng)
    queries = Queries.of([str(i) for i in range(40)], query, pool, torch.ones(40, 16).bool())
    chosen, _ = ours.choose(queries, 2)
    assert chosen.chosen_PT.tolist() == net(query, pool, 2).tolist()


def test_a_tensor_too_few_too_many_or_of_another_shape_is_one_clear_line(tmp_path):
    state = Theirs().state_dict()

    def adopted(state):
        torch.save({"model_state_dict": state}, tmp_path / "rce_epoch1.pt")
        return adopt(tmp_path / "rce_epoch1.pt", {}, tmp_path / "runs")

    with pytest.raises(CheckpointError, match=r"is missing: projections\.candidate\.weight"):
        adopted({n: t for n, t in state.items() if n != "cand_proj.weight"})
    with pytest.raises(CheckpointError, match=r"no preset has a tensor 'topic_head\.weight'"):
        adopted(state | {"topic_head.weight": torch.zeros(3, 3)})
    with pytest.raises(CheckpointError, match=r"another shape: projections\.query\.weight"):
        adopted(state | {"query_proj.weight": torch.zeros(128, 256)})
    with pytest.raises(CheckpointError, match="2 layers of cross-attention"):
        adopted(Theirs(layers=2).state_dict())
    with pytest.raises(CheckpointError, match="holds no selector"):
        adopted({"other.weight": torch.zeros(3, 3)})
    assert not (tmp_path / "runs").exists()


def test_a_conversion_tells_what_never_reached_evaluation(tmp_path):
    """The documents' 50.1 %: exactly what their converter renamed."""
    source = save(tmp_path / "kl012/grpo_epoch1.pt", Theirs(512), kl_beta=0.12)
    alone = tmp_path / "alone" / converted(source).name
    alone.parent.mkdir()
    shutil.copy(converted(source), alone)
    made = adopt(alone, {}, tmp_path / "runs")
    told = codes(made)["adopt.renamed"]
    assert (told["count"], told["parameters"], told["total"]) == (6, 263_680, 525_824)
    assert told["share"] == pytest.approx(0.5015, abs=1e-4)
    assert "cross_attn.in_proj_weight" in told["names"]
    assert made.run.checkpoints() == ["epoch-1"]
    both = adopt(tmp_path / "kl012", {}, tmp_path / "runs")
    assert {"adopt.same", "adopt.renamed"} <= codes(both).keys()
    assert both.run.state("epoch-1")["weights_hash"] == made.run.state("epoch-1")["weights_hash"]
    assert both.run.state("epoch-1")["adopted_from"] == "grpo_epoch1.pt"


def test_layers_that_a_conversion_lost_are_named_and_counted(tmp_path):
    source = save(tmp_path / "kl012/grpo_epoch1.pt", Theirs(512, layers=3))
    converted(source)
    told = codes(adopt(tmp_path / "kl012", {}, tmp_path / "runs"))["adopt.lost"]
    assert told["count"] == 12
    assert told["parameters"] == 2 * 263_680
    assert all(".layers.1." in name or ".layers.2." in name for name in told["names"])


class Evil:
    """An object that runs a command when it is opened as pickles are."""

    def __reduce__(self):
        return os.mkdir, (os.environ["KLEASH_TEST_EVIL"],)


def test_lightning_s_checkpoint_is_opened_for_its_weights_and_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("KLEASH_TEST_EVIL", str(tmp_path / "ran"))
    net = Theirs(512, gate=True)
    state = {f"lever_lm.pointer_selector.{n}": t for n, t in net.state_dict().items()}
    state["lever_lm.sen_model.text_projection.weight"] = torch.zeros(4, 4)
    path = tmp_path / "epoch=7-step=99.ckpt"
    held = {"state_dict": state, "epoch": 7, "hyper_parameters": {"cfg": Evil()}}
    torch.save(held | {"callbacks": {"best": Evil()}}, path)
    made = adopt(path, {}, tmp_path / "runs")
    assert not (tmp_path / "ran").exists()
    assert made.run.config["selector"] == "v4-1"
    assert made.run.checkpoints() == ["supervised-7"]
    assert codes(made)["adopt.towers"] == {
        "file": path.name,
        "parameters": 16,
        "names": ["sen_model"],
    }
    kept = made.run.load("supervised-7").weights
    assert torch.equal(kept["state.gate.weight"], net.query_update_gate.weight)


def test_bytes_that_are_no_checkpoint_are_one_line(tmp_path):
    whole = save(tmp_path / "rce_epoch1.pt", Theirs()).read_bytes()
    for cut in (0, 10, len(whole) // 2):
        (tmp_path / "rce_epoch1.pt").write_bytes(whole[:cut])
        with pytest.raises(CheckpointError) as error:
            torch_object(tmp_path / "rce_epoch1.pt")
        assert "\n" not in str(error.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds nothing to adopt"):
        adopt(tmp_path / "empty", {}, tmp_path / "runs")


# --- runs


def test_a_folder_becomes_a_run_with_its_checkpoints_in_order(folder, tmp_path):
    made = adopt(folder, TINY, tmp_path / "runs")
    run = Run.open(tmp_path / "runs/kl012")
    assert run.finished
    assert run.checkpoints() == ["rce-5", "epoch-1", "epoch-2"]
    config = run.config
    assert config["leash"]["coefficient"] == 0.12
    assert (config["rce"]["epochs"], config["epochs"]) == (5, 2)
    assert config["freeze"] == ["projections"], "equal in all checkpoints"
    assert config["pool"] == {"kind": "random", "size": 8}
    epochs = [line for line in run.metrics() if line["phase"] == "grpo"]
    assert [line["kl"] for line in epochs] == [0.08, 0.04]
    assert "lr" in codes(made)["adopt.assumed"]["assumed"]
    assert "leash.coefficient" not in codes(made)["adopt.assumed"]["assumed"]
    again = adopt(folder, TINY, tmp_path / "runs")
    assert codes(again).keys() == {"adopt.again"}


def test_what_did_not_move_is_said(tmp_path):
    for epoch in (1, 2):
        save(tmp_path / f"kl0.12/grpo_epoch{epoch}.pt", Theirs())
    made = adopt(tmp_path / "kl0.12", {}, tmp_path / "runs")
    assert made.run.path.name == "kl0.12"
    told = codes(made)
    assert told["adopt.equal"]["names"] == ["grpo_epoch1.pt", "grpo_epoch2.pt"]


def test_what_is_assumed_exists_and_options_go_with_their_names(folder, tmp_path):
    made = adopt(folder, {}, tmp_path / "assumed")
    config = made.run.config
    assert config["answerer"] in ANSWERERS and config["encoder"] in ENCODERS
    assert codes(made)["adopt.assumed"]["assumed"]["answerer_options.prompt"] == "documents"
    mine = {"answerer": "endpoint", "answerer_options": {"url": "http://here", "model": "mine"}}
    config = adopt(folder, mine, tmp_path / "mine").run.config
    assert config["answerer_options"] == mine["answerer_options"], "no other answerer's"
    assert config["encoder_options"] == {"model": "models/clip-vit-base-patch32"}
    with pytest.raises(ConfigError, match=r"no answerer 'qwen2\.5-vl': there is embedded"):
        adopt(folder, {"answerer": "qwen2.5-vl"}, tmp_path / "runs")
    with pytest.raises(ConfigError, match="no encoder 'clap'"):
        adopt(folder, {"encoder": "clap"}, tmp_path / "runs")


def test_eval_measures_an_adopted_run(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adopt(folder, TINY, tmp_path / "runs")
    asked = ["eval", "runs/kl012", "--checkpoint", "all", "--shots", "1,2", "--items", "12"]
    told = CliRunner().invoke(app, [*asked, "--json"])
    assert told.exit_code == 0, told.output
    cells = json.loads(told.stdout)["cells"]
    assert [cell["n"] for cell in cells] == [12] * 6
    run = Run.open(tmp_path / "runs/kl012")
    weights = {line["checkpoint"]: line["weights"] for line in run.scores()}
    assert weights == {name: run.state(name)["weights_hash"] for name in run.checkpoints()}


def test_embeddings_of_another_width_cannot_be_measured_by_accident(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adopt(save(tmp_path / "kl/grpo_epoch1.pt", Theirs(512)), TINY, tmp_path / "runs")
    told = CliRunner().invoke(app, ["eval", "runs/grpo_epoch1", "--items", "4"])
    assert isinstance(told.exception, CheckpointError)
    assert "projections.input.weight" in str(told.exception)


def test_compare_reads_curves_settings_and_accuracies(folder, tmp_path):
    adopt(folder, TINY, tmp_path / "runs")
    other = tmp_path / "kl015"
    shutil.copytree(folder, other)
    for file in other.glob("grpo_*.pt"):
        held = torch.load(file, weights_only=True) | {"kl_beta": 0.15}
        torch.save(held, file)
    adopt(other, TINY, tmp_path / "runs")
    sources = [read(tmp_path / "runs/kl012"), read(tmp_path / "runs/kl015")]
    run = sources[0].runs[0]
    assert {series.metric for series in run.series} >= {"kl", "ppo_loss"}
    cells = [cell for cell in run.cells if cell.metric == "accuracy"]
    assert [(cell.shots, cell.number.value) for cell in cells] == [(1, 0.57), (2, 0.561)]
    assert len(compare(sources, Wish("", "", None)).arms) == 2


def test_training_starts_from_an_adopted_checkpoint_and_never_goes_on_in_it(
    folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    adopt(folder, TINY, tmp_path / "runs")
    told = CliRunner().invoke(app, ["train", "runs/kl012", "epochs=3"])
    assert "was adopted" in str(told.exception)
    keys = ["data=tiny", "answerer=tiny", "selector=v3", "queries=16", "pool.size=8"]
    keys += ["pool.kind=random", "propose.beams=0", "propose.random=3", "epochs=1", "batch=8"]
    start = "from=runs/kl012/checkpoints/rce-5"
    told = CliRunner().invoke(app, ["train", "default", *keys, "phase=grpo", start])
    assert told.exit_code == 0, told.output
    made = Run.open(tmp_path / "runs/default-s0")
    assert made.checkpoints() == ["epoch-1"]
    assert made.meta["base"] == Run.open(tmp_path / "runs/kl012").state("rce-5")["weights_hash"]


# --- data beside the weights


def test_data_is_counted_kept_and_told_of(folder, tmp_path):
    (folder / "rl_data.json").write_text(json.dumps(made_rl_data()))
    beams = {"4821": {"id_list": [[7232, 2229, 4821]], "score_list": [0.046]}}
    (folder / "beams.json").write_text(json.dumps(beams))
    held = {key: each for key, each in made_rl_data().items() if key != "_meta"}
    pools = {key: each["candidate_pool_ids"] for key, each in held.items()}
    (folder / "pools.json").write_text(json.dumps(pools))
    torch.save(torch.zeros(5, WIDTH), folder / "query_embeddings.pt")
    (folder / "notes.txt").write_text("nothing")
    told = codes(adopt(folder, {}, tmp_path / "runs"))
    assert told["adopt.rl"]["pointers"] == 72
    assert told["adopt.rl"]["wrong"] == 0
    assert told["adopt.beams"]["queries"] == 1
    assert told["adopt.embeddings"] == {
        "file": "query_embeddings.pt",
        "count": 5,
        "width": WIDTH,
    }
    assert told["adopt.left"]["names"] == ["notes.txt"]
    assert (tmp_path / "runs/kl012/adopted/rl_data.json").is_file()
    (folder / "pools.json").write_text(json.dumps(pools | {"3": [4, 5, 6]}))
    told = codes(adopt(folder, {}, tmp_path / "runs"))
    assert told["adopt.rl"]["wrong"] == 1, "a pool that is not the one in the cache"
    torch.save(torch.zeros(5, 7), folder / "query_embeddings.pt")
    with pytest.raises(DataError, match="rows of 7"):
        adopt(folder, {}, tmp_path / "other")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_verb_says_it_all_in_both_languages(folder, tmp_path, language):
    converted(folder / "grpo_epoch2.pt")
    asked = ["adopt", str(folder), "data=tiny", "--out", str(tmp_path / "runs")]
    told = CliRunner().invoke(app, [*asked, "--lang", language])
    assert told.exit_code == 0, told.output
    assert "adopt." not in told.output.replace("adopted", ""), "a code without a sentence"
    assert ("never reached evaluation" if language == "en" else "从未进入评估") in told.output


# --- training from what was bought elsewhere


@pytest.fixture
def bought_file(tmp_path):
    """Our own proposals, written as RL data."""
    path = tmp_path / "rl_data.json"
    propose_all(tiny_recipe("queries=16"), path)
    return path


def test_facts_from_a_file_are_the_facts_that_were_written(bought_file, ledger):
    world = SelectorWorld(tiny_recipe("queries=16"), ledger)
    ours = buy_proposals(world, "train", 16)
    adopted = world.with_recipe(tiny_recipe("queries=16", f"propose.facts={bought_file}"))
    theirs = buy_proposals(adopted, "train", 16)
    assert by_item(adopted, theirs) == by_item(world, ours)
    few = tiny_recipe("queries=5", f"propose.facts={bought_file}")
    assert len(world.with_recipe(few).item_ids("train")) == 5
    assert (adopted.pooled("train").pools.shape) == (16, 8)
    assert adopted.by_content()["propose"]["facts"] == adopted.adopted.data.content
    best = {name: theirs.best(at) for at, name in enumerate(adopted.item_ids("train"))}
    assert best == {name: ours.best(at) for at, name in enumerate(world.item_ids("train"))}


def by_item(world, bought):
    return {
        name: (bought.pointers[at], bought.rewards[at])
        for at, name in enumerate(world.item_ids("train"))
    }


def test_rce_and_grpo_train_from_a_file_and_ask_for_nothing_more(bought_file, trained):
    keys = ("source=offline", f"propose.facts={bought_file}", "queries=16", "supervised.epochs=0")
    run = trained("facts-s0", *keys)
    assert run.checkpoints() == ["rce-1", "epoch-1", "epoch-2"]
    assert run.meta["facts"]["queries"] == 16
    assert run.meta["facts"]["left_out"] == {}


def test_what_cannot_be_believed_is_left_out_and_counted(bought_file, ledger):
    value = json.loads(bought_file.read_text())
    first, second = [entry for key, entry in value.items() if key != "_meta"][:2]
    first["pointer_candidates"][0] |= {"vqa_correct": 1, "source_query": "elsewhere"}
    del first["pointer_candidates"][1]["vqa_pred_answer"]
    second["pointer_candidates"][0] |= {"vqa_correct": 1, "vqa_acc_score": 1.0}
    second["pointer_candidates"][0]["vqa_pred_answer"] = "something else"
    bought_file.write_text(json.dumps(value))
    world = SelectorWorld(tiny_recipe("queries=16", f"propose.facts={bought_file}"), ledger)
    assert world.adopted.counts()["left_out"] == {"copied from another query": 1, "no answer": 1}
    place = world.item_ids("train").index(second["query"]["question_id"])
    assert buy_proposals(world, "train", 16).rewards[place][0] == 0, "what the answer earns itself"


def test_a_file_of_other_data_or_other_pools_is_refused(bought_file, ledger):
    def world(*keys):
        return SelectorWorld(
            tiny_recipe("queries=16", f"propose.facts={bought_file}", *keys), ledger
        )

    with pytest.raises(DataError, match=r"has 8, and pool\.size is 6"):
        _ = world("pool.size=6").adopted
    with pytest.raises(DataError, match="was written for other data"):
        _ = world("data_seed=5").adopted
    value = json.loads(bought_file.read_text())
    entry = next(each for key, each in value.items() if key != "_meta")
    known = len(world().data.demonstrations)
    for number in (known, -1):
        wrong = [*entry["candidate_pool_ids"][:-1], number]
        changed = value | {"wrong": entry | {"candidate_pool_ids": wrong}}
        bought_file.write_text(json.dumps(changed))
        with pytest.raises(DataError, match=f"numbers that none of {known} demonstrations has"):
            _ = world("queries=17").adopted
    del value["_meta"]["numbers"]
    bought_file.write_text(json.dumps(value))
    with pytest.raises(DataError, match="the file numbers other items"):
        _ = world().adopted


class Numbered:
    """A data set as the documents number it: queries are demonstrations, by question id."""

    name, content = "numbered", "hash"

    def __init__(self):
        truths = ("pony",) * 6 + ("horse",) * 4
        self.demonstrations = [
            Item(str(40_000 + n), str(n), "what is it?", truths, "pony") for n in range(9200)
        ]

    def queries(self, split):
        return self.demonstrations


def test_the_documents_own_numbers_are_proven_query_by_query(tmp_path):
    path = tmp_path / "rl_data.json"
    path.write_text(json.dumps(made_rl_data()))
    facts = AdoptedFacts(path, Numbered(), size=16, most=800)
    assert len(facts.items) == 12
    assert facts.pointers(0) == [each.places for each in facts.members[0]]
    worth = [each.accuracy for each in facts.facts(0, item_score, needs_truth=False)]
    assert worth == [each.accuracy for each in facts.members[0]]
    with pytest.raises(DataError, match="vqa_gt_prob, which this reward is made of"):
        facts.facts(0, item_score, needs_truth=True)
    value = made_rl_data()
    value["3"]["query"]["question_id"] = 40_004
    path.write_text(json.dumps(value))
    with pytest.raises(DataError, match="query '3' is question 40004"):
        AdoptedFacts(path, Numbered(), size=16, most=800)
