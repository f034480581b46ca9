"""Hashes of suffixes, which peers with either back end compare: the same bit for bit."""

import random

import pytest

from backends import DEVICE, hash_of
from objects import Objects, moment

HISTORIES = 12
STEPS = 60


def step(dice, objects, names, chosen):
    name, at = chosen
    kind = dice.random()
    if kind < 0.5:
        objects.put(name, data=b"data", at=at, index=dice.randrange(7), commit=dice.random() < 0.7, offset=dice.choice([0, 0, 0, 1]))
    elif kind < 0.7:
        objects.post(name, at=at)
    elif kind < 0.85:
        objects.post(name, at=at, content_type="t", content_type_at=at - dice.randrange(4))
    else:
        objects.delete(name, at=at)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_both_back_ends_hash_the_same_after_any_history(files, zoned, policy, seed):
    dice = random.Random(seed)
    left = Objects(files, policy)
    right = Objects(zoned, policy, partition=left.partition)
    names = [f"o{number}" for number in range(dice.choice([1, 5, 30]))]
    for number in range(STEPS):
        chosen = dice.choice(names), dice.randrange(12)
        state = dice.getstate()
        for objects in (left, right):
            dice.setstate(state)
            step(dice, objects, names, chosen)
        if number % 10 == 9:
            assert left.hashes() == right.hashes()
    assert left.hashes() == right.hashes()
    offered = [
        sorted((object_hash, sorted((key, getattr(value, "internal", value)) for key, value in times.items()))
               for object_hash, times in objects.manager.yield_hashes(DEVICE, objects.partition, policy))
        for objects in (left, right)]
    assert offered[0] == offered[1]
    # With an age at which everything old goes.
    aged = [Objects(objects.backend, policy, partition=left.partition, reclaim_age="1") for objects in (left, right)]
    # Swift's hash of the pass that removes a fragment still has it.
    suffixes = list(left.hashes())
    for objects in aged:
        objects.hashes(suffixes)
    assert aged[0].hashes(suffixes) == aged[1].hashes(suffixes)
    for name in names:
        assert left.names(name) == right.names(name)


def test_a_partition_that_is_not_there_has_no_hashes(objects):
    assert objects.hashes() == {}


def test_hashes_follow_every_change(objects):
    seen = [objects.hashes()]
    objects.put(data=b"abc", at=1)
    seen.append(objects.hashes())
    objects.post(at=2)
    seen.append(objects.hashes())
    objects.post(at=3, content_type="t", content_type_at=3)
    seen.append(objects.hashes())
    objects.delete(at=4)
    seen.append(objects.hashes())
    assert all(seen[at] != seen[at + 1] for at in range(len(seen) - 1))
    assert list(seen[-1]) == [hash_of("o")[-3:]]
    assert objects.hashes() == seen[-1]


def test_marking_a_suffix_answers_nothing(objects):
    objects.put(data=b"abc")
    suffix = hash_of("o")[-3:]
    before = objects.hashes()
    assert objects.hashes([suffix], skip_rehash=True) is None
    assert objects.hashes([suffix, "nonsense", None]) == before


def test_hashing_again_counts(objects):
    objects.put(data=b"abc")
    suffix = hash_of("o")[-3:]
    ask = lambda **options: objects.manager._get_hashes(DEVICE, objects.partition, objects.policy, **options)  # noqa: E731
    computed, hashes = ask(do_listdir=True)
    assert computed == 1
    assert ask() == (0, hashes)
    assert ask(recalculate=[suffix]) == (1, hashes)


def test_a_fragment_hashes_under_its_index(coded_objects):
    coded_objects.put(data=b"abc", index=3, commit=False)
    suffix = hash_of("o")[-3:]
    assert set(coded_objects.hashes()[suffix]) == {3}
    coded_objects.put(data=b"abc", index=5, at=1)
    assert set(coded_objects.hashes()[suffix]) == {None, 5}


def test_what_age_alone_changes_is_found_when_a_suffix_is_marked(backend, policy):
    objects = Objects(backend, policy)
    objects.delete(at=0)
    path = objects.file()._datadir.rsplit("/", 1)[0]
    assert len(objects.hashes()) == 1
    old = Objects(backend, policy, partition=objects.partition, reclaim_age="1000")
    old.manager.invalidate_hash(path)
    assert old.hashes() == {}
    assert old.names() == []


def test_times_that_are_offered(objects):
    objects.put("data", data=b"abc", at=1)
    objects.put("posted", data=b"abc", at=1)
    objects.post("posted", at=3, content_type="t", content_type_at=2)
    objects.delete("deleted", at=4)
    objects.post("stray", at=5)
    durable = {"durable": True} if objects.coded else {}
    assert dict(objects.manager.yield_hashes(DEVICE, objects.partition, objects.policy)) == {
        hash_of("data"): {"ts_data": moment(1), **durable},
        hash_of("posted"): {"ts_data": moment(1), "ts_meta": moment(3), "ts_ctype": moment(2), **durable},
        hash_of("deleted"): {"ts_data": moment(4)}}


def test_only_the_suffixes_that_are_asked_for(objects):
    names = [f"o{number}" for number in range(40)]
    for name in names:
        objects.put(name, data=b"")
    offer = lambda suffixes: sorted(  # noqa: E731
        found for found, _ in objects.manager.yield_hashes(DEVICE, objects.partition, objects.policy, suffixes=suffixes))
    assert offer(None) == sorted(map(hash_of, names))
    assert offer([]) == []
    wanted = [hash_of(name)[-3:] for name in names[:3]] + ["000" if not any(hash_of(n).endswith("000") for n in names) else "001"]
    assert offer(sorted(set(wanted))) == sorted(found for found in map(hash_of, names) if found[-3:] in wanted)
    root = objects.manager.construct_dev_path(DEVICE)
    suffixes = sorted(objects.manager.yield_suffixes(DEVICE, objects.partition, objects.policy))
    assert [suffix for _, suffix in suffixes] == sorted({hash_of(name)[-3:] for name in names})
    assert all(path.startswith(root) and path.endswith(f"/{objects.partition}/{suffix}") for path, suffix in suffixes)
