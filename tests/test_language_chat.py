"""Chat templates: a tokenizer made here, templates that look like real ones, one that breaks."""

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from kleash.errors import DataError
from kleash.models.language.chat import Chat, load_chat
from kleash.tasks.envs.surfaces import TextSurface

# In the manner of Qwen3: tools in the system message, thoughts of past turns left out, and an empty
# think block where thinking is off.
QWEN = """\
{%- if tools %}<|im_start|>system
{% if messages[0].role == 'system' %}{{ messages[0].content + '\\n\\n' }}{% endif %}# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% elif messages[0].role == 'system' %}<|im_start|>system
{{ messages[0].content }}<|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}<|im_start|>user
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}<|im_start|>assistant
{{ message.content.split('</think>')[-1].lstrip('\\n') }}<|im_end|>
{% endif %}{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{%- endif %}"""
# In the manner of Llama 3.1: tools stand before the last user message, wherever that is.
WANDERING = """\
{%- for message in messages %}
{%- if loop.last and tools %}{{ tools | tojson }}{% endif %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
# In the manner of Gemma: no system role, and the first message of a conversation opens it.
NO_SYSTEM = """\
{%- if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content | trim }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
NO_END = """\
{%- for message in messages %}{{ message.role }}: {{ message.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"""

TOOLS = TextSurface("Find out what is meant.").tools


def chat(template, **options):
    """A tokenizer of bytes with the special tokens of Qwen."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(bytes_)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>")
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tokenizer.add_tokens(["<think>", "</think>", "<tool_call>", "</tool_call>"])
    tokenizer.chat_template = template
    return Chat(tokenizer, name="made-here", **options)


@pytest.mark.parametrize("template", [QWEN, NO_SYSTEM])
@pytest.mark.parametrize("thinking", [False, True])
def test_a_conversation_said_bit_by_bit_is_the_rendered_one(template, thinking):
    speech = chat(template, thinking=thinking)
    said = speech.opening("Ask.", [], "A cake, please.")
    for turn, answer in (("[action] When?", "On Monday."), ("[action] Why?", "A birthday.")):
        said += [*speech.ids(turn), *speech.reply(answer)]
    first = [{"role": "user", "content": "Ask.\n\nA cake, please."}]
    if speech.takes_system:
        first = [
            {"role": "system", "content": "Ask."},
            {"role": "user", "content": "A cake, please."},
        ]
    messages = [
        *first,
        {"role": "assistant", "content": "[action] When?"},
        {"role": "user", "content": "On Monday."},
        {"role": "assistant", "content": "[action] Why?"},
        {"role": "user", "content": "A birthday."},
    ]
    whole = speech.tokenizer.apply_chat_template(
        messages, tokenize=False, add_generation_prompt=True, enable_thinking=thinking
    )
    empty = "<think>\n\n</think>\n\n"
    # What was said stays: with thinking off, the empty block stands before every turn.
    expected = (
        whole
        if thinking or template is NO_SYSTEM
        else whole.replace("assistant\n[", f"assistant\n{empty}[")
    )
    assert speech.tokenizer.decode(said) == expected


def test_a_turn_is_read_without_its_stop_and_with_its_thoughts():
    speech = chat(QWEN)
    call = '<think>hm</think><tool_call>{"name": "x"}</tool_call>'
    ids = speech.ids(call)
    assert ids[-1] in speech.stops and ids[-1] == speech.tokenizer.eos_token_id
    assert speech.text(ids) == call
    assert speech.text(ids[:-1]) == call
    assert speech.ids(speech.text(ids)) == ids


def test_tools_are_told_to_templates_that_take_them():
    taking, without = chat(QWEN), chat(NO_SYSTEM)
    assert taking.takes_tools and not without.takes_tools
    told = taking.tokenizer.decode(taking.opening("Ask.", TOOLS, "A cake."))
    assert "interact_with_env" in told and told.startswith("<|im_start|>system\nAsk.")
    assert without.opening("Ask.", TOOLS, "A cake.") == without.opening("Ask.", [], "A cake.")


def test_a_template_that_changes_what_was_said_is_refused_by_name():
    with pytest.raises(DataError, match=r"template of made-here is refused.*shorter one"):
        chat(WANDERING)


def test_a_template_whose_turns_do_not_end_is_refused_by_name():
    with pytest.raises(DataError, match=r"template of made-here ends a turn with"):
        chat(NO_END)
    with pytest.raises(DataError, match="made-here has no chat template"):
        chat(None)


def test_who_speaks_differently_has_another_identity():
    assert chat(QWEN).identity == chat(QWEN).identity
    assert (
        len({chat(QWEN).identity, chat(NO_SYSTEM).identity, chat(QWEN, thinking=True).identity})
        == 3
    )


def test_a_saved_tokenizer_is_found_beside_its_model(tmp_path):
    speech = chat(QWEN)
    with pytest.raises(DataError, match="no language model at"):
        load_chat(tmp_path)
    speech.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    loaded = load_chat(tmp_path)
    assert loaded.ids("a b") == speech.ids("a b")
    assert loaded.opening("x", TOOLS, "y") == speech.opening("x", TOOLS, "y")
