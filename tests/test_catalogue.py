"""Sentences: both languages say the same, in the glossary's words, in columns that line up."""

import re
import string
from dataclasses import replace

import pytest

from kleash.compare.comparison import Amount, Step
from kleash.compare.read import names
from kleash.report.markdown import markdown_of
from kleash.report.parts import Document, Section, Table
from kleash.report.words import CODES, cut, gap_text, metric_name, pad, say, show, width
from kleash.report.words.verdicts import cost


def fields(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("code", sorted(CODES))
def test_both_languages_tell_the_same_facts(code):
    english, chinese = CODES[code]
    assert fields(english) == fields(chinese)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_whole_number_is_told_as_one_in_every_sentence(language):
    for code, sentences in CODES.items():
        facts = dict.fromkeys(fields(sentences[0]), 465.0) | {"axis": "step"}
        facts |= dict.fromkeys(("p", "chance"), 0.5)  # no counts: always with three decimals
        assert "465.0" not in say(code, facts, language), code
    facts = {"arm": "a", "axis": "step", "last": 45.0, "planned": 465.0}
    assert say("fewer-than-planned", facts, "zh").count("465 步")


def test_every_known_metric_and_setting_has_both_names():
    assert set(CODES.below("metric")) == {metric.name for metric in names.METRICS}
    known = {key.name for key in names.KEYS if key.kind in ("treatment", "must match")}
    missing = known - set(CODES.below("key"))
    assert missing <= {"leash.reward_coefficient"}


@pytest.mark.parametrize("texts", list(CODES.values()))
def test_chinese_has_full_width_stops_and_no_stray_words(texts):
    chinese = texts[1]
    assert not re.search(r"[\u4e00-\u9fff][,;:?!]|[,;:?!][\u4e00-\u9fff]", chinese)
    assert not re.search("范例序号|百分比点|KL约束|设定臂", chinese)


def test_words_that_need_a_statistic_are_in_no_sentence():
    for code, (english, chinese) in CODES.items():
        if code.startswith("place."):
            continue  # words of reports, which are quoted
        assert not re.search(r"\bsignificant|\bconverged|\balmost the same", english)
        assert not re.search("显著|收敛|几乎相同", chinese)


def test_differences_of_percentages_are_points():
    assert show(Amount(0.0275, "fraction", gap=True), "zh") == "2.75 个百分点"
    assert show(Amount(0.0275, "fraction"), "zh") == "2.75%"
    assert gap_text(0.00275, -0.094, 0.1, "fraction", "en") == "+0.275 [-9.40, +10.00] points"
    assert gap_text(-0.0306, -0.1472, 0.0861, "reward", "zh") == "-0.031 [-0.147, +0.086]"
    assert gap_text(30, None, None, "step", "zh") == "+30 步"


def test_a_blank_stands_between_chinese_and_latin():
    facts = {"factor": ["leash.coefficient"], "keys": ["entropy_bonus", "schedule"]}
    said = say("not_attributable", facts, "zh")
    assert said == "不能归因于 KL 系数；同时改变的还有：熵系数、学习率调度"


def test_a_code_without_a_sentence_is_told_with_its_facts():
    assert say("no-such-code", {"arm": "a", "n": 3}, "en") == "no-such-code: arm = a, n = 3"


def test_facts_that_are_not_known_are_not_told():
    facts = {"queries": 8, "pointers": 80, "positive": None, "share": None}
    assert say("rl.counts", facts, "en") == "8 queries, 80 pointers, no reward at all"
    assert "20 of them positive" in say("rl.counts", facts | {"positive": 20, "share": 0.25}, "en")


def test_places_and_pairs_are_told_in_the_language():
    facts = {"arm": "a", "value": 0.08, "at": "epoch 1"}
    assert say("kl-at-start", facts, "zh").startswith("a：第 1 轮的 KL 为 0.08")
    twice = {"arm": "a", "differs": [("data", "x.json", "y.json")]}
    assert say("two-histories", twice, "zh") == "a 有两份不同的记录：训练数据：x.json / y.json"
    assert (
        say("two-histories", twice, "en") == "a has two histories: training data: x.json / y.json"
    )


def test_names_are_those_of_the_glossary():
    assert metric_name("验证集Reward", "en") == "evaluation reward"
    assert metric_name("actor/pg_loss", "zh") == "策略损失"
    assert metric_name("frobnication", "zh") == "frobnication"


def test_columns_line_up_with_chinese_in_them():
    assert width("配置 a") == 6
    assert pad("配置", 6) == "配置  "
    table = Table("", ["配置", "指标"], [["无KL约束", "kl"], ["a", "验证奖励"]])
    document = Document("t", "zh", [Section("x", "x", [table])])
    lines = markdown_of(document).splitlines()[4:]
    assert len({width(line) for line in lines}) == 1


def test_lines_are_cut_to_columns_and_begin_with_no_stop():
    text = "每个配置只有一次运行：不能对系数下任何结论；" * 4 + "and words stay whole, too"
    lines = cut(text, 30)
    assert max(map(width, lines)) <= 32  # a stop may stand over the edge
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert not any(line[0] in "，。；：、）" for line in lines)


def test_a_cost_that_is_sure_is_one_number():
    step = Step("seeds", {}, hours=(26.8, 27.2))
    assert cost(step, "en") == "about 27 h of the same machine"
    assert cost(replace(step, hours=(20.0, 27.2)), "zh") == "同一机器约 20–27 小时"


def test_a_change_that_is_small_is_not_nothing():
    facts = {"arm": "a", "metric": "val_loss", "first": 7.887, "last": 7.858}
    assert "(-0.4%)" in say("barely-moved", facts | {"change": -0.0037}, "en")
    assert "（-26%）" in say("kl-falls", facts | {"change": -0.261}, "zh")
