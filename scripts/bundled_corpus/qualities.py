"""Adjectives, and which of them suit which things."""

from __future__ import annotations

from dataclasses import dataclass

from .drawing import Draw
from .things import (
    ANIMALS,
    BUYABLE,
    CLOTHES,
    DEVICES,
    FILMS,
    FURNITURE,
    PETS,
    PLACES_COUNTED,
    READING,
    SONGS,
    VEHICLES,
    Thing,
)


@dataclass(frozen=True)
class Quality:
    """An adjective: after the noun (predicate) and before it (with 的 where Chinese wants it)."""

    en: str
    more: str
    most: str
    zh: str
    before: str


def _quality(en: str, zh: str, before: str = "", more: str = "", most: str = "") -> Quality:
    return Quality(en, more or f"more {en}", most or f"most {en}", zh, before or zh + "的")


EXPENSIVE = _quality("expensive", "贵")
CHEAP = _quality("cheap", "便宜", "", "cheaper", "cheapest")
BEAUTIFUL = _quality("beautiful", "漂亮")
BIG = _quality("big", "大", "大", "bigger", "biggest")
SMALLISH = _quality("small", "小", "小", "smaller", "smallest")
LONG = _quality("long", "长", "长", "longer", "longest")
WARM = _quality("warm", "暖和", "", "warmer", "warmest")
HEAVY = _quality("heavy", "重", "", "heavier", "heaviest")
INTERESTING = _quality("interesting", "有意思")
BORING = _quality("boring", "无聊")
COMFORTABLE = _quality("comfortable", "舒服")
FAST = _quality("fast", "快", "", "faster", "fastest")
CUTE = _quality("cute", "可爱", "", "cuter", "cutest")
CLEAN = _quality("clean", "干净", "", "cleaner", "cleanest")
QUIET = _quality("quiet", "安静", "", "quieter", "quietest")
FAMOUS = _quality("famous", "有名")
TALL = _quality("tall", "高", "高", "taller", "tallest")
TIRED = _quality("tired", "累")
BUSY = _quality("busy", "忙", "", "busier", "busiest")
HAPPY = _quality("happy", "高兴", "", "happier", "happiest")
HUNGRY = _quality("hungry", "饿", "", "hungrier", "hungriest")
THIRSTY = _quality("thirsty", "渴", "", "thirstier", "thirstiest")
NERVOUS = _quality("nervous", "紧张")
SMART = _quality("smart", "聪明", "", "smarter", "smartest")
YOUNG = _quality("young", "年轻", "", "younger", "youngest")
FRIENDLY = _quality("friendly", "友好", "", "friendlier", "friendliest")
HARDWORKING = _quality("hardworking", "努力")
STRONG = _quality("strong", "强壮", "", "stronger", "strongest")
FEELINGS = (TIRED, BUSY, HAPPY, HUNGRY, THIRSTY, NERVOUS)
CHARACTERS = (SMART, FRIENDLY, HARDWORKING)
COMPARED_PEOPLE = (TALL, SMART, HARDWORKING, BUSY, YOUNG, STRONG)
COLOURS = (
    ("red", "红色"), ("black", "黑色"), ("white", "白色"), ("blue", "蓝色"), ("green", "绿色"), ("yellow", "黄色"),
    ("gray", "灰色"),
)  # fmt: skip


def qualities(thing: Thing) -> tuple[Quality, ...]:
    """The adjectives that make sense for a thing."""
    if thing in CLOTHES:
        own = {"coat": (WARM, LONG), "sweater": (WARM,), "gloves": (WARM,), "scarf": (WARM, LONG), "skirt": (LONG,),
               "shoes": (COMFORTABLE,), "pants": (LONG, COMFORTABLE)}  # fmt: skip
        return (EXPENSIVE, CHEAP, BEAUTIFUL, BIG, SMALLISH, *own.get(thing.en, ()))
    if thing in READING or thing in FILMS:
        return (INTERESTING, BORING, LONG) if thing in FILMS else (INTERESTING, BORING, EXPENSIVE, CHEAP)
    if thing in VEHICLES:
        return (EXPENSIVE, CHEAP, FAST, BEAUTIFUL)
    if thing in DEVICES:
        return (EXPENSIVE, CHEAP, BEAUTIFUL)
    if thing in FURNITURE:
        own = {"bed": (COMFORTABLE, BIG, SMALLISH), "chair": (COMFORTABLE, HEAVY), "table": (BIG, SMALLISH, HEAVY)}
        return (EXPENSIVE, CHEAP, *own.get(thing.en, ()))
    if thing in ANIMALS:
        return (BIG, SMALLISH, CUTE) if thing in PETS else (BIG, SMALLISH)
    if thing in PLACES_COUNTED:
        own = {"park": (BEAUTIFUL, QUIET), "library": (QUIET,), "restaurant": (CLEAN, EXPENSIVE, CHEAP),
               "hotel": (CLEAN, QUIET, EXPENSIVE, CHEAP), "university": (FAMOUS,), "museum": (FAMOUS,)}  # fmt: skip
        return (BIG, SMALLISH, *own.get(thing.en, ()))
    if thing in SONGS:
        return (BEAUTIFUL,)
    own = {"key": (), "map": (), "bag": (EXPENSIVE, CHEAP, BEAUTIFUL, BIG, SMALLISH, HEAVY), "box": (BIG, SMALLISH, HEAVY),
           "umbrella": (BIG, SMALLISH, BEAUTIFUL, CHEAP), "cup": (BIG, SMALLISH, BEAUTIFUL),
           "glasses": (EXPENSIVE, CHEAP, BEAUTIFUL), "photo": (BEAUTIFUL,), "ticket": (EXPENSIVE, CHEAP),
           "letter": (LONG,), "tree": (BIG, TALL), "flower": (BEAUTIFUL,)}  # fmt: skip
    return own.get(thing.en, (EXPENSIVE, CHEAP))


def described(draw: Draw, thing: Thing, used: bool = False) -> tuple[str, str]:
    """One thing with an adjective before it: new, old (if `used`), a colour, or one of its own qualities."""
    if thing in (*CLOTHES, *VEHICLES) and draw.chance(0.5):
        en, zh = draw(COLOURS)
        return thing.with_adjective(en, zh + "的")
    if thing in (*BUYABLE,) and draw.chance(0.4):
        return thing.with_adjective(*(("old", "旧") if used and draw.chance(0.5) else ("new", "新")))
    # Not of something new: it is expensive, or boring; and speed and weight are no first thing to say.
    left_out = (EXPENSIVE, BORING, FAST, HEAVY)
    choices = tuple(quality for quality in qualities(thing) if quality not in left_out)
    if not choices:
        return thing.one, thing.one_zh
    quality = draw(choices)
    return thing.with_adjective(quality.en, quality.before)
