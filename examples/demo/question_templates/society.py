"""Business, economics, history, law, psychology. Kingdoms, statutes and experiments are invented."""

from __future__ import annotations

import random
from fractions import Fraction

from question_templates.item import Item, Template, choice, number

REALMS = ("Averne", "Brelund", "Castova", "Dorrim", "Eskary", "Fenmark", "Galdor", "Hestia Minor")
RULERS = (
    "Adela",
    "Boric",
    "Cyra",
    "Dagan",
    "Elowen",
    "Ferran",
    "Gisla",
    "Hadrec",
    "Ilda",
    "Jorund",
    "Kessa",
    "Lothan",
)
WARES = ("lamps", "saddles", "kettles", "looms", "clocks", "barrels")


def _margin(rng: random.Random) -> Item:
    cost, markup, off = rng.randrange(20, 400, 5), rng.randrange(20, 100, 5), rng.choice([5, 10, 15, 20])
    ware = rng.choice(WARES)
    text = (
        f"A shop buys {ware} at ${cost} each, adds {markup} % to set the list price and then grants {off} % "
        "off the list price. What does it earn per piece?"
    )
    price = Fraction(cost) * (100 + markup) / 100
    value = price * (100 - off) / 100 - cost
    return number(
        rng, text, value, unit="$", places=2, traps=[price - cost, Fraction(cost * (markup - off), 100)]
    )


def _break_even(rng: random.Random) -> Item:
    price, cost = rng.randrange(30, 120), rng.randrange(5, 29)
    pieces = rng.randrange(40, 900, 10)
    fixed = pieces * (price - cost)
    text = (
        f"A workshop with fixed costs of ${fixed:,} makes {rng.choice(WARES)} for ${cost} each and sells "
        f"them for ${price}. How many must it sell to break even?"
    )
    return number(rng, text, pieces, traps=[Fraction(fixed, price), Fraction(fixed, cost)])


def _inventory(rng: random.Random) -> Item:
    sold, opening, closing = rng.randrange(200, 900, 20), rng.randrange(40, 120, 4), rng.randrange(40, 120, 4)
    text = (
        f"Goods sold in a year cost ${sold} thousand; stock was ${opening} thousand at its start and "
        f"${closing} thousand at its end. What was the inventory turnover on average stock?"
    )
    value = Fraction(2 * sold, opening + closing)
    return number(rng, text, value, places=2, traps=[Fraction(sold, opening), Fraction(sold, closing)])


def _equilibrium(rng: random.Random) -> Item:
    slope_d, slope_s, price, quantity = (
        rng.randint(1, 9),
        rng.randint(1, 9),
        rng.randint(5, 40),
        rng.randint(50, 400),
    )
    demand, supply = quantity + slope_d * price, quantity - slope_s * price
    supplied = f"{supply} + {slope_s}P" if supply >= 0 else f"{slope_s}P - {-supply}"
    text = f"Demand is Q = {demand} - {slope_d}P and supply is Q = {supplied}. What is the equilibrium price?"
    return number(rng, text, price, traps=[quantity, Fraction(demand, slope_d), slope_d + slope_s])


def _elasticity(rng: random.Random) -> Item:
    before, change_p, change_q = rng.randrange(10, 90, 5), rng.choice([4, 5, 8, 10, 20]), rng.randrange(2, 40)
    text = (
        f"A price of ${before} rises by {change_p} % and the quantity demanded falls by {change_q} %. What "
        "is the price elasticity of demand in absolute value?"
    )
    return number(
        rng, text, Fraction(change_q, change_p), places=2, traps=[Fraction(change_p, change_q), change_q]
    )


def _multiplier(rng: random.Random) -> Item:
    save, spend = rng.choice([10, 20, 25, 40, 50]), rng.randrange(5, 400, 5)
    text = (
        f"Households save {save} % of each further unit of income; there are no taxes and no imports. Public "
        f"spending rises by {spend} million crowns. By how much does income rise in the simple Keynesian "
        "model?"
    )
    value = Fraction(100 * spend, save)
    return number(
        rng,
        text,
        value,
        unit="million crowns",
        traps=[spend, Fraction(100 * spend, 100 - save), value - spend],
    )


def _real_rate(rng: random.Random) -> Item:
    nominal, inflation = rng.randrange(20, 150), rng.randrange(5, 110)
    text = (
        f"A bond pays {nominal / 10:g} % a year while prices rise by {inflation / 10:g} %. What is the exact "
        "real return (Fisher relation)?"
    )
    value = 100 * (Fraction(1000 + nominal, 1000 + inflation) - 1)
    return number(rng, text, value, unit="%", places=2, traps=[Fraction(nominal - inflation, 10)])


def _reigns(rng: random.Random) -> Item:
    realm, names = rng.choice(REALMS), rng.sample(RULERS, 8)
    year, lines, spans = rng.randrange(900, 1700), [], []
    for name in names:
        length = rng.randint(4, 31)
        spans.append((name, year, year + length))
        lines.append(f"{name} {length} years")
        year += length
    who, start, end = rng.choice(spans[1:-1])
    asked = rng.randint(start + 1, end - 1)
    text = (
        f"A chronicle of the invented realm of {realm} lists its rulers in order, each crowned in the year "
        f"in which the one before died: {'; '.join(lines)}. {names[0]} was crowned in {spans[0][1]}. Who "
        f"reigned in {asked}?"
    )
    return choice(text, who, names)


