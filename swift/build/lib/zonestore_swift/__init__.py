"""Swift's object servers on zoned drives. A drive daemon owns the drive; this package talks to it and subclasses Swift's `DiskFile`.

What decides (which files count, how metadata merge, what is durable) stays Swift's own code. What does input and output is here.
"""

from zonestore_swift.manager import ECManager, Manager

__all__ = ["ECManager", "Manager"]
