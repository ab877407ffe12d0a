"""The nine readers on tiny sources of our own in the upstreams' columns: what a case holds, and what is refused."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest

from resources.canonical import selection_hash
from resources.errors import SrBenchError
from sr_bench_assets.benchmarks.contract import Case, SourceFiles, index_cases
from sr_bench_assets.benchmarks.registry import BUILT_IN, get_benchmark
from tests.sr_bench_assets.benchmarks.small_sources import (
    GPQA_ROW,
    LABEL,
    LCB_ROW,
    MMLU_ROW,
    SOURCES,
    files,
    gpqa_diamond,
    lines,
    livecodebench,
    table,
    tau3,
    terminal_bench,
)

IDS = {
    "mmlu-pro": ["7", "8"],
    "gpqa-diamond": [selection_hash(question)[:24] for question in ("Which one?\n", "And this one?")],
    "hle": ["h1", "h3"],
    "livecodebench": [f"{n}{letter}" for n in range(6) for letter in "ab"],
    "scicode": ["12", "13"],
    "terminal-bench-2.1": ["repair-a", "repair-b"],
    "simpleqa-verified": ["0", "1"],
    "arc-agi-2": ["aa", "bb"],
    "tau3": [f"{domain}/{n}" for domain in ("airline", "retail", "telecom") for n in ("0", "[x]y|z")],
}
STRATA = {
    "mmlu-pro": {"chemistry"},
    "gpqa-diamond": {"Optics"},
    "hle": {"Math"},
    "livecodebench": {"easy"},
    "scicode": {"all", "Physics"},
    "terminal-bench-2.1": {"all"},
    "simpleqa-verified": {"Art", "Sports"},
    "arc-agi-2": {"all"},
    "tau3": {"airline", "retail", "telecom"},
}


def read(id: str, root: Path) -> list[Case]:
    return list(get_benchmark(id).read_cases(SOURCES[id](root), 1))


@pytest.mark.parametrize("id", BUILT_IN)
def test_ids_and_strata(id: str, tmp_path: Path) -> None:
    cases = read(id, tmp_path)
    assert [case.id for case in cases] == [f"{id}/{native}" for native in IDS[id]]
    assert {case.category for case in cases} == STRATA[id]
    assert {case.benchmark for case in cases} == {id}


@pytest.mark.parametrize("id", BUILT_IN)
def test_labels_stay_in_the_reference(id: str, tmp_path: Path) -> None:
    for case in read(id, tmp_path):
        visible = json.dumps([case.id, case.category, case.messages, case.input])
        assert LABEL not in visible
        assert case.reference


@pytest.mark.parametrize("id", BUILT_IN)
def test_the_index_gives_the_same_cases(id: str, tmp_path: Path) -> None:
    cases = read(id, tmp_path)
    index = index_cases(get_benchmark(id), SOURCES[id](tmp_path), 1)
    backwards = list(reversed(range(len(cases))))
    assert [(key.id, key.stratum) for key in index.keys] == [(case.id, case.category) for case in cases]
    assert index.build(backwards) == [cases[position] for position in backwards]


@pytest.mark.parametrize("id", BUILT_IN)
def test_a_missing_file_is_named(id: str, tmp_path: Path) -> None:
    with pytest.raises(SrBenchError):
        list(get_benchmark(id).read_cases(SourceFiles(tmp_path, {}), 1))


def test_choices_are_asked_with_letters_and_graded_by_the_answer_column(tmp_path: Path) -> None:
    case = read("mmlu-pro", tmp_path)[0]
    assert case.reference == {"answer": "C"}
    assert case.input == {"question": "Which\nmetal?", "options": ["iron", "tin", "gold"]}
    assert [message["role"] for message in case.messages] == ["user"]
    assert "\nA. iron\nB. tin\nC. gold\n" in case.messages[0]["content"]


def test_gpqa_options_are_shuffled_by_seed_and_question(tmp_path: Path) -> None:
    source = gpqa_diamond(tmp_path)
    orders: set[tuple[str, ...]] = set()
    for seed in range(20):
        for case in get_benchmark("gpqa-diamond").read_cases(source, seed):
            assert case.input["options"]["ABCD".index(case.reference["answer"])] == "right"
            orders.add(tuple(case.input["options"]))
    assert len(orders) > 5


def test_gpqa_identity_is_the_whole_hash_of_the_native_question(tmp_path: Path) -> None:
    index = index_cases(get_benchmark("gpqa-diamond"), gpqa_diamond(tmp_path), 1)
    assert [key.native_id for key in index.keys] == [
        selection_hash("Which one?\n"),
        selection_hash("And this one?"),
    ]


def test_hidden_tests_stay_encoded(tmp_path: Path) -> None:
    case = read("livecodebench", tmp_path)[0]
    assert case.reference["private_tests_encoded"] == LCB_ROW["private_test_cases"]
    assert (case.reference["private_test_count"], case.reference["function_name"]) == (1, "add")
    assert case.input["public_tests"] == [{"input": "1 2", "output": "3", "testtype": "stdin"}]


def test_terminal_tasks_are_bound_to_their_whole_tree(tmp_path: Path) -> None:
    before = read("terminal-bench-2.1", tmp_path)[0]
    assert before.input["environment_files"] == ["environment/Dockerfile", "instruction.md", "task.toml"]
    source = terminal_bench(tmp_path)
    source.files["tasks/repair-a/tests/test.sh"].write_text("another test")
    after = next(iter(get_benchmark("terminal-bench-2.1").read_cases(source, 1)))
    assert before.input["task_tree_sha256"] != after.input["task_tree_sha256"]
    assert before.input["instruction"] == after.input["instruction"]


@pytest.mark.parametrize("name", ["instruction.md", "task.toml"])
def test_a_terminal_task_without_a_part_is_named(name: str, tmp_path: Path) -> None:
    source = terminal_bench(tmp_path)
    kept = {path: file for path, file in source.files.items() if path != f"tasks/repair-b/{name}"}
    with pytest.raises(SrBenchError, match=f"task repair-b has no {name}"):
        list(get_benchmark("terminal-bench-2.1").read_cases(SourceFiles(tmp_path, kept), 1))


def test_all_test_grids_of_a_puzzle_stay_together(tmp_path: Path) -> None:
    case = read("arc-agi-2", tmp_path)[0]
    assert case.reference == {"grids": [[[4, 3]], [[6, 5]]]}
    assert case.input["test_inputs"] == [[[3, 4]], [[5, 6]]]
    assert "[[4,3]]" not in case.messages[0]["content"]


def test_a_scicode_problem_keeps_all_its_steps(tmp_path: Path) -> None:
    case = read("scicode", tmp_path)[0]
    assert [step["step_number"] for step in case.input["steps"]] == ["12.1", "12.2"]
    assert list(case.reference["step_tests"]) == ["12.1", "12.2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": "D"}, "row 0 .*letter of one of its options"),
        ({"answer": "c"}, "letter of one of its options"),
        ({"options": ["one"]}, "2 to 10"),
        ({"options": ["a", " ", "c"]}, "empty 'options'"),
        ({"question": "  "}, "empty 'question'"),
        ({"category": ""}, "empty 'category'"),
        ({"question_id": None}, "no integer in 'question_id'"),
    ],
)
def test_bad_mmlu_rows_are_named(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    name = "data/test-00000-of-00001.parquet"
    source = files(tmp_path, {"tasks.jsonl": lines([{**MMLU_ROW, **changes}])})
    source = SourceFiles(tmp_path, {name: source.files["tasks.jsonl"]})
    with pytest.raises(SrBenchError, match=message):
        list(get_benchmark("mmlu-pro").read_cases(source, 1))


@pytest.mark.parametrize(
    ("file_name", "content", "message"),
    [
        ("t.parquet", b"no parquet", "no readable Parquet"),
        ("t.txt", b"x", "none of .parquet"),
        ("t.jsonl", b"{\n", "row 0 of t.jsonl is no JSON"),
        ("t.jsonl", b"[1]\n", "no JSON object"),
        ("t.jsonl", b'{"question_id": 1}\n', "has no 'category'"),
        ("t.jsonl", b"\xff\n", "not UTF-8"),
        ("t.csv", b"question_id,question\n1,2\n", "no column 'category'"),
        ("t.csv", b"question_id,category\n1\n", "row 0 of t.csv has another number of fields"),
        ("t.csv", b"", "no column 'question_id', 'category'"),
    ],
)
def test_broken_files_are_named(file_name: str, content: bytes, message: str, tmp_path: Path) -> None:
    path = files(tmp_path, {file_name: content}).files[file_name]
    source = SourceFiles(tmp_path, {"data/test-00000-of-00001.parquet": path})
    with pytest.raises(SrBenchError, match=message):
        list(get_benchmark("mmlu-pro").read_cases(source, 1))


def test_a_gpqa_option_equal_to_the_right_one_is_refused(tmp_path: Path) -> None:
    source = table(tmp_path, "gpqa_diamond.csv", [{**GPQA_ROW, "Incorrect Answer 2": "right"}])
    with pytest.raises(SrBenchError, match="equal to the correct one"):
        list(get_benchmark("gpqa-diamond").read_cases(source, 1))


def test_hostile_hidden_tests_name_the_problem(tmp_path: Path) -> None:
    source = livecodebench(tmp_path)
    hostile = base64.b64encode(zlib.compress(pickle.dumps(print))).decode()
    source.files["test3.jsonl"].write_text(
        lines([{**LCB_ROW, "question_id": "evil", "private_test_cases": hostile}])
    )
    with pytest.raises(SrBenchError, match="livecodebench/evil: hidden tests hold the pickle operation"):
        list(get_benchmark("livecodebench").read_cases(source, 1))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("airline/split_tasks.json", "{}", "airline has no split 'base'"),
        ("retail/split_tasks.json", '{"base": ["9"]}', "retail has no task '9'"),
        ("telecom/tasks.json", "[", "no JSON"),
        ("telecom/tasks.json", '[{"id": "0"}]', "without user_scenario"),
    ],
)
def test_broken_tau3_domains_are_named(name: str, content: str, message: str, tmp_path: Path) -> None:
    source = tau3(tmp_path)
    source.files[f"data/tau2/domains/{name}"].write_text(content)
    with pytest.raises(SrBenchError, match=message):
        list(get_benchmark("tau3").read_cases(source, 1))


@pytest.mark.parametrize(
    "content", ["[]", '{"train": [], "test": []}', '{"train": [{"input": [[1]]}], "test": []}',
                '{"train": [{"input": [[1]], "output": [[11]]}], "test": [{"input": [[1]], "output": [[1]]}]}'],
)  # fmt: skip
def test_broken_puzzles_are_named(content: str, tmp_path: Path) -> None:
    with pytest.raises(SrBenchError, match=r"aa\.json"):
        list(get_benchmark("arc-agi-2").read_cases(files(tmp_path, {"data/evaluation/aa.json": content}), 1))


@pytest.mark.parametrize(
    ("id", "name"),
    [
        ("terminal-bench-2.1", "tasks/repair-a/instruction.md"),
        ("arc-agi-2", "data/evaluation/aa.json"),
        ("tau3", "data/tau2/domains/retail/tasks.json"),
    ],
)
def test_a_link_out_of_a_repository_is_not_followed(id: str, name: str, tmp_path: Path) -> None:
    files = SOURCES[id](tmp_path / "checkout")
    outside = tmp_path / "outside"
    (tmp_path / "checkout" / name).rename(outside)
    (tmp_path / "checkout" / name).symlink_to(outside)
    with pytest.raises(SrBenchError):
        list(get_benchmark(id).read_cases(files, 1))


def test_a_linked_environment_is_hashed_as_its_target(tmp_path: Path) -> None:
    files = SOURCES["terminal-bench-2.1"](tmp_path)
    before = next(iter(get_benchmark("terminal-bench-2.1").read_cases(files, 1)))
    path = tmp_path / "tasks/repair-a/environment/Dockerfile"
    path.unlink()
    path.symlink_to("/")
    after = next(iter(get_benchmark("terminal-bench-2.1").read_cases(files, 1)))
    assert before.input["task_tree_sha256"] != after.input["task_tree_sha256"]
