"""Times: adverbs, days, dates, clock times and durations. Chinese goes from the large unit to the small one."""

from __future__ import annotations

from dataclasses import dataclass

from .drawing import Draw
from .inflection import chinese_number, english_number


@dataclass(frozen=True)
class When:
    """A time adverbial. `part` is m, a or e where it names the morning, afternoon or evening, else empty."""

    en: str
    zh: str
    part: str = ""


WEEKDAYS = (
    ("Monday", "星期一"), ("Tuesday", "星期二"), ("Wednesday", "星期三"), ("Thursday", "星期四"),
    ("Friday", "星期五"), ("Saturday", "星期六"), ("Sunday", "星期天"),
)  # fmt: skip
MONTHS = (
    ("January", 31), ("February", 28), ("March", 31), ("April", 30), ("May", 31), ("June", 30), ("July", 31),
    ("August", 31), ("September", 30), ("October", 31), ("November", 30), ("December", 31),
)  # fmt: skip
SEASONS = (("spring", "春天"), ("summer", "夏天"), ("autumn", "秋天"), ("winter", "冬天"))

HABIT = (
    When("every day", "每天"), When("every morning", "每天早上", "m"), When("every evening", "每天晚上", "e"),
    When("every afternoon", "每天下午", "a"), When("on weekends", "周末"),
    *(When(f"every {en}", f"每个{zh}") for en, zh in WEEKDAYS),
)  # fmt: skip
# In general, as with "does not": a habit on every Monday is not denied, one on Mondays is.
GENERAL = (
    When("in the morning", "早上", "m"), When("in the afternoon", "下午", "a"), When("in the evening", "晚上", "e"),
    When("on weekends", "周末"), *(When(f"on {en}s", zh) for en, zh in WEEKDAYS),
)  # fmt: skip
PAST = (
    When("yesterday", "昨天"), When("yesterday morning", "昨天早上", "m"), When("yesterday afternoon", "昨天下午", "a"),
    When("last night", "昨天晚上", "e"), When("this morning", "今天早上", "m"), When("last weekend", "上个周末"),
    When("the day before yesterday", "前天"), When("three days ago", "三天前"), When("two days ago", "两天前"),
    *(When(f"last {en}", f"上个{zh}") for en, zh in WEEKDAYS),
)  # fmt: skip
# What was not done, or is asked about: no "three days ago".
RECENT = tuple(when for when in PAST if "ago" not in when.en and "before" not in when.en)
LONG_PAST = (
    When("last week", "上个星期"), When("last month", "上个月"), When("last year", "去年"),
    When("two weeks ago", "两个星期前"), When("three months ago", "三个月前"), When("a year ago", "一年前"),
    When("last summer", "去年夏天"), When("last winter", "去年冬天"),
)  # fmt: skip
FUTURE = (
    When("tomorrow", "明天"), When("tomorrow morning", "明天早上", "m"), When("tomorrow afternoon", "明天下午", "a"),
    When("tomorrow evening", "明天晚上", "e"), When("tonight", "今天晚上", "e"), When("this afternoon", "今天下午", "a"),
    When("this weekend", "这个周末"), When("the day after tomorrow", "后天"),
    *(When(f"next {en}", f"下个{zh}") for en, zh in WEEKDAYS),
)  # fmt: skip
LONG_FUTURE = (
    When("next week", "下个星期"), When("next month", "下个月"), When("next year", "明年"),
    When("in two weeks", "两个星期后"), When("in three months", "三个月后"), When("next summer", "明年夏天"),
)  # fmt: skip
FREQUENCY = (
    ("often", "经常"), ("always", "总是"), ("usually", "通常"), ("sometimes", "有时候"), ("never", "从来不"),
    ("rarely", "很少"),
)  # fmt: skip


def month_zh(index: int) -> str:
    return chinese_number(index + 1, counting=False) + "月"


def date(draw: Draw) -> tuple[str, str]:
    """A day of the year: "March 5" 三月五日."""
    index = draw.number(0, 11)
    name, days = MONTHS[index]
    day = draw.number(1, days)
    return f"{name} {day}", month_zh(index) + chinese_number(day, counting=False) + "日"


def clock(draw: Draw, first: int, last: int, part: bool | None = None) -> tuple[str, str]:
    """A clock time between two hours of the day (24-hour, both included), with "in the morning" where `part`."""
    hour = draw.number(first, last)
    style = draw.number(0, 9)
    if part and style == 6 and hour in (8, 11, 17, 20):
        style = 4  # "a quarter to nine in the morning" would stand between two parts of the day
    shown = hour if hour <= 12 else hour - 12
    following = shown % 12 + 1
    name, zh = english_number(shown), chinese_number(shown) + "点"
    if style <= 2:
        english, chinese = (f"{name} o'clock" if not part else name), zh
    elif style <= 4:
        english, chinese = f"half past {name}", zh + "半"
    elif style == 5:
        english, chinese = f"a quarter past {name}", zh + "一刻"
    elif style == 6:
        english, chinese = f"a quarter to {english_number(following)}", f"差一刻{chinese_number(following)}点"
    elif style == 7:
        minutes = draw((10, 20))
        english, chinese = f"{english_number(minutes)} past {name}", f"{zh}{chinese_number(minutes)}分"
    else:
        minutes = draw((5, 15, 25, 35, 40, 45, 50, 55))
        english = f"{shown}:{minutes:02d}"
        chinese = zh + ("零五" if minutes == 5 else chinese_number(minutes)) + "分"
    if part:
        english_part, chinese_part = part_of_day(hour)
        return f"{english} {english_part}", chinese_part + chinese
    return english, chinese


def part_of_day(hour: int) -> tuple[str, str]:
    """Chinese splits the morning (早上 until nine, then 上午); English splits the evening from the night."""
    if hour < 9:
        return "in the morning", "早上"
    if hour < 12:
        return "in the morning", "上午"
    if hour < 13:
        return "at noon", "中午"
    if hour < 18:
        return "in the afternoon", "下午"
    return ("in the evening" if hour < 21 else "at night"), "晚上"


DURATIONS = (
    ("ten minutes", "十分钟"), ("twenty minutes", "二十分钟"), ("forty minutes", "四十分钟"),
    ("half an hour", "半个小时"), ("an hour", "一个小时"), ("two hours", "两个小时"), ("three hours", "三个小时"),
    ("five hours", "五个小时"),
)  # fmt: skip
ACTIVE = DURATIONS[2:7]


def long_duration(draw: Draw) -> tuple[str, str]:
    """Months or years: "for two years" 两年."""
    if draw.chance(0.3):
        months = draw((2, 3, 4, 5, 6, 8))
        return f"{english_number(months)} months", f"{chinese_number(months)}个月"
    years = draw((2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20))
    return f"{english_number(years)} years", f"{chinese_number(years)}年"
