"""Things and their measure words, and the adjectives that suit them."""

from __future__ import annotations

from dataclasses import dataclass

from .inflection import a, chinese_number, english_number


@dataclass(frozen=True)
class Thing:
    """A noun that can be counted. `pair` marks what English counts by the pair: these shoes, a pair of shoes."""

    en: str
    plural: str
    zh: str
    measure: str
    pair: bool = False

    @property
    def one(self) -> str:
        return f"a pair of {self.plural}" if self.pair else a(self.en)

    @property
    def one_zh(self) -> str:
        return f"一{self.measure}{self.zh}"

    def with_adjective(self, en: str, zh: str) -> tuple[str, str]:
        """One of them with an adjective: "a red coat" 一件红色的大衣."""
        english = f"a pair of {en} {self.plural}" if self.pair else a(f"{en} {self.en}")
        return english, f"一{self.measure}{zh}{self.zh}"

    def several(self, number: int) -> tuple[str, str]:
        counted = english_number(number)
        english = f"{counted} pairs of {self.plural}" if self.pair else f"{counted} {self.plural}"
        return english, f"{chinese_number(number)}{self.measure}{self.zh}"

    @property
    def name(self) -> str:
        """The bare noun after "the" or "my"."""
        return self.plural if self.pair else self.en

    @property
    def be(self) -> str:
        return "are" if self.pair else "is"

    @property
    def was(self) -> str:
        return "were" if self.pair else "was"

    def verb(self, third: str, base: str) -> str:
        return base if self.pair else third

    @property
    def this(self) -> str:
        return ("these " if self.pair else "this ") + self.name

    @property
    def that(self) -> str:
        return ("those " if self.pair else "that ") + self.name

    @property
    def this_zh(self) -> str:
        return f"这{self.measure}{self.zh}"

    @property
    def that_zh(self) -> str:
        return f"那{self.measure}{self.zh}"

    @property
    def it(self) -> str:
        return "them" if self.pair else "it"


def _things(table: str) -> tuple[Thing, ...]:
    """Reads lines "singular/plural measure noun"; no plural means one in -s, and = marks a pair."""
    found = []
    for row in table.strip().splitlines():
        english, measure, chinese = (part.strip() for part in row.split("|"))
        singular, _, plural = english.partition("/")
        pair = singular.startswith("=")
        singular = singular.lstrip("=")
        found.append(Thing(singular, plural or (singular if pair else singular + "s"), chinese, measure, pair))
    return tuple(found)


