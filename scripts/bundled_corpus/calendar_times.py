"""Dates and clock times: timetables, birthdays, appointments, journeys and how long they take."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .inflection import chinese_number, english_number
from .people import CHINESE_CITIES, CITIES, COUNTRIES, GROWN, MY, MY_GROWN, NAMES, NEIGHBOURS, PRONOUNS, STATED, WORKING
from .times import LONG_PAST, MONTHS, WEEKDAYS, clock, date, month_zh

# Between two cities, in alphabetical order.
TRAIN_HOURS = {
    ("Beijing", "Guangzhou"): 8, ("Beijing", "Hangzhou"): 6, ("Beijing", "Nanjing"): 4, ("Beijing", "Shanghai"): 5,
    ("Guangzhou", "Hangzhou"): 7, ("Guangzhou", "Nanjing"): 8, ("Guangzhou", "Shanghai"): 7, ("Hangzhou", "Nanjing"): 2,
    ("Hangzhou", "Shanghai"): 2, ("Nanjing", "Shanghai"): 2,
}  # fmt: skip
EVENTS = (
    ("the meeting", "会议"), ("the concert", "音乐会"), ("the exam", "考试"), ("the party", "聚会"), ("the match", "比赛"),
    ("the lesson", "课"),
)  # fmt: skip


@production(170)
def appointments(draw: Draw) -> Pair:
    (event, event_zh), (weekday, weekday_zh), (day, day_zh) = draw(EVENTS[:5]), draw(WEEKDAYS), date(draw)
    hour, hour_zh = clock(
        draw, *draw(((18, 20),) if event in ("the concert", "the party") else ((9, 11), (13, 16))), part=True
    )
    form = draw.number(0, 2)
    if form == 0:
        return f"{event} is on {weekday}, {day}, at {hour}.", f"{event_zh}在{day_zh}{weekday_zh}{hour_zh}。"
    if form == 1:
        return f"{event} starts at {hour} on {weekday}.", f"{event_zh}{weekday_zh}{hour_zh}开始。"
    return f"{event} is on {day} at {hour}.", f"{event_zh}在{day_zh}{hour_zh}。"


@production(90)
def today_is(draw: Draw) -> Pair:
    (weekday, weekday_zh), (day, day_zh) = draw(WEEKDAYS), date(draw)
    form = draw.number(0, 3)
    if form == 0:
        return f"Tomorrow is {weekday}, {day}.", f"明天是{day_zh}{weekday_zh}。"
    if form == 1:
        return f"Yesterday was {weekday}, {day}.", f"昨天是{day_zh}{weekday_zh}。"
    if form == 2:
        return f"Today is {day}.", f"今天是{day_zh}。"
    return f"Today is {weekday}, {day}.", f"今天是{day_zh}{weekday_zh}。"


@production(120)
def birthdays(draw: Draw) -> Pair:
    owner, (day, day_zh) = draw((*PRONOUNS[:4], *NAMES, *MY)), date(draw)
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    return f"{his} birthday is on {day}.", f"{owner.zh}的生日是{day_zh}。"


@production(110)
def born(draw: Draw) -> Pair:
    child = draw.chance(0.4)
    who = draw((*STATED[:3], *NAMES)) if child else draw(MY_GROWN[4:])
    year = draw.number(1935, 1955) if who.zh in ("我奶奶", "我爷爷") else draw.number(1968, 1999)
    form = draw.number(0, 2)
    if form == 0:
        city, city_zh = draw(CITIES)
        return f"{who.en} {who.was} born in {city} in {year}.", f"{who.zh}{year}年出生在{city_zh}。"
    if form == 1:
        index = draw.number(0, 11)
        return f"{who.en} {who.was} born in {MONTHS[index][0]} {year}.", f"{who.zh}出生于{year}年{index + 1}月。"
    return f"{who.en} {who.was} born in {year}.", f"{who.zh}出生于{year}年。"


@production(100)
def came_in(draw: Draw) -> Pair:
    who, year = draw(GROWN), draw.number(2001, 2024)
    form = draw.number(0, 2)
    if form == 0:
        country, country_zh, _ = draw(COUNTRIES)
        return f"{who.en} went to {country} for the first time in {year}.", f"{who.zh}{year}年第一次去{country_zh}。"
    if form == 1:
        city, city_zh = draw(CITIES)
        return f"{who.en} moved to {city} in {year}.", f"{who.zh}{year}年搬到了{city_zh}。"
    return f"{who.en} started working here in {year}.", f"{who.zh}{year}年开始在这儿工作。"


@production(150)
def timetable(draw: Draw) -> Pair:
    thing, zh, verb, verb_zh = draw((
        ("the train", "火车", "leaves", "出发"), ("the train", "火车", "arrives", "到"), ("the plane", "飞机", "takes off", "起飞"),
        ("the bus", "公共汽车", "leaves", "出发"), ("the movie", "电影", "starts", "开始"), ("the movie", "电影", "ends", "结束"),
        ("the lesson", "课", "starts", "开始"), ("the shop", "商店", "opens", "开门"), ("the bank", "银行", "closes", "关门"),
        ("the library", "图书馆", "opens", "开门"),
    ))  # fmt: skip
    first, last = {"opens": (8, 10), "closes": (16, 18)}.get(verb, (7, 20))
    hour, hour_zh = clock(draw, first, last)
    if verb in ("opens", "closes"):
        day, day_zh = draw((("", ""), (" on weekends", "周末"), (" every day", "每天")))
        return f"{thing} {verb} at {hour}{day}.", f"{zh}{day_zh}{hour_zh}{verb_zh}。"
    day, day_zh, low, high = draw((
        (" tomorrow morning", "明天早上", 7, 8), (" this afternoon", "今天下午", 13, 17), (" tonight", "今天晚上", 18, 21),
        (" tomorrow afternoon", "明天下午", 13, 17),
    ))  # fmt: skip
    if zh == "电影" and low == 7:
        day, day_zh, low, high = " tonight", "今天晚上", 18, 20
    hour, hour_zh = clock(draw, low, high)
    if zh == "课":
        return f"our lesson {verb} at {hour}{day}.", f"我们{day_zh}{hour_zh}上课。"
    return f"{thing} {verb} at {hour}{day}.", f"{zh}{day_zh}{hour_zh}{verb_zh}。"


@production(60)
def it_is_now(draw: Draw) -> Pair:
    hour, hour_zh = clock(draw, 1, 12)
    if draw.chance(0.5):
        return f"It is {hour}.", f"现在{hour_zh}。"
    return f"It is already {hour}.", f"已经{hour_zh}了。"


@production(90)
def from_to(draw: Draw) -> Pair:
    start, end = draw.number(8, 10), draw.number(2, 5)
    act, act_zh = draw((("work", "工作"), ("have class", "上课"), ("have a meeting", "开会")))
    who = draw((*STATED * 2, *NAMES) if act == "have class" else WORKING)
    opening, opening_zh = english_number(start), chinese_number(start) + "点"
    closing, closing_zh = english_number(end), chinese_number(end) + "点"
    if act != "work":
        closing, closing_zh = draw(
            (("noon", "中午"), (f"half past {english_number(end)}", f"下午{chinese_number(end)}点半"))
        )
    else:
        closing_zh = "下午" + closing_zh
        closing += " in the afternoon"
    if "half" in closing:
        closing += " in the afternoon"
    day, day_zh = draw((("every day", "每天"), *((f"on {en}s", zh) for en, zh in WEEKDAYS[:5])))
    part = "早上" if start < 9 else "上午"
    return (
        f"{who.en} {who.verb(act)} from {opening} in the morning to {closing} {day}.",
        f"{who.zh}{day_zh}从{part}{opening_zh}到{closing_zh}{act_zh}。",
    )


@production(110)
def how_far(draw: Draw) -> Pair:
    form = draw.number(0, 2)
    if form == 0:
        start, end = draw.two((
            ("the hotel", "酒店"), ("the airport", "机场"), ("the station", "车站"), ("my home", "我家"), ("the school", "学校"),
            ("the hospital", "医院"),
        ))  # fmt: skip
        number = draw((2, 3, 5, 8, 10, 12, 15, 20, 25, 30))
        return (
            f"It is {english_number(number)} kilometers from {start[0]} to {end[0]}.",
            f"从{start[1]}到{end[1]}有{chinese_number(number)}公里。",
        )
    start, end = draw.two(CHINESE_CITIES)
    how, how_zh = draw((("by train", "坐火车"), ("by plane", "坐飞机"), ("by car", "开车")))
    if how == "by plane" and {start[0], end[0]} <= NEIGHBOURS:
        how, how_zh = "by train", "坐火车"
    hours = TRAIN_HOURS[min(start[0], end[0]), max(start[0], end[0])]
    number = {"by plane": 3 if hours > 6 else 2, "by train": hours, "by car": 2 * hours + 1}[how]
    if form == 1:
        return (
            f"How long does it take to go from {start[0]} to {end[0]} {how}?",
            f"从{start[1]}{how_zh}到{end[1]}要多长时间？",
        )
    return (
        f"It takes {english_number(number)} hours to go from {start[0]} to {end[0]} {how}.",
        f"从{start[1]}{how_zh}到{end[1]}要{chinese_number(number)}个小时。",
    )


@production(100)
def arrived(draw: Draw) -> Pair:
    who, (city, city_zh), (weekday, weekday_zh) = draw(GROWN), draw(CITIES), draw(WEEKDAYS)
    hour, hour_zh = clock(draw, *draw(((7, 11), (13, 17), (18, 22))), part=True)
    form = draw.number(0, 1)
    if form == 0:
        return (
            f"{who.en} will arrive in {city} at {hour} on {weekday}.",
            f"{who.zh}会在{weekday_zh}{hour_zh}到{city_zh}。",
        )
    hour, hour_zh = clock(draw, 18, 22)
    return f"{who.en} arrived in {city} at {hour} last night.", f"{who.zh}昨天晚上{hour_zh}到了{city_zh}。"


@production(80)
def months_and_years(draw: Draw) -> Pair:
    who, index = draw(GROWN), draw.number(0, 11)
    city, city_zh = draw(CITIES)
    month = MONTHS[index][0]
    if draw.chance(0.5):
        return f"{who.en} will go to {city} in {month} next year.", f"{who.zh}明年{month_zh(index)}会去{city_zh}。"
    return f"{who.en} came back from {city} in {month} last year.", f"{who.zh}去年{month_zh(index)}从{city_zh}回来了。"


@production(90)
def how_often(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    times, times_zh = draw((("once", "一次"), ("twice", "两次"), ("three times", "三次"), ("four times", "四次")))
    span, span_zh = draw((("a week", "一个星期"), ("a month", "一个月")))
    act, act_zh = draw((
        ("swim", "游"), ("play tennis", "打"), ("go to the gym", "去"), ("go to the movie theater", "去"), ("play football", "踢"),
        ("go to the library", "去"), ("clean the room", "打扫"),
    ))  # fmt: skip
    thing = {
        "swim": "泳", "play tennis": "网球", "go to the gym": "健身房", "go to the movie theater": "电影院", "play football": "足球",
        "go to the library": "图书馆", "clean the room": "房间",
    }[act]  # fmt: skip
    return f"{who.en} {who.verb(act)} {times} {span}.", f"{who.zh}{span_zh}{act_zh}{times_zh}{thing}。"


@production(120)
def has_been(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *MY))
    place, place_zh = draw((*CITIES, *((en, zh) for en, zh, _ in COUNTRIES)))
    times, times_zh = draw((("once", "一次"), ("twice", "两次"), ("three times", "三次"), ("many times", "很多次")))
    form = draw.number(0, 2)
    if form == 0:
        return f"{who.en} {who.have} never been to {place}.", f"{who.zh}从来没去过{place_zh}。"
    if form == 1:
        when = draw(LONG_PAST)
        return f"{who.en} took a trip to {place} {when.en}.", f"{who.zh}{when.zh}去{place_zh}旅行了。"
    return f"{who.en} {who.have} been to {place} {times}.", f"{who.zh}去过{times_zh}{place_zh}。"
