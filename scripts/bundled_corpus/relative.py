"""Relative clauses: after the noun in English, before it with 的 in Chinese."""

from __future__ import annotations

from .actions import ONGOING, at_public, publicly
from .drawing import Draw, Pair, production
from .people import GROWN, MY, NAMES, PRONOUNS, STATED, TITLES, Who
from .qualities import qualities
from .things import BOOKS, CLOTHES, DEVICES, FURNITURE, READING, VEHICLES
from .times import LONG_PAST, PAST

BOUGHT = (*CLOTHES, *BOOKS, *DEVICES, *VEHICLES, *FURNITURE)


def verb_for(thing: object, draw: Draw) -> tuple[str, str]:
    """What one does with a thing that a relative clause recalls."""
    if thing in READING:
        return draw((("bought", "买"), ("borrowed", "借"), ("read", "看")))
    if thing in BOOKS:
        return draw((("bought", "买"), ("borrowed", "借")))
    return "bought", "买"


@production(220)
def the_thing_that(draw: Draw) -> Pair:
    who, thing, when = draw((*PRONOUNS, *PRONOUNS, *NAMES, *MY)), draw(BOUGHT), draw((*PAST, *LONG_PAST))
    verb, verb_zh = verb_for(thing, draw)
    quality = draw(qualities(thing)[:2] if verb == "read" else qualities(thing))
    form = draw.number(0, 3)
    clause, clause_zh = f"{who.en} {verb} {when.en}", f"{who.zh}{when.zh}{verb_zh}的{thing.zh}"
    if form == 0:
        return f"The {thing.name} that {clause} {thing.be} very {quality.en}.", f"{clause_zh}非常{quality.zh}。"
    if form == 1:
        other = draw([one for one in (*STATED[:3], *NAMES) if one.en != who.en and one.agree != who.agree])
        return f"{other.en} {other.verb('like')} the {thing.name} that {clause}.", f"{other.zh}喜欢{clause_zh}。"
    if form == 2:
        return f"Where {thing.be} the {thing.name} that {clause}?", f"{clause_zh}在哪儿？"
    return f"The {thing.name} that {clause} {draw.negated(thing.be)} {quality.en}.", f"{clause_zh}不{quality.zh}。"


@production(170)
def the_one_who(draw: Draw) -> Pair:
    role, role_zh, agree = draw(
        (("man", "男人", "m"), ("woman", "女人", "f"), ("boy", "男孩", "m"), ("girl", "女孩", "f"))
    )
    one = Who(role, role_zh, agree)
    act = draw([act for act in ONGOING if publicly(act) and ("g" not in act.tags or role in ("man", "woman"))])
    place, place_zh = at_public(draw, act)
    form = draw.number(0, 2)
    if form == 0:
        pool = [who for who in (*MY, *NAMES, *TITLES) if who.agree == agree]
        adult = role in ("man", "woman")
        pool = [who for who in pool if who in NAMES or (who in (*TITLES, *MY) and (who in GROWN) == adult)]
        who = draw(pool)
        return f"The {role} who is {act.doing(one)} is {who.en}.", f"正在{act.zh}的{role_zh}是{who.zh}。"
    if form == 1:
        return f"Do you know the {role} who is {act.doing(one)} {place}?", f"你认识正{place_zh}{act.zh}的{role_zh}吗？"
    return f"Who is the {role} who is {act.doing(one)} {place}?", f"正{place_zh}{act.zh}的{role_zh}是谁？"


@production(110)
def the_person_in(draw: Draw) -> Pair:
    role, role_zh, agree = draw(
        (("man", "男人", "m"), ("woman", "女人", "f"), ("boy", "男孩", "m"), ("girl", "女孩", "f"))
    )
    thing = draw([thing for thing in CLOTHES if thing.en != "gloves" and (agree == "f" or thing.en != "skirt")])
    colour, colour_zh = draw(
        (("red", "红色"), ("black", "黑色"), ("white", "白色"), ("blue", "蓝色"), ("green", "绿色"), ("yellow", "黄色"))
    )
    wearing = "戴" if thing.en in ("hat", "scarf") else "穿"
    english, _ = thing.with_adjective(colour, "")
    if thing.pair:
        english = f"{colour} {thing.plural}"
    if draw.chance(0.4):
        return f"Who is the {role} wearing {english}?", f"{wearing}着{colour_zh}{thing.zh}的{role_zh}是谁？"
    adult = role in ("man", "woman")
    who = draw([who for who in (*MY, *NAMES) if who.agree == agree and (who in NAMES or (who in GROWN) == adult)])
    return f"The {role} wearing {english} is {who.en}.", f"{wearing}着{colour_zh}{thing.zh}的{role_zh}是{who.zh}。"
