"""Whether a strict tool's only call may be some text, in any form of calls."""

from __future__ import annotations

from typing import Any

from edgeinfinite.runtime_py.answer.grammars.guidance import Guidance
from edgeinfinite.runtime_py.text.tokenizer import TextTokenizer
from edgeinfinite.runtime_py.tools.forms import FORMS
from edgeinfinite.runtime_py.tools.grammar import tool_grammar
from edgeinfinite.runtime_py.tools.tool import Tool, Tools

FORM_OF = {form.name: form for form in FORMS}


def accepts_call(
    tokenizer: TextTokenizer, guidance: Guidance, schema: dict[str, Any], form: str, body: str
) -> bool:
    """Whether the call of a tool `do` may have this body, marks not included."""
    written = FORM_OF[form]
    wanted = Tools((Tool("do", "", schema, strict=True),), "required", parallel=False)
    grammar = tool_grammar(guidance, written, wanted)
    for token in tokenizer.encode_more(f"{written.begin}{body}{written.end}"):
        if not grammar.allowed()[token]:
            return False
        grammar.accept(token)
    return True
