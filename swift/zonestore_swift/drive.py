"""What the daemon does with Swift's objects on one drive: a method for each call of its interface."""

from urllib.parse import quote

from zonestore_swift.errors import NoPolicy, NotFound
from zonestore_swift.location import number_of
from zonestore_swift.opened import Opened

PARTITIONS_AT_ONCE = 10000


class Drive:
    """The drive that the ring calls `device`."""

    def __init__(self, transport, device):
        self._transport = transport
        drive = f"/v1/drives/{quote(device, safe='')}"
        self._root, self._store = f"{drive}/swift", f"{drive}/store"

    def store(self, what):
        """`space`, `health`, `cleaner`, `waiting` or `scrub` of the store below, with a query where there is one."""
        return self._transport.ask("GET", f"{self._store}/{what}")

    def take_turn(self, turn_seconds, hold_seconds):
        """It may clean for so long; behind that, until so long from now, only what it must."""
        self._transport.ask("POST", f"{self._store}/cleaner/turn", {"turn_seconds": turn_seconds, "hold_seconds": hold_seconds})

    def add_policy(self, policy):
        self._transport.ask("PUT", f"{self._root}/policies/{int(policy)}", {"kind": policy.policy_type})

    def policies(self):
        return {row["policy"] for row in self._transport.ask("GET", f"{self._root}/policies")}

    def stage(self, place, size=None):
        """An upload whose end answers with `staged`, `size` and `md5`. It is placed beside data that live as long as what
        the object had before."""
        target = f"{self._root}/staged?policy={int(place.policy)}&hash={place.hash}"
        return self._transport.upload(target + ("" if size is None else f"&size={size}"))

    def forget_staged(self, staged):
        self._transport.call("DELETE", f"{self._root}/staged/{staged}")

    def download(self, held, start, end, last):
        """Bytes `start` to `end` of opened data. The id is gone afterwards if they are the last that anybody wants."""
        return self._transport.download(
            f"{self._root}/opened/{held}" + ("?close=true" if last else ""), {"Range": f"bytes={start}-{end - 1}"})

    def sender(self):
        """What hands a socket to the daemon to send data into. None if the daemon does not take any, or is away."""
        return self._transport.handing(f"{self._root}/sending", "zonestore-sending")

    def receiver(self, place):
        """The same to stage data from, and what has to be told beside it. The answer is that of `stage`."""
        handing = self._transport.handing(f"{self._root}/receiving", "zonestore-receiving")
        return handing and (handing, {"policy": int(place.policy), "hash": place.hash})

    def forget_opened(self, held):
        self._transport.call("DELETE", f"{self._root}/opened/{held}")

    def object(self, policy, partition, object_hash):
        return DriveObject(self._transport, f"{self._root}/{int(policy)}/{number_of(partition)}/{object_hash}")

    def partitions(self, policy):
        """In order. None if nothing of this policy was ever written."""
        first = 0
        while True:
            page = self._nothing_without_policy(f"{int(policy)}/partitions?from={first}&limit={PARTITIONS_AT_ONCE}", [])
            yield from page
            if len(page) < PARTITIONS_AT_ONCE:
                return
            first = page[-1] + 1

    def suffixes(self, policy, partition):
        return self._nothing_without_policy(f"{int(policy)}/{number_of(partition)}/suffixes", [])

    def objects(self, policy, partition, suffix):
        """Pairs of hash and file names, in order of hash."""
        rows = self._nothing_without_policy(f"{int(policy)}/{number_of(partition)}/suffixes/{suffix}", [])
        return [(row["hash"], row["files"]) for row in rows]

    def hashes(self, policy, partition, recalculate, reclaim_age, commit_window):
        """How many suffixes were computed, and what all of them hash to, each a table with `-` for Swift's key None."""
        try:
            answer = self._transport.ask("POST", f"{self._root}/{int(policy)}/{number_of(partition)}/hashes", {
                "recalculate": list(recalculate), "reclaim_age": reclaim_age, "commit_window": commit_window})
        except NoPolicy:
            return 0, {}
        return answer["computed"], answer["hashes"]

    def quarantined(self, policy, limit=1000):
        return self._nothing_without_policy(f"{int(policy)}/quarantined?limit={limit}", [])

    def _nothing_without_policy(self, target, nothing):
        try:
            return self._transport.ask("GET", f"{self._root}/{target}")
        except NoPolicy:
            return nothing


class DriveObject:
    """The files of one object."""

    def __init__(self, transport, root):
        self._transport = transport
        self._root = root

    def _file(self, name):
        return f"{self._root}/files/{quote(name, safe='')}"

    def put(self, name, metadata, data=None):
        """One transaction: the file is there and what it replaces is gone. False if what is there is newer."""
        if data is None:
            answer = self._transport.ask("PUT", self._file(name), body=metadata)
        else:
            answer = self._transport.ask("PUT", f"{self._file(name)}?metadata_bytes={len(metadata)}", body=metadata + data)
        return answer["put"] == "done"

    def put_staged(self, name, metadata, staged):
        """The same with staged data, which are used up, so this is never sent twice."""
        answer = self._transport.ask("PUT", f"{self._file(name)}?staged={staged}", body=metadata, repeatable=False)
        return answer["put"] == "done"

    def make_durable(self, name):
        self._transport.call("POST", self._file(name) + "/durable")

    def remove_all(self, names, older_than=0, leaves_metadata=False):
        """In one transaction. None of them if something has come since they were listed, or one was written less than so many seconds ago."""
        # Whatever its age: clocks are set back, too.
        how = {"files": names, "older_than": older_than or None, "leaves_metadata": leaves_metadata}
        try:
            self._transport.call_with("POST", f"{self._root}/remove", how)
        except NoPolicy:
            pass

    def quarantine(self, file=None):
        """False if there was nothing to put aside: not even this file, if one is named, whatever has replaced it. Raises a `Refused` if it
        is still where it was."""
        try:
            self._transport.call_with("POST", f"{self._root}/quarantine", {} if file is None else {"file": file})
        except NoPolicy:
            return False
        except NotFound:
            # The object may be missing, or the place that it should go to.
            files = self.files()
            if file in files if file else files:
                raise
            return False
        return True

    def files(self):
        try:
            return sorted(self._transport.ask("GET", self._root)["files"], reverse=True)
        except NoPolicy:
            return []

    def open(self, first_bytes, hold, frag_index=None, frag_prefs=None):
        """What there is of it: nothing is an answer too."""
        question = {"first_bytes": first_bytes, "hold": hold}
        if frag_index is not None:
            question["frag_index"] = frag_index
        if frag_prefs is not None:
            question["frag_prefs"] = [
                {"timestamp": preference["timestamp"].internal, "exclude": preference["exclude"]} for preference in frag_prefs]
        try:
            return Opened.decode(self._transport.call_with("POST", f"{self._root}/open", question))
        except (NoPolicy, NotFound):
            return Opened.nothing()
