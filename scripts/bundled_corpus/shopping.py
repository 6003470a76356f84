"""Shopping, food and numbers: prices, amounts, what one would like, what one bought."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .inflection import chinese_number, english_number
from .people import ANYONE, ASKED, GROWN, MY, NAMES, PRONOUNS, STATED, WORKING
from .qualities import COLOURS, described
from .things import (
    BOOKS,
    BUYABLE,
    BY_THE_KILO,
    CLOTHES,
    DEVICES,
    DISHES,
    DRINKS,
    FURNITURE,
    GROCERIES,
    MASS_DRINK,
    MASS_FOOD,
    READING,
    SMALL,
    SNACKS,
    VEHICLES,
    Thing,
    fitting,
)  # fmt: skip
from .times import PAST

PRICED = (*CLOTHES, *READING, *DEVICES, *VEHICLES, *FURNITURE, *SMALL[:1], *SMALL[7:8])


def price(draw: Draw, thing: Thing) -> tuple[str, str]:
    """A price in whole yuan that suits the thing: a book is not dearer than a car."""
    if thing.en == "car":
        number = draw.number(5, 40) * 10000 // 2 // 5000 * 5000
    elif thing in DEVICES:
        number = draw.number(8, 60) * 100
    elif thing in FURNITURE or thing.en in ("bicycle", "coat"):
        number = draw.number(4, 30) * 50
    elif thing.en == "umbrella":
        number = draw.number(3, 15) * 10
    elif thing in READING:
        number = draw.number(12, 90)
    else:
        number = draw.number(6, 60) * 10
    return f"{english_number(number)} yuan", f"{chinese_number(number)}元"


@production(170)
def costs(draw: Draw) -> Pair:
    thing = draw(PRICED)
    amount, amount_zh = price(draw, thing)
    if draw.chance(0.5):
        return f"{thing.this} {thing.verb('costs', 'cost')} {amount}.", f"{thing.this_zh}{amount_zh}。"
    return f"{thing.that} only {thing.verb('costs', 'cost')} {amount}.", f"{thing.that_zh}只要{amount_zh}。"


@production(130)
def spent(draw: Draw) -> Pair:
    who, thing = draw(GROWN), draw(PRICED)
    amount, amount_zh = price(draw, thing)
    english, chinese = described(draw, thing) if draw.chance(0.6) else (thing.one, thing.one_zh)
    if english.split()[1] == "cheap":
        english, chinese = thing.one, thing.one_zh  # the price says it
    return f"{who.en} bought {english} for {amount}.", f"{who.zh}花{amount_zh}买了{chinese}。"


@production(60)
def how_much(draw: Draw) -> Pair:
    thing = draw((*PRICED, *SMALL, *SNACKS[:6], *DRINKS))
    if draw.chance(0.5):
        return f"How much {thing.be} {thing.this}?", f"{thing.this_zh}多少钱？"
    return f"How much {thing.be} {thing.that}?", f"{thing.that_zh}多少钱？"


@production(90)
def by_the_kilo(draw: Draw) -> Pair:
    goods, goods_zh = draw(BY_THE_KILO)
    verb = "cost" if goods.endswith("s") else "costs"
    low, high = {"potatoes": (2, 5), "tomatoes": (4, 9), "rice": (5, 12), "beef": (60, 98), "fish": (20, 60)}.get(
        goods, (6, 28)
    )
    whole, cents = draw.number(low, high), draw((0, 20, 50, 60, 80, 90))
    return f"The {goods} {verb} {whole}.{cents:02d} yuan a kilo.", f"{goods_zh}每公斤{whole}.{cents:02d}元。"


@production(120)
def bought_kilos(draw: Draw) -> Pair:
    who, (goods, goods_zh), when = draw(GROWN), draw(BY_THE_KILO), draw(PAST[:5])
    amount, amount_zh = draw((
        ("a kilo", "一公斤"), ("two kilos", "两公斤"), ("three kilos", "三公斤"), ("half a kilo", "半公斤"),
        ("five kilos", "五公斤"),
    ))  # fmt: skip
    return f"{who.en} bought {amount} of {goods} {when.en}.", f"{who.zh}{when.zh}买了{amount_zh}{goods_zh}。"


@production(190)
def bought(draw: Draw) -> Pair:
    who, thing, when = draw(GROWN), draw(BUYABLE), draw(PAST)
    form = draw.number(0, 2)
    if form == 0:
        english, chinese = described(draw, thing)
    elif form == 1 and thing in (*CLOTHES[1:], *BOOKS, *SMALL, *FURNITURE[1:2]):
        english, chinese = thing.several(draw.number(2, 5))
    else:
        english, chinese = thing.one, thing.one_zh
    return f"{who.en} bought {english} {when.en}.", f"{who.zh}{when.zh}买了{chinese}。"


@production(120)
def not_bought(draw: Draw) -> Pair:
    who, thing, when = draw(GROWN), draw(BUYABLE), draw(PAST)
    if draw.chance(0.4):
        asked = draw(ASKED)
        return f"Did {asked.en} buy {thing.one} {when.en}?", f"{asked.zh}{when.zh}买{thing.zh}了吗？"
    return f"{who.en} {draw.negated('did')} buy {thing.one} {when.en}.", f"{who.zh}{when.zh}没买{thing.zh}。"


@production(170)
def wants_to_buy(draw: Draw) -> Pair:
    who, thing = draw(GROWN), draw(BUYABLE)
    english, chinese = described(draw, thing)
    if draw.chance(0.25):
        asked = draw(ASKED)
        return f"{asked.do} {asked.en} want to buy {english}?", f"{asked.zh}想买{chinese}吗？"
    if draw.chance(0.3):
        return f"{who.en} {draw.negated(who.do)} want to buy {thing.this}.", f"{who.zh}不想买{thing.this_zh}。"
    return f"{who.en} {who.verb('want')} to buy {english}.", f"{who.zh}想买{chinese}。"


@production(120)
def ordering(draw: Draw) -> Pair:
    thing = draw((*DRINKS, *DISHES, *SNACKS))
    form = draw.number(0, 4)
    if form == 0:
        english, chinese = thing.several(draw.number(2, 4))
        return f"Please give us {english}.", f"请给我们{chinese}。"
    if form == 1:
        second = draw([other for other in (*DRINKS, *DISHES) if other != thing])
        return f"I would like {thing.one} and {second.one}.", f"我想要{thing.one_zh}和{second.one_zh}。"
    if form == 2:
        return f"Would you like {thing.one}?", f"你想要{thing.one_zh}吗？"
    if form == 3:
        english, chinese = thing.several(draw.number(2, 4))
        return f"We would like {english}.", f"我们想要{chinese}。"
    return f"I would like {thing.one}.", f"我想要{thing.one_zh}。"


@production(190)
def ate_or_drank(draw: Draw) -> Pair:
    drink = draw.chance(0.5)
    who = draw(GROWN if drink else ANYONE)
    thing = draw(DRINKS if drink else (*DISHES, *SNACKS))
    when = draw([time for time in PAST if "ago" not in time.en])
    verb, verb_zh = ("drank", "喝") if drink or thing.zh == "汤" else ("ate", "吃")
    strong = thing.zh in ("啤酒", "葡萄酒")
    if strong:
        when = draw([time for time in PAST if time.en in ("last night", "last weekend", "yesterday", "last Saturday")])
    many = draw.number(2, 3 if strong else 4)
    english, chinese = thing.several(many) if draw.chance(0.6) and thing.zh != "葡萄酒" else (thing.one, thing.one_zh)
    if verb == "drank" and not drink:
        english, chinese = thing.one, thing.one_zh
        verb = "had"
    return f"{who.en} {verb} {english} {when.en}.", f"{who.zh}{when.zh}{verb_zh}了{chinese}。"


@production(170)
def likes_food(draw: Draw) -> Pair:
    drink = draw.chance(0.4)
    who = draw(ANYONE)
    verb, verb_zh = ("drink", "喝") if drink else ("eat", "吃")
    foods = [food for food in (MASS_DRINK if drink else MASS_FOOD) if food[0] not in ("soup", "water")]
    if drink and who not in GROWN:
        foods = [food for food in foods if food[0] not in ("beer", "wine")]
    (food, food_zh), (other, other_zh) = draw.two(foods)
    form = draw.number(0, 4)
    if form == 0:
        return f"{who.en} {who.verb('like')} to {verb} {food}.", f"{who.zh}喜欢{verb_zh}{food_zh}。"
    if form == 1:
        return f"{who.en} {draw.negated(who.do)} {verb} {food}.", f"{who.zh}不{verb_zh}{food_zh}。"
    if form == 2:
        return f"{who.en} only {who.verb(verb)} {food}.", f"{who.zh}只{verb_zh}{food_zh}。"
    if form == 3:
        return (
            f"{who.en} {who.verb('prefer')} {food} to {other}.",
            f"比起{other_zh}，{who.zh}更喜欢{verb_zh}{food_zh}。",
        )
    return (
        f"{who.en} {who.verb(verb)} neither {food} nor {other}.",
        f"{who.zh}既不{verb_zh}{food_zh}，也不{verb_zh}{other_zh}。",
    )


@production(80)
def tea_or_coffee(draw: Draw) -> Pair:
    drink = draw.chance(0.5)
    (first, first_zh), (second, second_zh) = draw.two(MASS_DRINK if drink else [f for f in MASS_FOOD if f[0] != "soup"])
    verb, verb_zh = ("drink", "喝") if drink else ("eat", "吃")
    asked = draw((PRONOUNS[1], PRONOUNS[1], *PRONOUNS[2:4], *NAMES, PRONOUNS[5]))
    return (
        f"{asked.do} {asked.en} want to {verb} {first} or {second}?",
        f"{asked.zh}想{verb_zh}{first_zh}还是{second_zh}？",
    )


@production(70)
def some(draw: Draw) -> Pair:
    drink = draw.chance(0.5)
    food, food_zh = draw(MASS_DRINK if drink else [f for f in MASS_FOOD if f[0] != "soup"])
    verb, verb_zh = ("drink", "喝") if drink else ("eat", "吃")
    form = draw.number(0, 2)
    if form == 0:
        return f"Would you like some {food}?", f"你想{verb_zh}点儿{food_zh}吗？"
    if form == 1:
        return f"Please {verb} some {food}.", f"请{verb_zh}点儿{food_zh}。"
    who = draw((*STATED, *NAMES))
    return f"{who.en} {who.verb('want')} to buy some {food}.", f"{who.zh}想买点儿{food_zh}。"


@production(80)
def errands(draw: Draw) -> Pair:
    who, (goods, goods_zh) = draw(GROWN), draw(GROCERIES)
    form = draw.number(0, 2)
    if form == 0:
        return (
            f"{who.en} {who.be} going to the supermarket to buy {goods}.",
            f"{who.zh}要去超市买{goods_zh}。",
        )
    when = draw(PAST[:5])
    if form == 1:
        return f"{who.en} went to the supermarket to buy {goods} {when.en}.", f"{who.zh}{when.zh}去超市买了{goods_zh}。"
    return f"{who.en} forgot to buy {goods} {when.en}.", f"{who.zh}{when.zh}忘了买{goods_zh}。"


@production(110)
def has_money(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    number = draw(
        (*range(2, 13), 15, 20, 25, 50, 100, 120, 150, 200, 205, 250, 300, 500, 1000, 1500, 2000, 2500, 20000)
    )
    yuan, yuan_zh = f"{english_number(number)} yuan", f"{chinese_number(number)}元"
    form = draw.number(0, 2)
    if form == 0:
        return f"{who.en} only {who.have} {yuan}.", f"{who.zh}只有{yuan_zh}。"
    if form == 1:
        other = draw([one for one in (*STATED[:3], *NAMES) if one != who and one.agree != who.agree])
        return f"{who.en} gave {other.him} {yuan}.", f"{who.zh}给了{other.zh}{yuan_zh}。"
    return f"{who.en} lost {yuan} yesterday.", f"{who.zh}昨天丢了{yuan_zh}。"


@production(80)
def salaries(draw: Draw) -> Pair:
    who, number = draw(WORKING), draw.number(6, 60) * 500
    if draw.chance(0.5):
        return (
            f"{who.en} {who.verb('earn')} {english_number(number)} yuan a month.",
            f"{who.zh}一个月挣{chinese_number(number)}元。",
        )
    number = draw.number(4, 40) * 50
    return (
        f"{who.en} spent {english_number(number)} yuan last month.",
        f"{who.zh}上个月花了{chinese_number(number)}元。",
    )


@production(80)
def wears(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *STATED[:3], *NAMES, *MY))
    thing = draw(fitting(CLOTHES, who.agree))
    verb = "戴" if thing.en in ("hat", "scarf", "gloves") else "穿"
    colour, colour_zh = draw(COLOURS)
    english, chinese = thing.with_adjective(colour, colour_zh + "的")
    return f"{who.en} {who.be} wearing {english} today.", f"{who.zh}今天{verb}着{chinese}。"
