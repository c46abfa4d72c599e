"""A run's policy for use elsewhere: an agent as a Hugging Face folder, a selector as safetensors.

A folder appears whole or not at all, and only after it was loaded again and said the same. What
training needs to go on (optimiser, controller, reference) stays in the run.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from kleash.algo import guard
from kleash.algo.policy import fingerprint
from kleash.config import build
from kleash.errors import CheckpointError, ConfigError, DataError
from kleash.models.language.models import load, merged
from kleash.models.language.words import WORDS_TEMPLATE, Words
from kleash.models.selector import Selector
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run, write_json
from kleash.tasks.demos.presets import Blocks
from kleash.train.recipe import AgentRecipe, SelectorRecipe, placed, recipe_from
from kleash.train.rollout import load_policy, one_way
from kleash.train.rollout.agent import AgentWorld

FACTS = "kleash.json"
CLOSE = 1e-4  # nats: adding an adapter to its weights rounds otherwise than adding its output


@one_way()
def export(run: Run, name: str, folder: Path) -> dict[str, Any]:
    """Write the policy of a checkpoint to a folder that is not there yet; what it is."""
    if folder.exists():
        raise DataError(f"{folder} is there already: nothing is overwritten, give another --out")
    recipe = recipe_from(run.given, placed(run))
    write: Callable[..., dict[str, Any]] = export_selector
    if isinstance(recipe, AgentRecipe):
        write = export_agent
    passing = folder.with_name(f".{folder.name}.tmp")
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(passing, ignore_errors=True)
    passing.mkdir()
    try:
        facts = {
            "run": run.name,
            "identity": run.meta["identity"],
            "checkpoint": name,
            "weights": run.state(name)["weights_hash"],
        } | write(run, recipe, name, passing)
        write_json(passing / FACTS, facts)
        passing.rename(folder)
    finally:
        shutil.rmtree(passing, ignore_errors=True)
    return facts


# --- agents


def export_agent(run: Run, recipe: AgentRecipe, name: str, folder: Path) -> dict[str, Any]:
    """Model, tokenizer and how to generate, as transformers loads them."""
    with TemporaryDirectory() as place, Ledger(Path(place) / "ledger.sqlite") as ledger:
        world = AgentWorld(recipe, ledger)
        policy: Any = load_policy(run, world, name)
        speech: Any = world.speech  # a real model's has its tokenizer
        opening = world.gym.make(world.tasks("test")[0], seed=recipe.seed, rollout=0).start()
        surface = world.gym.surface
        ids = speech.opening(surface.instructions, surface.tools, opening)
    model = merged(policy.model)
    tokenizer = words_tokenizer(speech) if isinstance(speech, Words) else speech.tokenizer
    model.generation_config = generation(recipe, tokenizer, sorted(speech.stops))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    apart = largest_gap(policy, load(folder), ids)
    if apart > CLOSE:
        raise CheckpointError(
            f"the exported model says otherwise than {run.path}/checkpoints/{name}: its"
            f" log-probabilities differ by up to {apart:.2g}"
        )
    return {
        "kind": "agent",
        "model": recipe.model,
        "env": recipe.env,
        "speech": speech.identity,
        "temperature": recipe.temperature,
        "apart": apart,
    }


@torch.no_grad()
def largest_gap(policy: Any, model: Any, ids: Sequence[int]) -> float:
    """The largest difference of two models' log-probabilities after each of these ids."""
    found = [
        each(input_ids=torch.tensor([ids])).logits[0].double().log_softmax(-1)
        for each in (policy.model, model)
    ]
    return float((found[0] - found[1]).abs().max())


def words_tokenizer(speech: Words) -> Any:
    """One id for each word, as a tokenizer that `AutoTokenizer` loads; other words are refused.

    Its chat template gives the very ids that were trained on: every message says its words.
    """
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(WordLevel(speech.number, unk_token="no such word"))
    made.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token=speech.words[0],
        eos_token=";",
        pad_token=speech.words[speech.pad],
        clean_up_tokenization_spaces=False,
        chat_template=WORDS_TEMPLATE,
    )


def generation(recipe: AgentRecipe, tokenizer: Any, stops: list[int]) -> Any:
    """A turn as the agent was trained to sample it: until it stops, at its temperature."""
    from transformers import GenerationConfig

    return GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=stops,
        pad_token_id=tokenizer.pad_token_id,
        do_sample=True,
        temperature=recipe.temperature,
        top_k=0,
        max_new_tokens=recipe.turn_tokens,
    )


# --- selectors


def export_selector(run: Run, recipe: SelectorRecipe, name: str, folder: Path) -> dict[str, Any]:
    """Weights and what the selector is made of: `load_selector` needs nothing else."""
    if recipe.blocks().towers != "fixed":
        raise ConfigError(
            f"{run.path} has adapters on its encoder's towers, and a selector is exported without"
            " towers: use its checkpoint where the towers are"
        )
    weights = run.load(name, trainer=False).weights
    config = {
        "kind": "selector",
        "preset": recipe.selector,
        "blocks": recipe.blocks().model_dump(mode="json"),
        "width": weights["projections.input.weight"].shape[1],
        "pool": recipe.pool.size,
        "embeddings": run.meta["answerer"],
    }
    write_json(folder / "config.json", config | {"weights": fingerprint(weights)})
    save_file(weights, folder / "model.safetensors")
    load_selector(folder)
    return config


def load_selector(folder: Path | str) -> Selector:
    """The selector in an exported folder, strictly, with proof that its weights are the trained."""
    folder = Path(folder)
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "model.safetensors")
    except (OSError, ValueError) as error:
        raise DataError(f"{folder} holds no exported selector: {error}") from None
    if not isinstance(config, dict) or config.get("kind") != "selector":
        raise DataError(f"{folder} holds no exported selector: load an agent with transformers")
    selector = Selector(build(Blocks, config["blocks"]), config["width"], None)
    guard.load_strictly(selector, weights, source=str(folder))
    guard.same_weights(config["weights"], fingerprint(selector.state_dict()))
    return selector.eval()
