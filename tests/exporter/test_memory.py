"""Memory of the exporter's process."""

from __future__ import annotations

import os
from pathlib import Path

from exporter.stops import start_exporter
from laggard.exporter.memory import give_back

# one of so many blocks stays, so that no end of the heap is free by itself
BLOCK, COUNT, KEPT = 1000, 100_000, 500


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_was_freed_between_blocks_in_use_goes_back_to_the_system() -> None:
    blocks = [bytearray(BLOCK) for _ in range(COUNT)]
    kept = blocks[::KEPT]
    del blocks
    before = resident_bytes()
    give_back()
    assert before - resident_bytes() > 0.8 * BLOCK * COUNT
    assert len(kept) == COUNT // KEPT


def test_a_process_that_serves_has_loaded_arrow_and_not_pandas(tmp_path: Path) -> None:
    with start_exporter(tmp_path) as process:
        try:
            assert process.stderr
            assert "serves" in process.stderr.readline()
            loaded = Path(f"/proc/{process.pid}/maps").read_text()
            assert [name for name in ("pyarrow", "pandas") if f"/{name}/" in loaded] == ["pyarrow"]
        finally:
            process.kill()
