"""The partition of `__consumer_offsets` that holds a group."""

MIN_INT32 = -(2**31)


def java_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 code units, in wrapping int32 arithmetic."""
    units = text.encode("utf-16-be", errors="surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFF_FFFF
    if value >= 2**31:
        return value - 2**32
    return value


def coordinator_partition(group: str, partitions: int) -> int:
    """Return the partition that a broker chooses for a group.

    It is that of GroupCoordinatorService.partitionFor.
    """
    value = java_hash(group)
    # Utils.abs maps the smallest int to 0
    if value == MIN_INT32:
        return 0
    return abs(value) % partitions
