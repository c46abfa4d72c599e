"""The kernels compute what their plain versions compute: on a GPU, or by Triton's interpreter.

Without Triton, as in the ordinary environment of this project, there is nothing to compare.
"""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton")

from kleash.models.engine import draws, kernels, operations  # noqa: E402 (the interpreter first)
from kleash.models.engine.operations import Blocks, Tiling, TokenPositions  # noqa: E402
from kleash.seeds import torch_generator  # noqa: E402

PAGE, SLOTS, MOST = 32, 5, 4
# Triton's interpreter makes numbers of arrays in a way that NumPy warns of (and 2.4 refuses).
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def random(*shape, seed="numbers", dtype=torch.float32):
    made = torch.randn(shape, generator=torch_generator("kernels", seed, *shape))
    return made.to(DEVICE, dtype)


def norm(width, dtype=torch.float32):
    return SimpleNamespace(weight=random(width, seed="norm", dtype=dtype), variance_epsilon=1e-6)


def table():
    rng = np.random.default_rng(0)
    pages = rng.permutation(SLOTS * MOST).reshape(SLOTS, MOST)
    return torch.tensor(pages, dtype=torch.int32, device=DEVICE)


def longs(*values):
    return torch.tensor(values, device=DEVICE)


@pytest.mark.parametrize("width", [24, 64])
@pytest.mark.parametrize("adds", [True, False])
def test_a_sum_and_its_norm(width, adds):
    found, delta = random(5, width), random(5, width, seed="delta") if adds else None
    wanted = operations.add_norm(found.clone(), delta, norm(width))
    for ours, theirs in zip(kernels.add_norm(found, delta, norm(width)), wanted, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_halves_of_one_tensor_are_multiplied():
    whole = random(3, 80)
    gate, up = whole.chunk(2, -1)
    assert torch.allclose(
        kernels.silu_and_mul(gate, up), operations.silu_and_mul(gate, up), atol=1e-6
    )


@pytest.mark.parametrize("rows", [1, 8, 48])
def test_a_few_rows_times_a_weight(rows):
    x = random(rows, 1024, dtype=torch.float16)[:, :512]  # rows may lie apart
    weight = random(128, 512, seed="weight", dtype=torch.float16)
    for tile in (kernels.LARGE, kernels.FEW_ROWS, kernels.MORE_ROWS):
        found = kernels.tiled(x, weight, tile).float()
        assert torch.allclose(
            found, operations.product(x.float(), weight.float()), rtol=1e-3, atol=0.03
        )


def test_which_products_are_a_librarys():
    assert kernels.tile_of(1, 4096, 4096) is kernels.tile_of(16, 4096, 12288) is kernels.FEW_ROWS
    assert kernels.tile_of(48, 4096, 4096) is kernels.MORE_ROWS
    assert kernels.tile_of(8, 24576, 4096) is kernels.LARGE
    assert kernels.tile_of(17, 24576, 4096) is kernels.tile_of(65, 4096, 4096) is None
    assert kernels.tile_of(8, 576, 576) is kernels.tile_of(8, 100, 512) is None


@pytest.mark.parametrize("normed", [True, False])
@pytest.mark.parametrize(("queries", "heads"), [(4, 2), (3, 1), (6, 6)])
def test_queries_are_turned_and_keys_are_kept_where_they_belong(queries, heads, normed):
    width, tokens = 16, 6
    joined = random(tokens, (queries + 2 * heads) * width)
    parts = joined.split([queries * width, heads * width, heads * width], -1)
    attention = SimpleNamespace()
    if normed:
        attention = SimpleNamespace(q_norm=norm(width), k_norm=norm(width))
    turns = random(PAGE * MOST, width, seed="cos"), random(PAGE * MOST, width, seed="sin")
    place = longs(0, 5, 31, 32, 100, -1)
    positions = TokenPositions(longs(0, 1, 2, 2, 4, 3), place, table())
    found = []
    for kind in (kernels, operations):
        kept = [torch.zeros(SLOTS * MOST, heads, PAGE, width, device=DEVICE) for _ in range(2)]
        found.append((kind.rotate_into_pages(parts, attention, turns, positions, *kept), *kept))
    for ours, theirs in zip(*found, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert found[0][2].abs().sum((1, 2, 3)).count_nonzero() == 5  # nobody's is nowhere


@pytest.mark.parametrize("splits", [1, 4])
@pytest.mark.parametrize(("queries", "heads"), [(4, 2), (3, 1), (16, 2)])
def test_attention_of_single_tokens_over_pages(queries, heads, splits):
    width = 16
    kept = [random(SLOTS * MOST, heads, PAGE, width, seed=name) for name in ("keys", "values")]
    place = longs(0, 31, 32, 127, -1, 77, 76)  # the last two stand in one talk
    blocks = Blocks(longs(0, 1, 2, 3, 0, 4, 4), place, longs(*range(7)), longs(*[1] * 7), table())
    query = random(7, queries, width)
    for columns in (16, 32):
        config = Tiling(columns, 4, 2, splits)
        ours = kernels.paged_attention(query, *kept, blocks, 0.3, config)
        theirs = operations.paged_attention(query, *kept, blocks, 0.3, config)
        there = place >= 0
        assert torch.allclose(ours[there], theirs[there], atol=1e-5)
        assert ours.isfinite().all()


@pytest.mark.parametrize(("queries", "heads"), [(4, 2), (3, 1)])
def test_attention_of_blocks_that_end_anywhere(queries, heads):
    width = 16
    kept = [random(SLOTS * MOST, heads, PAGE, width, seed=name) for name in ("keys", "values")]
    blocks = Blocks(
        longs(0, 0, 3, 2), longs(0, 8, 60, 29), longs(0, 8, 13, 14), longs(8, 5, 1, 8), table(), 8
    )
    query = random(22, queries, width)
    config = Tiling(16, 4, 2, 1)
    ours = kernels.paged_attention(query, *kept, blocks, 0.3, config)
    assert torch.allclose(
        ours, operations.paged_attention(query, *kept, blocks, 0.3, config), atol=1e-5
    )
    one_by_one = Blocks(
        longs(*[0] * 13, 3, *[2] * 8),
        longs(*range(13), 60, *range(29, 37)),
        longs(*range(22)),
        longs(*[1] * 22),
        table(),
    )
    assert torch.allclose(
        ours, operations.paged_attention(query, *kept, one_by_one, 0.3, config), atol=1e-5
    )
    # Cut into parts, of some of which a block's first tokens see nothing; the last is nobody's.
    wide = Blocks(
        longs(0, 0, 3, 2, 0, 0),
        longs(0, 8, 60, 29, -1, -1),
        longs(0, 8, 13, 14, 22, 0),
        longs(8, 5, 1, 8, 1, 0),
        table(),
        8,
    )
    more = torch.cat([query, query[:1]])
    for splits in (2, 4, 8):
        parts = kernels.paged_attention(more, *kept, wide, 0.3, Tiling(16, 4, 2, splits))
        assert torch.allclose(parts[:22], ours, atol=1e-5) and parts.isfinite().all()


@pytest.mark.parametrize("words", [41, 4096, 9001])
def test_the_same_ids_are_drawn(words):
    rows = 6
    logits = random(rows, words) * 3
    asked = (
        torch.tensor([1.0, 0.5, 1.7, 1.0, 1.0, 2.0], dtype=torch.float64, device=DEVICE),
        longs(*(draws.signed(71 * 2**57 * row + row) for row in range(rows))),
        longs(0, 1, 2, 300, 4, 5),
        longs(1, 1, 1, 1, 0, 0),
    )
    (ours, likely), (theirs, wanted) = (
        kernels.sample(logits, *asked),
        operations.sample(logits, *asked),
    )
    assert ours.tolist() == theirs.tolist()
    assert torch.allclose(likely, wanted, atol=1e-5)
    assert ours[4:].tolist() == logits[4:].argmax(-1).tolist()


@pytest.mark.skipif(DEVICE == "cpu", reason="the interpreter cuts bfloat16 off, GPUs round")
def test_rounding_is_that_of_the_model_in_half_precision():
    """Where the modules of a model round to bfloat16, so do the kernels."""
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    module = Qwen3RMSNorm(64).to(DEVICE, torch.bfloat16)
    module.weight.data = random(64, seed="norm", dtype=torch.bfloat16)
    found = random(50, 64, dtype=torch.bfloat16)
    delta = random(50, 64, seed="delta", dtype=torch.bfloat16)
    theirs = operations.add_norm(found.clone(), delta, module)
    ours = kernels.add_norm(found.clone(), delta, module)
    for one, other in zip(ours, theirs, strict=True):
        assert (one != other).float().mean() < 0.01
        assert torch.allclose(one, other, rtol=2**-7, atol=1e-6)


@pytest.mark.slow
def test_a_whole_decoder_of_kernels_says_what_the_model_says():
    from kleash.models.engine.decoder import Decoder, put_side_by_side
    from kleash.models.engine.paged import PagedEngine
    from kleash.models.engine.pages import Pages
    from test_engine import STOP, recomputed, said_logp, tiny, together

    model = tiny(hidden_size=32, head_dim=16, num_attention_heads=2, num_key_value_heads=1)
    put_side_by_side(model)
    engine = PagedEngine(model.to(DEVICE), {STOP}, places=40 * 128)
    engine._made = Decoder(
        engine.inner, Pages(engine._size()), engine.stops, sizes=(4, 8), small=kernels
    )
    asked = [((c,), [[5, 6, 7] * 30, [9, 10, 11][c:]]) for c in range(2)]
    for turns in together(engine, asked, most=2):
        found = recomputed(model.to("cpu"), turns)
        model.to(DEVICE)
        assert said_logp(turns) == pytest.approx(found, abs=1e-4)


COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kleash.models.engine import kernels
from kleash.models.engine.draws import FIRST, GAMMA, SECOND

def compiled(kernel, kinds, known, warps, stages=3):
    names = [name for name in kernel.arg_names if name not in known]
    kinds = dict(zip(names, kinds.split(), strict=True)) | dict.fromkeys(known, "constexpr")
    source = ASTSource(kernel, kinds, constexprs=known)
    options = {"num_warps": warps, "num_stages": stages}
    assert triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["cubin"]

half, most = "*bf16 " * 4, "*i32 " + "*i64 " * 4 + "i32 i32 fp32"
compiled(kernels._add_norm, half + "fp32 i32", {"ROOM": 4096, "ADDS": True}, 8)
compiled(kernels._silu_and_mul, "*bf16 *bf16 *bf16 i32 i32", {"ROOM": 1024}, 4)
heads = {"QUERIES": 32, "HEADS": 8}
known = heads | {"TILE": 8, "HALF": 64, "PAGE": 128, "NORMED": True}
kinds = "*bf16 *bf16 *bf16 i32 i32 i32 " + "*bf16 " * 7 + "*i32 *i64 *i64 i32 fp32"
compiled(kernels._rotate_into_pages, kinds, known, 4)
known = heads | {"GROUP": 4, "MEMBERS": 4, "WIDTH": 128, "PAGE": 128}
step = known | {"ROWS": 16, "COLUMNS": 64, "SPLITS": 8}
compiled(kernels._paged_attention, half + "*fp32 *fp32 " + most, step, 4)
compiled(kernels._paged_attention, half + "*fp32 *fp32 " + most, step | {"ROWS": 64}, 4)
read = known | {"ROWS": 64, "COLUMNS": 64, "SPLITS": 1}
compiled(kernels._paged_attention, half + "*bf16 *bf16 " + most, read, 4)
compiled(kernels._combined, "*fp32 *fp32 *bf16 i32", {"WIDTH": 128, "SPLITS": 8}, 1)
noise = {"ROOM": 4096, "GAP": GAMMA, "ONE": FIRST, "TWO": SECOND}
compiled(kernels._looked_at, "*bf16 *fp64 *i64 *i64 *i64 *fp32 i32 i64 i32", noise, 8)
compiled(kernels._sample, "*fp32 *i64 *fp32 i32 i32", {"ROOM": 64}, 1)
"""


@pytest.mark.slow
def test_the_kernels_compile_for_a_hopper_without_one():
    there = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    subprocess.run([sys.executable, "-c", COMPILE], check=True, env=there)
