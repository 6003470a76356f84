"""Modal verbs, skills and experience: 会, 能, 得, 必须, 应该, 想, 过."""

from __future__ import annotations

from .actions import ACTS, GOALS, SKILLS, TRANSPORT, doer, suiting
from .drawing import Draw, Pair, production
from .people import (
    ANYONE,
    ASKED,
    ASKED_GROWN,
    CHILDREN,
    CITIES,
    GROWN,
    MY,
    MY_GROWN,
    NAMES,
    PRONOUNS,
    PUPILS,
    STATED,
    TITLES,
    WORKING,
)  # fmt: skip
from .times import FUTURE, LONG_FUTURE


@production(150)
def skills(draw: Draw) -> Pair:
    act, form = draw(SKILLS), draw.number(0, 3)
    who = draw((*STATED, *NAMES, *MY))
    if form == 0:
        return f"{who.en} {draw.negated('can')} {act.plain(who)}.", f"{who.zh}不会{act.zh}。"
    if form == 1:
        asked = draw(ASKED)
        return f"Can {asked.en} {act.plain(asked)}?", f"{asked.zh}会{act.zh}吗？"
    if form == 2:
        return f"{who.en} {who.be} learning to {act.plain(who)}.", f"{who.zh}正在学{act.zh}。"
    return f"{who.en} can {act.plain(who)}.", f"{who.zh}会{act.zh}。"


# Modal verbs: English singular, English plural, Chinese.
MODALS = (
    ("must", "must", "必须"), ("should", "should", "应该"), ("should not", "should not", "不应该"), ("needs to", "need to", "需要"),
    ("doesn't have to", "don't have to", "不用"), ("wants to", "want to", "想"), ("doesn't want to", "don't want to", "不想"),
    ("plans to", "plan to", "打算"), ("has to", "have to", "得"),
)  # fmt: skip


@production(330)
def modals(draw: Draw) -> Pair:
    act = draw([act for act in ACTS if "m" not in act.tags or "cook" in act.base])
    who = doer(draw, act, (*ANYONE, PRONOUNS[1], PRONOUNS[1]), (*GROWN, PRONOUNS[1]))
    singular, plural, zh = draw(MODALS[:5] if who is PRONOUNS[1] else MODALS)
    when = suiting(draw, (*FUTURE[:7], FUTURE[7]), act)
    return (
        f"{who.en} {singular if who.singular else plural} {act.plain(who)} {when.en}.",
        f"{who.zh}{when.zh}{zh}{act.zh}。",
    )


@production(170)
def modals_of_going(draw: Draw) -> Pair:
    who = draw((*GROWN, PRONOUNS[1], PRONOUNS[1]))
    singular, plural, zh = draw(MODALS[:5] if who is PRONOUNS[1] else MODALS)
    modal = singular if who.singular else plural
    if draw.chance(0.5):
        (city, city_zh), when = draw(CITIES), draw(LONG_FUTURE)
        return f"{who.en} {modal} go to {city} {when.en}.", f"{who.zh}{when.zh}{zh}去{city_zh}。"
    (goal, goal_zh), (how, how_zh) = draw(GOALS), draw(TRANSPORT)
    return f"{who.en} {modal} go {goal} {how}.", f"{who.zh}{zh}{how_zh}去{goal_zh}。"


@production(100)
def cannot_come(draw: Draw) -> Pair:
    who, when = draw((*STATED, *NAMES, *TITLES, *MY)), draw((*FUTURE, *LONG_FUTURE[:2]))
    base, zh = draw(
        (
            ("come", "来"),
            ("go to the party", "去参加聚会"),
            ("come to the meeting", "来开会"),
            ("go to work", "去上班"),
            ("go to school", "去学校"),
        )
    )
    if "work" in base or "meeting" in base:
        who = draw(WORKING)
    if "school" in base:
        who = draw(PUPILS)
    if base not in ("come", "go to the party"):
        when = draw([when for when in (*FUTURE[:2], *FUTURE[7:13], *LONG_FUTURE[:1]) if "weekend" not in when.en])
    if draw.chance(0.3):
        asked = draw(ASKED_GROWN if "work" in base or "meeting" in base else ASKED)
        return f"Can {asked.en} {base} {when.en}?", f"{asked.zh}{when.zh}能{zh}吗？"
    return f"{who.en} {draw.negated('can')} {base} {when.en}.", f"{who.zh}{when.zh}不能{zh}。"


