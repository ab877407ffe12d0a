"""Biology, chemistry, physics, engineering, health."""

from __future__ import annotations

import random
from fractions import Fraction
from math import comb

from question_templates.item import Item, Template, choice, number

ATOMS = {"H": 1, "C": 12, "N": 14, "O": 16, "S": 32, "Na": 23, "Ca": 40, "Fe": 56}


def _punnett(rng: random.Random) -> Item:
    plant, trait = (
        rng.choice(["pea", "bean", "maize", "poppy"]),
        rng.choice(["tall", "red", "smooth", "hairy"]),
    )
    total = rng.randrange(80, 800, 16)
    first, second = rng.choice([("Tt", "Tt"), ("Tt", "tt")])
    share = Fraction(3, 4) if second == "Tt" else Fraction(1, 2)
    text = (
        f"In a {plant} the allele T for the {trait} form is dominant over t. A cross {first} × {second} "
        f"gives {total} seedlings. How many are expected to show the {trait} form?"
    )
    return number(rng, text, total * share, traps=[total, total / Fraction(4), total * Fraction(1, 2)])


def _hardy_weinberg(rng: random.Random) -> Item:
    q, size = Fraction(rng.randrange(1, 10), 10), rng.randrange(1000, 9000, 100)
    text = (
        f"A population of {size:,} moths is in Hardy-Weinberg equilibrium. The recessive allele has "
        f"frequency {float(q)}. How many moths are expected to be heterozygous?"
    )
    return number(rng, text, 2 * q * (1 - q) * size, traps=[q * q * size, q * (1 - q) * size, q * size])


def _dilution_of_culture(rng: random.Random) -> Item:
    colonies, power, volume = (
        rng.randrange(30, 300),
        rng.randint(3, 6),
        Fraction(1, rng.choice([1, 2, 5, 10])),
    )
    text = (
        f"A plate spread with {float(volume):g} mL of a 10^-{power} dilution of a bacterial culture shows "
        f"{colonies} colonies. How many colony-forming units per mL did the undiluted culture hold?"
    )
    value = colonies / volume * 10**power
    return number(
        rng, text, value, unit="CFU/mL", traps=[value * 10, value / 10, colonies * volume * 10**power]
    )


