"""Questions with 吗, question words (which stay where the answer stands in Chinese), 还是, and modal verbs."""

from __future__ import annotations

from .actions import ACTS, GOALS, LIKED, ONGOING, PAST_ACTS, PLACED, TIMED, TRANSPORT, at, doer, suiting, tagged
from .drawing import Draw, Pair, production
from .inflection import a
from .people import ASKED, ASKED_GROWN, CITIES, NAMES, NEUTRAL_JOBS, PRONOUNS, STATED, YOUR, YOUR_GROWN
from .qualities import qualities
from .things import BOOKS, CLOTHES, DEVICES, PETS, READING, SMALL, SNACKS, VEHICLES
from .times import FUTURE, HABIT, PAST, RECENT


@production(140)
def does_one(draw: Draw) -> Pair:
    like = draw.chance(0.4)
    act = draw(LIKED if like else ACTS)
    who = doer(draw, act, ASKED, ASKED_GROWN)
    if like:
        return f"{who.do} {who.en} like {act.ing(who)}?", f"{who.zh}喜欢{act.zh}吗？"
    when = suiting(draw, HABIT, act)
    return f"{who.do} {who.en} {act.plain(who)} {when.en}?", f"{who.zh}{when.zh}{act.zh}吗？"


@production(140)
def did_one(draw: Draw) -> Pair:
    act = draw(PAST_ACTS)
    who = doer(draw, act, ASKED, ASKED_GROWN)
    when = suiting(draw, RECENT, act)
    return f"Did {who.en} {act.plain(who)} {when.en}?", f"{who.zh}{when.zh}{act.zh}了吗？"


@production(120)
def is_one_doing(draw: Draw) -> Pair:
    act = draw([act for act in ONGOING if act.places])
    who = doer(draw, act, ASKED, ASKED_GROWN)
    place, place_zh = at(draw, act)
    return f"{who.be} {who.en} {act.doing(who)} {place}?", f"{who.zh}正{place_zh}{act.zh}吗？"


@production(140)
def will_one(draw: Draw) -> Pair:
    act = draw([act for act in ACTS if "m" not in act.tags or "cook" in act.base])
    who = doer(draw, act, ASKED, ASKED_GROWN)
    when = suiting(draw, FUTURE, act)
    return f"Will {who.en} {act.plain(who)} {when.en}?", f"{who.zh}{when.zh}会{act.zh}吗？"


@production(150)
def what(draw: Draw) -> Pair:
    who = draw(ASKED_GROWN)
    form = draw.number(0, 5)
    if form == 0:
        return f"What {who.be} {who.en} doing?", f"{who.zh}正在做什么？"
    if form == 1:
        when = draw(PAST)
        return f"What did {who.en} buy {when.en}?", f"{who.zh}{when.zh}买了什么？"
    if form == 2:
        when = draw(PAST)
        return f"What did {who.en} do {when.en}?", f"{who.zh}{when.zh}做了什么？"
    if form == 3:
        when = draw(FUTURE)
        return f"What does {who.en} want to do {when.en}?".replace("does", who.do), f"{who.zh}{when.zh}想做什么？"
    if form == 4:
        meal, meal_zh, part = draw((("breakfast", "早饭", "m"), ("lunch", "午饭", "a"), ("dinner", "晚饭", "e")))
        when = draw(
            [when for when in PAST if not when.part and "weekend" not in when.en]
            + [w for w in PAST if w.part == part][:1]
        )
        if when.part:
            return f"What did {who.en} eat {when.en}?", f"{who.zh}{when.zh}吃了什么？"
        return f"What did {who.en} eat for {meal} {when.en}?", f"{who.zh}{when.zh}{meal_zh}吃了什么？"
    when = draw(FUTURE)
    return f"What will {who.en} do {when.en}?", f"{who.zh}{when.zh}会做什么？"