CLOTHES = _things("""
coat | 件 | 大衣
shirt | 件 | 衬衫
sweater | 件 | 毛衣
skirt | 条 | 裙子
scarf/scarves | 条 | 围巾
hat | 顶 | 帽子
=shoes | 双 | 鞋子
=pants | 条 | 裤子
=gloves | 双 | 手套
""")
BOOKS = _things("""
book | 本 | 书
novel | 本 | 小说
dictionary/dictionaries | 本 | 词典
magazine | 本 | 杂志
""")
READING = tuple(thing for thing in BOOKS if thing.en != "dictionary")
VEHICLES = _things("""
car | 辆 | 车
bicycle | 辆 | 自行车
""")
DEVICES = _things("""
computer | 台 | 电脑
phone | 部 | 手机
camera | 台 | 相机
watch/watches | 块 | 手表
""")
SMALL = _things("""
umbrella | 把 | 雨伞
key | 把 | 钥匙
pen | 支 | 笔
pencil | 支 | 铅笔
map | 张 | 地图
photo | 张 | 照片
ticket | 张 | 票
bag | 个 | 包
cup | 个 | 杯子
box/boxes | 个 | 盒子
letter | 封 | 信
=glasses | 副 | 眼镜
""")
FURNITURE = _things("""
table | 张 | 桌子
chair | 把 | 椅子
bed | 张 | 床
lamp | 盏 | 灯
""")
ANIMALS = _things("""
cat | 只 | 猫
dog | 只 | 狗
bird | 只 | 鸟
rabbit | 只 | 兔子
horse | 匹 | 马
fish/fish | 条 | 鱼
cow | 头 | 牛
sheep/sheep | 只 | 羊
chicken | 只 | 鸡
duck | 只 | 鸭子
pig | 头 | 猪
""")
PETS = tuple(animal for animal in ANIMALS if animal.en in ("cat", "dog", "bird", "rabbit"))
FARM = tuple(animal for animal in ANIMALS if animal.en in ("horse", "cow", "sheep", "chicken", "duck", "pig"))
DRINKS = _things("""
cup of coffee/cups of coffee | 杯 | 咖啡
cup of tea/cups of tea | 杯 | 茶
glass of water/glasses of water | 杯 | 水
glass of milk/glasses of milk | 杯 | 牛奶
glass of juice/glasses of juice | 杯 | 果汁
bottle of beer/bottles of beer | 瓶 | 啤酒
bottle of wine/bottles of wine | 瓶 | 葡萄酒
""")
DISHES = _things("""
bowl of rice/bowls of rice | 碗 | 米饭
bowl of noodles/bowls of noodles | 碗 | 面条
bowl of soup/bowls of soup | 碗 | 汤
plate of dumplings/plates of dumplings | 盘 | 饺子
""")
SNACKS = _things("""
apple | 个 | 苹果
orange | 个 | 橙子
pear | 个 | 梨
banana | 根 | 香蕉
egg | 个 | 鸡蛋
cake | 个 | 蛋糕
sandwich/sandwiches | 个 | 三明治
piece of bread/pieces of bread | 片 | 面包
piece of chocolate/pieces of chocolate | 块 | 巧克力
""")
FILMS = _things("""
movie | 部 | 电影
""")
SONGS = _things("""
song | 首 | 歌
""")
PLANTS = _things("""
tree | 棵 | 树
flower | 朵 | 花
""")
PLACES_COUNTED = _things("""
bank | 家 | 银行
restaurant | 家 | 餐厅
hotel | 家 | 酒店
supermarket | 家 | 超市
bookstore | 家 | 书店
hospital | 家 | 医院
company/companies | 家 | 公司
factory/factories | 家 | 工厂
school | 所 | 学校
university/universities | 所 | 大学
park | 个 | 公园
museum | 座 | 博物馆
library/libraries | 座 | 图书馆
""")
PEOPLE_COUNTED = _things("""
student | 个 | 学生
child/children | 个 | 孩子
teacher | 位 | 老师
doctor | 位 | 医生
guest | 位 | 客人
friend | 个 | 朋友
""")
BUYABLE = (*CLOTHES, *CLOTHES, *BOOKS, *VEHICLES, *DEVICES, *SMALL[:4], *SMALL[7:8], *FURNITURE)
OWNED = (*VEHICLES, *DEVICES, *SMALL, *CLOTHES, *BOOKS)
GOODS = (*CLOTHES, *BOOKS, *DEVICES, *VEHICLES, *FURNITURE)
PORTABLE = (*BOOKS, *SMALL[:8], *SMALL[10:], *DEVICES)


def fitting(things: tuple[Thing, ...], agree: str) -> tuple[Thing, ...]:
    """The things that such a person may own and wear: men have no skirts here."""
    return tuple(thing for thing in things if agree != "m" or thing.en != "skirt")


# What is not counted: English, Chinese.
MASS_FOOD = (
    ("rice", "米饭"), ("noodles", "面条"), ("soup", "汤"), ("bread", "面包"), ("fish", "鱼"), ("beef", "牛肉"),
    ("chicken", "鸡肉"), ("vegetables", "蔬菜"), ("fruit", "水果"), ("eggs", "鸡蛋"), ("dumplings", "饺子"),
    ("chocolate", "巧克力"), ("apples", "苹果"), ("bananas", "香蕉"), ("cake", "蛋糕"),
)  # fmt: skip
MASS_DRINK = (
    ("coffee", "咖啡"), ("tea", "茶"), ("water", "水"), ("milk", "牛奶"), ("juice", "果汁"), ("beer", "啤酒"),
    ("wine", "葡萄酒"),
)  # fmt: skip
GROCERIES = (*MASS_FOOD[3:10], *MASS_FOOD[11:14], *MASS_DRINK)
BY_THE_KILO = (
    ("apples", "苹果"), ("oranges", "橙子"), ("pears", "梨"), ("bananas", "香蕉"), ("beef", "牛肉"), ("fish", "鱼"),
    ("chicken", "鸡肉"), ("rice", "大米"), ("potatoes", "土豆"), ("tomatoes", "西红柿"),
)  # fmt: skip
