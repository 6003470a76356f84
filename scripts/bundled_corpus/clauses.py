"""Sentences in two parts: relative clauses, reasons, concessions, conditions, order in time, reported thoughts."""

from __future__ import annotations

from .actions import GOALS, LIKED, ONGOING, doer
from .drawing import Draw, Pair, production
from .people import ANYONE, CITIES, GROWN, MY, NAMES, PRONOUNS, PUPILS, STATED
from .relative import BOUGHT
from .things import READING
from .times import FUTURE, PAST

# Clauses of reason and circumstance: English after a subject (with he and his agreeing), Chinese after a subject.
STATES = (
    ("{he} {was} sick", "病了", "all"), ("{he} {was} very tired", "太累了", "fun"), ("{he} {was} too busy", "太忙了", "fun"),
    ("{he} had a headache", "头疼", "all"), ("{he} had a cold", "感冒了", "all"), ("{he} had no money", "没有钱", "paid"),
    ("{he} had no time", "没有时间", "fun"), ("{he} got up late", "起晚了", "duty"), ("it was raining", "下雨了", "open"),
    ("it was snowing", "下雪了", "open"), ("it was too cold", "天气太冷了", "open"), ("it was too hot", "天气太热了", "open"),
)  # fmt: skip
FAILURES = (
    ("go to school", "去学校", "duty"), ("go to work", "去上班", "duty"), ("go to the park", "去公园", "fun open"),
    ("play tennis", "打网球", "fun open"), ("go to the party", "去参加聚会", "fun"), ("take the exam", "参加考试", "duty"),
    ("go to the movie theater", "去电影院", "fun paid"), ("come to the meeting", "来开会", "duty"),
    ("play football", "踢足球", "fun open"), ("go to the gym", "去健身房", "fun"), ("take a walk", "散步", "fun open"),
)  # fmt: skip


@production(190)
def because(draw: Draw) -> Pair:
    reason, reason_zh, kind = draw(STATES)
    base, zh, _ = draw([one for one in FAILURES if kind in (*one[2].split(), "all")])
    who = draw((*STATED, *NAMES) if base.endswith("work") or "meeting" in base else (*STATED, *NAMES, *MY))
    if base in ("go to school", "take the exam"):
        who = draw([who for who in PUPILS if who.agree != "3p"])
    clause = reason.format(he=who.he, was=who.was)
    subject_zh = "" if reason.startswith("it") else who.zh
    back_zh = who.zh if reason.startswith("it") else ""
    when, when_zh = draw(
        (
            ("yesterday", "昨天"),
            ("last Monday", "上个星期一"),
            ("last Saturday", "上个星期六"),
            ("last night", "昨天晚上"),
        )
    )
    if base.endswith(("school", "work", "exam", "meeting")) and when != "last Monday":
        when, when_zh = "yesterday", "昨天"
    return (
        f"{who.en} {draw.negated('did')} {base} {when} because {clause}.",
        f"因为{subject_zh}{when_zh}{reason_zh}，所以{back_zh}没{zh}。",
    )


@production(100)
def so(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES))
    first, first_zh, second, second_zh = draw((
        ("it was raining", "外面在下雨", "stayed at home", "待在家里"), ("it was raining", "外面在下雨", "took a taxi", "坐了出租车"),
        ("it was snowing", "外面在下雪", "came by subway", "坐地铁来了"), ("it was very hot", "天气非常热", "went swimming", "去游泳了"),
        ("it was very cold", "天气非常冷", "wore a warm coat", "穿了一件暖和的大衣"), ("the weather was very good", "天气非常好", "took a walk", "去散步了"),
        ("the bus was late", "公共汽车来晚了", "went on foot", "走路去了"), ("the restaurant was full", "餐厅没有位子了", "ate at home", "在家里吃了饭"),
        ("the movie was boring", "电影很无聊", "went home", "回家了"), ("the shop was closed", "商店关门了", "came back", "回来了"),
    ))  # fmt: skip
    return f"{first}, so {who.en} {second}.", f"{first_zh}，所以{who.zh}{second_zh}。"


