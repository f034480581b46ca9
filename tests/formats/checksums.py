"""The two checksums of the formats, bit-reflected and table-driven."""


def _table(polynomial):
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (polynomial if value & 1 else 0)
        table.append(value)
    return table


_CRC32C = _table(0x82F63B78)
_CRC64_NVME = _table(0x9A6C9329AC4BC9B5)


def crc32c(data, so_far=0):
    """Castagnoli, as in iSCSI."""
    value = so_far ^ 0xFFFFFFFF
    for byte in data:
        value = _CRC32C[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFF


def crc64_nvme(data):
    value = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        value = _CRC64_NVME[(value ^ byte) & 0xFF] ^ value >> 8
    return value ^ 0xFFFFFFFFFFFFFFFF