@production(110)
def experience(draw: Draw) -> Pair:
    who, asked, form = draw((*STATED, *NAMES, *MY)), draw(ASKED), draw.number(0, 3)
    if form == 0:
        city, city_zh = draw(CITIES)
        return f"{asked.have} {asked.en} ever been to {city}?", f"{asked.zh}去过{city_zh}吗？"
    done, zh = draw((
        ("seen this movie", "看过这部电影"), ("read this novel", "看过这本小说"), ("eaten Japanese food", "吃过日本菜"), ("eaten French food", "吃过法国菜"),
        ("eaten Chinese food", "吃过中国菜"), ("learned Japanese", "学过日语"), ("taken a plane", "坐过飞机"), ("heard this song", "听过这首歌"),
        ("met Mr. Wang", "见过王先生"), ("drunk this wine", "喝过这种葡萄酒"),
    ))  # fmt: skip
    if form == 1:
        return f"{asked.have} {asked.en} ever {done}?", f"{asked.zh}{zh}吗？"
    if form == 2:
        return f"{who.en} {who.have} never {done}.", f"{who.zh}从来没{zh}。"
    return f"{who.en} {who.have} {done}.", f"{who.zh}{zh}。"


@production(130)
def yet(draw: Draw) -> Pair:
    who, form = draw((*STATED, *NAMES, *CHILDREN)), draw.number(0, 3)
    done, zh, object_zh = draw((
        ("finished {his} homework", "做完", "作业"), ("bought the ticket", "买", "票"), ("eaten breakfast", "吃", "早饭"), ("eaten dinner", "吃", "晚饭"),
        ("washed the dishes", "洗", "碗"), ("read this book", "看完", "这本书"), ("written the letter", "写完", "信"), ("booked the hotel", "订", "酒店"),
        ("cleaned the room", "打扫", "房间"), ("arrived in Beijing", "到", "北京"), ("come home", "回", "家"), ("gone to bed", "睡", "觉"),
    ))  # fmt: skip
    if form == 0:
        asked = draw(ASKED)
        return f"{asked.have} {asked.en} {done.format(his=asked.his)} yet?", f"{asked.zh}{zh}{object_zh}了吗？"
    if done.startswith("booked"):
        who = draw(GROWN)
    done = done.format(his=who.his)
    if form == 1:
        return f"{who.en} {draw.negated(who.have)} {done} yet.", f"{who.zh}还没{zh}{object_zh}。"
    if form == 2 and zh in ("买", "吃", "洗", "到", "打扫", "回"):
        return (
            f"{who.en} {who.have} just {done}.",
            f"{who.zh}刚{zh}{'完' if zh in ('吃', '洗', '打扫') else ''}{object_zh}。",
        )
    return f"{who.en} {who.have} already {done}.", f"{who.zh}已经{zh}{object_zh}了。"


@production(90)
def hurts(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *NAMES, *MY_GROWN, *TITLES))
    what_en, zh = draw(
        (
            ("a headache", "头疼"),
            ("a stomachache", "肚子疼"),
            ("a toothache", "牙疼"),
            ("a fever", "发烧"),
            ("a cold", "感冒"),
        )
    )
    form = draw.number(0, 2)
    if form == 0:
        return f"{who.en} {who.have} {what_en} today.", f"{who.zh}今天{zh}{'了' if zh in ('发烧', '感冒') else ''}。"
    if form == 1:
        when, when_zh = draw((("yesterday", "昨天"), ("last night", "昨天晚上"), ("last week", "上个星期")))
        return f"{who.en} had {what_en} {when}.", f"{who.zh}{when_zh}{zh}{'了' if zh in ('发烧', '感冒') else ''}。"
    asked = draw(ASKED)
    return f"{asked.do} {asked.en} have {what_en}?", f"{asked.zh}{zh}{'了' if zh in ('发烧', '感冒') else ''}吗？"