@production(140)
def where(draw: Draw) -> Pair:
    act = draw([act for act in PLACED if len(act.places) > 1])
    who = doer(draw, act, ASKED, ASKED_GROWN)
    form = draw.number(0, 3)
    if form == 0:
        return f"Where {who.do} {who.en} usually {act.plain(who)}?", f"{who.zh}通常在哪儿{act.zh}？"
    if form == 1 and act in PAST_ACTS:
        when = suiting(draw, PAST, act, somewhere=True)
        return (
            f"Where did {who.en} {act.plain(who)} {when.en}?",
            f"{who.zh}{when.zh}是在哪儿{act.verb_zh}的{act.object_zh}？",
        )
    if form == 2:
        person = draw((*ASKED_GROWN,))
        verb, verb_zh = draw((("live", "住在哪儿"), ("work", "在哪儿工作")))
        return f"Where {person.do} {person.en} {verb}?", f"{person.zh}{verb_zh}？"
    thing = draw((*SMALL, *DEVICES, *CLOTHES, *BOOKS))
    owner = draw((*PRONOUNS, *NAMES))
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    return f"Where {thing.be} {his} {thing.name}?", f"{owner.zh}的{thing.zh}在哪儿？"


@production(140)
def when_will(draw: Draw) -> Pair:
    who = draw(ASKED_GROWN)
    form = draw.number(0, 3)
    if form == 0:
        city, city_zh = draw(CITIES)
        return f"When will {who.en} go to {city}?", f"{who.zh}什么时候去{city_zh}？"
    if form == 1:
        city, city_zh = draw(CITIES)
        return f"When did {who.en} arrive in {city}?", f"{who.zh}是什么时候到{city_zh}的？"
    if form == 2:
        base, zh = draw((
            ("get up", "起床"), ("go to bed", "睡觉"), ("eat breakfast", "吃早饭"), ("go to work", "去上班"), ("come home", "回家"),
            ("eat dinner", "吃晚饭"), ("finish work", "下班"),
        ))  # fmt: skip
        return f"What time {who.do} {who.en} {base} every day?", f"{who.zh}每天几点{zh}？"
    base, zh = draw(
        (
            ("finish the work", "完成工作"),
            ("come back", "回来"),
            ("start work", "开始工作"),
            ("call me", "给我打电话"),
            ("have time", "有时间"),
        )
    )
    return f"When will {who.en} {base}?", f"{who.zh}什么时候会{zh}？"


@production(120)
def why(draw: Draw) -> Pair:
    who = draw(ASKED_GROWN)
    form = draw.number(0, 3)
    if form == 0:
        (goal, goal_zh), when = draw(GOALS), draw(PAST)
        return f"Why did {who.en} not go {goal} {when.en}?", f"{who.zh}{when.zh}为什么没去{goal_zh}？"
    if form == 1:
        state, zh = draw((("tired", "累"), ("busy", "忙"), ("happy", "高兴"), ("nervous", "紧张"), ("angry", "生气")))
        return f"Why {who.be} {who.en} so {state}?", f"{who.zh}为什么这么{zh}？"
    if form == 2:
        act = draw(LIKED)
        return f"Why {who.do} {who.en} like {act.ing(who)}?", f"{who.zh}为什么喜欢{act.zh}？"
    city, city_zh = draw(CITIES)
    return f"Why {who.do} {who.en} want to go to {city}?", f"{who.zh}为什么想去{city_zh}？"


@production(130)
def who_does(draw: Draw) -> Pair:
    act, form = draw(LIKED), draw.number(0, 3)
    one = PRONOUNS[2]
    if form == 0:
        return f"Who is {act.doing(one)}?", f"谁正在{act.zh}？"
    if form == 1 and act.places:
        place, place_zh = at(draw, act)
        return f"Who is {act.doing(one)} {place}?", f"谁正{place_zh}{act.zh}？"
    if form == 2:
        when = suiting(draw, FUTURE, act)
        return f"Who wants to {act.plain()} {when.en}?", f"谁{when.zh}想{act.zh}？"
    thing = draw((*CLOTHES, *READING, *DEVICES, SMALL[0], SNACKS[5], SMALL[6]))
    return f"Who bought {thing.this}?", f"{thing.this_zh}是谁买的？"


