"""The weather: now, then and soon, in cities, months and seasons."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .people import CITIES
from .times import MONTHS, PAST, SEASONS, month_zh


@production(110)
def seasons(draw: Draw) -> Pair:
    (city, city_zh), (season, season_zh) = draw(CITIES), draw(SEASONS)
    quality, quality_zh = draw({
        "spring": (("warm", "暖和"), ("beautiful", "美")), "summer": (("hot", "热"),),
        "autumn": (("cool", "凉快"), ("beautiful", "美")), "winter": (("cold", "冷"),),
    }[season])  # fmt: skip
    if quality == "beautiful":
        return f"{city} is very beautiful in {season}.", f"{season_zh}的{city_zh}非常美。"
    form = draw.number(0, 2)
    mild = (city, quality) in (
        ("London", "hot"), ("Berlin", "hot"), ("Paris", "hot"), ("Guangzhou", "cold"), ("Rome", "cold"), ("Hangzhou", "cold"),
        ("London", "cold"),
    )  # fmt: skip
    if form == 0 and not mild:
        return f"It is {quality} in {city} in {season}.", f"{city_zh}的{season_zh}很{quality_zh}。"
    if form < 2 and mild:
        return f"It {draw.negated('is')} {quality} in {city} in {season}.", f"{city_zh}的{season_zh}不{quality_zh}。"
    if form == 1:
        return f"It is very {quality} in {city} in {season}.", f"{city_zh}的{season_zh}非常{quality_zh}。"
    return f"Is it {quality} in {city} in {season}?", f"{city_zh}的{season_zh}{quality_zh}吗？"


@production(110)
def degrees(draw: Draw) -> Pair:
    city, city_zh = draw((("", ""), *((f" in {en}", zh) for en, zh in CITIES)))
    number = draw.number(5, 38)
    when, verb, when_zh = draw((("today", "is", "今天"), ("tomorrow", "will be", "明天"), ("yesterday", "was", "昨天")))
    if when == "tomorrow":
        return f"It will be {number} degrees{city} tomorrow.", f"{city_zh}明天会有{number}度。"
    return f"It {verb} {number} degrees{city} {when}.", f"{city_zh}{when_zh}{number}度。"


@production(120)
def weather(draw: Draw) -> Pair:
    city, city_zh = draw((("", ""), *((f" in {en}", zh) for en, zh in CITIES)))
    form = draw.number(0, 5)
    kind, kind_zh = draw((("rain", "雨"), ("snow", "雪")))
    if city in (" in Guangzhou", " in Rome"):
        kind, kind_zh = "rain", "雨"
    if form == 0:
        when = draw(PAST)
        return f"It {kind}ed{city} {when.en}.", f"{city_zh}{when.zh}下{kind_zh}了。"
    if form == 1:
        return f"It is {kind}ing{city} now.", f"{city_zh}现在正在下{kind_zh}。"
    if form == 2:
        when, when_zh = draw((("tomorrow", "明天"), ("tonight", "今天晚上"), ("this weekend", "这个周末")))
        return f"It will {kind}{city} {when}.", f"{city_zh}{when_zh}会下{kind_zh}。"
    if form == 3:
        adverb, adverb_zh, season, season_zh = draw((
            ("often", "经常", "spring", "春天"), ("rarely", "很少", "autumn", "秋天"), ("often", "经常", "summer", "夏天"),
        ))  # fmt: skip
        return f"It {adverb} rains{city} in {season}.", f"{city_zh}{season_zh}{adverb_zh}下雨。"
    state, state_zh, day, day_zh = draw((
        ("is very good", "非常好", "today", "今天"), ("is not good", "不好", "today", "今天"),
        ("was very bad", "非常差", "yesterday", "昨天"), ("was very good", "非常好", "yesterday", "昨天"),
    ))  # fmt: skip
    return f"The weather{city} {state} {day}.", f"{city_zh}{day_zh}天气{state_zh}。"


@production(50)
def month_weather(draw: Draw) -> Pair:
    (city, city_zh), index = (
        draw([city for city in CITIES if city[0] not in ("Guangzhou", "Rome", "London", "Berlin")]),
        draw((0, 1, 3, 4, 5, 6, 7, 8, 9, 11)),
    )
    quality, quality_zh = (
        ("cold", "冷")
        if index in (11, 0, 1)
        else ("hot", "热")
        if index in (5, 6, 7)
        else ("cool", "凉快")
        if index in (8, 9)
        else ("warm", "暖和")
    )
    return f"{city} is very {quality} in {MONTHS[index][0]}.", f"{city_zh}{month_zh(index)}非常{quality_zh}。"


@production(50)
def more_and_more(draw: Draw) -> Pair:
    subject, subject_zh, quality, quality_zh = draw((
        ("The weather is", "天气", "colder and colder", "冷"), ("The weather is", "天气", "warmer and warmer", "暖和"),
        ("The weather is", "天气", "hotter and hotter", "热"), ("The days are", "白天", "longer and longer", "长"),
        ("Vegetables are", "蔬菜", "more and more expensive", "贵"), ("My grandfather is", "我爷爷", "older and older", "老"),
        ("Computers are", "电脑", "cheaper and cheaper", "便宜"), ("The city is", "这个城市", "more and more beautiful", "漂亮"),
        ("My work is", "我的工作", "more and more interesting", "有意思"), ("I am", "我", "busier and busier", "忙"),
    ))  # fmt: skip
    return (
        f"{subject.replace(' is', ' is getting').replace(' are', ' are getting').replace(' am', ' am getting')} {quality}.",
        (f"{subject_zh}越来越{quality_zh}了。"),
    )
