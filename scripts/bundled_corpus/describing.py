"""Saying what things and people are like: adjectives, colours, degree, comparison, age and size, weather."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .inflection import a, chinese_number, english_number
from .people import (
    ANYONE,
    ASKED_GROWN,
    CHILDREN,
    CITIES,
    COUNTRIES,
    GROWN,
    LANGUAGES,
    MY,
    MY_GROWN,
    NAMES,
    PRONOUNS,
    SINGLE,
    STATED,
    YOUR,
    job_for,
)  # fmt: skip
from .qualities import CHARACTERS, COLOURS, FEELINGS, YOUNG, described, qualities
from .things import ANIMALS, BOOKS, CLOTHES, DEVICES, DRINKS, FURNITURE, PETS, READING, SMALL, VEHICLES, fitting

DESCRIBED = (*CLOTHES, *READING, *VEHICLES, *DEVICES, *FURNITURE, *PETS, *SMALL[7:8], *SMALL[9:10])


@production(160)
def this_is(draw: Draw) -> Pair:
    thing = draw(DESCRIBED)
    quality = draw(qualities(thing))
    form = draw.number(0, 3)
    if form == 0:
        return f"{thing.this} {thing.be} {quality.en}.", f"{thing.this_zh}很{quality.zh}。"
    if form == 1:
        return f"{thing.that} {thing.be} very {quality.en}.", f"{thing.that_zh}非常{quality.zh}。"
    if form == 2:
        return f"{thing.this} {draw.negated(thing.be)} {quality.en}.", f"{thing.this_zh}不{quality.zh}。"
    return f"{thing.be} {thing.that} {quality.en}?", f"{thing.that_zh}{quality.zh}吗？"


@production(100)
def too_or_a_little(draw: Draw) -> Pair:
    thing = draw((*CLOTHES, *CLOTHES, *VEHICLES, *DEVICES, *FURNITURE))
    kept = [q for q in qualities(thing) if q.en in ("expensive", "big", "small", "long", "heavy")]
    quality = draw(kept)
    if draw.chance(0.5):
        return f"{thing.this} {thing.be} too {quality.en}.", f"{thing.this_zh}太{quality.zh}了。"
    return f"{thing.that} {thing.be} a little {quality.en}.", f"{thing.that_zh}有点儿{quality.zh}。"


@production(110)
def feels(draw: Draw) -> Pair:
    who, quality = draw(ANYONE), draw(FEELINGS)
    form = draw.number(0, 4)
    if form == 0:
        return f"{who.en} {draw.negated(who.be)} {quality.en}.", f"{who.zh}不{quality.zh}。"
    if form == 1:
        return f"{who.en} {who.be} very {quality.en} today.", f"{who.zh}今天非常{quality.zh}。"
    if form == 2:
        when, when_zh = draw((("yesterday", "昨天"), ("last night", "昨天晚上"), ("this morning", "今天早上")))
        return f"{who.en} {who.was} {quality.en} {when}.", f"{who.zh}{when_zh}很{quality.zh}。"
    if form == 3 and quality.en not in ("happy",):
        return f"{who.en} {who.be} a little {quality.en}.", f"{who.zh}有点儿{quality.zh}。"
    return f"{who.en} {who.be} {quality.en}.", f"{who.zh}很{quality.zh}。"


@production(80)
def looks(draw: Draw) -> Pair:
    who = draw((*PRONOUNS[1:], *SINGLE, *YOUR))
    quality = draw((FEELINGS[0], FEELINGS[1], FEELINGS[2], FEELINGS[5], YOUNG, CHARACTERS[0], CHARACTERS[1]))
    return f"{who.en} {who.verb('look')} {quality.en}.", f"{who.zh}看起来很{quality.zh}。"


@production(130)
def colours(draw: Draw) -> Pair:
    owner, (colour, colour_zh) = draw((*PRONOUNS, *NAMES)), draw(COLOURS)
    thing = draw(fitting((*CLOTHES, *VEHICLES, *SMALL[:1], *SMALL[7:9]), owner.agree))
    form = draw.number(0, 2)
    if form == 0:
        return f"{thing.this} {thing.be} {colour}.", f"{thing.this_zh}是{colour_zh}的。"
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    if form == 1:
        return f"{his} {thing.name} {thing.be} {colour}.", f"{owner.zh}的{thing.zh}是{colour_zh}的。"
    return f"{his} {thing.name} {draw.negated(thing.be)} {colour}.", f"{owner.zh}的{thing.zh}不是{colour_zh}的。"


@production(130)
def jobs(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *GROWN[10:]))
    job, job_zh = job_for(draw, who)
    form = draw.number(0, 3)
    if form == 0:
        return f"{who.en} {draw.negated(who.be)} {a(job)}.", f"{who.zh}不是{job_zh}。"
    if form == 1:
        other, other_zh = draw(
            [one for one in (("doctor", "医生"), ("teacher", "老师"), ("nurse", "护士")) if one[0] != job]
        )
        return f"{who.en} {who.be} not {a(job)} but {a(other)}.", f"{who.zh}不是{job_zh}，而是{other_zh}。"
    if form == 2:
        he, he_zh = ("He", "他") if who.agree == "m" else ("She", "她")
        if who.singular and who.en not in ("he", "she"):
            return f"{who.en}? {he} is {a(job)}.", f"{who.zh}？{he_zh}是{job_zh}。"
    return f"{who.en} {who.be} {a(job)}.", f"{who.zh}是{job_zh}。"


@production(60)
def wants_to_be(draw: Draw) -> Pair:
    who = draw((PRONOUNS[0], *PRONOUNS[2:4], *NAMES, *CHILDREN))
    job, job_zh = job_for(draw, who)
    return f"{who.en} {who.verb('want')} to become {a(job)}.", f"{who.zh}想当{job_zh}。"


@production(100)
def nationalities(draw: Draw) -> Pair:
    who, (_, country, people) = draw((*STATED, *NAMES)), draw(COUNTRIES)
    form = draw.number(0, 2)
    if form == 0:
        return f"{who.en} {who.be} {people}.", f"{who.zh}是{country}人。"
    if form == 1:
        return f"{who.en} {draw.negated(who.be)} {people}.", f"{who.zh}不是{country}人。"
    asked = draw(ASKED_GROWN)
    return f"{asked.be} {asked.en} {people}?", f"{asked.zh}是{country}人吗？"


@production(70)
def comes_from(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES))
    place, place_zh = draw((*CITIES, *((en, zh) for en, zh, _ in COUNTRIES)))
    return f"{who.en} {who.verb('come')} from {place}.", f"{who.zh}来自{place_zh}。"


@production(130)
def languages(draw: Draw) -> Pair:
    who, (first, second) = draw((*STATED, *NAMES, *MY)), draw.two(LANGUAGES)
    form = draw.number(0, 3)
    if form == 0:
        return f"{who.en} {who.verb('speak')} {first[0]} very well.", f"{who.zh}{first[1]}说得非常好。"
    if form == 1:
        return (
            f"{who.en} can speak not only {first[0]} but also {second[0]}.",
            f"{who.zh}不但会说{first[1]}，而且会说{second[1]}。",
        )
    if form == 2:
        return f"{who.en} can speak {first[0]} and {second[0]}.", f"{who.zh}会说{first[1]}和{second[1]}。"
    return f"{who.en} {draw.negated('can')} speak {first[0]}.", f"{who.zh}不会说{first[1]}。"


@production(100)
def does_well(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY[:6], *MY[8:]))
    verb, zh, how = draw((
        ("swim", "游泳游", (("very fast", "非常快"), ("very well", "非常好"), ("slowly", "很慢"))),
        ("run", "跑步跑", (("very fast", "非常快"), ("slowly", "很慢"))),
        ("sing", "唱歌唱", (("very well", "非常好"), ("badly", "很差"))),
        ("dance", "跳舞跳", (("very well", "非常好"), ("badly", "很差"))),
        ("play the piano", "弹钢琴弹", (("very well", "非常好"), ("badly", "很差"))),
        ("play tennis", "打网球打", (("very well", "非常好"), ("badly", "很差"))),
        ("play football", "踢足球踢", (("very well", "非常好"),)),
    ))  # fmt: skip
    english, chinese = draw(how)
    return f"{who.en} {who.verb(verb)} {english}.", f"{who.zh}{zh}得{chinese}。"


@production(130)
def ages(draw: Draw) -> Pair:
    child = draw.chance(0.5)
    who = draw(CHILDREN) if child else draw((*STATED[:3], *NAMES, *MY_GROWN[2:4]))
    years = draw.number(2, 16) if child else draw((18, 19, 20, *range(21, 45)))
    form = draw.number(0, 2)
    if form == 0:
        return (
            f"{who.en} will be {english_number(years)} years old next month.",
            f"{who.zh}下个月就{chinese_number(years)}岁了。",
        )
    return f"{who.en} {who.be} {english_number(years)} years old.", f"{who.zh}{chinese_number(years)}岁。"


@production(70)
def heights(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *NAMES, *MY[2:6]))
    size = f"1.{draw.number(55, 75) if who.agree == 'f' else draw.number(66, 92)}"
    return f"{who.en} {who.be} {size} meters tall.", f"{who.zh}身高{size}米。"


@production(60)
def weights(draw: Draw) -> Pair:
    thing = draw((ANIMALS[0], ANIMALS[1], ANIMALS[3], ANIMALS[5], ANIMALS[8], ANIMALS[9]))
    whole, tenth = draw.number(2, 6), draw.number(1, 9)
    if draw.chance(0.5):
        return f"{thing.this} weighs {whole}.{tenth} kilos.", f"{thing.this_zh}重{whole}.{tenth}公斤。"
    return f"{thing.that} weighs {whole}.{tenth} kilos.", f"{thing.that_zh}重{whole}.{tenth}公斤。"


@production(60)
def this_drink(draw: Draw) -> Pair:
    drink = draw([drink for drink in DRINKS if drink.zh != "水"])
    quality, quality_zh = draw((("too hot", "太烫了"), ("very expensive", "非常贵"), ("cheap", "很便宜")))
    if quality == "too hot" and drink.zh not in ("咖啡", "茶", "牛奶"):
        quality, quality_zh = "delicious", "很好喝"
    return f"{drink.this} is {quality}.", f"{drink.this_zh}{quality_zh}。"


@production(50)
def tastes(draw: Draw) -> Pair:
    food, food_zh, one = draw((
        ("soup", "汤", "碗"), ("cake", "蛋糕", "个"), ("fish", "鱼", "条"), ("apple", "苹果", "个"),
        ("sandwich", "三明治", "个"), ("pear", "梨", "个"), ("banana", "香蕉", "根"),
    ))  # fmt: skip
    this, this_zh = draw((("this", "这"), ("that", "那")))
    taste, taste_zh = draw((
        ("is delicious", "很好吃"), ("tastes very good", "味道非常好"), ("does not taste good", "不好吃"),
        ("is too sweet", "太甜了"), ("is a little salty", "有点儿咸"), ("is not fresh", "不新鲜"),
    ))  # fmt: skip
    if food == "soup":
        taste_zh = taste_zh.replace("好吃", "好喝")
    if ("salty" in taste and food not in ("soup", "fish")) or (
        "sweet" in taste and food in ("soup", "fish", "sandwich")
    ):
        taste, taste_zh = "looks delicious", "看起来很好" + ("喝" if food == "soup" else "吃")
    return f"{this} {food} {taste}.", f"{this_zh}{one}{food_zh}{taste_zh}。"


@production(90)
def that_is_a(draw: Draw) -> Pair:
    thing = draw((*CLOTHES, *BOOKS, *VEHICLES, *DEVICES, *FURNITURE, *PETS))
    english, chinese = described(draw, thing, used=True)
    this, zh = draw((("This is", "这是"), ("That is", "那是")))
    return f"{this} {english}.", f"{zh}{chinese}。"
