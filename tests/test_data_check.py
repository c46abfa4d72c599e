"""Each kind of wrong in a file of RL data is seen, and a sound file has none."""

import copy
import json

import pytest
from typer.testing import CliRunner

from kleash.cli import app
from kleash.errors import DataError
from kleash.seeds import generator
from kleash.tasks.demos.rl_checks import check, counts
from kleash.tasks.demos.rl_data import read_beams, read_pools, read_rl_data, write_rl_data

ANSWERS = ["pony"] * 6 + ["horse"] * 4
POOL, QUERIES, POINTERS = 16, 12, 6


def candidate(pool, places, answer, accuracy, **more):
    return {
        "pointer": [int(place) for place in places],
        "pointer_global": [pool[place] for place in places],
        "gen_method": "sample",
        "vqa_pred_answer": answer,
        "vqa_correct": int(accuracy > 0),
        "vqa_acc_score": accuracy,
        "vqa_eval_mode": "vqaEval",
    } | more


def made():
    """A sound file: local pointers, their numbers beside them, rewards that answers earn."""
    file = {"_meta": {"k": POOL}}
    for query in range(QUERIES):
        rng = generator("test", "rl", query)
        pool = [int(each) for each in rng.choice(9000, POOL, replace=False) + 100]
        found = {}
        while len(found) < POINTERS:
            found[tuple(int(at) for at in rng.choice(POOL, 2, replace=False))] = None
        rows = [
            candidate(pool, places, *(("pony", 1.0) if at % 2 else ("dog", 0.0)))
            for at, places in enumerate(found)
        ]
        file[str(query)] = {
            "query": {
                "question_id": 40_000 + query,
                "image_id": query,
                "question": "what is it?",
                "gt_answers_raw": ANSWERS,
            },
            "candidate_pool_ids": pool,
            "pointer_candidates": rows,
        }
    return file


@pytest.fixture
def file(tmp_path):
    """Write an object and give its path."""

    def write(value, name="rl_data.json"):
        path = tmp_path / name
        path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
        return path

    return write


def codes(path, **given):
    return {each.code for each in check(read_rl_data(path), **given) if each.severity == "wrong"}


def test_a_sound_file_has_counts_and_nothing_wrong(file):
    data = read_rl_data(file(made()))
    held = counts(data)
    assert (held["queries"], held["pointers"]) == (QUERIES, QUERIES * POINTERS)
    assert held["share"] == 0.5
    assert (held["mixed"], held["zero"]) == (QUERIES, 0)
    assert held["convention"] == "local"
    assert check(data) == []


def test_numbers_of_the_whole_set_are_read_too(file):
    value = made()
    for entry in list(value.values())[1:]:
        for each in entry["pointer_candidates"]:
            each["pointer"] = each.pop("pointer_global")
    data = read_rl_data(file(value))
    assert check(data) == []
    assert counts(data)["convention"] == "global"
    there = read_rl_data(file(made(), "local.json"))
    assert [g.local(c) for g in data.groups for c in g.candidates] == [
        c.places for g in there.groups for c in g.candidates
    ]


def unanswered(entry, each):
    del each["vqa_pred_answer"]


def failed(entry, each):
    each |= {"vqa_eval_mode": "error", "vqa_pred_answer": "", "vqa_correct": 0}
    each |= {"vqa_acc_score": 0.0}


def unrewarded(entry, each):
    del each["vqa_correct"], each["vqa_acc_score"]


def transferred(entry, each):
    each |= {"vqa_correct": 1, "vqa_acc_score": 1.0, "vqa_pred_answer": "pony"}
    each |= {"gen_method": "global_positive_transfer", "source_query": "7"}


def not_own(entry, each):
    each |= {"vqa_pred_answer": "zebra", "vqa_correct": 1, "vqa_acc_score": 1.0}


def flag(entry, each):
    each["vqa_correct"] = 1 - each["vqa_correct"]


def percent(entry, each):
    each |= {"vqa_acc_score": 100.0, "vqa_correct": 1}


def no_pool(entry, each):
    entry["candidate_pool_ids"] = []


def short_pool(entry, each):
    used = {n for c in entry["pointer_candidates"] for n in c["pointer_global"]}
    unused = next(n for n in reversed(entry["candidate_pool_ids"]) if n not in used)
    entry["candidate_pool_ids"].remove(unused)


def repeated_pool(entry, each):
    used = {n for c in entry["pointer_candidates"] for n in c["pointer_global"]}
    free = [at for at, n in enumerate(entry["candidate_pool_ids"]) if n not in used]
    entry["candidate_pool_ids"][free[0]] = entry["candidate_pool_ids"][free[1]]


