"""Language models to wrap: a tiny one drawn afresh, one from a folder or a GGUF file, an adapter.

transformers, peft and bitsandbytes are imported when a model is made: they take seconds.
"""

from __future__ import annotations

import copy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Generator, nn

from kleash.errors import ConfigError, DataError

CONTEXT = 1024  # ids of the longest conversation of a tiny model


def fresh(
    size: int,
    rng: Generator,
    *,
    width: int = 64,
    layers: int = 2,
    heads: int = 4,
    inner: int = 192,
    context: int = CONTEXT,
) -> Any:
    """A tiny Qwen3 for `size` ids, its weights drawn from `rng`; input and output embeddings tied.

    With the defaults and the embedded world's 136 words it has 115,584 parameters.
    """
    from transformers import Qwen3Config, Qwen3ForCausalLM

    if width % (2 * heads):
        raise ConfigError(f"a width of {width} does not give {heads} heads an even width each")
    config = Qwen3Config(
        vocab_size=size,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=width // heads,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=None,
        bos_token_id=None,
        eos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):  # what transformers draws is drawn over
        model = Qwen3ForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("norm.weight"):
                nn.init.ones_(parameter)
            else:
                # Residual branches start small, so that depth does not change the scale (GPT-2).
                last = name.endswith(("o_proj.weight", "down_proj.weight"))
                deviation = 0.02 / (2 * layers) ** 0.5 if last else 0.02
                parameter.normal_(0, deviation, generator=rng)
    return model


def load(path: Path | str, *, dtype: torch.dtype = torch.float32) -> Any:
    """The causal LM in a Hugging Face folder or a GGUF file, which is unpacked to `dtype`."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    folder, options = located(path)
    logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            folder, dtype=dtype, local_files_only=True, **options
        )
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise DataError(f"{path} cannot be loaded as a causal LM: {error}") from error
    return unpacked(model).eval()


def unpacked(model: Any) -> Any:
    """A model whose weights are plain numbers, marked as such: one that is not cannot be saved."""
    if getattr(model, "quantization_method", None) == "gguf":
        vars(model.config).pop("quantization_config", None)
        model.hf_quantizer, model.is_quantized = None, False
        model.quantization_method = None
    return model


def context_of(model: Any) -> int | None:
    """The longest conversation, in ids, that the model was made for; none where it names none."""
    places = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return None if places is None else int(places)


def located(path: Path | str) -> tuple[Path, dict[str, Any]]:
    """The folder to load from and, for a GGUF file, the option that names it."""
    path = Path(path)
    if path.suffix == ".gguf" and path.is_file():
        if find_spec("gguf") is None:
            raise ConfigError("a GGUF file needs its reader: pip install 'kleash[gguf]'")
        return path.parent, {"gguf_file": path.name}
    if (path / "config.json").is_file():
        return path, {}
    raise DataError(
        f"no language model at {path}: give a folder with config.json and safetensors (from"
        " `hf download NAME --local-dir FOLDER`, or `modelscope download --model NAME --local_dir"
        " FOLDER`) or a .gguf file"
    )


def narrowed(model: nn.Module, dtype: torch.dtype) -> None:
    """Give the weights that precision, and leave alone what places are turned by."""
    for weight in model.parameters():
        weight.data = weight.data.to(dtype)


def adapted(
    model: Any,
    rng: Generator,
    *,
    rank: int = 16,
    alpha: int = 32,
    targets: str = "all-linear",
    base: str = "plain",
    task: str | None = "CAUSAL_LM",
) -> Any:
    """The model with a LoRA adapter (2106.09685), which alone trains; at the start it adds nothing.

    `targets` names the products it is put on, with commas; all but the head if not said. A base in
    `nf4` is rounded first, one on the `host` stays in the machine's memory. `task` is what peft
    calls the model's; none for towers.
    """
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError:
        raise ConfigError("LoRA needs peft: pip install 'kleash[lora]'") from None
    if base != "plain":
        model = {"nf4": quantised, "host": fetched}[base](model)
    names = targets if targets == "all-linear" else targets.split(",")
    config = LoraConfig(
        r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules=names, task_type=task
    )
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):  # what peft draws is drawn over
        made = get_peft_model(model, config)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if ".lora_A." in name:
                drawn = torch.empty(parameter.shape, dtype=torch.float32)
                nn.init.kaiming_uniform_(drawn, a=5**0.5, generator=rng)
                parameter.copy_(drawn)
    return made


def quantised(model: Any) -> Any:
    """The model with the products of its layers in nf4, four bits a weight (QLoRA, 2305.14314).

    They do not train: an adapter does. Embedding, head and norms stay. Rounded where the model is,
    which should be a CPU: then it is the same base on every device that it is moved to.
    """
    nn4 = _bitsandbytes().nn
    for name, part in products(model):
        made = nn4.Linear4bit(
            part.in_features,
            part.out_features,
            bias=part.bias is not None,
            compute_dtype=part.weight.dtype,
            quant_type="nf4",
            device="meta",
        )
        made.weight = nn4.Params4bit(
            part.weight.data, requires_grad=False, quant_type="nf4", module=made
        )
        made.bias = part.bias
        _replace(model, name, made.to(part.weight.device))  # moving it is what rounds it
    return model.requires_grad_(False)


class Fetched(nn.Linear):
    """A product that does not train and whose weight stays in the machine's memory.

    It is brought for each use. Where the way back is not worked out again, what was brought stays
    until then; so this saves memory together with recomputing.
    """

    def __init__(self, part: nn.Linear) -> None:
        super().__init__(part.in_features, part.out_features, bias=False, device="meta")
        weight = part.weight.data.cpu()
        pinned = weight.pin_memory() if torch.cuda.is_available() else weight
        self.weight = nn.Parameter(pinned, requires_grad=False)
        self.bias = part.bias

    def _apply(self, fn: Any, recurse: bool = True) -> Fetched:  # noqa: FBT001 (torch's own)
        if self.bias is not None:
            self.bias.data = fn(self.bias.data)
        return self

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """The product, on the device of what is given."""
        here = self.weight.to(given.device, non_blocking=True, copy=True)
        return nn.functional.linear(given, here, self.bias)


def fetched(model: Any) -> Any:
    """The model with the products of its layers in the machine's memory, wherever it is moved."""
    for name, part in products(model):
        _replace(model, name, Fetched(part))
    return model.requires_grad_(False)


