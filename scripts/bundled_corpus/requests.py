"""Asking others to do something: requests, prohibitions, suggestions, help."""

from __future__ import annotations

from .actions import GOALS, SPOTS, tagged
from .drawing import Draw, Pair, production
from .people import MY_GROWN, NAMES, PRONOUNS, TITLES
from .things import BOOKS, DRINKS, SMALL, SNACKS
from .times import FUTURE, WEEKDAYS, clock


@production(90)
def prohibitions(draw: Draw) -> Pair:
    act, zh, places = draw((
        ("smoke", "抽烟", "here library classroom hospital museum office bus"), ("swim", "游泳", "here river"),
        ("take photos", "拍照片", "here library hospital museum"), ("sing", "唱歌", "here library classroom hospital bus"),
        ("eat", "吃东西", "here library classroom museum office bus"), ("talk", "说话", "here library museum"),
        ("run", "跑步", "here library classroom hospital"), ("play football", "踢足球", "here classroom"),
        ("drink beer", "喝啤酒", "here classroom office bus"), ("sleep", "睡觉", "here library classroom office"),
        ("play the guitar", "弹吉他", "here library classroom hospital"), ("dance", "跳舞", "here classroom office"),
        ("play basketball", "打篮球", "here classroom"), ("drink coffee", "喝咖啡", "here library classroom bus"),
    ))  # fmt: skip
    where, where_zh = {
        "here": ("here", "这儿"), "library": ("in the library", "图书馆里"), "classroom": ("in the classroom", "教室里"),
        "hospital": ("in the hospital", "医院里"), "museum": ("in the museum", "博物馆里"), "office": ("in the office", "办公室里"),
        "bus": ("on the bus", "公共汽车上"), "river": ("in the river", "河里"),
    }[draw(places.split())]  # fmt: skip
    form = draw.number(0, 3)
    if form == 0:
        return f"Please do not {act} {where}.", f"请不要在{where_zh}{zh}。"
    if form == 1:
        return f"You may not {act} {where}.", f"你不可以在{where_zh}{zh}。"
    if form == 2:
        return f"May I {act} {where}?", f"我可以在{where_zh}{zh}吗？"
    return f"Don't {act} {where}.", f"别在{where_zh}{zh}。"


@production(120)
def suggestions(draw: Draw) -> Pair:
    if draw.chance(0.5):
        when, (goal, goal_zh) = draw((*FUTURE, FUTURE[0])), draw(GOALS)
        return f"Let's go {goal} {when.en}.", f"我们{when.zh}去{goal_zh}吧。"
    act = draw([act for act in tagged("k") if act.parts])
    when = draw([when for when in FUTURE if not when.part or when.part in act.parts])
    if draw.chance(0.4):
        return f"Shall we {act.plain()} together {when.en}?", f"我们{when.zh}一起{act.zh}好吗？"
    return f"Let's {act.plain()} together {when.en}.", f"我们{when.zh}一起{act.zh}吧。"


@production(130)
def requests(draw: Draw) -> Pair:
    form = draw.number(0, 5)
    if form == 0:
        span, span_zh = draw(
            (
                ("ten minutes", "十分钟"),
                ("five minutes", "五分钟"),
                ("half an hour", "半个小时"),
                ("an hour", "一个小时"),
            )
        )
        where, where_zh = draw(
            (("here", "这儿"), ("at the station", "车站"), ("at the airport", "机场"), ("in the hotel", "酒店"))
        )
        return f"Please wait {where} for {span}.", f"请在{where_zh}等{span_zh}。"
    if form == 1:
        hour, hour_zh = clock(draw, 6, 8)
        return f"Please wake me up at {hour} tomorrow morning.", f"请明天早上{hour_zh}叫醒我。"
    if form == 2:
        (spot, spot_zh), when = draw(SPOTS), draw((*FUTURE[:2], FUTURE[5], *FUTURE[7:12]))
        return f"Please wait for me in front of {spot} {when.en}.", f"请{when.zh}在{spot_zh}前面等我。"
    if form == 3:
        thing = draw((*DRINKS[:5], *SNACKS[:5], *BOOKS[2:3], *SMALL[:4]))
        return f"Please bring me {thing.one}.", f"请给我拿{thing.one_zh}。"
    if form == 4:
        who, (weekday, zh) = draw((*NAMES, *TITLES)), draw(WEEKDAYS)
        return f"Please call {who.en} on {weekday}.", f"请{zh}给{who.zh}打电话。"
    (spot, spot_zh) = draw(SPOTS)
    return f"Excuse me, how do I get to {spot}?", f"请问，去{spot_zh}怎么走？"


@production(150)
def makes_do(draw: Draw) -> Pair:
    who, other = draw((*TITLES, *MY_GROWN, *NAMES)), draw((*PRONOUNS[:1], *PRONOUNS[2:5], *NAMES))
    if other.agree == who.agree:
        other = PRONOUNS[0]
    base, zh = draw((
        ("clean the room", "打扫房间"), ("buy some milk", "买点儿牛奶"), ("close the window", "关上窗户"), ("wash the dishes", "洗碗"),
        ("come to the office", "来办公室"), ("wait at the station", "在车站等"), ("buy two tickets", "买两张票"),
        ("get up early", "早点儿起床"), ("go to the bank", "去银行"), ("read this book", "看这本书"), ("drink more water", "多喝水"),
        ("write a letter", "写一封信"), ("cook dinner", "做晚饭"), ("call the hotel", "给酒店打电话"),
    ))  # fmt: skip
    verb, verb_zh = draw((("asked", "让"), ("asked", "让"), ("told", "叫"), ("helped", "帮")))
    if verb == "helped":
        base, zh = draw((
            ("carry the suitcase", "提了行李箱"), ("find the keys", "找到了钥匙"), ("cook dinner", "做了晚饭"),
            ("move the table", "搬了桌子"), ("clean the room", "打扫了房间"), ("wash the dishes", "洗了碗"),
            ("buy the tickets", "买了票"), ("book a room", "订了房间"),
        ))  # fmt: skip
        return f"{who.en} helped {other.him} {base}.", f"{who.zh}帮{other.zh}{zh}。"
    if draw.chance(0.3):
        return f"{who.en} {verb} {other.him} not to open the window.", f"{who.zh}{verb_zh}{other.zh}不要开窗户。"
    return f"{who.en} {verb} {other.him} to {base}.", f"{who.zh}{verb_zh}{other.zh}{zh}。"


@production(60)
def can_you_help(draw: Draw) -> Pair:
    base, zh = draw((
        ("carry this suitcase", "提这个行李箱"), ("find my keys", "找我的钥匙"), ("move this table", "搬这张桌子"),
        ("buy a ticket", "买一张票"), ("book a room", "订一个房间"), ("call a taxi", "叫一辆出租车"), ("write this letter", "写这封信"),
        ("wash the dishes", "洗碗"), ("clean the kitchen", "打扫厨房"), ("look for my glasses", "找我的眼镜"), ("cook dinner", "做晚饭"),
    ))  # fmt: skip
    form = draw.number(0, 2)
    if form == 0:
        return f"Can you help me {base}?", f"你能帮我{zh}吗？"
    if form == 1:
        return f"Please help me {base}.", f"请帮我{zh}。"
    asked = draw((*NAMES, *TITLES))
    return f"{asked.en}, can you help me {base}?", f"{asked.zh}，你能帮我{zh}吗？"
