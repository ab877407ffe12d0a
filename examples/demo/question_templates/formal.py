"""Mathematics, computer science, philosophy (logic), other."""

from __future__ import annotations

import random
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from math import comb, gcd

from question_templates.item import Item, Template, choice, number

NAMES = ("Ana", "Ben", "Cleo", "Dov", "Eli", "Fay", "Gus", "Hana", "Ivo", "June")
KINDS = ("glims", "torks", "pelvins", "dassels", "morrins", "quibs", "sarnels", "velks")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _remainder(rng: random.Random) -> Item:
    base, power, modulus = rng.randint(3, 40), rng.randint(20, 400), rng.randint(11, 60)
    text = f"What is the remainder of {base}^{power} on division by {modulus}?"
    return number(rng, text, pow(base, power, modulus), traps=[base % modulus, base * power % modulus])


def _committee(rng: random.Random) -> Item:
    women, men = rng.randint(4, 10), rng.randint(4, 10)
    a, b = rng.randint(1, 3), rng.randint(1, 3)
    text = (
        f"From {women} women and {men} men a committee of {a} {'woman' if a == 1 else 'women'} and {b} "
        f"{'man' if b == 1 else 'men'} is formed. In how many ways?"
    )
    value = comb(women, a) * comb(men, b)
    return number(
        rng, text, value, traps=[comb(women + men, a + b), comb(women, a) + comb(men, b), women * men]
    )


def _polynomial(rng: random.Random) -> Item:
    a, b, c, x = rng.randint(1, 9), rng.randint(-9, 9), rng.randint(-9, 9), rng.randint(-6, 6)
    text = f"Let f(x) = {a}x³ {b:+d}x² {c:+d}x. What is f'({x})?"
    value = 3 * a * x * x + 2 * b * x + c
    return number(rng, text, value, traps=[a * x**3 + b * x * x + c * x, -value, value + c])


def _determinant(rng: random.Random) -> Item:
    m = [[rng.randint(-6, 6) for _ in range(3)] for _ in range(3)]
    value = sum(
        m[0][i] * (m[1][(i + 1) % 3] * m[2][(i + 2) % 3] - m[1][(i + 2) % 3] * m[2][(i + 1) % 3])
        for i in range(3)
    )
    text = f"What is the determinant of the matrix with the rows {m[0]}, {m[1]} and {m[2]}?"
    return number(rng, text, value, traps=[-value, m[0][0] * m[1][1] * m[2][2], m[0][0] + m[1][1] + m[2][2]])


def _binary(rng: random.Random) -> Item:
    value = rng.randrange(200, 4000)
    right = f"{value:x}"
    near = {f"{value + change:x}" for change in rng.sample(range(-40, 41), 14) if change}
    text = f"How is the unsigned binary number {value:b} written in hexadecimal?"
    return choice(text, right, [f"{value:o}", right[::-1], *sorted(near)])


def _loop(rng: random.Random) -> Item:
    n, step, start = rng.randint(20, 90), rng.randint(2, 7), rng.randint(0, 9)
    text = (
        f"A program sets s = {start} and then, for i = 0, {step}, {2 * step}, … while i < {n}, adds i to s "
        "if i is even and subtracts 1 otherwise. What is s in the end?"
    )
    value = start + sum(i if i % 2 == 0 else -1 for i in range(0, n, step))
    return number(rng, text, value, traps=[start + sum(range(0, n, step)), value - start, start + n])


def _search(rng: random.Random) -> Item:
    items = rng.sample(range(10, 99), 15)
    items.sort()
    wanted = rng.choice(items)
    low, high, probes = 0, len(items) - 1, 0
    while True:
        probes += 1
        middle = (low + high) // 2
        if items[middle] == wanted:
            break
        low, high = (middle + 1, high) if items[middle] < wanted else (low, middle - 1)
    text = (
        f"Binary search (the middle is rounded down) looks for {wanted} in {items}. At how many elements "
        "does it look until it has found it?"
    )
    return choice(text, str(probes), [str(n) for n in range(10)])


def _tree(rng: random.Random) -> Item:
    keys = rng.sample(range(10, 99), 9)
    depth = {keys[0]: 1}
    root: dict[int, list[int | None]] = {keys[0]: [None, None]}
    for key in keys[1:]:
        at, level = keys[0], 1
        while True:
            side, level = int(key > at), level + 1
            child = root[at][side]
            if child is None:
                root[at][side] = key
                root[key], depth[key] = [None, None], level
                break
            at = child
    text = (
        f"The keys {keys} are put in this order into an empty, unbalanced binary search tree. "
        "How many levels has it?"
    )
    return choice(text, str(max(depth.values())), [str(n) for n in range(2, 12)])


