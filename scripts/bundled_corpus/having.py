"""Having and being somewhere: possession, existence, location, numbers of things and people."""

from __future__ import annotations

from .actions import SPOTS
from .drawing import Draw, Pair, production
from .inflection import a, chinese_number, english_number
from .people import ASKED, CITIES, GROWN, JOBS, MY, NAMES, PRONOUNS, STATED, TITLES
from .qualities import described
from .things import (
    ANIMALS,
    BOOKS,
    CLOTHES,
    DEVICES,
    FARM,
    FURNITURE,
    OWNED,
    PEOPLE_COUNTED,
    PETS,
    PLACES_COUNTED,
    PLANTS,
    SMALL,
    SNACKS,
    VEHICLES,
    Thing,
    fitting,
)  # fmt: skip

OWNERS = (*STATED, *NAMES, *MY)
# What one may ask for, or do without.
LACKED = (*VEHICLES, *DEVICES, *SMALL[:5], *SMALL[6:7], *SMALL[11:], BOOKS[2], *CLOTHES[5:6], *CLOTHES[8:], *PETS)
ON_TABLES = (*BOOKS, *SMALL, *SNACKS[:6], *DEVICES)
# A place for small things: English, Chinese, what may be there.
SURFACES = (
    ("on the table", "桌子上", ON_TABLES), ("on the desk", "书桌上", (*BOOKS, *SMALL[:8], *DEVICES)),
    ("on the bed", "床上", (*BOOKS, *CLOTHES, *SMALL[5:6], *SMALL[7:8])), ("on the chair", "椅子上", (*BOOKS, *CLOTHES)),
    ("in the bag", "包里", (*BOOKS, *SMALL[:7], *SMALL[10:], *SNACKS[:5])),
    ("in the box", "盒子里", (*SMALL[1:6], *SMALL[10:], *SNACKS[:4], *SNACKS[8:])),
    ("under the table", "桌子下面", (*PETS[:2], SMALL[9], SMALL[7])),
    ("under the tree", "树下", (*PETS[:2], *FARM[:3], *FURNITURE[1:2])),
    ("in the garden", "花园里", (*PLANTS, *PETS)), ("in the river", "河里", (ANIMALS[5], ANIMALS[9])),
    ("in front of the house", "房子前面", (*VEHICLES, PLANTS[0], *PETS[:2])),
    ("behind the house", "房子后面", (*PLANTS[:1], *VEHICLES, *FARM)),
    ("in the room", "房间里", (*FURNITURE, *PEOPLE_COUNTED[1:3])), ("in the classroom", "教室里", PEOPLE_COUNTED[:3]),
    ("in the kitchen", "厨房里", (*FURNITURE[:2], *SNACKS[:5])),
)  # fmt: skip
BESIDE = (("next to", "旁边"), ("near", "附近"), ("behind", "后面"), ("in front of", "前面"), ("across from", "对面"))


@production(190)
def has(draw: Draw) -> Pair:
    who = draw(OWNERS)
    thing = draw(fitting((*OWNED, *PETS, *PETS), who.agree))
    form = draw.number(0, 3)
    if form == 2:
        thing = draw(fitting(LACKED, who.agree))
    if form == 0:
        english, chinese = described(draw, thing, used=True)
    elif form == 1:
        english, chinese = thing.several(draw.number(2, 6))
    elif form == 2:
        return f"{who.en} {draw.negated(who.do)} have {thing.one}.", f"{who.zh}没有{thing.zh}。"
    else:
        english, chinese = thing.one, thing.one_zh
    return f"{who.en} {who.have} {english}.", f"{who.zh}有{chinese}。"


@production(80)
def have_you(draw: Draw) -> Pair:
    asked = draw(ASKED)
    thing = draw(fitting(LACKED, asked.agree))
    return f"{asked.do} {asked.en} have {thing.one}?", f"{asked.zh}有{thing.zh}吗？"


