"""Tells the proxies once a second what a node's drives do, by memcached, and the drives whose turn it is to clean. Nothing depends on it:
without news, proxies read as ever and drives clean when they like."""

import time
from optparse import OptionParser

from swift.common.concurrency import Timeout
from swift.common.daemon import Daemon, run_daemon
from swift.common.memcached import load_memcache
from swift.common.ring.utils import is_local_device
from swift.common.utils import config_true_value, get_logger, parse_options, whataremyips

from zonestore_swift import news
from zonestore_swift.coordinator import Coordinator
from zonestore_swift.drives import DEFAULT_SOCKET, Drives
from zonestore_swift.errors import Refused
from zonestore_swift.sharing import Sharing
from zonestore_swift.together import each

HEALTH_SECONDS = 30
# A grade that is late is left for the next time: it keeps no row back.
GRADE_SECONDS = 0.5
# This node's addresses may change, or come late.
FIND_SECONDS = 30
MOST_INTERVAL = 2


class Reporter(Daemon):
    """Options, of [DEFAULT] or [zonestore-reporter]: `interval` (1 s), `memcache_servers`, `ring_ip`, `swift_dir`, those of the
    coordinator, and those of the back end."""

    def __init__(self, conf, logger=None):
        super().__init__(conf)
        self.logger = logger or get_logger(conf, log_route="zonestore-reporter")
        self.interval = float(conf.get("interval", 1))
        self.ring_ip = conf.get("ring_ip") or conf.get("bind_ip", "0.0.0.0")
        # As by Swift: with servers for each port, a drive has a port of its own.
        self.port = None if int(conf.get("servers_per_port", 0) or 0) else int(conf.get("bind_port", 6200))
        self.sharing = Sharing(conf.get("swift_dir", "/etc/swift"), int(conf.get("clean_fragments", 0)), logger=self.logger)
        # Address, port and name of each device of this node, the devices of the rings that this was found in, and when.
        self.local, self.searched, self.found = [], None, float("-inf")
        self.is_silent = False
        self.drives = Drives(conf.get("zonestore_socket", DEFAULT_SOCKET), conf.get("devices", "/srv/node"),
                             float(conf.get("zonestore_connect_timeout", 2)), float(conf.get("zonestore_timeout", 60)))
        self.memcache = load_memcache(conf, self.logger)
        # The drives that ever were there: a daemon that is away names none of them.
        self.names = set()
        # What each drive was worth when it last said so, and when it was last asked.
        self.grades = {}
        self.coordinator = None
        if config_true_value(conf.get("coordinate", "yes")):
            if self.interval > MOST_INTERVAL:
                raise ValueError(f"interval: at most {MOST_INTERVAL} seconds, or coordinate = no: who gives turns is heard each second")
            self.coordinator = Coordinator(conf, self.memcache, self.sharing, self.logger)

    def run_forever(self, *args, **kwargs):
        while True:
            begun = time.monotonic()
            try:
                self.run_once()
            except (Exception, Timeout):
                self.logger.exception("this round told nothing, or not all; the next one goes on")
            time.sleep(max(0.0, self.interval - (time.monotonic() - begun)))

    def run_once(self, *args, **kwargs):
        self.names |= set(each([""], lambda _: self.drives.names(), lambda _: ())[""])
        rows = {name: row for name, row in each(self.names, self.row, self.late).items() if row}
        self.find()
        now, told, places = time.time(), {}, {}
        for ip, port, name in self.local:
            drives = told.setdefault(news.key(ip, port), {"at": now, "drives": {}})["drives"]
            # Of a device that has several places in the rings, the first counts: it has one turn.
            first = places.setdefault(name, (ip, port))
            if name in rows:
                drives[name] = rows[name] if first == (ip, port) else {**rows[name], "first_place": first}
        if told:
            self.memcache.set_multi(told, news.SERVER, time=news.KEPT_SECONDS)
        if self.coordinator:
            self.coordinator.step({name: self.drives.drive(name) for name, row in rows.items() if not row.get("failed")}, places)

    def find(self):
        """Under which address and port the rings have the devices of this node: there proxies and coordinators look for news."""
        devices = self.sharing.devices()
        if devices is not None and (devices is not self.searched or time.monotonic() - self.found > FIND_SECONDS):
            ips = whataremyips(self.ring_ip)
            self.local = sorted({(device["ip"], device["port"], device["device"]) for device in devices if self.is_local(ips, device)})
            self.searched, self.found = devices, time.monotonic()
        if not self.local and not self.is_silent:
            self.logger.warning(
                "nobody hears of these drives: no ring of a zoned policy in swift_dir has a device at ring_ip %s, port %s",
                self.ring_ip, self.port or "any")
        self.is_silent = not self.local

    def is_local(self, ips, device):
        """By either of its addresses: the configuration may be that of a server for replication."""
        return any(is_local_device(ips, self.port, device[f"{kind}ip"], device[f"{kind}port"]) for kind in ("", "replication_"))

    def late(self, name):
        self.logger.warning("%s: no answer in time", name)
        return {"failed": True}

    def row(self, name):
        """None if nobody ever served a drive of this name."""
        drive = self.drives.drive(name)
        try:
            if not self.drives.is_served(name):
                return {"failed": True} if name in self.grades else None
            # What it had followed before it is looked at.
            followed = self.coordinator.followed.get(name, 0) if self.coordinator else 0
            cleaner = drive.store("cleaner")
            # A daemon of an earlier version may not say all of it.
            row = {"cleans": cleaner.get("in_hand") is not None, "slow": bool(drive.store("waiting")),
                   "waits": cleaner.get("waits_for_turn", False), "urgent": cleaner.get("is_urgent", False),
                   "spare": cleaner.get("spare_zones", 0), "turn": cleaner.get("turn_seconds", 0), "followed": followed}
            return {**row, "grade": self.grade(name, drive)}
        except Refused as refused:
            self.logger.warning("%s: %s", name, refused)
            return {"failed": True}

    def grade(self, name, drive):
        grade, asked = self.grades.get(name, ("good", float("-inf")))
        now = time.monotonic()
        if now - asked > HEALTH_SECONDS:
            # Before it answers, or a drive that takes long would be asked in every round.
            self.grades[name] = grade, now
            try:
                with Timeout(GRADE_SECONDS, False):
                    grade = drive.store("health?recent=true").get("grade", "good")
            except Refused:
                self.grades[name] = grade, asked
                raise
            self.grades[name] = grade, now
        return grade


def main():
    conf_file, options = parse_options(parser=OptionParser("%prog CONFIG [options]"), once=True)
    run_daemon(Reporter, conf_file, section_name="zonestore-reporter", **options)


if __name__ == "__main__":
    main()
