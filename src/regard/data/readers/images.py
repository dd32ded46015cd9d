"""Images with captions or labels: idx files, and folders of PNG files. Pixels are [height, width, channels] bytes."""

from collections.abc import Iterator
from itertools import zip_longest
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from regard.data.lines import Undecodable, lines
from regard.data.readers.examples import Bad, Example, Read
from regard.data.readers.files import Files
from regard.data.readers.tables import WRONG, numbered
from regard.data.sources import Images
from regard.support.compressed import Opened
from regard.support.errors import Misuse

Pixels = NDArray[np.uint8]
LARGEST: Final = 1 << 28
"""Bytes of an image; an idx file that says more is damaged."""
UNUSABLE: Final = "an image that cannot be used"


def read(source: Images, files: Files) -> Read:
    """An image and its caption or label each; without a set height all have that of the first."""
    found = _folder(source, files) if files.paths[0].is_dir() else _idx(source, files)
    height = source.height
    for each in found:
        if isinstance(each, Bad):
            yield each
            continue
        pixels = scaled(each.fields[0], source.height)
        height = height or pixels.shape[0]
        if pixels.shape[0] == height:
            yield Example(each.line, (pixels, each.fields[1]))
        else:
            said = f"{pixels.shape[0]} pixels high, expected {height}; set `height` to bring all to one"
            yield Bad(each.line, UNUSABLE, said, str(each.fields[1]))


def scaled(pixels: Pixels, height: int | None) -> Pixels:
    """An image at a height, its width in proportion."""
    if height is None or pixels.shape[0] == height:
        return pixels
    width = max(round(pixels.shape[1] * height / pixels.shape[0]), 1)
    image = _pillow("to scale an image").fromarray(pixels.squeeze(-1) if pixels.shape[2] == 1 else pixels)
    return np.asarray(image.resize((width, height)), np.uint8).reshape(height, width, -1)


def _idx(source: Images, files: Files) -> Read:
    told = _idx_labels(files) if source.labels else _captions(files)
    images = idx(files.open(0), files.names[0])
    for number, (image, text) in enumerate(zip_longest(images, told), 1):
        if image is None or text is None:
            counts = [number - 1 + _rest(images, image), number - 1 + _rest(told, text)]
            raise Misuse(
                f"{files.names[0]} has {counts[0]:,} images and {files.names[1]} has {counts[1]:,} "
                f"{'labels' if source.labels else 'captions'}; expected one for each"
            )
        if isinstance(text, Undecodable):
            yield Bad(number, "not UTF-8", text.said, text.text, file=1)
        else:
            yield Example(number, (with_channels(image, source.channels), text))


def _rest(more: Iterator[Any], first: object) -> int:
    return (first is not None) + sum(1 for _ in more)


def _captions(files: Files) -> Iterator[str | Undecodable]:
    yield from lines(files.open(1))


def _idx_labels(files: Files) -> Iterator[str]:
    for label in idx(files.open(1), files.names[1]):
        if label.ndim:
            raise Misuse(f"{files.names[1]}: expected labels, one number each, and these are images")
        yield str(int(label))


def idx(file: Opened, name: str) -> Iterator[NDArray[np.uint8]]:
    """The items of an idx file of bytes: 0, 0, 8 (bytes), axes; their sizes in 32 bits; the values."""
    head = file.read(4)
    if len(head) < 4 or head[:3] != b"\0\0\x08" or not head[3]:
        raise Misuse(f"{name}: not an idx file of bytes")
    axes = file.read(4 * head[3])
    if len(axes) != 4 * head[3]:
        raise Misuse(f"{name}: cut short in the head of the idx file")
    sizes = np.frombuffer(axes, ">u4").tolist()
    if not 0 < (size := prod(sizes[1:])) <= LARGEST:
        raise Misuse(f"{name}: damaged: its head says that an item has {size:,} bytes ({sizes[1:]})")
    for number in range(sizes[0]):
        data = file.read(size)
        if len(data) != size:
            raise Misuse(f"{name}: cut short: {number:,} of {sizes[0]:,} items are whole")
        yield np.frombuffer(data, np.uint8).reshape(sizes[1:])


def with_channels(pixels: Pixels, channels: int) -> Pixels:
    """[height, width] or with channels → [height, width, channels]; grey repeated, colours weighed by brightness."""
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.shape[2] == channels:
        return pixels
    if channels == 3:
        return pixels[..., :1].repeat(3, axis=2)
    grey: Pixels = np.rint(pixels[..., :3] @ np.array([0.299, 0.587, 0.114])).astype(np.uint8)
    return grey[..., None]


def _folder(source: Images, files: Files) -> Read:
    """The images that the second file names, and at the end those of the folder that it does not."""
    named: set[str] = set()
    for each in numbered_of_second(files):
        if isinstance(each, Bad):
            yield each
            continue
        number, line = each
        name, tab, text = line.partition("\t")
        named.add(name)
        if not tab:
            yield Bad(number, WRONG, "no tab; expected the name of an image, a tab and its text", line, file=1)
            continue
        pixels = pixels_of(files.paths[0] / name, source.channels)
        if isinstance(pixels, str):
            yield Bad(number, UNUSABLE, f"{name}: {pixels}", line, file=1)
        else:
            yield Example(number, (pixels, text))
    present = sorted(each.relative_to(files.paths[0]).as_posix() for each in files.paths[0].rglob("*.png"))
    for number, name in enumerate(present, 1):
        if name not in named:
            said = f"{files.names[1]} does not name it"
            yield Bad(number, "an image without a caption or label", f"{name}: {said}", name)


def numbered_of_second(files: Files) -> Iterator[tuple[int, str] | Bad]:
    """The lines of the file of captions or labels."""
    with Files([files.names[1]]) as alone:
        for each in numbered(alone):
            yield each._replace(file=1) if isinstance(each, Bad) else each
            files.told = alone.share()


def pixels_of(path: Path, channels: int) -> Pixels | str:
    """The pixels, or what is wrong."""
    pillow = _pillow(str(path))
    try:
        with pillow.open(path) as image:
            pixels = np.asarray(image.convert("RGB" if channels == 3 else "L"), np.uint8)
    except FileNotFoundError:
        return "there is no such image"
    except (OSError, SyntaxError, ValueError, pillow.DecompressionBombError) as error:
        return str(error)
    return pixels.reshape(*pixels.shape[:2], channels)


def _pillow(what: str) -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise Misuse(f"{what}: pip install 'regard[data]'") from None
    return Image