def _syllogism(rng: random.Random) -> Item:
    a, b, c = rng.sample(KINDS, 3)
    forms = (
        (f"All {a} are {b}. No {b} are {c}.", f"No {a} are {c}."),
        (f"All {a} are {b}. All {b} are {c}.", f"All {a} are {c}."),
        (f"Some {a} are {b}. All {b} are {c}.", f"Some {a} are {c}."),
        (f"No {b} are {c}. Some {a} are {b}.", f"Some {a} are not {c}."),
        (f"All {c} are {b}. Some {a} are not {b}.", f"Some {a} are not {c}."),
    )
    premises, right = rng.choice(forms)
    wrong = [f"All {c} are {a}.", f"All {b} are {a}.", f"Some {b} are not {a}.", f"All {c} are {b} and {a}."]
    stronger = {"No": [f"All {a} are {c}.", f"Some {a} are {c}."], "All": [f"No {a} are {c}."]}
    wrong += stronger.get(right.split()[0], [f"All {a} are {c}.", f"No {c} are {a}."])
    text = f"{premises} There are some {a}. Which conclusion follows by necessity?"
    return choice(text, right, wrong)


def _truth_table(rng: random.Random) -> Item:
    shapes = (
        ("({0} and {1}) or (not {2})", lambda p, q, r: (p and q) or not r),
        ("({0} or {1}) and (not {2})", lambda p, q, r: (p or q) and not r),
        ("if {0} then ({1} and {2})", lambda p, q, r: not p or (q and r)),
        ("({0} if and only if {1}) or {2}", lambda p, q, r: (p == q) or r),
        ("not ({0} and {1} and {2})", lambda p, q, r: not (p and q and r)),
        ("if ({0} or {1}) then {2}", lambda p, q, r: not (p or q) or r),
    )
    form, rule = rng.choice(shapes)
    letters = rng.sample("PQRSTUVW", 3)
    count = sum(bool(rule(*values)) for values in product((False, True), repeat=3))
    text = (
        f"Under how many of the eight assignments of truth values to {', '.join(letters)} is the sentence "
        f"“{form.format(*letters)}” true?"
    )
    return choice(text, str(count), [str(n) for n in range(9)])


def _knights(rng: random.Random) -> Item:
    names = rng.sample(NAMES, 3)
    worlds: list[tuple[bool, ...]] = []
    said: list[tuple[int, bool]] = []
    while not worlds:
        said = [(rng.choice([j for j in range(3) if j != i]), rng.random() < 0.5) for i in range(3)]
        worlds = [
            world
            for world in product((True, False), repeat=3)
            if all((world[about] == honest) == world[i] for i, (about, honest) in enumerate(said))
        ]
    lines = " ".join(
        f"{names[i]} says: “{names[about]} is a {'knight' if honest else 'knave'}.”"
        for i, (about, honest) in enumerate(said)
    )
    text = (
        f"Knights always tell the truth and knaves always lie. {lines} How many ways are there to assign "
        f"knight or knave to {', '.join(names)} without contradiction?"
    )
    return choice(text, str(len(worlds)), [str(n) for n in range(9)])


def _calendar(rng: random.Random) -> Item:
    start = date(rng.randrange(2001, 2090), rng.randint(1, 12), rng.randint(1, 28))
    days = rng.randrange(40, 900)
    end = start + timedelta(days)
    day = f"{start.day} {MONTHS[start.month - 1]} {start.year}"
    text = f"{day} is a {WEEKDAYS[start.weekday()]}. Which weekday is it {days} days later?"
    return choice(text, WEEKDAYS[end.weekday()], WEEKDAYS)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _zones(rng: random.Random) -> Item:
    ahead, hours = rng.choice([-1, 1]) * rng.randint(1, 11), rng.randint(3, 17)
    minutes, leave = rng.randrange(0, 60, 5), rng.randrange(0, 1440, 5)
    arrive = (leave + hours * 60 + minutes + ahead * 60) % 1440
    traps = [(arrive - ahead * 60) % 1440, (arrive - 2 * ahead * 60) % 1440]
    near = [(arrive + change) % 1440 for change in rng.sample(range(-240, 241, 15), 12)]
    text = (
        f"A ferry leaves at {_clock(leave)} local time and takes {hours} h {minutes} min to a port whose "
        f"clocks are {abs(ahead)} h {'ahead of' if ahead >= 0 else 'behind'} those of departure. What time "
        "is it there on arrival?"
    )
    return choice(text, _clock(arrive), [_clock(t) for t in [*traps, *near]])


def _recipe(rng: random.Random) -> Item:
    people, now, flour = rng.choice([4, 6, 8]), rng.randint(9, 60), rng.randrange(120, 900, 30)
    text = f"A recipe for {people} takes {flour} g of flour. How much flour do {now} people need?"
    value = Fraction(flour * now, people)
    return number(
        rng, text, value, unit="g", places=1, traps=[flour * now, Fraction(flour * people, now), flour]
    )


def _lights(rng: random.Random) -> Item:
    one, other = rng.sample(range(6, 60), 2)
    text = (
        f"One lighthouse flashes every {one} s, another every {other} s. They have just flashed together. "
        "After how many seconds do they do so again for the first time?"
    )
    value = one * other // gcd(one, other)
    return number(rng, text, value, unit="s", traps=[one * other, one + other, gcd(one, other)])


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "math": (_remainder, _committee, _polynomial, _determinant),
    "computer science": (_binary, _loop, _search, _tree),
    "philosophy": (_syllogism, _truth_table, _knights),
    "other": (_calendar, _zones, _recipe, _lights),
}