def _doubling(rng: random.Random) -> Item:
    start, minutes, doublings = rng.randint(2, 60) * 10, rng.choice([15, 20, 30, 40]), rng.randint(3, 8)
    text = (
        f"A yeast strain doubles every {minutes} minutes. A flask holds {start} cells. How many cells does "
        f"it hold after {minutes * doublings} minutes without limits to growth?"
    )
    value = start * 2**doublings
    return number(rng, text, value, traps=[start * 2 * doublings, value // 2, value * 2, start * doublings])


def _molar_mass(rng: random.Random) -> Item:
    picked = rng.sample(sorted(ATOMS), 3)
    counts = [rng.randint(1, 8) for _ in picked]
    formula = "".join(f"{atom}{n if n > 1 else ''}" for atom, n in zip(picked, counts, strict=True))
    masses = ", ".join(f"{atom} {ATOMS[atom]}" for atom in picked)
    mass = sum(ATOMS[atom] * n for atom, n in zip(picked, counts, strict=True))
    text = f"With the relative atomic masses {masses}, what is the molar mass of a compound {formula}?"
    return number(
        rng, text, mass, unit="g/mol", traps=[sum(ATOMS[atom] for atom in picked), mass + 1, mass - 1]
    )


def _mixing(rng: random.Random) -> Item:
    first, second = rng.sample(range(1, 20), 2)
    one, other = rng.randrange(50, 500, 50), rng.randrange(50, 500, 50)
    text = (
        f"{one} mL of a {first / 10:g} mol/L salt solution and {other} mL of a {second / 10:g} mol/L "
        "solution of the same salt are mixed; volumes add. What is the concentration of the mixture?"
    )
    value = Fraction(first * one + second * other, 10 * (one + other))
    return number(rng, text, value, unit="mol/L", places=3, traps=[Fraction(first + second, 20)])


def _gas(rng: random.Random) -> Item:
    pressure, volume, factor = rng.randrange(80, 240, 4), rng.randint(2, 30), rng.choice([2, 3, 4, 5])
    text = (
        f"A gas at {pressure} kPa fills {volume} L. At constant temperature it is compressed to 1/{factor} "
        "of its volume. What is its pressure then, if it behaves ideally?"
    )
    return number(
        rng,
        text,
        pressure * factor,
        unit="kPa",
        traps=[Fraction(pressure, factor), pressure, volume * factor],
    )


def _isotope(rng: random.Random) -> Item:
    half_life, periods, start = rng.randint(2, 90), rng.randint(2, 6), 64 * rng.randint(1, 30)
    text = (
        f"A tracer has a half-life of {half_life} hours. Of {start} mg, how much is left after "
        f"{half_life * periods} hours?"
    )
    value = Fraction(start, 2**periods)
    return number(
        rng, text, value, unit="mg", places=1, traps=[Fraction(start, 2 * periods), value * 2, start - value]
    )


def _free_fall(rng: random.Random) -> Item:
    seconds, gravity = rng.randint(2, 12), rng.choice([2, 4, 10, 12])
    text = (
        f"On a moon where g = {gravity} m/s² and there is no air, a stone falls from rest for {seconds} s. "
        "How far does it fall?"
    )
    value = Fraction(gravity * seconds * seconds, 2)
    return number(
        rng, text, value, unit="m", traps=[value * 2, gravity * seconds, Fraction(gravity * seconds, 2)]
    )


def _circuit(rng: random.Random) -> Item:
    one, other, volts = rng.randrange(2, 40, 2), rng.randrange(2, 40, 2), rng.randrange(6, 60, 6)
    text = (
        f"Resistors of {one} Ω and {other} Ω are in parallel on an ideal source of {volts} V. "
        "What current does the source deliver?"
    )
    value = Fraction(volts, one) + Fraction(volts, other)
    return number(
        rng, text, value, unit="A", places=2, traps=[Fraction(volts, one + other), Fraction(volts, one)]
    )


def _momentum(rng: random.Random) -> Item:
    heavy, light, speed = rng.randint(3, 30), rng.randint(1, 12), rng.randint(2, 25)
    text = (
        f"A cart of {heavy} kg moving at {speed} m/s hits a resting cart of {light} kg and they stay "
        "together. What is their common speed?"
    )
    value = Fraction(heavy * speed, heavy + light)
    return number(
        rng,
        text,
        value,
        unit="m/s",
        places=2,
        traps=[Fraction(speed, 2), speed, Fraction(light * speed, heavy)],
    )


def _gear(rng: random.Random) -> Item:
    driver, driven, turns = rng.randrange(12, 40), rng.randrange(41, 120), rng.randrange(300, 3000, 60)
    text = (
        f"A pinion with {driver} teeth turning at {turns:,} rpm drives a wheel with {driven} teeth. How fast "
        "does the wheel turn?"
    )
    value = Fraction(turns * driver, driven)
    return number(rng, text, value, unit="rpm", places=1, traps=[Fraction(turns * driven, driver), turns])


def _beam(rng: random.Random) -> Item:
    span, load = rng.randint(4, 20), rng.randrange(4, 90, 2)
    at = rng.randint(1, span - 1)
    text = (
        f"A simply supported beam of {span} m carries one load of {load} kN at {at} m from the left support. "
        "What is the reaction of the left support, its own weight neglected?"
    )
    value = Fraction(load * (span - at), span)
    return number(
        rng, text, value, unit="kN", places=2, traps=[Fraction(load * at, span), Fraction(load, 2), load]
    )


def _reliability(rng: random.Random) -> Item:
    units, percent = rng.randint(2, 4), rng.randrange(60, 98)
    kind = rng.choice(["series", "parallel"])
    p = Fraction(percent, 100)
    series, parallel = 100 * p**units, 100 * (1 - (1 - p) ** units)
    text = (
        f"A control unit has {units} independent modules in {kind}, each working with probability {percent} "
        f"%. With what probability does the unit work ({'all are' if kind == 'series' else 'one is'} "
        "needed)?"
    )
    value, trap = (series, parallel) if kind == "series" else (parallel, series)
    return number(rng, text, value, unit="%", places=2, traps=[trap, percent])


def _dose(rng: random.Random) -> Item:
    mass, dose, times, strength = (
        rng.randint(10, 95),
        rng.randrange(2, 20),
        rng.choice([2, 3, 4]),
        rng.choice([25, 50]),
    )
    text = (
        f"A training case: {dose} mg per kg of body mass per day, in {times} equal doses, for a patient of "
        f"{mass} kg. The syrup holds {strength} mg/mL. How many mL is one dose?"
    )
    value = Fraction(dose * mass, times * strength)
    return number(
        rng, text, value, unit="mL", places=2, traps=[value * times, value / times, value * strength]
    )


def _test_value(rng: random.Random) -> Item:
    people, sick = 1000, rng.randrange(20, 300, 10)
    sensitivity, specificity = rng.randrange(70, 100, 5), rng.randrange(70, 100, 5)
    found = Fraction(sick * sensitivity, 100)
    false = Fraction((people - sick) * (100 - specificity), 100)
    text = (
        f"Of {people:,} people {sick} have a condition. A test has sensitivity {sensitivity} % and "
        f"specificity {specificity} %. What is its positive predictive value in this group?"
    )
    value = 100 * found / (found + false)
    return number(rng, text, value, unit="%", places=1, traps=[sensitivity, specificity, Fraction(sick, 10)])


def _risk(rng: random.Random) -> Item:
    size = rng.randrange(200, 2000, 100)
    treated, control = sorted(rng.sample(range(2, size // 10), 2))
    text = (
        f"In a trial with {size:,} people in each arm, {treated} treated and {control} untreated people fell "
        "ill. How many must be treated to prevent one case (number needed to treat)?"
    )
    value = Fraction(size, control - treated)
    return number(
        rng,
        text,
        value,
        places=1,
        traps=[Fraction(control, treated), control - treated, Fraction(size, control)],
    )


def _siblings(rng: random.Random) -> Item:
    children = rng.randint(3, 6)
    hit = rng.randint(1, children - 1)
    text = (
        f"Both parents carry one recessive allele of an invented trait. Among {children} children, with what "
        f"probability do exactly {hit} show the trait?"
    )
    p = Fraction(1, 4)
    value = 100 * comb(children, hit) * p**hit * (1 - p) ** (children - hit)
    return number(rng, text, value, unit="%", places=2, traps=[25, 100 * p**hit])


def _reading_frame(rng: random.Random) -> Item:
    strand = "".join(rng.choice("ACGT") for _ in range(9))
    pairs = {"A": "T", "T": "A", "C": "G", "G": "C"}
    right = "".join(pairs[base] for base in reversed(strand))
    wrong = {strand, strand[::-1], right[::-1]}
    while len(wrong) < 12:
        place = rng.randrange(9)
        wrong.add(right[:place] + rng.choice("ACGT") + right[place + 1 :])
    text = f"A DNA strand reads 5'-{strand}-3'. How does the complementary strand read from 5' to 3'?"
    return choice(text, right, rng.sample(sorted(wrong), len(wrong)))


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "biology": (_punnett, _hardy_weinberg, _dilution_of_culture, _doubling, _siblings, _reading_frame),
    "chemistry": (_molar_mass, _mixing, _gas, _isotope),
    "physics": (_free_fall, _circuit, _momentum),
    "engineering": (_gear, _beam, _reliability),
    "health": (_dose, _test_value, _risk),
}
