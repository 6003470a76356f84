"""What people think, say, know and hope: one sentence inside another."""

from __future__ import annotations

from .actions import GOALS, LIKED
from .drawing import Draw, Pair, production
from .people import ASKED, CITIES, GROWN, MY, NAMES, PRONOUNS, STATED, TITLES
from .qualities import FEELINGS, qualities
from .relative import BOUGHT
from .times import FUTURE


@production(160)
def thinks(draw: Draw) -> Pair:
    who, thing = draw((*PRONOUNS, *PRONOUNS, *NAMES, *MY)), draw(BOUGHT)
    quality = draw(qualities(thing))
    if draw.chance(0.4):
        return (
            f"{who.en} {draw.negated(who.do)} think {thing.this} {thing.be} {quality.en}.",
            f"{who.zh}不觉得{thing.this_zh}{quality.zh}。",
        )
    if draw.chance(0.3):
        asked = draw(ASKED)
        return (
            f"{asked.do} {asked.en} think {thing.that} {thing.be} {quality.en}?",
            f"{asked.zh}觉得{thing.that_zh}{quality.zh}吗？",
        )
    if quality.en in ("expensive", "big", "small", "long", "heavy", "boring"):
        return (
            f"{who.en} {who.verb('think')} {thing.that} {thing.be} too {quality.en}.",
            f"{who.zh}觉得{thing.that_zh}太{quality.zh}了。",
        )
    return (
        f"{who.en} {who.verb('think')} {thing.that} {thing.be} very {quality.en}.",
        f"{who.zh}觉得{thing.that_zh}非常{quality.zh}。",
    )


@production(170)
def says(draw: Draw) -> Pair:
    who = draw((*NAMES, *MY, *TITLES))
    form = draw.number(0, 3)
    if form == 0:
        quality = draw(FEELINGS)
        return f"{who.en} said that {who.he} was very {quality.en}.", f"{who.zh}说{who.he_zh}非常{quality.zh}。"
    other = draw((*PRONOUNS[:1], *PRONOUNS[4:]))
    if form == 1:
        when, (goal, goal_zh) = draw(FUTURE), draw(GOALS)
        return (
            f"{who.en} told {other.him} that {who.he} would go {goal} {when.en}.",
            f"{who.zh}告诉{other.zh}{who.he_zh}{when.zh}会去{goal_zh}。",
        )
    if form == 2:
        city, city_zh = draw(CITIES)
        return f"{who.en} said that {who.he} had been to {city}.", f"{who.zh}说{who.he_zh}去过{city_zh}。"
    act = draw([act for act in LIKED if "g" not in act.tags])
    return (
        f"{who.en} told {other.him} that {who.he} liked {act.ing(who)}.",
        f"{who.zh}告诉{other.zh}{who.he_zh}喜欢{act.zh}。",
    )


@production(150)
def knows(draw: Draw) -> Pair:
    who = draw((*NAMES, *MY, *TITLES))
    clause, zh = draw((
        ("where {p} lives", "{p}住在哪儿"), ("where {p} is", "{p}在哪儿"), ("why {p} is angry", "{p}为什么生气"),
        ("when {p} will come back", "{p}什么时候会回来"), ("what {p} is doing", "{p}正在做什么"), ("how old {p} is", "{p}多大"),
        ("what {p} bought yesterday", "{p}昨天买了什么"), ("how {p} goes to work", "{p}怎么去上班"), ("who {p} is waiting for", "{p}在等谁"),
        ("whether {p} has a car", "{p}有没有车"), ("whether {p} is at home", "{p}在不在家"), ("whether {p} will come tomorrow", "{p}明天会不会来"),
    ))  # fmt: skip
    if "work" in clause and who not in GROWN:
        who = draw(NAMES)
    clause, zh = clause.format(p=who.en), zh.format(p=who.zh)
    form = draw.number(0, 3)
    if form == 0:
        return f"Do you know {clause}?", f"你知道{zh}吗？"
    if form == 1:
        return f"Please tell me {clause}.", f"请告诉我{zh}。"
    knower = draw((*PRONOUNS[:1], *PRONOUNS[4:], *NAMES))
    if knower.en == who.en:
        knower = PRONOUNS[0]
    return f"{knower.en} {draw.negated(knower.do)} know {clause}.", f"{knower.zh}不知道{zh}。"


@production(90)
def hopes(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    other = draw([one for one in (PRONOUNS[1], *NAMES) if one.en != who.en])
    clause, zh = draw((
        ("it will not rain tomorrow", "明天不会下雨"), ("the weather will be good this weekend", "这个周末天气会很好"),
        (f"{other.en} can come to the party", f"{other.zh}能来参加聚会"), (f"{other.en} will like this present", f"{other.zh}会喜欢这份礼物"),
        (f"{other.en} will help us", f"{other.zh}会帮助我们"), ("the train will not be late", "火车不会晚点"),
        (f"{other.en} will call tonight", f"{other.zh}今天晚上会打电话"), ("the exam will not be too difficult", "考试不会太难"),
    ))  # fmt: skip
    return f"{who.en} {who.verb('hope')} that {clause}.", f"{who.zh}希望{zh}。"