@production(170)
def although(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    if draw.chance(0.5):
        thing = draw(BOUGHT)
        bad, good = draw((("expensive", "贵"), ("old", "旧"))), draw((("bought", "买了"), ("likes", "喜欢")))
        if thing in READING:
            bad = draw((("expensive", "贵"), ("long", "长")))
        tense, still = (thing.be, "还是很喜欢") if good[0] == "likes" else (thing.was, "还是买了")
        verb = f"{who.verb('like')} {thing.it} very much" if good[0] == "likes" else f"bought {thing.it}"
        return (
            f"Although the {thing.name} {tense} {bad[0]}, {who.en} still {verb}.",
            f"虽然{thing.zh}很{bad[1]}，但是{who.zh}{still}。",
        )
    first, first_zh = draw((
        ("it was raining", "下雨了"), ("it was very cold", "天气很冷"), ("it was very hot", "天气很热"), ("{he} {was} tired", "{zh}很累"),
        ("{he} {was} sick", "{zh}病了"), ("{he} {was} very busy", "{zh}很忙"), ("{he} had a cold", "{zh}感冒了"),
    ))  # fmt: skip
    second, second_zh = draw((
        ("went to the park", "去了公园"), ("played football", "踢了足球"), ("took a walk", "去散步了"),
        ("went to the gym", "去了健身房"), ("came to the party", "来参加了聚会"), ("cooked dinner", "做了晚饭"), ("cleaned the room", "打扫了房间"),
    ))  # fmt: skip
    if second == "came to the party":
        second, second_zh = "went to the party", "去参加了聚会"
    first = first.format(he=who.en, was=who.was)
    first_zh = first_zh.format(zh=who.zh)
    again = who.he_zh if first_zh.startswith(who.zh) else who.zh
    he = who.he if first_zh.startswith(who.zh) else who.en
    return f"Although {first}, {he} still {second}.", f"虽然{first_zh}，但是{again}还是{second_zh}。"


@production(150)
def before_and_after(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY_ADULTS))
    first, first_zh, second, second_zh = draw((
        ("go to work", "去上班", "drink a cup of coffee", "喝一杯咖啡"), ("go to bed", "睡觉", "take a shower", "洗澡"),
        ("go to bed", "睡觉", "read novels", "看小说"), ("eat dinner", "吃晚饭", "wash {his} hands", "洗手"),
        ("go to work", "去上班", "read the newspaper", "看报纸"), ("eat breakfast", "吃早饭", "take a walk", "散步"),
        ("leave home", "出门", "close the windows", "关上窗户"), ("go to bed", "睡觉", "drink a glass of milk", "喝一杯牛奶"),
        ("eat dinner", "吃晚饭", "take a walk in the park", "在公园散步"), ("come home", "回家", "watch TV", "看电视"),
        ("come home", "回家", "take a shower", "洗澡"), ("eat lunch", "吃午饭", "drink tea", "喝茶"),
        ("eat dinner", "吃晚饭", "wash the dishes", "洗碗"), ("get up", "起床", "drink a glass of water", "喝一杯水"),
        ("get up", "起床", "go running", "去跑步"), ("eat breakfast", "吃早饭", "go to work", "去上班"),
    ))  # fmt: skip
    index = 0 if (first, second) in BEFORE else 1
    joint, joint_zh = (("before", "之前"), ("after", "之后"))[index]
    second = second.format(his=who.his)
    adverb, adverb_zh = draw((("", ""), ("always ", "总是"), ("usually ", "通常")))
    first_now = who.verb(first)
    return (
        f"{who.en} {adverb}{who.verb(second)} {joint} {who.he} {first_now}.",
        f"{who.zh}{first_zh}{joint_zh}{adverb_zh}{second_zh}。",
    )


BEFORE = (
    ("go to work", "drink a cup of coffee"), ("go to bed", "take a shower"), ("go to bed", "read novels"),
    ("eat dinner", "wash {his} hands"), ("go to work", "read the newspaper"), ("eat breakfast", "take a walk"),
    ("leave home", "close the windows"), ("go to bed", "drink a glass of milk"),
)  # fmt: skip
MY_ADULTS = tuple(who for who in MY if who in GROWN)


@production(90)
def first_then(draw: Draw) -> Pair:
    who, ((first, first_zh), (second, second_zh)) = (
        draw((*STATED, *NAMES)),
        draw.two(GOALS[:2] + GOALS[4:10] + GOALS[10:13]),
    )
    when = draw(FUTURE)
    if draw.chance(0.5):
        return (
            f"{when.en} {who.en} will first go {first} and then go {second}.",
            f"{when.zh}{who.zh}会先去{first_zh}，再去{second_zh}。",
        )
    when = draw(PAST)
    return (
        f"{when.en} {who.en} first went {first} and then went {second}.",
        f"{when.zh}{who.zh}先去了{first_zh}，然后去了{second_zh}。",
    )


@production(130)
def when_i_came(draw: Draw) -> Pair:
    act = draw([act for act in ONGOING if act.places and act.parts != "m"])
    who = doer(draw, act, ANYONE, GROWN)
    other = draw(
        [
            one
            for one in (*STATED, *NAMES)
            if one.agree != who.agree and not (one.agree in ("1s", "1p") and who.agree in ("1s", "1p"))
        ]
    )
    came, came_zh = draw((("came home", "回家"), ("called", "打电话"), ("arrived", "到"), ("came in", "进来")))
    return (
        f"{who.en} {who.was} {act.doing(who)} when {other.en} {came}.",
        f"{other.zh}{came_zh}的时候，{who.zh}正在{act.zh}。",
    )