@production(110)
def with_whom(draw: Draw) -> Pair:
    act = draw(tagged("k"))
    who = doer(draw, act, ASKED, ASKED_GROWN)
    form = draw.number(0, 1)
    if form == 0:
        when = suiting(draw, FUTURE, act, somewhere=True)
        return f"Who will {who.en} {act.plain(who)} with {when.en}?", f"{who.zh}{when.zh}会跟谁一起{act.zh}？"
    when = suiting(draw, PAST, act, somewhere=True)
    return (
        f"Who did {who.en} {act.plain(who)} with {when.en}?",
        f"{who.zh}{when.zh}是跟谁一起{act.verb_zh}的{act.object_zh}？",
    )


@production(70)
def how_one_goes(draw: Draw) -> Pair:
    who = draw(ASKED_GROWN)
    goal, goal_zh = draw(
        (
            ("to work", "上班"),
            ("to school", "学校"),
            ("to the airport", "机场"),
            ("to the station", "车站"),
            ("to the hospital", "医院"),
        )
    )
    form = draw.number(0, 2)
    if form == 0:
        return f"How {who.do} {who.en} usually go {goal}?", f"{who.zh}通常怎么去{goal_zh}？"
    if form == 1:
        when = draw([when for when in PAST if when.part != "e"][:7])
        return f"How did {who.en} go {goal} {when.en}?", f"{who.zh}{when.zh}是怎么去{goal_zh}的？"
    when = draw([when for when in FUTURE if when.part != "e" and "weekend" not in when.en][:9])
    return f"How will {who.en} go {goal} {when.en}?", f"{who.zh}{when.zh}怎么去{goal_zh}？"


@production(110)
def how_long(draw: Draw) -> Pair:
    act, form = draw(TIMED), draw.number(0, 2)
    who = doer(draw, act, ASKED, ASKED_GROWN)
    if form == 0:
        city, city_zh = draw(CITIES)
        person = draw(ASKED_GROWN)
        return f"How long {person.have} {person.en} lived in {city}?", f"{person.zh}在{city_zh}住了多长时间了？"
    when = suiting(draw, RECENT, act)
    return (
        f"How long did {who.en} {act.plain(who)} {when.en}?",
        f"{who.zh}{when.zh}{act.verb_zh}了多长时间{act.object_zh}？",
    )


@production(110)
def how_many(draw: Draw) -> Pair:
    who = draw(ASKED_GROWN)
    thing = draw((*BOOKS, *CLOTHES, *SMALL[:6], *PETS, *DEVICES))
    if draw.chance(0.5):
        plural = f"pairs of {thing.plural}" if thing.pair else thing.plural
        return f"How many {plural} {who.do} {who.en} have?", f"{who.zh}有几{thing.measure}{thing.zh}？"
    thing = draw((*BOOKS, *CLOTHES, *SMALL[:6], *SNACKS[:6]))
    plural, when = f"pairs of {thing.plural}" if thing.pair else thing.plural, draw(PAST)
    return f"How many {plural} did {who.en} buy {when.en}?", f"{who.zh}{when.zh}买了几{thing.measure}{thing.zh}？"


@production(110)
def which(draw: Draw) -> Pair:
    thing, who = draw((*CLOTHES, *BOOKS, *DEVICES, *VEHICLES)), draw(ASKED)
    form = draw.number(0, 2)
    if form == 0:
        quality = draw(qualities(thing))
        if thing.pair:
            return f"Which pair of {thing.plural} is {quality.more}?", f"哪{thing.measure}{thing.zh}更{quality.zh}？"
        return f"Which {thing.en} is {quality.more}?", f"哪{thing.measure}{thing.zh}更{quality.zh}？"
    name = f"pair of {thing.plural}" if thing.pair else thing.en
    if form == 1:
        return f"Which {name} {who.do} {who.en} want to buy?", f"{who.zh}想买哪{thing.measure}{thing.zh}？"
    return f"Which {name} {who.do} {who.en} like?", f"{who.zh}喜欢哪{thing.measure}{thing.zh}？"