@production(90)
def family(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *NAMES))
    table = (
        ("older brother", "哥哥"), ("younger brother", "弟弟"), ("older sister", "姐姐"), ("younger sister", "妹妹"),
        ("son", "儿子"), ("daughter", "女儿"), ("child", "孩子"),
    )  # fmt: skip
    (first, first_zh), (second, second_zh) = draw.two(table[:4] if draw.chance(0.6) else table[4:6])
    form = draw.number(0, 2)
    if form == 0:
        number = draw.number(2, 3)
        return (
            f"{who.en} {who.have} {a(first)} and {english_number(number)} {second}s.",
            f"{who.zh}有一个{first_zh}和{chinese_number(number)}个{second_zh}。",
        )
    if form == 1:
        relative, relative_zh = draw(table)
        return f"{who.en} {draw.negated(who.do)} have {a(relative)}.", f"{who.zh}没有{relative_zh}。"
    number = draw.number(3, 8)
    his = who.his if who in PRONOUNS else who.en + "'s"
    return f"There are {english_number(number)} people in {his} family.", f"{who.zh}家有{chinese_number(number)}口人。"


@production(230)
def there_is(draw: Draw) -> Pair:
    where, where_zh, things = draw(SURFACES)
    thing = draw(things)
    if draw.chance(0.55):
        english, chinese = thing.several(draw.number(2, 6))
        return f"There are {english} {where}.", f"{where_zh}有{chinese}。"
    english, chinese = (
        described(draw, thing, used=True) if draw.chance(0.3) and thing in OWNED else (thing.one, thing.one_zh)
    )
    return f"There is {english} {where}.", f"{where_zh}有{chinese}。"


@production(80)
def there_is_no(draw: Draw) -> Pair:
    if draw.chance(0.35):
        goods, goods_zh = draw((
            ("milk", "牛奶"), ("beer", "啤酒"), ("juice", "果汁"), ("fruit", "水果"), ("beef", "牛肉"), ("eggs", "鸡蛋"),
            ("vegetables", "蔬菜"), ("bread", "面包"),
        ))  # fmt: skip
        be = "are" if goods.endswith("s") else "is"
        if draw.chance(0.5):
            return f"There {be} no {goods} in the fridge.", f"冰箱里没有{goods_zh}。"
        return f"{be} there any {goods} in the fridge?", f"冰箱里有{goods_zh}吗？"
    where, where_zh, things = draw(SURFACES)
    thing = draw(things)
    return f"There are no {thing.plural} {where}.", f"{where_zh}没有{thing.zh}。"


@production(120)
def beside(draw: Draw) -> Pair:
    place, (spot, spot_zh), (side, side_zh) = draw(PLACES_COUNTED[:5] + PLACES_COUNTED[8:]), draw(SPOTS), draw(BESIDE)
    if place.zh == spot_zh:
        spot, spot_zh = "my home", "我家"
    form = draw.number(0, 3)
    if form == 0:
        return f"Is there {place.one} {side} {spot}?", f"{spot_zh}{side_zh}有{place.zh}吗？"
    if form == 1:
        return f"There is no {place.en} {side} {spot}.", f"{spot_zh}{side_zh}没有{place.zh}。"
    if form == 2 and place in PLACES_COUNTED[:5]:
        english, chinese = place.several(draw.number(2, 3))
        return f"There are {english} {side} {spot}.", f"{spot_zh}{side_zh}有{chinese}。"
    english, chinese = described(draw, place) if draw.chance(0.5) else (place.one, place.one_zh)
    return f"There is {english} {side} {spot}.", f"{spot_zh}{side_zh}有{chinese}。"


@production(110)
def where_it_stands(draw: Draw) -> Pair:
    (spot, spot_zh), (second, second_zh) = draw.two(SPOTS)
    if draw.chance(0.3):
        third, third_zh = draw([one for one in SPOTS if one[0] not in (spot, second)])
        return f"{spot} is between {second} and {third}.", f"{spot_zh}在{second_zh}和{third_zh}中间。"
    side, side_zh = draw(BESIDE)
    return f"{spot} is {side} {second}.", f"{spot_zh}在{second_zh}{side_zh}。"


