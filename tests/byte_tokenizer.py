"""A tokenizer whose tokens are bytes, for tiny checkpoints."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast


def byte_tokenizer(
    special: list[str], *, begin: str, end: str, template: str
) -> PreTrainedTokenizerFast:
    """`special`, then all bytes: the ids of the tokens.

    Args:
        special: what isn't bytes.
        begin, end: of `special`, the tokens of a text's begin and end.
        template: for chats.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {word: index for index, word in enumerate([*special, *alphabet])}
    raw = Tokenizer(models.BPE(words, []))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, bos_token=begin, eos_token=end, chat_template=template
    )
