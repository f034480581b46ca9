"""zonestore skylight: what is inside a model."""


def test_the_models_are_listed(zonestore):
    names = zonestore("skylight", "--json").json["models"]
    assert {"st5000as0011", "emulated-smr-1", "seagate-cmr", "zns-zn540"} <= set(names)
    assert zonestore("skylight").text.split() == names


def test_a_drive_is_found_out_as_printed(zonestore):
    text = zonestore("skylight", "st5000as0011").text
    for words in ("single, at the OD", "20 GiB", "200,000", "17–36 MiB", "static", "aggressive", "FIFO",
                  "8 (4 platters)", "towards the MD", "yes, by a power cut"):
        assert words in text
    found = zonestore("skylight", "st5000as0011", "--json").json["findings"]
    assert found["drive_type"]["value"] == "drive-managed"
    assert found["stream_bytes"] == 8 << 20


def test_the_same_seed_finds_the_same(zonestore):
    once, again = (zonestore("skylight", "st8000as0002", "--seed", "5").text for _ in range(2))
    assert once == again


def test_quick_says_what_kind_of_drive_it_is(zonestore):
    def kind(name):
        found = zonestore("skylight", name, "--quick", "--json").json["findings"]
        assert found["seconds"] < 60
        return found["drive_type"]["value"]

    assert kind("seagate-cmr") == "conventional"
    assert kind("wd40nmzw") == "drive-managed"
    assert kind("hm-smr-14tb") == "host-managed"
    assert kind("ssd-15gb") == "flash"


def test_a_page_with_figures_needs_nothing_else(zonestore, tmp_path):
    file = tmp_path / "report.html"
    zonestore("skylight", "seagate-cmr", "--html", str(file))
    page = file.read_text()
    assert "conventional" in page and page.count("<svg") == 3
    assert "Figure 2.22" in page and "<script" not in page and "src=" not in page
    outcome = zonestore.try_("skylight", "seagate-cmr", "--html", str(tmp_path / "none" / "report.html"))
    assert outcome.code != 0 and "cannot write" in outcome.err


def test_a_model_that_is_none(zonestore):
    outcome = zonestore.try_("skylight", "nonsense")
    assert outcome.code == 3 and "nonsense" in outcome.err and "hint: " in outcome.err
