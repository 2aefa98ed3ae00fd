"""The cache on disk: full disks, killed processes, and how little of it is in memory."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from edgeinfinite.errors import EdgeInfiniteError
from edgeinfinite.models.mom import spill_file
from edgeinfinite.models.mom.disk_cache import DiskCache, DiskLayer, offloaded_cache
from edgeinfinite.models.mom.reader import MomReader
from edgeinfinite.models.mom.spill_file import SpillFile
from tiny import random_tokens, tiny_family, tiny_llama

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def states(tokens: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, 2, 3, tokens, 4, generator=generator).unbind()


def test_a_layer_returns_what_it_was_given_however_it_grows(tmp_path: Path) -> None:
    layer, given = DiskLayer(tmp_path), [states(n, n) for n in (3, 1, 70_000, 1, 40_000)]
    for count, new in enumerate(given, 1):
        returned = layer.update(*new)
        for part in (0, 1):
            expected = torch.cat([pair[part] for pair in given[:count]], 2)
            assert torch.equal(returned[part], expected)
    layer.crop(-40_001)
    assert layer.get_seq_length() == 70_004
    layer.close()


def test_generate_works_with_the_cache_on_disk(tmp_path: Path) -> None:
    for name in ("Llama 3", "Gemma 3"):
        model, tokens = tiny_family(name), torch.tensor([random_tokens(20)])
        expected = model.generate(tokens, max_new_tokens=9, do_sample=False)
        cache = offloaded_cache(model, tmp_path)
        assert isinstance(cache, DiskCache)
        options = {"max_new_tokens": 9, "do_sample": False, "past_key_values": cache}
        assert torch.equal(model.generate(tokens, **options), expected)


@pytest.fixture
def no_room_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of this process may have 2 MB; the system refuses more, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


@LINUX
@pytest.mark.usefixtures("no_room_above")
def test_a_file_that_cannot_grow_is_one_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    file = SpillFile(tmp_path)
    file.reserve(1 << 20)
    message = "has no room for 3 MB more .*free space there, or give another folder"
    with pytest.raises(EdgeInfiniteError, match=message):
        file.reserve(4 << 20)
    assert file.size == 1 << 20 and not list(tmp_path.iterdir())
    file.close()


@LINUX
@pytest.mark.usefixtures("no_room_above")
def test_a_prompt_that_does_not_fit_the_disk_leaves_the_reader_where_it_was(
    tmp_path: Path,
) -> None:
    model, tokens = tiny_llama(heads=8, kv_heads=8), torch.tensor([random_tokens(9_000)])
    with MomReader(model, chunk=512, folder=tmp_path) as reader:
        reader.read(tokens[:, :10])
        chunks: list[int] = []
        with pytest.raises(EdgeInfiniteError, match="no room"):
            reader.read(tokens[:, 10:], before_chunk=chunks.append)
        assert not chunks, "it is said before anything is computed"
        assert reader.length == 10
        expected = model(tokens[:, :12]).logits[:, -1]
        torch.testing.assert_close(reader.read(tokens[:, 10:12])[:, 0], expected)
    assert not list(tmp_path.iterdir())


@LINUX
def test_room_that_only_some_layers_got_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allocate, room = os.posix_fallocate, [9 << 20]

    def allocate_while_there_is_room(file: int, start: int, size: int) -> None:
        room[0] -= size
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        allocate(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", allocate_while_there_is_room)
    model, tokens = tiny_llama(heads=8, kv_heads=8), torch.tensor([random_tokens(9_000)])
    with MomReader(model, chunk=512, folder=tmp_path) as reader:
        reader.read(tokens[:, :10])
        taken = _bytes_of_files_in(tmp_path)
        with pytest.raises(EdgeInfiniteError, match="no room"):  # the second of two layers
            reader.read(tokens[:, 10:])
        assert _bytes_of_files_in(tmp_path) == taken == 2 << 20
        expected = model(tokens[:, :12]).logits[:, -1]
        torch.testing.assert_close(reader.read(tokens[:, 10:12])[:, 0], expected)


def _bytes_of_files_in(folder: Path) -> int:
    """Allocated bytes of this process's open files there, which have no name."""
    links = [link for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    files = [link.stat() for link in links if str(link.readlink()).startswith(str(folder))]
    return sum({file.st_ino: file.st_size for file in files}.values())  # maps have their own


@pytest.mark.parametrize("fallocate", [True, False])
def test_a_disk_that_is_full_is_said_before_the_prompt_is_read(
    fallocate: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if fallocate:
        monkeypatch.setattr(os, "posix_fallocate", full)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
    file = SpillFile(tmp_path)
    if fallocate:
        with pytest.raises(EdgeInfiniteError, match="No space left on device"):
            file.reserve(10)
    else:  # systems without it write zeros
        file.reserve(10)
        assert file.mapped is not None and file.mapped[:] == bytes(1 << 20)
    file.close()


def test_a_folder_that_does_not_exist_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(EdgeInfiniteError, match=r"can't be created .*--offload-folder"):
        SpillFile(tmp_path / "nowhere")


KILLED = """
import os, sys, torch
from pathlib import Path
from tiny import random_tokens, tiny_llama
from edgeinfinite.models.mom.reader import MomReader
reader = MomReader(tiny_llama(), folder=Path(sys.argv[1]))
reader.read(torch.tensor([random_tokens(600)]))
print("ready", flush=True)
sys.stdin.read()
"""


@LINUX
def test_a_killed_process_leaves_no_file(tmp_path: Path) -> None:
    path = os.pathsep.join(part for part in sys.path if part)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    opened = {str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()}
    assert sum(str(tmp_path) in name for name in opened) == 2, "a file for each layer"
    process.kill()
    process.wait()
    process.stdout.close()
    assert not list(tmp_path.iterdir())


@LINUX
def test_few_layers_at_a_time_are_in_memory(tmp_path: Path) -> None:
    """Resident pages of files are those of two layers in prefill and three in decode, of eight."""
    model = tiny_family("Llama", num_hidden_layers=8, head_dim=512)
    tokens = torch.tensor([random_tokens(2_000)])
    with MomReader(model, chunk=512, folder=tmp_path) as reader:
        most, before = 0, _file_pages()

        def watch(_: int) -> None:
            nonlocal most
            most = max(most, _file_pages() - before)

        reader.read(tokens, before_chunk=watch)
        layer = reader.cache.layers[0].nbytes
        assert reader.cache.disk_bytes == 8 * layer == 8 * 2_000 * 2 * 2 * 512 * 4
        assert 0.9 * layer < most < 2.2 * layer  # the one before leaves while this one grows
        for token in random_tokens(3):
            reader.read(torch.tensor([[token]]), before_chunk=watch)
        assert most < 3.2 * layer  # and the next one comes


def _file_pages() -> int:
    """Bytes of mapped files in this process's memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssFile:"))


def test_files_go_to_a_disk_and_not_to_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMPDIR", raising=False)
    assert spill_file.default_folder() in (Path("/var/tmp"), Path("/tmp"))
    monkeypatch.setenv("TMPDIR", "/somewhere")
    monkeypatch.setattr(spill_file.tempfile, "gettempdir", lambda: "/somewhere")
    assert spill_file.default_folder() == Path("/somewhere")
