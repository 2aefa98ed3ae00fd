"""Words for planted facts; the test set (`evaluation/facts.py`) uses others."""

# ruff: noqa: SIM905  (words read better in lines than in quotes)
from __future__ import annotations

FIRST_NAMES = tuple(
    """Alice Bernard Clara Dmitri Elena Farid Greta Hugo Ingrid Jonas Karim Lucia Marek Nadia Oscar
    Paula Quentin Rosa Stefan Tomas Ursula Viktor Wanda Xavier Yusuf Zoe Amina Boris Celia Diego
    Edith Felix Gloria Hassan Irene Jakob Katya Leon Miriam Nikolai Olga Pedro Renata Samuel Tamara
    Ulrich Vera Walter Yasmin Zoltan""".split()
)
SURNAMES = tuple(
    """Abbott Baranov Castillo Dunmore Eriksen Fontaine Galloway Hartmann Ibsen Jankowski Keller
    Lindqvist Moreau Novak Okafor Petrov Quigley Rossi Schneider Tanaka Underhill Vasquez Whitlock
    Yamada Zimmer Ashby Bellini Crowther Delgado Engel Fairbanks Grimaldi Haddad Ingram Jensen
    Kowalski Lombard Mbeki Nilsson Ortega Pemberton Ramirez Sorensen Trevino""".split()
)
CITIES = tuple(
    """Lisbon Cracow Turin Bergen Valencia Ghent Riga Seville Malmo Dresden Porto Tunis Aleppo
    Nairobi Havana Lima Osaka Calcutta Odessa Tbilisi Utrecht Leipzig Marseilles Zagreb Winnipeg
    Boston Denver Adelaide Manila Hanoi""".split()
)
ADJECTIVES = tuple(
    """crimson turquoise amber violet olive scarlet indigo maroon beige silver rusty hollow crooked
    ancient polished wooden foreign gentle frozen narrow heavy broken striped velvet bitter noisy
    patient curious enormous tiny transparent muddy elegant lonely ragged brass cheerful lazy
    poisonous famous""".split()
)
NOUNS = tuple(
    """otter heron badger lynx falcon tortoise weasel beaver raven moose hedgehog stork compass
    ladder telescope anvil umbrella kettle hammer violin saddle basket pepper bottle mirror carpet
    bicycle trumpet barrel cabbage walnut chapel tunnel market bakery museum harbour prison orchard
    fountain stable theatre lemon onion herring pudding sausage turnip biscuit pumpkin needle
    blanket bucket chimney curtain drum engine feather glove helmet jacket ketchup lizard magnet
    napkin oyster pencil quilt ribbon spoon ticket vase wagon yacht zebra""".split()
)
VERBS = tuple(
    """follows admires repairs forgets carries paints borrows defends measures praises counts
    welcomes imitates observes protects remembers sells steals visits washes""".split()
)
ROLES = tuple(
    """miller captain baker shepherd widow sailor gardener postman cook clerk barber fisherman nurse
    tailor blacksmith innkeeper schoolmaster coachman carpenter hunter poet judge beggar governess
    grocer bishop""".split()
)
