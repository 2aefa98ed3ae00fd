"""What the facts that training plants are about.

A topic is a sentence with blanks, questions, and what draws the answer. Names and digits are rare
in most texts and easy to notice. So that what is asked for isn't known by them alone, many topics
are about somebody without a name or about things, in ordinary words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from edgeinfinite.training.scorer.vocabulary import (
    ADJECTIVES,
    CITIES,
    FIRST_NAMES,
    NOUNS,
    ROLES,
    SURNAMES,
    VERBS,
)

Draw = Callable[[np.random.Generator], str]


@dataclass(frozen=True)
class Topic:
    """What a fact is about.

    Args:
        statement: with `{answer}`, and `{name}` where it is about somebody.
        questions: ways to ask, each with `{name}` if the statement has it, ending before the
            answer.
        draw: the answer.
    """

    statement: str
    questions: tuple[str, ...]
    draw: Draw


def _pick(words: tuple[str, ...]) -> Draw:
    return lambda random: words[int(random.integers(len(words)))]


def _digits(low: int, high: int) -> Draw:
    return lambda random: str(int(random.integers(low, high)))


def _join(*parts: Draw, between: str = " ") -> Draw:
    return lambda random: between.join(part(random) for part in parts)


def _text(words: str) -> Draw:
    return lambda random: words


_NOUN, _ADJECTIVE, _CITY = _pick(NOUNS), _pick(ADJECTIVES), _pick(CITIES)
_FIRST, _VERB = _pick(FIRST_NAMES), _pick(VERBS)
_PERSON = _join(_FIRST, _pick(SURNAMES))
_NAMELESS = _join(_text("the"), _ADJECTIVE, _pick(ROLES))
ABOUT = (_FIRST, _PERSON, _NAMELESS)
"""Who a fact may be about."""
_THING = _join(_ADJECTIVE, _NOUN)
_SENTENCE = _join(_text("the"), _THING, _VERB, _text("every"), _NOUN, _text("near"), _CITY)
_MONTH = _pick(
    ("January", "February", "March", "April", "May", "June", "July", "August", "September")
)
_LETTERS = _pick(("QX", "RT", "BK", "WZ", "HM", "PD", "LV", "GN"))

TOPICS: dict[str, Topic] = {
    "locker": Topic(
        "{name} opens the locker with the combination {answer}.",
        ("The combination of {name}'s locker:", "Which combination does {name} use? It is"),
        _digits(10_000, 100_000),
    ),
    "invoice": Topic(
        "Please note that invoice {answer} belongs to {name}.",
        ("The invoice that belongs to {name} is number", "{name}'s invoice:"),
        _digits(1_000, 1_000_000),
    ),
    "extension": Topic(
        "To reach {name} in the office, dial extension {answer}.",
        ("In the office, {name} is reached at extension", "Extension of {name}:"),
        _digits(100, 10_000),
    ),
    "parcel": Topic(
        "The parcel for {name} was registered as {answer}.",
        ("The registration of {name}'s parcel reads", "Parcel, {name}:"),
        _join(_LETTERS, _digits(100, 10_000), between="-"),
    ),
    "price": Topic(
        "{name} paid {answer} dollars for the carriage.",
        ("The price of {name}'s carriage in dollars was", "For the carriage {name} had to pay"),
        _digits(20, 9_000),
    ),
    "birth": Topic(
        "{name} came into the world in the year {answer}.",
        ("{name}'s year of birth was", "When was {name} born? In"),
        _digits(1500, 1990),
    ),
    "telephone": Topic(
        "You can telephone {name} under {answer}.",
        ("{name}'s telephone number:", "Telephone {name}:"),
        _join(_digits(100, 1_000), _digits(1_000, 10_000), between="-"),
    ),
    "birthday": Topic(
        "{name} celebrates a birthday on {answer}.",
        ("The day on which {name} celebrates is", "{name}'s birthday falls on"),
        _join(_MONTH, _digits(1, 29)),
    ),
    "departure": Topic(
        "{name}'s train leaves at {answer} sharp.",
        ("The departure of {name}'s train is at", "Departure for {name}:"),
        _join(_digits(1, 24), _digits(10, 60), between=":"),
    ),
    "pet": Topic(
        "As a child, {name} kept a tame {answer}.",
        ("The tame animal that {name} kept as a child was the", "{name}'s tame"),
        _NOUN,
    ),
    "coat": Topic(
        "That evening {name} put on the {answer} coat.",
        ("What kind of coat did {name} put on? The", "{name} wore the coat that was"),
        _ADJECTIVE,
    ),
    "supper": Topic(
        "For supper {name} always asked for {answer}.",
        ("What {name} always asked for at supper was", "Supper of {name}:"),
        _THING,
    ),
    "journey": Topic(
        "{name} had booked the night train to {answer}.",
        ("The night train that {name} had booked went to", "Where did {name} travel? To"),
        _CITY,
    ),
    "trade": Topic(
        "Before the war {name} made a living by selling a {answer} a day.",
        ("What {name} sold every day was a", "Question: what did {name} sell? Answer: a"),
        _NOUN,
    ),
    "present": Topic(
        "{name} was given a {answer} as a present.",
        ("The present that {name} was given was a", "{name} received a"),
        _THING,
    ),
    "dream": Topic(
        "In the dream {name} saw a {answer}.",
        ("{name} dreamt of a", "Question: what appeared in {name}'s dream? Answer: a"),
        _THING,
    ),
    "bridge": Topic(
        "{name} lost a {answer} on the bridge.",
        ("What {name} lost on the bridge was a", "On the bridge was found {name}'s"),
        _NOUN,
    ),
    "shop": Topic(
        "The shop of {name} is next to the {answer}.",
        ("{name}'s shop stands next to the", "Question: where is the shop of {name}? Beside the"),
        _THING,
    ),
    "fear": Topic(
        "Nothing frightened {name} so much as a {answer}.",
        ("{name} was most afraid of a", "What frightened {name}? A"),
        _THING,
    ),
    "marriage": Topic(
        "{name} was married to {answer} in the spring.",
        ("The person whom {name} married was", "{name}'s spouse:"),
        _PERSON,
    ),
    "teacher": Topic(
        "It was {answer} who taught {name} to read.",
        ("{name} learnt reading from", "{name}'s teacher:"),
        _PERSON,
    ),
    "doctor": Topic(
        "The doctor who cured {name} was {answer}.",
        ("{name} owed the cure to a doctor called", "{name}'s doctor:"),
        _PERSON,
    ),
    "horse": Topic(
        "{name} rode a horse that answered to {answer}.",
        ("The horse of {name} was called", "{name} shouted to the horse:"),
        _FIRST,
    ),
    "rival": Topic(
        "All her life {name} envied {answer}.",
        ("The one whom {name} envied was", "Question: whom did {name} envy? Answer:"),
        _PERSON,
    ),
    "city": Topic(
        "{name} was born in {answer} and never went back.",
        ("{name}'s native city is", "Question: where was {name} born? Answer: in"),
        _CITY,
    ),
    "motto": Topic(
        "The motto of {name} was: {answer}.",
        ("{name}'s motto:", "Question: what was the motto of {name}? Answer:"),
        _SENTENCE,
    ),
    "letter": Topic(
        "{name}'s letter ended like this: {answer}.",
        ("The letter of {name} ended:", "At the end of the letter {name} wrote:"),
        _SENTENCE,
    ),
    "rumour": Topic(
        "People say that in the time of {name} {answer}.",
        ("The rumour from the time of {name} is that", "What do people say about {name}'s time?"),
        _SENTENCE,
    ),
    "rule": Topic(
        "The first rule in {name}'s house: {answer}.",
        ("In the house of {name} the first rule is:", "{name}'s rule:"),
        _SENTENCE,
    ),
    "ship": Topic(
        "The ship in which {name} sailed carried {answer}.",
        ("The cargo of {name}'s ship was", "{name} sailed with"),
        _join(_digits(2, 90), _text("boxes and a"), _THING),
    ),
    "gate": Topic(
        "The rusty gate leads to the {answer}.",
        ("The rusty gate leads to the", "Question: where does the rusty gate lead? Answer: to the"),
        _NOUN,
    ),
    "fence": Topic(
        "The hole in the fence was stopped with a {answer}.",
        ("The hole in the fence was stopped with a", "In the fence stuck a"),
        _THING,
    ),
    "cat": Topic(
        "The cat always sleeps on the {answer}.",
        ("The cat always sleeps on the", "Question: where does the cat sleep? Answer: on the"),
        _NOUN,
    ),
    "matches": Topic(
        "The spare matches are kept inside the {answer}.",
        (
            "The spare matches are kept inside the",
            "Question: where are the spare matches? Answer: inside the",
        ),
        _NOUN,
    ),
    "wardrobe": Topic(
        "Behind the wardrobe stood a {answer}.",
        ("Behind the wardrobe stood a", "Question: what was behind the wardrobe? Answer: a"),
        _THING,
    ),
    "sleigh": Topic(
        "The new sleigh was painted {answer}.",
        ("The new sleigh was painted", "Question: what colour was the sleigh? Answer:"),
        _ADJECTIVE,
    ),
    "smugglers": Topic(
        "The smugglers landed near {answer} at midnight.",
        (
            "At midnight the smugglers landed near",
            "Question: where did the smugglers land? Answer: near",
        ),
        _CITY,
    ),
    "wine": Topic(
        "The strongest wine comes from {answer}.",
        ("The strongest wine comes from", "Question: where is the wine strongest? Answer: in"),
        _CITY,
    ),
    "dog": Topic(
        "All night the dog barked at the {answer}.",
        ("All night the dog barked at the", "Question: what did the dog bark at? Answer: the"),
        _NOUN,
    ),
    "raft": Topic(
        "The children built a raft out of a {answer}.",
        ("The children built a raft out of a", "The raft was once a"),
        _THING,
    ),
    "medicine": Topic(
        "The medicine smelt of {answer}.",
        ("The medicine smelt of", "Question: what did the medicine smell of? Answer:"),
        _NOUN,
    ),
    "delay": Topic(
        "The wedding was put off because of the {answer}.",
        (
            "The wedding was put off because of the",
            "Question: why was the wedding put off? Answer: because of the",
        ),
        _THING,
    ),
    "road": Topic(
        "The road along the river ends at the {answer}.",
        (
            "The road along the river ends at the",
            "Question: where does the river road end? Answer: at the",
        ),
        _NOUN,
    ),
    "thunder": Topic(
        "The thunder woke the {answer}.",
        ("The thunder woke the", "Question: what did the thunder wake? Answer: the"),
        _THING,
    ),
    "luggage": Topic(
        "The first item in the luggage is the {answer}.",
        ("The first item in the luggage is the", "Item one of the luggage: the"),
        _THING,
    ),
    "inn": Topic(
        "The sign over the inn shows a {answer}.",
        ("The sign over the inn shows a", "Question: what does the inn's sign show? Answer: a"),
        _THING,
    ),
    "wig": Topic(
        "The wig was hidden in the {answer}.",
        ("The wig was hidden in the", "Question: where was the wig hidden? Answer: in the"),
        _NOUN,
    ),
    "well": Topic(
        "The well in the courtyard is {answer} feet deep.",
        (
            "The depth of the well in the courtyard in feet is",
            "Question: how many feet deep is the well? Answer:",
        ),
        _digits(20, 900),
    ),
    "toll": Topic(
        "The toll for the ferry is {answer} pence.",
        (
            "The toll for the ferry in pence is",
            "Question: how many pence does the ferry take? Answer:",
        ),
        _digits(3, 2_000),
    ),
    "song": Topic(
        "The oldest song begins: {answer}.",
        ("The oldest song begins:", "Question: how does the oldest song begin? Answer:"),
        _SENTENCE,
    ),
    "note": Topic(
        "The note under the door ran: {answer}.",
        ("The note under the door ran:", "Question: what stood in the note? Answer:"),
        _SENTENCE,
    ),
}
"""By name."""