def _interval(rng: random.Random) -> Item:
    realm, before, after = rng.choice(REALMS), rng.randrange(20, 480), rng.randrange(20, 700)
    text = (
        f"By an invented chronicle the harbour of {realm} was founded in {before} BC and burnt down in AD "
        f"{after}. As there is no year 0, how many years lie between the two events?"
    )
    value = before + after - 1
    return number(
        rng, text, value, unit="years", traps=[before + after, before + after + 1, abs(after - before)]
    )


def _sources(rng: random.Random) -> Item:
    events = [
        f"the {thing} of {realm}" for thing in ("siege", "charter", "flood", "synod") for realm in REALMS[:3]
    ]
    picked = rng.sample(events, 6)
    order = picked[:]
    rng.shuffle(order)
    clues = [f"{order[i]} came before {order[i + 1]}" for i in range(5)]
    rng.shuffle(clues)
    place = rng.randint(1, 4)
    word = ("second", "third", "fourth", "fifth")[place - 1]
    text = f"From invented annals we know: {'; '.join(clues)}. Which of the six events was the {word}?"
    return choice(text, order[place], picked)


def _deadline(rng: random.Random) -> Item:
    days, weekday = rng.randint(10, 75), rng.randrange(5)
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    end = (weekday + days) % 7
    right = names[0] if end >= 5 else names[end]
    text = (
        f"Section 12 of the invented Harbour Act: an appeal must be filed within {days} days of service, the "
        "day of service not counted; a period that ends on a Saturday or Sunday ends on the next Monday. A "
        f"notice is served on a {names[weekday]}. On which weekday does the period end?"
    )
    return choice(text, right, names)


def _fine(rng: random.Random) -> Item:
    base, per, over, repeat = (
        rng.randrange(40, 400, 10),
        rng.randrange(5, 60),
        rng.randint(3, 40),
        rng.choice([25, 50]),
    )
    text = (
        f"Under the invented Market Ordinance a stall that stays open too long is fined {base} crowns plus "
        f"{per} crowns for each begun minute; on a repeated offence the whole fine rises by {repeat} %. A "
        f"trader fined before stays open {over} and a half minutes too long. What is the fine?"
    )
    value = Fraction((base + per * (over + 1)) * (100 + repeat), 100)
    traps = [Fraction((base + per * over) * (100 + repeat), 100), base + per * (over + 1), base + per * over]
    return number(rng, text, value, unit="crowns", places=1, traps=traps)


def _estate(rng: random.Random) -> Item:
    children, dead_kids, estate = rng.randint(2, 5), rng.randint(2, 4), rng.randrange(120, 4800, 60)
    text = (
        "By the invented Succession Code half of an estate goes to the spouse, the rest in equal shares to "
        "the children; the share of a dead child goes in equal parts to that child's children. Someone "
        f"leaves {estate} thousand crowns, a spouse, {children} living children and {dead_kids} children of "
        f"one dead child. What does one of these {dead_kids} grandchildren get?"
    )
    value = Fraction(estate, 2 * (children + 1) * dead_kids)
    traps = [Fraction(estate, 2 * (children + dead_kids)), value * 2, Fraction(estate, 2 * (children + 1))]
    return number(rng, text, value, unit="thousand crowns", places=2, traps=traps)


def _z_score(rng: random.Random) -> Item:
    mean, deviation, score = rng.randrange(40, 120), rng.choice([4, 5, 8, 10, 12]), rng.randrange(30, 160)
    text = (
        f"On an invented memory scale with mean {mean} and standard deviation {deviation} a person scores "
        f"{score}. On a scale with mean 50 and standard deviation 10, what is the equivalent (T) score?"
    )
    value = 50 + Fraction(10 * (score - mean), deviation)
    return number(
        rng,
        text,
        value,
        places=1,
        traps=[score, 50 + score - mean, 50 - Fraction(10 * (score - mean), deviation)],
    )


def _schedule(rng: random.Random) -> Item:
    n, seconds = rng.randint(2, 30), rng.randrange(10, 90, 5)
    kinds = {
        "fixed ratio": f"after exactly every {n} presses",
        "variable ratio": f"after a number of presses that changes and is {n} on average",
        "fixed interval": f"for the first press after {seconds} s have passed since the last pellet",
        "variable interval": f"for the first press after a time that changes and is {seconds} s on average",
        "continuous reinforcement": f"after each press, in sessions of {seconds} s with {n} levers",
        "fixed time": f"every {seconds} s, whatever it presses of its {n} levers",
        "extinction": f"no longer at all, after {n} sessions of {seconds} s with a pellet for each press",
    }
    right = rng.choice(sorted(kinds))
    text = f"A rat gets a food pellet {kinds[right]}. Which schedule is this?"
    return choice(text, right, sorted(kinds))


def _recall(rng: random.Random) -> Item:
    items, first, savings = rng.randint(8, 30), rng.randint(10, 60), rng.choice([20, 25, 40, 50, 60, 75])
    again = Fraction(first * (100 - savings), 100)
    text = (
        f"Someone learns {items} nonsense syllables in {first} trials and, a week later, again in "
        f"{float(again):g} trials. What is the savings score?"
    )
    return number(rng, text, savings, unit="%", traps=[100 - savings, Fraction(items * 100, first)])


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "business": (_margin, _break_even, _inventory),
    "economics": (_equilibrium, _elasticity, _multiplier, _real_rate),
    "history": (_reigns, _interval, _sources),
    "law": (_deadline, _fine, _estate),
    "psychology": (_z_score, _schedule, _recall),
}
