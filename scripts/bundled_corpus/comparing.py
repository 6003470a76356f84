"""Comparison: 比, 更, 得多, 没有 ... 那么, 跟 ... 一样 and 最."""

from __future__ import annotations

from .actions import tagged
from .drawing import Draw, Pair, production
from .inflection import chinese_number, english_number
from .people import MY, NAMES, PRONOUNS
from .qualities import COMPARED_PEOPLE, TALL, YOUNG, qualities
from .things import CLOTHES, DEVICES, FURNITURE, GOODS, READING, VEHICLES

COMPARABLE = (*CLOTHES, *READING, *VEHICLES, *DEVICES, *FURNITURE[:3])


@production(180)
def than_that_one(draw: Draw) -> Pair:
    thing = draw(COMPARABLE)
    quality = draw(qualities(thing))
    one = "those" if thing.pair else "that one"
    that_zh = "那" + thing.measure
    form = draw.number(0, 4)
    if form == 0:
        return (
            f"{thing.this} {thing.be} much {quality.more} than {one}.",
            f"{thing.this_zh}比{that_zh}{quality.zh}得多。",
        )
    if form == 1:
        return (
            f"{thing.this} {thing.be} a little {quality.more} than {one}.",
            f"{thing.this_zh}比{that_zh}{quality.zh}一点儿。",
        )
    if form == 2:
        return (
            f"{thing.this} {draw.negated(thing.be)} as {quality.en} as {one}.",
            f"{thing.this_zh}没有{that_zh}那么{quality.zh}。",
        )
    if form == 3:
        return f"{thing.this} {thing.be} as {quality.en} as {one}.", f"{thing.this_zh}跟{that_zh}一样{quality.zh}。"
    return f"{thing.this} {thing.be} {quality.more} than {one}.", f"{thing.this_zh}比{that_zh}{quality.zh}。"


@production(240)
def than_you(draw: Draw) -> Pair:
    who, other = draw.two((*NAMES, *NAMES, *MY))
    quality = draw(COMPARED_PEOPLE)
    form = draw.number(0, 5)
    if quality is YOUNG and form in (1, 2, 3):
        quality = TALL
    if form == 0:
        return f"{who.en} is much {quality.more} than {other.en}.", f"{who.zh}比{other.zh}{quality.zh}得多。"
    if form == 1:
        return (
            f"{who.en} {draw.negated('is')} as {quality.en} as {other.en}.",
            f"{who.zh}没有{other.zh}那么{quality.zh}。",
        )
    if form == 2:
        return f"{who.en} is as {quality.en} as {other.en}.", f"{who.zh}跟{other.zh}一样{quality.zh}。"
    if form == 3:
        return f"{who.en} is even {quality.more} than {other.en}.", f"{who.zh}比{other.zh}更{quality.zh}。"
    if form == 4:
        return f"Who is {quality.more}, {who.en} or {other.en}?", f"{who.zh}和{other.zh}谁更{quality.zh}？"
    return f"{who.en} is {quality.more} than {other.en}.", f"{who.zh}比{other.zh}{quality.zh}。"


@production(120)
def older_by(draw: Draw) -> Pair:
    who, other = draw.two(NAMES)
    if draw.chance(0.5):
        years = draw.number(2, 9)
        return (
            f"{who.en} is {english_number(years)} years {draw(('older',))} than {other.en}.",
            f"{who.zh}比{other.zh}大{chinese_number(years)}岁。",
        )
    if draw.chance(0.5):
        years = draw.number(2, 9)
        return (
            f"{who.en} is {english_number(years)} years younger than {other.en}.",
            f"{who.zh}比{other.zh}小{chinese_number(years)}岁。",
        )
    size = draw((2, 3, 5, 8, 10, 12, 15))
    return (
        f"{who.en} is {english_number(size)} centimeters taller than {other.en}.",
        f"{who.zh}比{other.zh}高{chinese_number(size)}厘米。",
    )


@production(140)
def the_most(draw: Draw) -> Pair:
    if draw.chance(0.4):
        who, quality = draw((*NAMES, *PRONOUNS[2:4])), draw(COMPARED_PEOPLE)
        group, group_zh, role, role_zh = draw((
            ("in our class", "我们班", "student", "学生"), ("in our school", "我们学校", "teacher", "老师"),
            ("in our company", "我们公司", "engineer", "工程师"), ("in this hospital", "这家医院", "doctor", "医生"),
        ))  # fmt: skip
        return f"{who.en} is the {quality.most} {role} {group}.", f"{who.zh}是{group_zh}最{quality.zh}的{role_zh}。"
    thing = draw(GOODS)
    quality = draw(qualities(thing))
    be, this = ("These are", "这是") if thing.pair else ("This is", "这是")
    where, where_zh = draw((("in the shop", "这家店里"), ("in the shop", "这家店里"), ("I have ever seen", "我见过的")))
    if where.startswith("I") and thing in READING:
        where, where_zh, quality = "I have ever read", "我看过的", draw(qualities(thing)[:2])
    if where.startswith("I") and quality.en in ("warm", "comfortable", "heavy"):
        where, where_zh = "in the shop", "这家店里"
    return f"{be} the {quality.most} {thing.name} {where}.", f"{this}{where_zh}最{quality.zh}的{thing.zh}。"


@production(60)
def as_well_as(draw: Draw) -> Pair:
    who, other = draw.two(NAMES)
    act = draw(tagged("d"))
    return f"{who.en} {act.now(who)} better than {other.en}.", f"{who.zh}{act.zh}{act.verb_zh}得比{other.zh}好。"