def products(model: Any) -> list[tuple[str, nn.Linear]]:
    """The products of the layers by their names; not the head."""
    head = model.get_output_embeddings()
    return [(n, p) for n, p in model.named_modules() if type(p) is nn.Linear and p is not head]


def _bitsandbytes() -> Any:
    try:
        import bitsandbytes
    except ImportError:
        raise ConfigError("weights in nf4 need bitsandbytes: pip install 'kleash[nf4]'") from None
    return bitsandbytes


def _replace(model: Any, name: str, part: nn.Module) -> None:
    above, _, last = name.rpartition(".")
    setattr(model.get_submodule(above), last, part)


def merged(model: Any) -> Any:
    """A copy with the adapter folded into the weights, as transformers knows it: for export.

    Weights in nf4 are unpacked first: what is exported computes what was trained.
    """
    made = copy.deepcopy(model)
    for name, part in list(made.named_modules()):
        # An adapter shows its base's weight as its own: only who really has it is unpacked.
        state = getattr(part._parameters.get("weight"), "quant_state", None)
        if state is not None:
            plain = nn.Linear(part.in_features, part.out_features, bias=False, device="meta")
            weight = _bitsandbytes().functional.dequantize_4bit(part.weight.data, state)
            plain.weight = nn.Parameter(weight.to(state.dtype), requires_grad=False)
            plain.bias = part.bias
            _replace(made, name, plain)
    return made.merge_and_unload() if hasattr(made, "merge_and_unload") else made
