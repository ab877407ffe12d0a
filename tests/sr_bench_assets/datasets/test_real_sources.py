"""All nine benchmarks from data in their upstreams' layout: through the hub protocol, a git server, and by import."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from resources.store import Store
from sr_bench_assets.benchmarks.contract import PROFILES, GitSource, HubSource, Profile
from sr_bench_assets.benchmarks.registry import get_benchmark
from sr_bench_assets.datasets.artifact import DatasetManifest, read_cases
from sr_bench_assets.datasets.browse import questions_page
from sr_bench_assets.datasets.preparation import prepare, prepare_one
from sr_bench_assets.datasets.request import PreparationRequest
from tests.requirement import missing
from tests.servers.hub import HubServer

ROOT = Path(__file__).parents[3]
SOURCES = Path(os.environ.get("SR_BENCH_TEST_SOURCES", ROOT.parent / "shared" / "sources"))
VECTORS = {
    case["id"]: case["expect"]
    for case in json.loads((ROOT / "tests/conformance/data/selection.json").read_text("utf-8"))["cases"]
}
ON_HUB = ("mmlu-pro", "gpqa-diamond", "hle", "livecodebench", "scicode", "simpleqa-verified")
CHECKOUTS = {
    "arc-agi-2": "git/arcprize/ARC-AGI-2",
    "tau3": "git/sierra-research/tau2-bench",
    "terminal-bench-2.1": "git/harbor-framework/terminal-bench-2.1",
}


@pytest.fixture(scope="module")
def sources() -> Path:
    if not SOURCES.is_dir():
        missing("sources", "set SR_BENCH_TEST_SOURCES to the folder with the test sources")
    return SOURCES


@pytest.fixture
def hub(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    pinned: dict[str, str] = {}
    gated: dict[str, str] = {}
    for name in ON_HUB:
        source = get_benchmark(name).source
        assert isinstance(source, HubSource)
        pinned[source.repo_id] = source.revision
        if source.gated:
            gated[source.repo_id] = "hf_loopback"
    with HubServer.of_folder(sources / "hf", pinned, gated) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", "hf_loopback")
        yield server


def ids(manifest: DatasetManifest) -> list[str]:
    return [case.id for case in read_cases(manifest.path, manifest.sha256)]


def as_in_the_vectors(manifest: DatasetManifest, benchmark: str, profile: Profile) -> bool:
    expected = VECTORS[f"{benchmark}-{profile}"]
    digest = hashlib.sha256("\n".join(ids(manifest)).encode()).hexdigest()
    return (manifest.case_count, digest) == (expected["count"], expected["ids_sha256"])


@pytest.mark.parametrize("benchmark", ON_HUB)
def test_pinned_hub_sources_give_everybodys_cases(hub: HubServer, store: Store, benchmark: str) -> None:
    made: dict[Profile, DatasetManifest] = {}
    for profile in PROFILES:
        made[profile] = prepare(store, PreparationRequest(benchmarks=(benchmark,), profile=profile))
        assert as_in_the_vectors(made[profile], benchmark, profile)
    smoke, quick, standard = (set(ids(made[profile])) for profile in PROFILES)
    assert smoke <= quick
    assert not quick & standard
    source = made["quick"].sources[benchmark]
    assert (source.kind, source.revision) == ("hub", get_benchmark(benchmark).source.revision)


@pytest.mark.parametrize("benchmark", list(CHECKOUTS))
def test_git_sources_give_the_same_by_server_and_by_import(
    sources: Path, store: Store, benchmark: str, tmp_path: Path
) -> None:
    root = tmp_path / "upstream"
    shutil.copytree(sources / CHECKOUTS[benchmark], root)
    head = commit_all(root)
    module = get_benchmark(benchmark)
    assert isinstance(module.source, GitSource)
    served = replace(module, source=GitSource(f"file://{root}", head, module.source.paths))
    for profile in PROFILES:
        request = PreparationRequest(benchmarks=(benchmark,), profile=profile)
        fetched = prepare_one(store, served, request)
        assert as_in_the_vectors(fetched, benchmark, profile)
        imported = prepare(store, request.model_copy(update={"source_path": str(root), "revision": head}))
        assert imported.sha256 == fetched.sha256
        assert imported.sources[benchmark].files_sha256 == fetched.sources[benchmark].files_sha256


def commit_all(root: Path) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    for arguments in (
        ("init", "--quiet"),
        ("add", "--all", "--force"),
        ("commit", "--quiet", "--message", "one"),
    ):
        subprocess.run(["git", *identity, "-C", str(root), *arguments], check=True, capture_output=True)
    done = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_no_known_answer_is_in_what_a_client_can_obtain(hub: HubServer, store: Store) -> None:
    manifest = prepare(store, PreparationRequest(benchmarks=("simpleqa-verified", "hle"), profile="quick"))
    pages = [questions_page(manifest, page=page + 1) for page in range(questions_page(manifest)["pages"])]
    shown: dict[str, Any] = {task["id"]: task for page in pages for task in page["questions"]}
    scanned = 0
    for case in read_cases(manifest.path, manifest.sha256):
        answer = str(case.reference["answer"])
        task = json.dumps(shown[case.id], ensure_ascii=False)
        assert "reference" not in shown[case.id]
        if len(answer) < 6 or answer in str(case.input["question"]):
            continue
        assert answer not in task
        assert answer not in json.dumps(manifest.as_dict(), ensure_ascii=False)
        scanned += 1
    assert scanned >= 50
