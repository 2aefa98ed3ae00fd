"""Exports for ONNX Runtime with the formats alone that XNNPACK has too.

It tells what a mix loses by its formats from what it loses by a back end's arithmetic: 4 bits in
symmetric groups of 32, and 8 bits; an embedding 8 bits. Every option is `edgeinfinite export`'s:

    python experiments/same_formats.py --model permuted --quantize int4 --max-mb 110 --output mix
"""

from __future__ import annotations

import sys
from dataclasses import replace

from edgeinfinite.cli import main
from edgeinfinite.export.onnx.backend import OnnxBackend
from edgeinfinite.export.recipes import WeightFormat

if __name__ == "__main__":
    OnnxBackend.menu = replace(
        OnnxBackend.menu,
        formats=(WeightFormat(4), WeightFormat(8)),
        embedding_formats=(WeightFormat(8),),
    )
    sys.exit(main(["export", *sys.argv[1:]]))
