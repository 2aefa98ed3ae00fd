"""What a chat's sampling does to answers about a paragraph, and to free writing (sampling.md).

    python experiments/sampling.py ARTIFACT --squad squad2_dev.json --questions 100 --prompts 40

Questions: a paragraph of SQuAD and what somebody asked about it; right if the gold answer stands in
the answer. Prompts: how many answers end by themselves, end in a loop, and how many pairs of
neighbouring words are different ones. `--document FILE --asked QUESTION...` asks for what stands
in a text of any length, as a chat does; such answers count as free ones. A prompt's number is its
seed; further seeds of a question are thousands apart. A base model is asked without a template, in
the form `RAW_QUESTION`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from collections import defaultdict
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np

from edgeinfinite.runtime_py.answer.conversation import Conversation
from edgeinfinite.runtime_py.answer.repetition import RepetitionDetection
from edgeinfinite.runtime_py.answer.sampling import Sampler, SamplingOptions
from edgeinfinite.training.squad import read_articles

SETTINGS = {
    "greedy": SamplingOptions(),
    "0.3, p 0.9": SamplingOptions(temperature=0.3, top_p=0.9),
    "0.3, p 0.9, penalty 1.05": SamplingOptions(0.3, top_p=0.9, repetition_penalty=1.05),
    "0.3, p 0.9, penalty 1.1": SamplingOptions(0.3, top_p=0.9, repetition_penalty=1.1),
    "0.7, p 0.9, penalty 1.1": SamplingOptions(0.7, top_p=0.9, repetition_penalty=1.1),
    "0.7, p 0.9": SamplingOptions(0.7, top_p=0.9),
}
FORMS = (
    "Write a short story about {}.",
    "Explain {} to a child.",
    "Give me five tips about {}.",
    "What do you think of {}?",
    "Write an email to a friend about {}.",
    "List the advantages and disadvantages of {}.",
    "Write a poem about {}.",
    "Tell me something about {}.",
)
TOPICS = (
    *("gardening", "the moon", "learning to cook", "electric cars", "a lost dog", "chess"),
    *("working from home", "the sea", "sleep", "old books", "bread", "winter", "bicycles"),
    *("travel by train", "a new neighbour", "the French Revolution", "bees", "music"),
)
LATER_TOPICS = ("rain", "bridges", "tea", "maps", "volcanoes", "a birthday party", "swimming")
"""Behind the others, so that fewer prompts are the same ones as before these came."""

RAW_QUESTION = "{}\nAnswer:"
"""How a paragraph and its question stand before a base model, which only goes on with text."""

ANSWER, WRITING = 64, 256
"""Most tokens of an answer to a question, and of a free one."""


def questions(squad: Path, count: int) -> list[tuple[str, str]]:
    """Messages with a paragraph and a question, and the gold answers."""
    articles, drawn = read_articles(squad), np.random.default_rng(7)
    found = []
    for _ in range(count):
        article = articles[int(drawn.integers(len(articles)))]
        asked = [paragraph for paragraph in article if paragraph.questions]
        paragraph = asked[int(drawn.integers(len(asked)))]
        question = paragraph.questions[int(drawn.integers(len(paragraph.questions)))]
        found.append((f"{paragraph.text.strip()}\n\n{question.text}", question.answer))
    return found


def prompts(count: int) -> list[tuple[str, str]]:
    """Free prompts, which have no gold answer."""
    shuffled, every = random.Random(0), []
    for topics in (TOPICS, LATER_TOPICS):
        block = [form.format(topic) for form in FORMS for topic in topics]
        shuffled.shuffle(block)
        every += block
    return [(prompt, "") for prompt in every[:count]]


def plain(text: str) -> str:
    """Words alone, in lower case."""
    return re.sub(r"[^a-z0-9 ]", "", text.lower())


def loops(tokens: list[int]) -> bool:
    """Whether an answer ends in twelve tokens or more of one piece said three times."""
    return any(
        3 * size >= 12
        and tokens[-size:] == tokens[-2 * size : -size] == tokens[-3 * size : -2 * size]
        for size in range(4, len(tokens) // 3 + 1)
    )


def noticed(tokens: list[int]) -> int | None:
    """After how many tokens the default would have ended an answer that repeats itself."""
    detection = RepetitionDetection()
    return next((n for n in range(1, len(tokens) + 1) if detection.found(tokens[:n])), None)


def ask(conversation: Conversation, message: str, gold: str) -> list[int]:
    """The tokens of a message, in the template where there is one."""
    if conversation.tokenizer.has_chat_template:
        return conversation.turn(message)
    return conversation.tokenizer.encode_text(RAW_QUESTION.format(message) if gold else message)


def row(name: str, found: dict[str, list[float]]) -> dict[str, object]:
    """What one setting's answers were, as the rows in benchmarks/sampling have it.

    Returns:
        The setting; of questions `answers` and how many are `right`; of prompts how many there are
        (`prompts`), how many answers `ended` and ended in `loops`, the mean share of `distinct`
        pairs, in how many the default's repetition detection would have `noticed` something, the
        `tokens` of all, and how many of them it would have saved.
    """
    options = {key: value for key, value in asdict(SETTINGS[name]).items() if key in _SHOWN}
    told: dict[str, object] = {"setting": name, **options}
    if right := found["right"]:
        told |= {"answers": len(right), "right": int(sum(right))}
    if ended := found["ended"]:
        told |= {"prompts": len(ended), "ended": int(sum(ended)), "loops": int(sum(found["loop"]))}
        told["distinct"] = fmean(found["distinct"])
        told |= {"noticed": int(sum(found["noticed"])), "tokens": int(sum(found["tokens"]))}
        told["tokens_saved"] = int(sum(found["saved"]))
    return told


_SHOWN = {"temperature", "top_p", "repetition_penalty"}


def main() -> None:
    """Prints a line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact", type=Path)
    parser.add_argument("--squad", type=Path, required=True)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--skip", type=int, default=0, help="questions that others were asked")
    parser.add_argument("--prompts", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=1, help="answers to each question")
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--document", type=Path, help="plain text to be asked about")
    parser.add_argument("--asked", nargs="+", default=[], help="questions about it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="the lines as rows")
    asked = parser.parse_args()
    settings = {name: SETTINGS[name] for name in asked.settings}
    conversation = Conversation.open(asked.artifact, threads=asked.threads)
    found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in settings}
    document = asked.document.read_text(encoding="utf-8") if asked.document else ""
    about = [(question, "") for question in asked.asked]
    drawn = questions(asked.squad, asked.skip + asked.questions)[asked.skip :]
    for seed, (message, gold) in enumerate(drawn + prompts(asked.prompts) + about):
        conversation.reset()
        if seed >= len(drawn) + asked.prompts:
            conversation.attach(document)
        tokens = ask(conversation, message, gold)
        conversation.session.append(tokens[:-1])
        base = conversation.fork()
        for (name, options), again in itertools.product(settings.items(), range(asked.seeds)):
            is_prompt = len(drawn) <= seed < len(drawn) + asked.prompts
            if again and (is_prompt or not options.temperature):
                continue  # the likeliest tokens are the same for every seed
            fork, most = base.fork(), ANSWER if gold else WRITING
            seeded = Sampler(replace(options, seed=seed + 1000 * again))
            text = "".join(fork.answer(tokens[-1:], sampler=seeded, max_new_tokens=most))
            if gold:
                found[name]["right"].append(plain(gold) in plain(text))
                continue
            said, words = fork.statistics().token_ids, text.lower().split()
            pairs = list(pairwise(words))
            repeats = noticed(said)
            found[name]["noticed"].append(repeats is not None)
            found[name]["tokens"].append(len(said))
            found[name]["saved"].append(0 if repeats is None else len(said) - repeats)
            found[name]["ended"].append(len(said) < most)
            found[name]["loop"].append(loops(said))
            found[name]["distinct"].append(len(set(pairs)) / max(1, len(pairs)))
    rows = [row(name, found[name]) for name in settings]
    for told in rows:
        print(", ".join(f"{key} {value}" for key, value in told.items()))
    if asked.json:
        asked.json.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
