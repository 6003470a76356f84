"""What people do and where: verb phrases split as Chinese splits them (verb, object), with fitting places and hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .drawing import Draw
from .inflection import ing, participle, past
from .people import Who
from .times import When

# key: at or in English, Chinese after 在, the noun in English, the noun in Chinese.
PLACES = {
    "home": ("at home", "家里", "home", "家"),
    "school": ("at school", "学校", "school", "学校"),
    "park": ("in the park", "公园", "the park", "公园"),
    "library": ("in the library", "图书馆", "the library", "图书馆"),
    "office": ("in the office", "办公室", "the office", "办公室"),
    "kitchen": ("in the kitchen", "厨房里", "the kitchen", "厨房"),
    "garden": ("in the garden", "花园里", "the garden", "花园"),
    "restaurant": ("in the restaurant", "餐厅", "the restaurant", "餐厅"),
    "hotel": ("in the hotel", "酒店", "the hotel", "酒店"),
    "gym": ("at the gym", "健身房", "the gym", "健身房"),
    "living": ("in the living room", "客厅里", "the living room", "客厅"),
    "bedroom": ("in the bedroom", "卧室里", "the bedroom", "卧室"),
    "classroom": ("in the classroom", "教室里", "the classroom", "教室"),
    "river": ("by the river", "河边", "the river", "河边"),
    "cafe": ("in the cafe", "咖啡馆", "the cafe", "咖啡馆"),
}
# Where one goes: English with its preposition, Chinese.
GOALS = (
    ("to the bank", "银行"), ("to the supermarket", "超市"), ("to the library", "图书馆"), ("to school", "学校"),
    ("to the hospital", "医院"), ("to the airport", "机场"), ("to the station", "车站"), ("to the park", "公园"),
    ("to the museum", "博物馆"), ("to the movie theater", "电影院"), ("to the post office", "邮局"), ("to the bookstore", "书店"),
    ("to the gym", "健身房"), ("to the restaurant", "餐厅"),
)  # fmt: skip
SPOTS = (
    ("the bank", "银行"), ("the supermarket", "超市"), ("the library", "图书馆"), ("the school", "学校"),
    ("the hospital", "医院"), ("the station", "车站"), ("the park", "公园"), ("the museum", "博物馆"),
    ("the movie theater", "电影院"), ("the post office", "邮局"), ("the bookstore", "书店"), ("the hotel", "酒店"),
    ("the restaurant", "餐厅"),
)  # fmt: skip
TRANSPORT = (
    ("by bus", "坐公共汽车"), ("by taxi", "坐出租车"), ("by subway", "坐地铁"),
    ("by bicycle", "骑自行车"), ("by car", "开车"), ("on foot", "走路"),
)  # fmt: skip
FAR_TRANSPORT = (("by train", "坐火车"), ("by plane", "坐飞机"), ("by car", "开车"), ("by bus", "坐公共汽车"))


@dataclass(frozen=True)
class Act:
    """A verb phrase. `rest` may hold {his}; `parts` are the parts of the day it suits; `tags` say what fits it."""

    base: str
    rest: str
    verb_zh: str
    object_zh: str
    places: tuple[str, ...]
    parts: str = "mae"
    tags: str = ""

    @property
    def zh(self) -> str:
        return self.verb_zh + self.object_zh

    @property
    def done(self) -> str:
        """The Chinese past: 做了晚饭."""
        return f"{self.verb_zh}了{self.object_zh}"

    def _join(self, form: str, who: Who | None) -> str:
        rest = self.rest.format(his=who.his if who else "your")
        return f"{form} {rest}" if rest else form

    def plain(self, who: Who | None = None) -> str:
        return self._join(self.base, who)

    def now(self, who: Who) -> str:
        return self._join(who.verb(self.base), who)

    def past(self, who: Who | None = None) -> str:
        return self._join(past(self.base), who)

    def ing(self, who: Who | None = None) -> str:
        return self._join(ing(self.base), who)

    def doing(self, who: Who | None = None) -> str:
        """As `ing`, of what goes on at one moment: one novel, one letter."""
        return self.ing(who).replace(" novels", " a novel").replace(" letters", " a letter")

    def participle(self, who: Who | None = None) -> str:
        return self._join(participle(self.base), who)


def _act(en: str, zh: str, places: str, parts: str = "mae", tags: str = "") -> Act:
    base, _, rest = en.partition(" ")
    verb, _, thing = zh.partition("|")
    return Act(base, rest, verb, thing, tuple(places.split()), parts, tags)


# Tags: t takes a while (can be timed), l can be liked, s sport or skill (会), d done well (得), n no simple past,
# g for grown-ups, y for the young, k together with someone, m a meal, o as ordinary as a meal, h homework.
ACTS = (
    _act("cook breakfast", "做|早饭", "home kitchen", "m", "gm"),
    _act("cook dinner", "做|晚饭", "home kitchen", "e", "gkm"),
    _act("eat breakfast", "吃|早饭", "home hotel kitchen", "m", "km"),
    _act("eat lunch", "吃|午饭", "home school office restaurant", "", "km"),
    _act("eat dinner", "吃|晚饭", "home restaurant hotel", "e", "km"),
    _act("watch TV", "看|电视", "home living bedroom", "ae", "tlko"),
    _act("read the newspaper", "看|报纸", "home office library cafe living", "mae", "tlgo"),
    _act("read novels", "看|小说", "home library cafe garden", "mae", "tl"),
    _act("listen to music", "听|音乐", "home bedroom cafe living", "mae", "tlko"),
    _act("listen to the radio", "听|广播", "home kitchen", "mae", "tlo"),
    _act("play football", "踢|足球", "school park", "ae", "tlsky"),
    _act("play basketball", "打|篮球", "school park", "ae", "tlsky"),
    _act("play tennis", "打|网球", "school park", "mae", "tlsk"),
    _act("play chess", "下|象棋", "home park living", "mae", "tlsk"),
    _act("play the piano", "弹|钢琴", "home living school", "mae", "tlsd"),
    _act("play the guitar", "弹|吉他", "home bedroom park", "mae", "tlsd"),
    _act("drink coffee", "喝|咖啡", "home office cafe kitchen", "mae", "lgko"),
    _act("drink tea", "喝|茶", "home office garden living", "mae", "lgko"),
    _act("study Chinese", "学|中文", "home school library", "mae", "tlk"),
    _act("study English", "学|英语", "home school library", "mae", "tlk"),
    _act("do {his} homework", "做|作业", "home school library bedroom", "ae", "th"),
    _act("write letters", "写|信", "home office bedroom", "mae", "tl"),
    _act("wash the dishes", "洗|碗", "kitchen", "mae", "no"),
    _act("wash clothes", "洗|衣服", "home", "mae", "g"),
    _act("clean the room", "打扫|房间", "", "mae", ""),
    _act("take a walk", "散|步", "park garden river", "mae", "tk"),
    _act("take a shower", "洗|澡", "home", "me", "o"),
    _act("swim", "游|泳", "", "mae", "tlsk"),
    _act("run", "跑|步", "park gym river", "mae", "tlky"),
    _act("dance", "跳|舞", "park school", "ae", "tlsdk"),
    _act("sing", "唱|歌", "school park home", "mae", "tlk"),
    _act("draw pictures", "画|画", "home school park river", "mae", "tl"),
    _act("take photos", "拍|照片", "park garden river", "mae", "lk"),
    _act("exercise", "锻炼|", "gym park", "mae", "tlk"),
    _act("rest", "休息|", "home hotel bedroom", "ae", "t"),
    _act("work", "工作|", "home office", "mae", "gny"),
    _act("practice speaking", "练习|口语", "school classroom", "mae", "tk"),
)


# Seen and timed, but no news: nobody tells that someone slept yesterday.
SLEEP = _act("sleep", "睡|觉", "home bedroom hotel", "ae")
ONGOING = (*ACTS, SLEEP)


def tagged(letter: str, without: str = "") -> tuple[Act, ...]:
    return tuple(act for act in ACTS if letter in act.tags and not any(mark in act.tags for mark in without))


TIMED, LIKED, SKILLS, TOGETHER = (*tagged("t"), SLEEP, SLEEP), tagged("l"), tagged("s"), tagged("k")
PAST_ACTS = tuple(act for act in ACTS if "n" not in act.tags)
PLACED = tuple(act for act in ACTS if act.places)
PLACED_PAST = tuple(act for act in PAST_ACTS if act.places)


def doer(draw: Draw, act: Act, anyone: Sequence[Who], grown: Sequence[Who]) -> Who:
    """Someone who would do it: children do not cook breakfast, nor do grown-ups have homework."""
    if "h" in act.tags:
        return draw(
            [who for who in anyone if who.en != "my parents" and (who not in grown or who.agree in ("1s", "2"))]
        )
    choice = grown if "g" in act.tags else anyone
    if "y" in act.tags:
        choice = [who for who in choice if not who.en.endswith(("grandmother", "grandfather"))]
    return draw(choice)


def at(draw: Draw, act: Act) -> tuple[str, str]:
    """A place for the act: "in the park" 在公园."""
    english, chinese, _, _ = PLACES[draw(act.places)]
    return english, "在" + chinese


def suiting(draw: Draw, times: Sequence[When], act: Act, somewhere: bool = False) -> When:
    """A time that suits the act: nobody eats breakfast every evening.

    A meal is no news unless it is taken `somewhere`, so without a place its day is not one of the week.
    """
    fit = [time for time in times if not time.part or time.part in act.parts]
    if ("m" in act.tags or "o" in act.tags) and not somewhere:
        fit = [time for time in fit if time.part or time.en in ("every day", "yesterday", "tomorrow")]
    return draw(fit)


# Where strangers are seen.
PUBLIC = ("school", "park", "library", "office", "restaurant", "hotel", "gym", "classroom", "river", "cafe")


def publicly(act: Act) -> bool:
    return any(place in PUBLIC for place in act.places)


def at_public(draw: Draw, act: Act) -> tuple[str, str]:
    """A place as by `at`, but not a private one."""
    english, chinese, _, _ = PLACES[draw([place for place in act.places if place in PUBLIC])]
    return english, "在" + chinese