@production(60)
def when_young(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *NAMES, *MY_ADULTS))
    what, zh = draw((
        *((f"lived in {en}", f"住在{zh}") for en, zh in CITIES), ("often played football", "经常踢足球"), ("liked to draw pictures", "喜欢画画"),
        ("liked to swim", "喜欢游泳"), ("had a dog", "有一只狗"), ("had two cats", "有两只猫"), ("could not swim", "不会游泳"),
    ))  # fmt: skip
    return f"{who.en} {what} when {who.he} {who.was} a child.", f"{who.zh}小时候{zh}。"


@production(120)
def while_doing(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    first, first_zh = draw(
        (
            ("listen to music", "听音乐"),
            ("listen to the radio", "听广播"),
            ("sing", "唱歌"),
            ("talk", "说话"),
            ("watch TV", "看电视"),
        )
    )
    others = (
        ("cooking dinner", "做晚饭"), ("washing the dishes", "洗碗"), ("eating breakfast", "吃早饭"), ("cleaning the room", "打扫房间"),
        ("running", "跑步"), ("drawing pictures", "画画"), ("eating dinner", "吃晚饭"), ("washing clothes", "洗衣服"), ("taking a walk", "散步"),
    )  # fmt: skip
    (second, second_zh) = draw(
        [
            one
            for one in others
            if not (first in ("sing", "talk", "watch TV") and ("eat" in one[0] or "run" in one[0] or "walk" in one[0]))
        ]
    )
    adverb, adverb_zh = draw((("often ", "经常"), ("sometimes ", "有时候"), ("always ", "总是")))
    return f"{who.en} {adverb}{who.verb(first)} while {second}.", f"{who.zh}{adverb_zh}一边{second_zh}一边{first_zh}。"


@production(80)
def as_soon_as(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES))
    what, zh = draw(
        (
            ("arrive", "到"),
            ("come home", "回家"),
            ("get up", "起床"),
            ("finish work", "下班"),
            ("arrive at the hotel", "到酒店"),
        )
    )
    other = draw([one for one in (*PRONOUNS[1:4], *NAMES) if one.agree != who.agree])
    then, then_zh = draw((("call {p}", "给{p}打电话"), ("write {p} an email", "给{p}写邮件"), ("tell {p}", "告诉{p}")))
    if draw.chance(0.4):
        then, then_zh = draw((("cook dinner", "做晚饭"), ("take a shower", "洗澡"), ("eat something", "吃东西")))
    return (
        f"{who.en} will {then.format(p=other.him)} as soon as {who.he} {who.verb(what)}.",
        f"{who.zh}一{zh}就会{then_zh.format(p=other.zh)}。",
    )


@production(100)
def both(draw: Draw) -> Pair:
    (first, second), act = draw.two((*NAMES, *MY)), draw([act for act in LIKED if "g" not in act.tags])
    form = draw.number(0, 2)
    if form == 0:
        return (
            f"Both {first.en} and {second.en} like {act.ing(PRONOUNS[5])}.",
            f"{first.zh}和{second.zh}都喜欢{act.zh}。",
        )
    if form == 1:
        return (
            f"Neither {first.en} nor {second.en} likes {act.ing(PRONOUNS[5])}.",
            f"{first.zh}和{second.zh}都不喜欢{act.zh}。",
        )
    return (
        f"{first.en} likes {act.ing(first)}, but {second.en} does not.",
        f"{first.zh}喜欢{act.zh}，但是{second.zh}不喜欢。",
    )


@production(90)
def everyone(draw: Draw) -> Pair:
    group, zh = draw((
        ("everyone in my family", "我家的人"), ("all the students in our class", "我们班的学生"), ("all my friends", "我的朋友"),
        ("all the children", "孩子们"), ("all the teachers in our school", "我们学校的老师"),
    ))  # fmt: skip
    one = group.startswith("everyone")
    form = draw.number(0, 1)
    act = draw([act for act in LIKED if "g" not in act.tags])
    if form == 0:
        return f"{group} {'likes' if one else 'like'} {act.ing(PRONOUNS[5])}.", f"{zh}都喜欢{act.zh}。"
    (goal, goal_zh), when = draw(GOALS), draw(PAST[:6])
    return f"{group} went {goal} {when.en}.", f"{zh}{when.zh}都去了{goal_zh}。"
