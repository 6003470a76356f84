"""Daily life: habits, what is going on, what was done and what will be; where, when, how long, with whom."""

from __future__ import annotations

from .actions import (
    ACTS,
    FAR_TRANSPORT,
    GOALS,
    LIKED,
    ONGOING,
    PAST_ACTS,
    PLACED,
    PLACED_PAST,
    TIMED,
    TOGETHER,
    TRANSPORT,
    at,
    doer,
    suiting,
)  # fmt: skip
from .drawing import Draw, Pair, production
from .people import (
    ANYONE,
    CHINESE_CITIES,
    CITIES,
    GROWN,
    MY,
    MY_GROWN,
    NAMES,
    NEIGHBOURS,
    PUPILS,
    STATED,
    TITLES,
    WORKING,
)  # fmt: skip
from .times import ACTIVE, FREQUENCY, FUTURE, GENERAL, HABIT, LONG_FUTURE, LONG_PAST, PAST, RECENT, clock, long_duration

PERSONS = (*NAMES, *MY)


@production(180)
def habit(draw: Draw) -> Pair:
    act = draw(ACTS)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, HABIT, act)
    return f"{who.en} {act.now(who)} {when.en}.", f"{who.zh}{when.zh}{act.zh}。"


@production(260)
def habit_somewhere(draw: Draw) -> Pair:
    act = draw(PLACED)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, HABIT, act, somewhere=True)
    place, place_zh = at(draw, act)
    return f"{who.en} {act.now(who)} {place} {when.en}.", f"{who.zh}{when.zh}{place_zh}{act.zh}。"


@production(180)
def frequency(draw: Draw) -> Pair:
    act = draw([act for act in ACTS if act.base not in ("sleep", "work", "rest")])
    who = doer(draw, act, ANYONE, GROWN)
    adverb, adverb_zh = draw([one for one in FREQUENCY if one[0] not in ("always", "usually")])
    return f"{who.en} {adverb} {act.now(who)}.", f"{who.zh}{adverb_zh}{act.zh}。"


@production(200)
def frequency_somewhere(draw: Draw) -> Pair:
    act = draw(PLACED)
    who = doer(draw, act, ANYONE, GROWN)
    adverb, adverb_zh = draw(FREQUENCY)
    place, place_zh = at(draw, act)
    return f"{who.en} {adverb} {act.now(who)} {place}.", f"{who.zh}{adverb_zh}{place_zh}{act.zh}。"


@production(180)
def habit_at_an_hour(draw: Draw) -> Pair:
    base, zh, first, last = draw((
        ("get up", "起床", 5, 8), ("eat breakfast", "吃早饭", 6, 8), ("leave home", "出门", 6, 8),
        ("start work", "开始工作", 8, 10), ("go to work", "去上班", 6, 9), ("go to school", "去学校", 6, 8),
        ("eat dinner", "吃晚饭", 18, 20), ("go to bed", "上床睡觉", 21, 23), ("come home", "回家", 16, 20),
    ))  # fmt: skip
    who = (
        draw(TITLES)
        if "work" in base and draw.chance(0.3)
        else draw(WORKING if "work" in base else PUPILS if "school" in base else ANYONE)
    )
    hour, hour_zh = clock(draw, first, last, part=True)
    day, day_zh = draw((("", ""), ("", ""), (" every day", "每天"), (" on weekends", "周末")))
    if "weekend" in day and ("work" in base or "school" in base):
        day, day_zh = "", ""
    return f"{who.en} {who.verb(base)} at {hour}{day}.", f"{who.zh}{day_zh}{hour_zh}{zh}。"


@production(150)
def going_on(draw: Draw) -> Pair:
    act = draw(ONGOING)
    who = doer(draw, act, ANYONE, GROWN)
    return f"{who.en} {who.be} {act.doing(who)}.", f"{who.zh}正在{act.zh}。"


@production(170)
def going_on_somewhere(draw: Draw) -> Pair:
    act = draw([act for act in ONGOING if act.places])
    who = doer(draw, act, ANYONE, GROWN)
    place, place_zh = at(draw, act)
    return f"{who.en} {who.be} {act.doing(who)} {place} now.", f"{who.zh}现在正{place_zh}{act.zh}。"


