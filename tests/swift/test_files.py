"""Which files of an object count, and what they hash to: the same as by Swift's own code, which is asked beside ours."""

import json
import os
import random
import subprocess
from pathlib import Path

import pytest
from swift.common.storage_policy import ECStoragePolicy, StoragePolicy
from swift.common.utils import Timestamp
from swift.obj import diskfile

ROOT = Path(__file__).resolve().parents[2]
NOW = 1_700_000_000
RECLAIM_AGE = 7 * 24 * 3600
QUESTIONS = int(os.environ.get("SWIFT_QUESTIONS") or 3000)
SEED = int(os.environ.get("SEED") or 1)


@pytest.fixture(scope="module")
def ours():
    """Answers a list of questions."""
    command = ["cargo", "run", "--quiet", "--locked", "-p", "swift-files", "--example", "answers"]

    def ask(questions):
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        run = subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return [json.loads(line) for line in run.stdout.splitlines()]

    return ask


@pytest.fixture
def managers(tmp_path):
    conf = {"devices": str(tmp_path), "mount_check": "false", "reclaim_age": str(RECLAIM_AGE), "commit_window": "0"}
    coded = ECStoragePolicy(1, "coded", ec_type="liberasurecode_rs_vand", ec_ndata=4, ec_nparity=3)
    import logging

    logger = logging.getLogger("swift")
    return {
        False: (diskfile.DiskFileManager(conf, logger), StoragePolicy(0, "plain")),
        True: (diskfile.ECDiskFileManager(conf, logger), coded),
    }


def some_files(dice, manager, erasure):
    """Names of a few moments, so that many meet; old ones among them."""
    moments = [Timestamp(NOW - dice.choice([0, 1, 2, 3, 4, 5, RECLAIM_AGE + 10, RECLAIM_AGE + 11]) * 1.00001,
                         offset=dice.choice([0, 0, 0, 0, 1, 0xabc])) for _ in range(dice.randint(1, 5))]
    names = set()
    for _ in range(dice.randint(1, 8)):
        moment, kind = dice.choice(moments), dice.choice([".data", ".data", ".meta", ".meta", ".ts"])
        options = {}
        if kind == ".meta" and dice.random() < 0.7:
            options["ctype_timestamp"] = Timestamp(dice.choice(moments).normal)
        if kind == ".data" and erasure:
            options = {"frag_index": dice.randint(0, 6), "durable": dice.random() < 0.4}
        names.add(manager.make_on_disk_filename(moment, kind, **options))
    return sorted(names)


def some_question(dice, managers):
    erasure = dice.random() < 0.6
    manager = managers[erasure][0]
    objects = {f"{dice.getrandbits(116):029x}abc": some_files(dice, manager, erasure) for _ in range(dice.randint(1, 4))}
    question = {"erasure": erasure, "objects": objects, "now": NOW, "reclaim_age": RECLAIM_AGE}
    if erasure and dice.random() < 0.3:
        question["index"] = dice.randint(0, 6)
    if erasure and dice.random() < 0.5:
        times = sorted({name.split("#")[0] for names in objects.values() for name in names if "#" in name})
        chosen = dice.sample(times, dice.randint(0, min(3, len(times))))
        question["preferences"] = [[time, dice.sample(range(7), dice.randint(0, 5))] for time in chosen]
    return question


def names(infos):
    return sorted({info["filename"] for info in infos})


def stock_choice(managers, question, files):
    manager, policy = managers[question["erasure"]]
    options = {}
    if question["erasure"]:
        options["frag_index"] = question.get("index")
        if "preferences" in question:
            options["frag_prefs"] = [{"timestamp": Timestamp(time), "exclude": exclude} for time, exclude in question["preferences"]]
    found = manager.get_ondisk_files(sorted(files, reverse=True), "", verify=False, policy=policy, **options)
    return {
        "data": found["data_file"],
        "meta": found["meta_file"],
        "content_type": found["ctype_file"],
        "tombstone": found["ts_file"],
        "obsolete": names(found.get("obsolete", [])),
        "strays": names(found.get("possible_reclaim", [])),
    }


def stock_hashes(managers, question, folder, monkeypatch):
    """Of a suffix in the host's file system, hashed twice: what goes by its age is still in the first hash."""
    manager, policy = managers[question["erasure"]]
    suffix = folder / "abc"
    for of, files in question["objects"].items():
        (suffix / of).mkdir(parents=True)
        for name in files:
            (suffix / of / name).touch()
    monkeypatch.setattr(diskfile.time, "time", lambda: float(NOW))
    hashes = {}
    for _ in range(2):
        try:
            hashes = manager._hash_suffix(str(suffix), policy=policy)
        except diskfile.PathNotDir:
            hashes = None
    left = {of: sorted(os.listdir(suffix / of)) if (suffix / of).exists() else [] for of in question["objects"]}
    if not question["erasure"]:
        hashes = {"": hashes}
    return {"" if of is None else str(of): value for of, value in (hashes or {}).items()}, left


def test_files_count_as_in_swift(ours, managers, tmp_path, monkeypatch):
    dice = random.Random(SEED)
    questions = [some_question(dice, managers) for _ in range(QUESTIONS)]
    answers = ours(questions)
    assert len(answers) == len(questions)
    chosen = 0
    for number, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        for of, files in question["objects"].items():
            mine = dict(answer["objects"][of])
            mine.pop("left")
            assert mine == stock_choice(managers, question, files), (number, question)
            chosen += mine["data"] is not None
        hashes, left = stock_hashes(managers, question, tmp_path / str(number), monkeypatch)
        assert {of: found["left"] for of, found in answer["objects"].items()} == left, (number, question)
        if any(left.values()):
            assert answer["hashes"] == hashes, (number, question)
    assert chosen > QUESTIONS // 2


def test_names_are_refused(ours):
    with pytest.raises(AssertionError, match="FileNameError"):
        ours([{"erasure": False, "objects": {"a": ["1.data"]}, "now": NOW, "reclaim_age": 1}])