def outside(entry, each):
    each["pointer"][0] = POOL + 3


def unknown(entry, each):
    each["pointer_global"][0] = 99_999


def repeated(entry, each):
    for name in ("pointer", "pointer_global"):
        each[name][1] = each[name][0]


def misplaced(entry, each):
    each["pointer"] = each["pointer"][::-1]


def twice(entry, each):
    entry["pointer_candidates"].append(copy.deepcopy(each))


def twice_and_other(entry, each):
    entry["pointer_candidates"].append(
        each | {"vqa_pred_answer": "horse", "vqa_correct": 1, "vqa_acc_score": 0.99}
    )


@pytest.mark.parametrize(
    ("breaks", "code"),
    [
        (unanswered, "rl.unanswered"),
        (failed, "rl.failed"),
        (unrewarded, "rl.unrewarded"),
        (transferred, "rl.copied"),
        (not_own, "rl.not_own"),
        (flag, "rl.flag"),
        (percent, "rl.range"),
        (no_pool, "rl.no_pool"),
        (short_pool, "rl.pool_sizes"),
        (repeated_pool, "rl.pool_repeats"),
        (outside, "rl.outside"),
        (unknown, "rl.outside"),
        (repeated, "rl.repeated"),
        (misplaced, "rl.misplaced"),
        (twice, "rl.duplicates"),
        (twice_and_other, "rl.contradicts"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_what_is_wrong_in_one_query_is_seen_and_named(file, breaks, code):
    value = made()
    breaks(value["3"], value["3"]["pointer_candidates"][0])
    found = {each.code: each for each in check(read_rl_data(file(value)))}
    assert code in found, found
    assert found[code].severity == "wrong"
    assert found[code].facts["count"] == 1
    assert "3" in found[code].facts["examples"]


def test_a_positive_that_is_right_elsewhere_and_not_here_was_copied(file):
    """No mark tells it: the same pointer, the same answer, other truths."""
    value = made()
    value["5"]["query"]["gt_answers_raw"] = ["cat"] * 10
    for each in value["5"]["pointer_candidates"]:
        each |= {"vqa_pred_answer": "dog", "vqa_correct": 0, "vqa_acc_score": 0.0}
    source = copy.deepcopy(value["4"]["pointer_candidates"][1])
    value["5"]["candidate_pool_ids"][:2] = source["pointer_global"]
    value["5"]["pointer_candidates"] = [source | {"pointer": [0, 1]}]
    assert "rl.copied" in codes(file(value))


def test_an_index_modulo_the_pool_is_told_from_other_slips(file):
    value = made()
    for each in value["3"]["pointer_candidates"]:
        each["pointer"] = [number % POOL for number in each["pointer_global"]]
    assert "rl.modulo" in codes(file(value))
    assert "rl.modulo" not in codes(file(made()))


def test_sorted_pointers_ignore_order(file):
    value = made()
    for entry in list(value.values())[1:]:
        for each in entry["pointer_candidates"]:
            pairs = sorted(zip(each["pointer_global"], each["pointer"], strict=True))
            each["pointer_global"], each["pointer"] = map(list, zip(*pairs, strict=True))
    assert "rl.order_rising" in codes(file(value))


def test_groups_without_signal_are_wrong_when_they_are_most(file):
    value = made()
    for query in range(QUERIES):
        for each in value[str(query)]["pointer_candidates"]:
            each |= {"vqa_pred_answer": "dog", "vqa_correct": 0, "vqa_acc_score": 0.0}
        found = {each.code: each for each in check(read_rl_data(file(value)))}
        wrong = found["rl.no_signal"].severity == "wrong"
        assert wrong == (query + 1 > QUERIES / 2)
        assert found["rl.no_signal"].facts["zero"] == query + 1


def test_pools_made_of_their_pointers_are_seen(file):
    value = made()
    for entry in list(value.values())[1:]:
        used = {n: None for c in entry["pointer_candidates"] for n in c["pointer_global"]}
        rest = [n for n in entry["candidate_pool_ids"] if n not in used]
        entry["candidate_pool_ids"] = pool = [*used, *rest]
        for each in entry["pointer_candidates"]:
            each["pointer"] = [pool.index(number) for number in each["pointer_global"]]
    assert codes(file(value)) == {"rl.pool_order"}


def test_pools_are_compared_with_the_cache_that_made_them(file):
    value = made()
    cache = {query: entry["candidate_pool_ids"][::-1] for query, entry in list(value.items())[1:]}
    assert codes(file(value), pools=read_pools(file(cache, "cache.json"))) == set()
    cache["3"] = list(range(POOL))
    assert codes(file(value), pools=read_pools(file(cache, "cache.json"))) == {"rl.pool_cache"}


def test_the_same_key_and_the_same_question_twice(file):
    text = json.dumps(made())
    again = json.dumps(made()["3"])
    assert "rl.keys_twice" in codes(file(text[:-1] + f', "3": {again}}}'))
    value = made()
    value["4"]["query"]["question_id"] = 40_003
    assert "rl.asked_twice" in codes(file(value))


def test_the_query_in_its_own_pool(file):
    value = made()
    pool = value["3"]["candidate_pool_ids"]
    pool[value["3"]["pointer_candidates"][0]["pointer"][0]] = 3
    value["3"]["pointer_candidates"][0]["pointer_global"][0] = 3
    assert codes(file(value)) >= {"rl.pool_self", "rl.itself"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"3": {"query": {}, "pointer_candid', "not JSON"),
        ("[]", "no object of queries"),
        ("{}", "no query"),
        ('{"3": 4}', "no list `pointer_candidates`"),
        ('{"3": {"pointer_candidates": [4]}}', "pointer 1 is no object"),
        ('{"3": {"pointer_candidates": [{"pointer": ["a"]}]}}', "no list of whole numbers"),
        (
            '{"3": {"pointer_candidates": [{"pointer": [1], "vqa_acc_score": "high"}]}}',
            "`vqa_acc_score` is no number",
        ),
    ],
)
def test_a_file_of_another_form_is_one_line(file, text, says):
    with pytest.raises(DataError, match=says) as error:
        read_rl_data(file(text))
    assert "\n" not in str(error.value)


def test_what_is_written_is_read_again(file, tmp_path):
    data = read_rl_data(file(made()))
    write_rl_data(tmp_path / "again.json", data.groups, data.meta)
    again = read_rl_data(tmp_path / "again.json")
    assert sorted(again.groups, key=str) == sorted(data.groups, key=str)
    assert again.meta == data.meta


def test_beams_end_with_their_query(file):
    beams = read_beams(file({"4821": {"id_list": [[7232, 2229, 4821]], "score_list": [0.046]}}))
    assert beams["4821"][0].shown == (7232, 2229)
    with pytest.raises(DataError, match="does not end with the query"):
        read_beams(file({"4821": {"id_list": [[7232, 2229]], "score_list": [0.046]}}))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_verb_counts_first_and_fails_when_something_is_wrong(file, language):
    sound = CliRunner().invoke(app, ["data", "check", str(file(made())), "--lang", language])
    assert sound.exit_code == 0, sound.output
    first = sound.output.splitlines()[0]
    assert "50.00%" in first and str(QUERIES) in first and str(QUERIES * POINTERS) in first
    value = made()
    transferred(value["3"], value["3"]["pointer_candidates"][0])
    told = CliRunner().invoke(app, ["data", "check", str(file(value)), "--lang", language])
    assert told.exit_code == 1
    lines = told.output.splitlines()
    assert str(QUERIES * POINTERS) in lines[0]
    assert any(line.startswith("✗") and "1" in line for line in lines)
    assert all("rl." not in line for line in lines), "a code without a sentence"


def test_every_code_of_a_check_has_a_sentence():
    import re
    from pathlib import Path

    from kleash.report.words import CODES
    from kleash.tasks.demos import rl_checks

    named = set(re.findall(r'"(rl\.\w+)"', Path(rl_checks.__file__).read_text(encoding="utf-8")))
    assert named and named <= CODES.keys()


def test_every_reason_to_leave_a_pointer_out_is_found_and_has_its_words(file):
    from kleash.tasks.demos.rl_checks import unsound

    value = made()
    cases = {
        "no answer": unanswered,
        "an error": failed,
        "copied from another query": transferred,
        "no pool": no_pool,
        "outside the pool": unknown,
        "another demonstration at its place": misplaced,
        "a demonstration twice": repeated,
    }
    for query, breaks in enumerate(cases.values()):
        breaks(value[str(query)], value[str(query)]["pointer_candidates"][0])
    twice(value["8"], value["8"]["pointer_candidates"][0])
    found = unsound(read_rl_data(file(value)))
    for query, reason in enumerate(cases):
        assert found[str(query), 0] == reason
    assert found["8", POINTERS] == "asked before"
    assert sum(query == "3" for query, _ in found) == POINTERS, "without a pool none can be used"
    assert ("9", 0) not in found
