"""What the journal's operations make of names, files and zones, in the order of docs/format/bluefs.md's list."""

from dataclasses import dataclass, field

from bluefs_records import Invalid

PLAIN, LOG = 1, 2


@dataclass
class Segment:
    file_offset: int
    offset: int
    end: int
    zone: int
    run_id: int
    limit: int = (1 << 64) - 1


@dataclass
class File:
    kind: int
    extents: list = field(default_factory=list)
    segments: list = field(default_factory=list)
    # Number of the frame that named each extent, by its place.
    named_by: dict = field(default_factory=dict)

    @property
    def extents_end(self):
        return max((extent.end for extent in self.extents), default=0)


class Names:
    def __init__(self):
        self.directories = {""}
        self.paths = {}
        self.files = {}
        self.zones = set()
        # Zones that hold the same, by the one whose number counts.
        self.twins = {}
        # The frame at work.
        self.frame = 0
        # Of (zone, run_id): how far a run had been written, with the frame that says so.
        self.written_ends = []

    def apply(self, name, fields):
        getattr(self, name)(*fields)

    def twin(self, zone, other):
        self.twins[zone] = other

    def make_directory(self, path):
        self.directories.add(path)

    def remove_directory(self, path):
        self.directories.discard(path)

    def create(self, kind, inode, _modified, path):
        if kind not in (PLAIN, LOG):
            raise Invalid(f"kind {kind}")
        self._drop(path)
        self.files[inode] = File(kind)
        self.paths[path] = inode

    def link(self, inode, path):
        self._drop(path)
        self.paths[path] = inode

    def unlink(self, path):
        self._drop(path)

    def rename(self, old, new):
        if old in self.directories:
            self._rename_directory(old, new)
        elif old in self.paths and old != new:
            self._drop(new)
            self.paths[new] = self.paths.pop(old)

    def _rename_directory(self, old, new):
        def moved(path):
            return new + path[len(old) :] if path == old or path.startswith(old + "/") else path

        self.directories = {moved(path) for path in self.directories}
        self.paths = {moved(path): inode for path, inode in self.paths.items()}

    def _drop(self, path):
        inode = self.paths.pop(path, None)
        if inode is not None and inode not in self.paths.values():
            self.files.pop(inode, None)

    def extend(self, inode, _modified, extents):
        file = self.files.get(inode)
        for extent in extents if file else []:
            if extent.file_offset >= file.extents_end:
                self._add(file, extent)

    def _add(self, file, extent):
        file.extents.append(extent)
        file.named_by[extent.zone, extent.offset] = self.frame

    def move(self, inode, extents):
        file = self.files.get(inode)
        if not file or not extents:
            return
        stretch = range(extents[0].file_offset, extents[-1].end)
        file.extents = [extent for extent in file.extents if extent.file_offset not in stretch]
        for extent in extents:
            self._add(file, extent)
        file.extents.sort(key=lambda extent: extent.file_offset)

    def truncate(self, inode, _modified, size):
        file = self.files.get(inode)
        if not file:
            return
        file.extents = [extent for extent in file.extents if extent.file_offset < size]
        for extent in file.extents:
            if extent.end > size:
                extent.length = size - extent.file_offset
                extent.checksum = 0

    def log_segment(self, inode, file_offset, offset, end, zone, run_id):
        if inode in self.files:
            self.files[inode].segments.append(Segment(file_offset, offset, end, zone, run_id))

    def log_truncate(self, inode, size):
        file = self.files.get(inode)
        if not file:
            return
        file.segments = [segment for segment in file.segments if segment.file_offset < size]
        for segment in file.segments:
            segment.limit = min(segment.limit, size)

    def next_zone(self, _zone):
        """The reader of frames goes there."""

    def next_inode(self, _inode):
        """Only a writer needs it."""

    def take(self, zone):
        self.zones.add(zone)

    def give(self, zone):
        self.zones.discard(zone)

    def written_end(self, offset, zone, run_id):
        self.written_ends.append((self.frame, zone, run_id, offset))