@production(130)
def where_things_are(draw: Draw) -> Pair:
    where, where_zh, things = draw(SURFACES[:7])
    owner = draw((*PRONOUNS, *NAMES, *MY))
    thing = draw([one for one in fitting(things, owner.agree) if one not in SNACKS])
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    form = draw.number(0, 2)
    if form == 0:
        return f"{his} {thing.name} {draw.negated(thing.be)} {where}.", f"{owner.zh}的{thing.zh}不在{where_zh}。"
    if form == 1:
        return f"{thing.be} {his} {thing.name} {where}?", f"{owner.zh}的{thing.zh}在{where_zh}吗？"
    return f"{his} {thing.name} {thing.be} {where}.", f"{owner.zh}的{thing.zh}在{where_zh}。"


@production(100)
def where_people_are(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES, *TITLES, *MY))
    where, where_zh = draw((
        ("at home", "家"), ("at school", "学校"), ("in the hospital", "医院"), ("in the office", "办公室"),
        ("in the library", "图书馆"), ("at the station", "车站"), ("at the airport", "机场"), ("in the kitchen", "厨房里"),
        *((f"in {en}", zh) for en, zh in CITIES),
    ))  # fmt: skip
    form = draw.number(0, 3)
    if form == 0:
        return f"{who.en} {draw.negated(who.be)} {where} now.", f"{who.zh}现在不在{where_zh}。"
    if form == 1:
        return f"{who.en} {who.was} {where} yesterday.", f"{who.zh}昨天在{where_zh}。"
    if form == 2:
        asked = draw(ASKED)
        return f"{asked.be} {asked.en} {where} now?", f"{asked.zh}现在在{where_zh}吗？"
    return f"{who.en} {who.be} {where} now.", f"{who.zh}现在在{where_zh}。"


@production(110)
def whose(draw: Draw) -> Pair:
    owner = draw((*NAMES, *MY, *TITLES))
    thing = draw(fitting((*OWNED, *PETS), owner.agree))
    form = draw.number(0, 3)
    this = "These" if thing.pair else "This"
    if form == 0:
        return f"Whose {thing.name} {thing.be} {this.lower()}?", f"{thing.this_zh}是谁的？"
    if form == 1:
        return f"{thing.be} {this.lower()} {owner.en}'s {thing.name}?", f"这是{owner.zh}的{thing.zh}吗？"
    if form == 2:
        return f"{this} {draw.negated(thing.be)} {owner.en}'s {thing.name}.", f"这不是{owner.zh}的{thing.zh}。"
    return f"{this} {thing.be} {owner.en}'s {thing.name}.", f"这是{owner.zh}的{thing.zh}。"


@production(100)
def how_many_there_are(draw: Draw) -> Pair:
    place, place_zh, one, zh, low, high, step = draw((
        ("our school", "我们学校", "students", "个学生", 5, 40, 100), ("this school", "这所学校", "teachers", "位老师", 5, 25, 10),
        ("our company", "我们公司", "engineers", "位工程师", 3, 40, 10), ("this hospital", "这家医院", "doctors", "位医生", 10, 60, 10),
        ("this university", "这所大学", "students", "个学生", 6, 60, 500), ("the library", "图书馆里", "books", "本书", 10, 60, 1000),
        ("this hotel", "这家酒店", "rooms", "个房间", 8, 60, 5), ("our class", "我们班", "students", "个学生", 18, 45, 1),
        ("this factory", "这家工厂", "workers", "个工人", 12, 90, 50),
    ))  # fmt: skip
    number = draw.number(low, high) * step
    if draw.chance(0.15):
        return f"How many {one} are there in {place}?", f"{place_zh}有多少{zh}？"
    return f"There are {english_number(number)} {one} in {place}.", f"{place_zh}有{chinese_number(number)}{zh}。"


