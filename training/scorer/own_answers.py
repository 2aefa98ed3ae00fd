"""What the model says about a text when asked: what people's questions and summaries ask for,
without people (experiments/recall.md).
"""

from __future__ import annotations

import torch
from transformers import DynamicCache, GenerationConfig, PreTrainedModel, PreTrainedTokenizerBase

from edgeinfinite.models.attention import attention_implementation
from edgeinfinite.training.scorer.paid import repeated_cache
from edgeinfinite.training.texts import encode

REQUESTS = (
    "Write a one-page summary of the text above.",
    "What are the main points of the text?",
    "Who and what is mentioned in the text, and what is said about it?",
    "Tell in detail what stands in the text, from its beginning to its end.",
    "Write a question about the text, and its answer.",
)
ANSWERS, ANSWER_TOKENS, TEMPERATURE = 4, 128, 0.8
"""One answer alone tells less of what other answers need (experiments/recall.md)."""

ASKED_HOW = [*REQUESTS, ANSWERS, ANSWER_TOKENS, TEMPERATURE]
"""Everything here that decides what is answered."""

_TEXT = "{text}"


def framed(tokenizer: PreTrainedTokenizerBase, request: str) -> tuple[list[int], list[int]]:
    """What stands before and after a text that is followed by a request about it.

    With a chat template, both are in the user's turn, and the assistant's begins: instructed models
    answer better there.

    Returns:
        Token ids.
    """
    if tokenizer.chat_template:
        message = {"role": "user", "content": f"{_TEXT}\n\n{request}"}
        rendered = tokenizer.apply_chat_template(
            [message], tokenize=False, add_generation_prompt=True
        )
        before, found, after = str(rendered).partition(_TEXT)
        if found:
            return encode(before, tokenizer), encode(after, tokenizer)
    return [], encode(f"\n\nQuestion: {request}\nAnswer:", tokenizer)


def own_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    cache: DynamicCache,
    asked: list[int],
    seed: int,
) -> torch.Tensor:
    """Answers that chance draws, all of the same length: what would end one isn't said.

    Args:
        model, tokenizer: the backbone.
        cache: the text, T tokens; stays as it was.
        asked: n tokens after it, which ask.
        seed: of the chance.

    Returns:
        `[ANSWERS, n + ANSWER_TOKENS]` int64, each with what asked for it.
    """
    text = cache.get_seq_length()
    settings = GenerationConfig(
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=0,
        top_p=1.0,
        repetition_penalty=1.0,
        min_new_tokens=ANSWER_TOKENS,
        max_new_tokens=ANSWER_TOKENS,
        suppress_tokens=sorted(set(tokenizer.all_special_ids)) or None,
        pad_token_id=0,
    )
    # `generate` wants the ids of the text, too, but reads only those that the cache lacks.
    prompt = torch.tensor([[0] * text + asked] * ANSWERS)
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(seed)
        with attention_implementation(model, "sdpa"):
            said = model.generate(  # type: ignore[operator]
                prompt,
                attention_mask=torch.ones_like(prompt),
                past_key_values=repeated_cache(cache, ANSWERS),
                generation_config=settings,
            )
    return said[:, text:]
