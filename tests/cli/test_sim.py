"""zonestore sim: what cleaning costs, by simulation."""

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
    assert text.split("\n")[0].split() == ["policy", "write", "amplification", "theory", "ratio"]
    assert f"{rows[0]['write_amplification']:.3f}" in text


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