@production(110)
def still_going_on(draw: Draw) -> Pair:
    act = draw(ONGOING)
    who = doer(draw, act, ANYONE, GROWN)
    return f"{who.en} {who.be} still {act.doing(who)}.", f"{who.zh}还在{act.zh}。"


@production(120)
def not_going_on(draw: Draw) -> Pair:
    act = draw(ACTS)
    who = doer(draw, act, ANYONE, GROWN)
    return f"{who.en} {draw.negated(who.be)} {act.doing(who)} now.", f"{who.zh}现在没在{act.zh}。"


@production(200)
def yesterday(draw: Draw) -> Pair:
    act = draw(PAST_ACTS)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, PAST, act)
    return f"{who.en} {act.past(who)} {when.en}.", f"{who.zh}{when.zh}{act.done}。"


@production(240)
def yesterday_somewhere(draw: Draw) -> Pair:
    act = draw(PLACED_PAST)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, PAST, act, somewhere=True)
    place, place_zh = at(draw, act)
    return f"{who.en} {act.past(who)} {place} {when.en}.", f"{who.zh}{when.zh}{place_zh}{act.done}。"


@production(190)
def not_yesterday(draw: Draw) -> Pair:
    act = draw(ACTS)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, RECENT, act)
    return f"{who.en} {draw.negated('did')} {act.plain(who)} {when.en}.", f"{who.zh}{when.zh}没{act.zh}。"


@production(130)
def not_a_habit(draw: Draw) -> Pair:
    act = draw([act for act in ACTS if "l" in act.tags or act.base in ("work", "exercise")])
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, GENERAL, act)
    return f"{who.en} {draw.negated(who.do)} {act.plain(who)} {when.en}.", f"{who.zh}{when.zh}不{act.zh}。"


@production(170)
def will(draw: Draw) -> Pair:
    act = draw([act for act in ACTS if "m" not in act.tags or "cook" in act.base])
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, FUTURE, act)
    if draw.chance(0.3):
        return f"{who.en} {draw.negated('will')} {act.plain(who)} {when.en}.", f"{who.zh}{when.zh}不会{act.zh}。"
    return f"{who.en} will {act.plain(who)} {when.en}.", f"{who.zh}{when.zh}会{act.zh}。"


@production(170)
def going_to(draw: Draw) -> Pair:
    act = draw(PLACED)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, FUTURE, act, somewhere=True)
    place, place_zh = at(draw, act)
    return f"{who.en} {who.be} going to {act.plain(who)} {place} {when.en}.", f"{who.zh}{when.zh}要{place_zh}{act.zh}。"


@production(120)
def went(draw: Draw) -> Pair:
    who, when, (goal, goal_zh) = draw(ANYONE), draw(PAST), draw(GOALS)
    if draw.chance(0.3):
        return f"{who.en} {draw.negated('did')} go {goal} {when.en}.", f"{who.zh}{when.zh}没去{goal_zh}。"
    return f"{who.en} went {goal} {when.en}.", f"{who.zh}{when.zh}去了{goal_zh}。"


@production(150)
def goes_by(draw: Draw) -> Pair:
    goal, goal_zh = draw((("to work", "上班"), *GOALS[:4], GOALS[8], GOALS[9]))
    how, how_zh = draw(TRANSPORT)
    who = draw(WORKING if goal == "to work" or how == "by car" else PUPILS if goal == "to school" else ANYONE)
    if draw.chance(0.5):
        adverb, adverb_zh = draw(FREQUENCY[:4])
        return f"{who.en} {adverb} {who.verb('go')} {goal} {how}.", f"{who.zh}{adverb_zh}{how_zh}去{goal_zh}。"
    when = draw(HABIT[5:] if "work" not in goal and goal != "to school" else HABIT[:1] + HABIT[5:10])
    return f"{who.en} {who.verb('go')} {goal} {how} {when.en}.", f"{who.zh}{when.zh}{how_zh}去{goal_zh}。"


