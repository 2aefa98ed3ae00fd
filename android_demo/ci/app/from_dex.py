"""Turns an APK's dex back into a jar with Debian's enjarify, of which one instruction is mended.

    /usr/bin/python3 from_dex.py APK JAR

enjarify 1.0.3 reads the operand of const-wide/32 as unsigned: `Int.MIN_VALUE.toLong()` came back as
2147483648. The instruction's operand is signed.
"""

from __future__ import annotations

import sys

from enjarify import dalvikformats
from enjarify.main import main

OPERAND_32 = "31i"

read_unsigned = dalvikformats._FUNC[OPERAND_32]


def read_signed(*shorts: int) -> list[int]:
    """The instruction's arguments, the last of them with its sign."""
    *others, operand = read_unsigned(*shorts)
    return [*others, dalvikformats.sign(operand, 32)]


dalvikformats._FUNC[OPERAND_32] = read_signed

if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(f"usage: {sys.argv[0]} APK JAR")
    sys.argv[1:] = ["--force", "--output", sys.argv[2], sys.argv[1]]
    main()
