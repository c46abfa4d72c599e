"""What a line of a table is made of, found in its numbers: parts of cells, recipes, exceptions."""

from kleash.imports import Table, Where
from kleash.written.made.boards import boards
from kleash.written.made.parts import parts_of
from kleash.written.made.weighed import worked_out


def table(text: str) -> Table:
    rows = [
        tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
        for line in text.strip().splitlines()
    ]
    lines = tuple(range(2, len(rows) + 1))
    return Table(Where("r.md", 1, ""), (), rows[0], tuple(rows[1:]), lines)


def slips(text: str) -> list[tuple[int, str]]:
    """The line and text of every cell that does not follow its recipe."""
    found = [one for one in worked_out(boards([table(text)])) if not one.holds]
    return [(one.place[0], one.board.at[one.cell].text) for one in found]


def test_a_cell_has_its_numbers_by_the_sign_before_them():
    cell = parts_of("399 → 528 (+32.5%)")
    assert {kind: part.value for kind, part in cell.items()} == {"": 399, "→": 528, "(": 32.5}
    assert [part.value for part in parts_of("181/300（60.3%）").values()] == [181, 300, 60.3]
    assert parts_of("05-11 21:41") == {} == parts_of("kept for the next run, at 3 o'clock")


CHANGES = """
| Arm | length, first → last (change) | s / step |
| A | 399 → 528 (+32.3%) | 31.01 |
| B | 400 → 533 ({}) | 30.57 |
| C | 405 → 536 (+32.3%) | 31.18 |
| D | 395 → 628 (+59.0%) | 27.18 |
"""


def test_a_change_in_brackets_is_held_against_the_numbers_before_it():
    assert slips(CHANGES.format("+33.3%")) == []
    assert slips(CHANGES.format("+23.3%")) == [(3, "+23.3%")]


COUNTS = """
| n | 1-shot | 2-shot | 4-shot | total |
| 300 | 181/300 (60.3%) | 180/300 (60.0%) | 189/300 (63.0%) | 550/900 |
| 600 | 377/600 (62.8%) | 381/600 (63.5%) | 398/600 (66.3%) | {}/1,800 |
| 900 | 563/900 (62.6%) | 570/900 (63.3%) | 579/900 (64.3%) | 1,712/2,700 |
"""


def test_counts_of_fractions_add_up():
    assert slips(COUNTS.format("1,156")) == []
    assert (3, "1,256") in slips(COUNTS.format("1,256"))


EPOCHS = """
| arm | E1 | E2 | E3 | E4 | best epoch |
| A | 97.03 | 98.00 | 98.57 | 98.83 | 4 |
| B | 97.75 | 98.75 | 99.57 | 98.08 | 3 |
| C | 99.06 | 98.80 | 98.48 | 98.14 | {} |
| D | 98.80 | 98.70 | 99.31 | 97.85 | 3 |
| E | 96.10 | 97.74 | 97.02 | 96.33 | 2 |
| F | 95.41 | 95.90 | 96.28 | 97.16 | 4 |
"""


def test_the_best_column_is_where_the_row_is_highest():
    assert slips(EPOCHS.format("1")) == []
    assert slips(EPOCHS.format("2")) == [(4, "2")]


def test_two_columns_without_relation_have_no_recipe():
    text = """
    | arm | accuracy | seconds | memory |
    | A | 61.32 | 20.88 | 38.2 |
    | B | 64.10 | 22.91 | 61.7 |
    | C | 60.07 | 25.13 | 61.9 |
    | D | 66.45 | 19.06 | 60.2 |
    """
    assert worked_out(boards([table(text)])) == []


def siblings(*rows: str) -> list[tuple[int, int, str]]:
    """The table, line and text of every slip in tables that have one header."""
    head = "| metric | β=0.1 | β=0.2 | difference |\n"
    every = boards([table(head + text) for text in rows])
    return [
        (one.board.nth, one.place[0], one.board.at[one.cell].text)
        for one in worked_out(every)
        if not one.holds
    ]


SIBLINGS = (
    "| mean | 0.0600 | 0.0595 | 0.0005 |\n| last | 0.0538 | 0.0576 | -0.0038 |",
    "| mean | 8.0097 | 8.0034 | 0.0063 |\n| last | 7.9820 | 7.9872 | -0.0052 |",
    "| mean | 1.6767 | 1.7932 | -0.1165 |\n| last | 1.4514 | 1.3559 | 0.0955 |",
)


def test_tables_with_the_same_titles_teach_each_other_how_a_column_is_made():
    right = "| mean | 0.9034 | 0.9064 | -0.0030 |\n| last | 0.8380 | 0.8212 | 0.0168 |"
    wrong = "| mean | 0.9034 | 0.9064 | -0.0040 |\n| last | 0.8212 | 0.8380 | 0.0168 |"
    turned = "| mean | 0.9034 | 0.9064 | 0.0030 |\n| last | 0.8380 | 0.8212 | -0.0168 |"
    assert siblings(*SIBLINGS, right) == []
    assert siblings(*SIBLINGS, wrong) == [(3, 2, "-0.0040"), (3, 3, "0.0168")]
    assert siblings(*SIBLINGS, turned) == []  # it is made the other way round throughout