@production(150)
def travels(draw: Draw) -> Pair:
    who, (how, how_zh) = draw(GROWN), draw(FAR_TRANSPORT)
    (start, start_zh), (end, end_zh) = draw.two(CHINESE_CITIES)
    if how == "by plane" and {start, end} <= NEIGHBOURS:
        how, how_zh = FAR_TRANSPORT[0]
    if draw.chance(0.5):
        when = draw(LONG_FUTURE)
        return (
            f"{who.en} will go from {start} to {end} {how} {when.en}.",
            f"{who.zh}{when.zh}会{how_zh}从{start_zh}去{end_zh}。",
        )
    when = draw(LONG_PAST)
    return (
        f"{who.en} went from {start} to {end} {how} {when.en}.",
        f"{who.zh}{when.zh}{how_zh}从{start_zh}去了{end_zh}。",
    )


@production(150)
def together(draw: Draw) -> Pair:
    act = draw(TOGETHER)
    friend = draw(PERSONS if "g" not in act.tags else NAMES)
    who = draw([one for one in (*STATED, *NAMES) if one != friend])
    form = draw.number(0, 2)
    if form == 0:
        when = suiting(draw, HABIT, act)
        return f"{who.en} {act.now(who)} with {friend.en} {when.en}.", f"{who.zh}{when.zh}跟{friend.zh}一起{act.zh}。"
    if form == 1 and act in PAST_ACTS:
        when = suiting(draw, PAST, act)
        return (
            f"{who.en} {act.past(who)} with {friend.en} {when.en}.",
            f"{who.zh}{when.zh}跟{friend.zh}一起{act.done}。",
        )
    return f"{who.en} {who.be} {act.doing(who)} with {friend.en}.", f"{who.zh}正在跟{friend.zh}一起{act.zh}。"


@production(200)
def for_hours(draw: Draw) -> Pair:
    act = draw(TIMED)
    who = doer(draw, act, ANYONE, GROWN)
    when = suiting(draw, PAST, act)
    span, span_zh = draw(ACTIVE)
    return (
        f"{who.en} {act.past(who)} for {span} {when.en}.",
        f"{who.zh}{when.zh}{act.verb_zh}了{span_zh}{act.object_zh}。",
    )


@production(110)
def for_years(draw: Draw) -> Pair:
    who, (span, span_zh) = draw(GROWN), long_duration(draw)
    (city, city_zh) = draw(CITIES)
    verb, verb_zh = draw((("lived", "住"), ("worked", "工作")))
    if verb == "lived":
        return f"{who.en} {who.have} lived in {city} for {span}.", f"{who.zh}在{city_zh}住了{span_zh}了。"
    return f"{who.en} {who.have} worked in {city} for {span}.", f"{who.zh}在{city_zh}{verb_zh}了{span_zh}了。"


@production(100)
def learns_for_years(draw: Draw) -> Pair:
    who, (span, span_zh) = draw((*STATED, *NAMES, *MY_GROWN)), long_duration(draw)
    verb, verb_zh, thing_zh = draw((
        ("studied Chinese", "学", "中文"), ("studied English", "学", "英语"), ("studied French", "学", "法语"),
        ("played the piano", "弹", "钢琴"), ("played tennis", "打", "网球"), ("played the guitar", "弹", "吉他"),
    ))  # fmt: skip
    return f"{who.en} {who.have} {verb} for {span}.", f"{who.zh}{verb_zh}了{span_zh}{thing_zh}了。"


@production(130)
def likes(draw: Draw) -> Pair:
    act = draw(LIKED)
    who = doer(draw, act, ANYONE, GROWN)
    form = draw.number(0, 2)
    if form == 0:
        return f"{who.en} {draw.negated(who.do)} like {act.ing(who)}.", f"{who.zh}不喜欢{act.zh}。"
    if form == 1:
        return f"{who.en} also {who.verb('like')} {act.ing(who)}.", f"{who.zh}也喜欢{act.zh}。"
    return f"{who.en} {who.verb('like')} {act.ing(who)} very much.", f"{who.zh}非常喜欢{act.zh}。"


@production(120)
def likes_somewhere(draw: Draw) -> Pair:
    act = draw([act for act in LIKED if act.places])
    who = doer(draw, act, ANYONE, GROWN)
    place, place_zh = at(draw, act)
    return f"{who.en} {who.verb('like')} {act.ing(who)} {place}.", f"{who.zh}喜欢{place_zh}{act.zh}。"
