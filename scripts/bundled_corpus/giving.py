"""Giving, putting and asking others: two objects, 把, 被, requests, prohibitions, suggestions, causing."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .people import GROWN, MY, MY_GROWN, NAMES, PRONOUNS, STATED, TITLES, Who
from .qualities import described
from .things import ANIMALS, BOOKS, BUYABLE, DEVICES, PORTABLE, READING, SMALL, VEHICLES, fitting
from .times import FUTURE, HABIT, LONG_PAST, PAST

SINGLE_PEOPLE = (*NAMES, *TITLES, *MY)
RECEIVERS = (PRONOUNS[0], *PRONOUNS[2:5], *NAMES, *MY)
GIFTS = (*BUYABLE[:22], *DEVICES, *SMALL[:1], *SMALL[8:9])


def receiver(draw: Draw, giver: Who) -> Who:
    """Someone else than the giver; "my" relatives receive from "me" or from a name."""
    return draw([one for one in RECEIVERS if one.agree != giver.agree or (one in NAMES and giver in MY)])


@production(200)
def gave(draw: Draw) -> Pair:
    who = draw((*STATED, *SINGLE_PEOPLE))
    other = receiver(draw, who)
    thing = draw(fitting(GIFTS, other.agree))
    english, chinese = described(draw, thing) if draw.chance(0.4) else (thing.one, thing.one_zh)
    verb, form = draw((
        ("gave", "{who}{when}给了{other}{thing}"), ("bought", "{who}{when}给{other}买了{thing}"),
        ("bought", "{who}{when}给{other}买了{thing}"), ("lent", "{who}{when}借给了{other}{thing}"),
    ))  # fmt: skip
    when = draw(PAST)
    if verb == "lent":
        english, chinese = thing.one, thing.one_zh
    zh = form.format(who=who.zh, when=when.zh, other=other.zh, thing=chinese)
    return f"{who.en} {verb} {other.him} {english} {when.en}.", zh + "。"


@production(120)
def sent(draw: Draw) -> Pair:
    who = draw((*STATED, *SINGLE_PEOPLE))
    other = receiver(draw, who)
    verb, thing, zh = draw((
        ("wrote", "a letter", "写了一封信"), ("sent", "a letter", "寄了一封信"), ("sent", "an email", "发了一封邮件"),
        ("sent", "a photo", "发了一张照片"), ("made", "a cake", "做了一个蛋糕"), ("made", "a cup of tea", "泡了一杯茶"),
        ("told", "a story", "讲了一个故事"), ("sent", "a message", "发了一条短信"),
    ))  # fmt: skip
    when = draw(PAST)
    return f"{who.en} {verb} {other.him} {thing} {when.en}.", f"{who.zh}{when.zh}给{other.zh}{zh}。"


@production(60)
def calls(draw: Draw) -> Pair:
    who = draw((*STATED, *SINGLE_PEOPLE))
    other = receiver(draw, who)
    form = draw.number(0, 2)
    if form == 0:
        when = draw(FUTURE)
        return f"{who.en} will call {other.him} {when.en}.", f"{who.zh}{when.zh}会给{other.zh}打电话。"
    if form == 1:
        when = draw(PAST)
        return f"{who.en} called {other.him} {when.en}.", f"{who.zh}{when.zh}给{other.zh}打了电话。"
    when = draw(HABIT[:1] + HABIT[2:3] + HABIT[5:])
    return f"{who.en} {who.verb('call')} {other.him} {when.en}.", f"{who.zh}{when.zh}给{other.zh}打电话。"


@production(50)
def teaches(draw: Draw) -> Pair:
    who = draw((*TITLES, *MY_GROWN, *PRONOUNS[2:4], *NAMES))
    subject, subject_zh = draw(
        (("Chinese", "中文"), ("English", "英语"), ("French", "法语"), ("music", "音乐"), ("math", "数学"))
    )
    other = receiver(draw, who)
    if draw.chance(0.4):
        group, group_zh = draw((("us", "我们"), ("the children", "孩子们"), ("the students", "学生们")))
        return f"{who.en} {who.verb('teach')} {group} {subject}.", f"{who.zh}教{group_zh}{subject_zh}。"
    return f"{who.en} {who.verb('teach')} {other.him} {subject}.", f"{who.zh}教{other.zh}{subject_zh}。"


LAYING = (
    ("on the table", "桌子上"), ("on the desk", "书桌上"), ("on the bed", "床上"), ("on the chair", "椅子上"),
    ("in the box", "盒子里"), ("in the bag", "包里"), ("under the bed", "床下面"), ("next to the lamp", "灯旁边"),
)  # fmt: skip


@production(200)
def put(draw: Draw) -> Pair:
    who, thing = (
        draw((*GROWN, *MY)),
        draw([one for one in PORTABLE if one.en not in ("bag", "box", "computer", "letter")]),
    )
    where, where_zh = draw(LAYING)
    form = draw.number(0, 3)
    if form == 0:
        return f"Please put the {thing.name} {where}.", f"请把{thing.zh}放在{where_zh}。"
    if form == 1:
        return f"Don't put the {thing.name} {where}.", f"别把{thing.zh}放在{where_zh}。"
    if form == 2 and who.agree in ("1s", "m", "f"):
        return f"{who.en} put {who.his} {thing.name} {where}.", f"{who.zh}把{who.he_zh}的{thing.zh}放在{where_zh}了。"
    return f"{who.en} put the {thing.name} {where}.", f"{who.zh}把{thing.zh}放在{where_zh}了。"


RESULTS = (
    # base, object, past, Chinese object, Chinese verb with its result
    ("open", "the window", "opened", "窗户", "打开"), ("close", "the window", "closed", "窗户", "关上"),
    ("open", "the door", "opened", "门", "打开"), ("close", "the door", "closed", "门", "关上"),
    ("turn off", "the light", "turned off", "灯", "关掉"), ("turn on", "the light", "turned on", "灯", "打开"),
    ("turn off", "the TV", "turned off", "电视", "关掉"), ("turn on", "the computer", "turned on", "电脑", "打开"),
    ("finish", "the homework", "finished", "作业", "做完"), ("wash", "the cups", "washed", "杯子", "洗干净"),
    ("wash", "the clothes", "washed", "衣服", "洗干净"), ("clean", "the kitchen", "cleaned", "厨房", "打扫干净"),
    ("drink up", "the milk", "drank up", "牛奶", "喝完"), ("eat up", "the apple", "ate up", "苹果", "吃完"),
    ("eat up", "the noodles", "ate up", "面条", "吃完"), ("sell", "the car", "sold", "车", "卖掉"),
    ("move", "the table", "moved", "桌子", "搬走"), ("take away", "the chair", "took away", "椅子", "拿走"),
)  # fmt: skip


@production(220)
def results(draw: Draw) -> Pair:
    base, thing, done, zh, verb_zh = draw(RESULTS)
    who = draw(GROWN if base == "sell" else (*STATED, *NAMES, *MY))
    form = draw.number(0, 5)
    if form == 0:
        return f"Please {base} {thing}.", f"请把{zh}{verb_zh}。"
    if form == 1:
        return f"Can you {base} {thing}?", f"你能把{zh}{verb_zh}吗？"
    if form == 2:
        have = draw.negated(who.have)
        finished = {"drank up": "drunk up", "ate up": "eaten up", "took away": "taken away"}.get(done, done)
        return f"{who.en} {have} {finished} {thing} yet.", f"{who.zh}还没把{zh}{verb_zh}。"
    if form == 3:
        finished = {"drank up": "drunk up", "ate up": "eaten up", "took away": "taken away"}.get(done, done)
        return f"{who.en} {who.have} already {finished} {thing}.", f"{who.zh}已经把{zh}{verb_zh}了。"
    if form == 4:
        return f"{who.en} forgot to {base} {thing}.", f"{who.zh}忘了把{zh}{verb_zh}。"
    return f"{who.en} {done} {thing}.", f"{who.zh}把{zh}{verb_zh}了。"


@production(130)
def handing_over(draw: Draw) -> Pair:
    thing = draw([one for one in PORTABLE if one.en != "letter"])
    other = draw((PRONOUNS[0], *PRONOUNS[2:4], *NAMES, *TITLES))
    form = draw.number(0, 3)
    if form == 0:
        return f"Please give {thing.this} to {other.him}.", f"请把{thing.this_zh}给{other.zh}。"
    if form == 1:
        return f"Please give {thing.that} back to {other.him}.", f"请把{thing.that_zh}还给{other.zh}。"
    who = draw([one for one in (*PRONOUNS[:1], *PRONOUNS[2:4], *NAMES, *MY) if one.agree != other.agree])
    if form == 2:
        return (
            f"{who.en} lent {who.his} {thing.name} to {other.him}.",
            f"{who.zh}把{who.he_zh}的{thing.zh}借给{other.zh}了。",
        )
    return f"{who.en} brought {thing.this} to {other.him}.", f"{who.zh}把{thing.this_zh}带给{other.zh}了。"


@production(50)
def borrowing(draw: Draw) -> Pair:
    thing = draw((*DEVICES[:3], *VEHICLES, *BOOKS, *SMALL[:1], *SMALL[2:5], SMALL[7]))
    if draw.chance(0.5):
        return f"Can you lend me your {thing.name}?", f"你能把你的{thing.zh}借给我吗？"
    if draw.chance(0.5):
        thing = draw((*DEVICES[:3], *VEHICLES, BOOKS[2], *SMALL[:1], *SMALL[2:5], SMALL[7]))
        return f"May I use your {thing.name}?", f"我可以用你的{thing.zh}吗？"
    other = draw((*NAMES, *TITLES))
    return f"I borrowed {thing.one} from {other.en}.", f"我向{other.zh}借了{thing.one_zh}。"


@production(140)
def passive(draw: Draw) -> Pair:
    form = draw.number(0, 4)
    if form == 0:
        animal = draw((ANIMALS[0], ANIMALS[1], ANIMALS[2]))
        food, zh = draw(
            (
                ("fish", "鱼"),
                ("bread", "面包"),
                ("cake", "蛋糕"),
                ("egg", "鸡蛋"),
                ("fruit", "水果"),
                ("chicken", "鸡肉"),
            )
        )
        if animal.en == "bird":
            food, zh = draw((("bread", "面包"), ("fruit", "水果")))
        if draw.chance(0.5):
            return f"The {food} was eaten by the {animal.en}.", f"{zh}被{animal.zh}吃掉了。"
        return f"The {food} was eaten by {animal.this}.", f"{zh}被{animal.this_zh}吃掉了。"
    owner = draw((*PRONOUNS[:4], *NAMES, *MY))
    his = owner.his if owner in PRONOUNS else owner.en + "'s"
    if form == 1:
        thing = draw((*DEVICES, *VEHICLES, SMALL[7], SMALL[0]))
        when = draw(PAST)
        return f"{his} {thing.name} was stolen {when.en}.", f"{owner.zh}的{thing.zh}{when.zh}被偷了。"
    who = draw((*NAMES, *MY))
    if form == 2:
        thing = draw(PORTABLE)
        return f"The {thing.name} {thing.was} taken away by {who.en}.", f"{thing.zh}被{who.zh}拿走了。"
    if form == 3:
        thing, zh, verb, verb_zh = draw((
            ("cup", "杯子", "broken", "打破"), ("window", "窗户", "broken", "打破"), ("door", "门", "opened", "打开"),
            ("computer", "电脑", "broken", "弄坏"), ("chair", "椅子", "broken", "弄坏"), ("light", "灯", "turned off", "关掉"),
        ))  # fmt: skip
        return f"The {thing} was {verb} by {who.en}.", f"{zh}被{who.zh}{verb_zh}了。"
    thing = draw((*READING, *DEVICES[:3], *VEHICLES))
    return f"{his} {thing.name} was borrowed by {who.en}.", f"{owner.zh}的{thing.zh}被{who.zh}借走了。"


@production(60)
def presents(draw: Draw) -> Pair:
    who = draw((*NAMES, *MY, *PRONOUNS[2:4]))
    other = receiver(draw, who)
    thing = draw(fitting(GIFTS, other.agree))
    english, chinese = thing.one, thing.one_zh
    if draw.chance(0.5):
        return f"{who.en} wants to give {other.him} {english}.", f"{who.zh}想送给{other.zh}{chinese}。"
    when = draw(LONG_PAST[1:3])
    return (
        f"{who.en} gave {english} to {other.him} as a present {when.en}.",
        f"{who.zh}{when.zh}送给了{other.zh}{chinese}。",
    )