@production(150)
def choices(draw: Draw) -> Pair:
    form = draw.number(0, 4)
    who = draw(ASKED_GROWN)
    if form == 0:
        (job, job_zh), (other, other_zh) = draw.two(NEUTRAL_JOBS)
        if who.agree in ("3p",):
            who = draw(NAMES)
        return f"{who.be} {who.en} {a(job)} or {a(other)}?", f"{who.zh}是{job_zh}还是{other_zh}？"
    if form == 1:
        ((how, how_zh), (other, other_zh)), (goal, goal_zh) = (
            draw.two(TRANSPORT),
            draw((GOALS[3], GOALS[5], GOALS[6], ("to work", "上班"))),
        )
        return f"{who.do} {who.en} go {goal} {how} or {other}?", f"{who.zh}{how_zh}还是{other_zh}去{goal_zh}？"
    if form == 2:
        (city, city_zh), (other, other_zh) = draw.two(CITIES)
        return f"{who.do} {who.en} live in {city} or in {other}?", f"{who.zh}住在{city_zh}还是{other_zh}？"
    if form == 3:
        first, second = draw.two([act for act in LIKED if "g" not in act.tags])
        when = draw([w for w in FUTURE if not w.part])
        return (
            f"{who.do} {who.en} want to {first.plain()} or {second.plain()} {when.en}?",
            f"{who.zh}{when.zh}想{first.zh}还是{second.zh}？",
        )
    (when, other), (goal, goal_zh) = draw.two([w for w in FUTURE if not w.part]), draw(GOALS)
    return f"Will {who.en} go {goal} {when.en} or {other.en}?", f"{who.zh}{when.zh}还是{other.zh}去{goal_zh}？"


@production(70)
def tags(draw: Draw) -> Pair:
    who = draw((PRONOUNS[1], *PRONOUNS[2:4], *NAMES, *YOUR_GROWN))
    he = who.he
    form = draw.number(0, 2)
    if form == 0:
        job, job_zh = draw(NEUTRAL_JOBS)
        return f"{who.en} {who.be} {a(job)}, {who.be}n't {he}?", f"{who.zh}是{job_zh}，对吗？"
    act = draw([act for act in LIKED if "his" not in act.rest])
    if form == 1:
        return f"{who.en} {who.verb('like')} {act.ing(who)}, {who.do}n't {he}?", f"{who.zh}喜欢{act.zh}，对吗？"
    city, city_zh = draw(CITIES)
    return f"{who.en} {who.verb('live')} in {city}, {who.do}n't {he}?", f"{who.zh}住在{city_zh}，对吗？"


@production(100)
def answers(draw: Draw) -> Pair:
    who, form = draw((*STATED, *NAMES)), draw.number(0, 3)
    act = draw(LIKED)
    if form == 0:
        return f"Yes, {who.en} {who.verb('like')} {act.ing(who)}.", f"是的，{who.zh}喜欢{act.zh}。"
    if form == 1:
        return f"No, {who.en} {draw.negated(who.do)} like {act.ing(who)}.", f"不，{who.zh}不喜欢{act.zh}。"
    city, city_zh = draw(CITIES)
    if form == 2:
        return f"Yes, {who.en} {who.verb('live')} in {city}.", f"是的，{who.zh}住在{city_zh}。"
    (goal, goal_zh), when = draw(GOALS), draw(PAST)
    return f"No, {who.en} {draw.negated('did')} go {goal} {when.en}.", f"不，{who.zh}{when.zh}没去{goal_zh}。"


@production(70)
def questions_of_size(draw: Draw) -> Pair:
    who = draw((*PRONOUNS[1:4], *NAMES, *YOUR))
    form = draw.number(0, 3)
    if form == 0:
        return f"How old {who.be} {who.en}?", f"{who.zh}多大？"
    if form == 1:
        return f"How tall {who.be} {who.en}?", f"{who.zh}多高？"
    thing = draw((*CLOTHES, *VEHICLES, SMALL[7], SMALL[0]))
    owner = draw((*PRONOUNS[1:4], *NAMES))
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    return f"What color {thing.be} {his} {thing.name}?", f"{owner.zh}的{thing.zh}是什么颜色的？"
