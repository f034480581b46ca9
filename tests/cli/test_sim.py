"""zonestore sim: what cleaning costs, and clusters, by simulation."""

import json

SMALL = ("sim", "cleaning", "--zones", "200", "--writes", "50000")


def test_each_policy_has_a_row_beside_theory(zonestore):
    rows = zonestore(*SMALL, "--json").json
    assert [row["policy"] for row in rows] == ["greedy", "cost-benefit", "fifo", "random"]
    for row in rows:
        assert row["blocks_written"] == 50_000
        found = (row["blocks_written"] + row["blocks_moved"]) / row["blocks_written"]
        assert row["write_amplification"] == found
        if row["theory"]:
            assert abs(found / row["theory"] - 1) < 0.1, row
    text = zonestore(*SMALL).text
    assert text.split("\n")[0].split() == "policy write amplification theory ratio theory is of".split()
    assert f"{rows[0]['write_amplification']:.3f}" in text


def test_theory_says_what_it_is_of_and_only_where_it_holds(zonestore):
    def rows(*options):
        return {row["policy"]: row for row in zonestore(*SMALL, *options, "--json").json}

    uniform = rows()
    assert {name: row["theory_of"] for name, row in uniform.items()} == {
        "greedy": "greedy", "cost-benefit": None, "fifo": "fifo", "random": "random"}
    assert {row["theory_of"] for row in rows("--skew", "20/80").values()} == {"fifo, hot and cold apart"}
    single = rows("--blocks-per-zone", "1", "--policy", "greedy")["greedy"]
    assert single["theory"] is None and single["theory_of"] is None and single["write_amplification"] >= 1


def test_hot_and_cold_apart_cost_less(zonestore):
    def cost(*options):
        (row,) = zonestore(*SMALL, "--policy", "cost-benefit", "--skew", "20/80", *options, "--json").json
        return row["write_amplification"]

    assert cost("--placement", "by-heat") < 0.85 * cost()
    assert cost("--placement", "by-lifetime") < 0.85 * cost()
    assert cost("--placement", "by-lifetime") < cost("--placement", "sepbit")
    assert cost("--placement", "by-heat", "--shifting") < cost("--shifting")
    assert cost("--placement", "by-lifetime") < cost("--placement", "by-lifetime", "--shifting") < cost("--shifting")


def test_the_same_seed_gives_the_same_figures(zonestore):
    def run(seed):
        return json.dumps(zonestore(*SMALL, "--seed", seed, "--json").json)

    assert run("1") == run("1")
    assert run("1") != run("2")


def test_what_cannot_be_is_refused(zonestore):
    for options in (("-u", "1"), ("-u", "0"), ("-u", "nan"), ("--zones", "0"), ("--writes", "0"),
                    ("--skew", "20"), ("--skew", "0/80"), ("--skew", "20/100"), ("--shifting",), ("--zones", "4000000000"), ("--zones", "60000000")):
        assert zonestore.try_("sim", "cleaning", *options).code == 2


def test_a_cluster_of_drives_whose_reads_fail_is_refused(zonestore):
    for options in ((), ("--models",)):
        said = zonestore.try_("sim", "cluster", "--drive", "caveat-scriptor", *options).failed(2)
        assert "Caveat-Scriptor" in said and "hm-smr-14tb" in said


CLUSTER = ("sim", "cluster", "--nodes", "6", "--drives", "1", "--zones", "40", "--time", "60s", "--warm-up", "10s")


def test_a_cluster_has_a_column_for_each_way_to_coordinate(zonestore):
    reports = zonestore(*CLUSTER, "--json").json
    assert [report["coordination"] for report in reports] == ["none", "news", "turns"]
    for report in reports:
        assert report["begun"] == report["ended"] > 1_000
        for kind in ("reads", "writes"):
            latency = report[kind]
            assert 0 < latency["p50_ms"] <= latency["p90_ms"] <= latency["p99_ms"] <= latency["p999_ms"] <= latency["most_ms"]
    assert reports[2]["cleaning"]["beside"] == 0
    rows = zonestore(*CLUSTER).text.split("\n")
    assert rows[0].split() == ["coordination", "none", "news", "turns"]
    assert any(row.split()[:2] == ["p99.9,", "ms"] for row in rows)


def test_a_lost_drive_of_an_erasure_coded_cluster_is_made_again(zonestore):
    (report,) = zonestore(*CLUSTER, "--redundancy", "3+1", "--rebuild", "50MiB", "--coordination", "none", "-u", "0.5", "--json").json
    rebuilt = report["rebuild"]
    # Each fragment is made of three; some are on their way at the end.
    assert 3 * rebuilt["bytes"] <= rebuilt["read_bytes"] < 3.2 * rebuilt["bytes"]
    assert 0 < rebuilt["bytes_per_second"] <= 51 * 2**20


def test_drives_without_zones_have_no_cleaner_and_clients_no_rate(zonestore):
    (report,) = zonestore(*CLUSTER, "--drive", "hua72303", "--clients", "16", "--reads", "0.5", "--json").json
    assert report["cleaning"] is None and report["coordination"] == "none"
    assert report["reads_per_second"] > 0 and report["writes_per_second"] > 0


def test_a_cluster_repeats_from_its_seed(zonestore):
    def run(seed):
        return json.dumps(zonestore(*CLUSTER, "--seed", seed, "--coordination", "turns", "--json").json)

    assert run("1") == run("1")
    assert run("1") != run("2")


def test_clusters_that_cannot_be_are_refused_with_a_reason(zonestore, tmp_path):
    assert "nodes times drives" in zonestore.try_("sim", "cluster", "--nodes", "0").failed(2)
    assert "takes 3 drives" in zonestore.try_("sim", "cluster", "--nodes", "2", "--drives", "1").failed(2)
    for options, word in ((("-u", "0.99"), "a zone has to stay free"),
                          (("--redundancy", "x"), "8+4"), (("--reads", "2"), "0 to 1"), (("--drive", "zns-zn540"), "flash"),
                          (("--object-size", "1GiB"), "an object has"), (("--object-size", "0"), "an object has"),
                          (("--network", "1"), "1 MB a second or more"),
                          (("--budget", "0"), "per cent"), (("--rate", "0"), "a rate of requests"),
                          (("--news-delay", "soon"), "news-delay"), (("--rate", "1", "--clients", "1"), "cannot be used with")):
        outcome = zonestore.try_(*CLUSTER, *options)
        assert outcome.code == 2, options
        assert word in outcome.err, (options, outcome.err)
    assert "whole seconds" in zonestore.try_("sim", "cluster", "--time", "1ms").err
    for wrong in ("-1", "0", "1e308"):
        file = tmp_path / "times.json"
        file.write_text(f'{{"read_ms": [{wrong}], "write_ms": [1], "moved_ms": [1]}}')
        assert "0.001 to 3600000 milliseconds" in zonestore.try_(*CLUSTER, "--times", file).failed(2)
    # Cleaning that takes no time costs nothing; a drive without zones cleans nothing.
    file.write_text('{"read_ms": [10], "write_ms": [10]}')
    assert "moved_ms is empty" in zonestore.try_(*CLUSTER, "--times", file).failed(2)
    zonestore(*CLUSTER, "--times", file, "--drive", "seagate-cmr")
    assert "128 MiB" in zonestore.try_(*CLUSTER, "--times", "/dev/zero").failed(2)