@production(70)
def works_at(draw: Draw) -> Pair:
    who, (city, city_zh) = draw((*STATED[:3], *NAMES, *GROWN[-8:])), draw(CITIES)
    place: Thing = draw([place for place in PLACES_COUNTED if place.en != "park"])
    verb, verb_zh = draw((("work", "工作"), ("work", "工作")))
    preposition = "at" if place.en not in ("factory", "museum", "library") else "in"
    return (
        f"{who.en} {who.verb(verb)} {preposition} {place.one} in {city}.",
        f"{who.zh}在{city_zh}的{place.one_zh}{verb_zh}。",
    )


@production(50)
def farms(draw: Draw) -> Pair:
    who, (first, second) = draw((*MY[6:10], *TITLES[:2], *NAMES[:3])), draw.two(FARM)
    number, other = draw.number(2, 12), draw.number(2, 12)
    one, one_zh = first.several(number)
    two, two_zh = second.several(other)
    return f"{who.en} has {one} and {two}.", f"{who.zh}有{one_zh}和{two_zh}。"


@production(40)
def knows_someone(draw: Draw) -> Pair:
    who = draw((*STATED[:3], *NAMES, *MY))
    relation, relation_zh = draw((("a friend", "一个朋友"), ("an uncle", "一个叔叔"), ("an aunt", "一个阿姨")))
    job, job_zh = draw([job for job in JOBS if job[0] not in ("policeman", "actor", "student")])
    return f"{who.en} {who.have} {relation} who is {a(job)}.", f"{who.zh}有{relation_zh}是{job_zh}。"


@production(100)
def states(draw: Draw) -> Pair:
    form = draw.number(0, 3)
    if form == 0:
        place, place_zh = draw(
            (("", ""), ("in the kitchen", "厨房里"), ("in the classroom", "教室里"), ("in the office", "办公室里"))
        )
        thing, state, zh = draw((
            ("window", "open", "窗户开着"), ("window", "closed", "窗户关着"), ("door", "open", "门开着"), ("door", "closed", "门关着"),
            ("light", "on", "灯亮着"), ("TV", "on", "电视开着"), ("computer", "on", "电脑开着"),
        ))  # fmt: skip
        middle, joint = (f" {place}", "的") if place else ("", "")
        return f"The {thing}{middle} is {state}.", f"{place_zh}{joint}{zh}。"
    if form == 1:
        thing, zh = draw(
            (
                ("a map", "一张地图"),
                ("a picture", "一幅画"),
                ("two pictures", "两幅画"),
                ("a photo", "一张照片"),
                ("three photos", "三张照片"),
            )
        )
        where, where_zh = draw((
            ("of the classroom", "教室"), ("of the living room", "客厅"), ("of the office", "办公室"), ("of the bedroom", "卧室"),
            ("of the restaurant", "餐厅"),
        ))  # fmt: skip
        be = "is" if thing.startswith("a ") else "are"
        return f"There {be} {thing} hanging on the wall {where}.", f"{where_zh}的墙上挂着{zh}。"
    number = draw.number(2, 9)
    one, zh = draw((("people", "人"), ("students", "学生"), ("children", "孩子")))
    verb, verb_zh, where, where_zh = draw((
        ("sitting", "坐", "in the classroom", "教室里"), ("sitting", "坐", "under the tree", "树下"), ("standing", "站", "in front of the shop", "商店前面"),
        ("standing", "站", "in front of the door", "门前"), ("sitting", "坐", "by the river", "河边"), ("sitting", "坐", "in the living room", "客厅里"),
        ("standing", "站", "in front of the bank", "银行前面"), ("sitting", "坐", "on the bus", "公共汽车上"), ("sitting", "坐", "in the cafe", "咖啡馆里"),
    ))  # fmt: skip
    return (
        f"There are {english_number(number)} {one} {verb} {where}.",
        f"{where_zh}{verb_zh}着{chinese_number(number)}个{zh}。",
    )
