"""Conditions: 如果 always first, whichever half English begins with."""

from __future__ import annotations

from .drawing import Draw, Pair, production
from .people import NAMES, PRONOUNS, STATED
from .qualities import qualities
from .things import CLOTHES, DEVICES, FURNITURE, VEHICLES


@production(190)
def if_it_rains(draw: Draw) -> Pair:
    who = draw((*STATED, *NAMES))
    when, when_zh = draw(
        (
            ("tomorrow", "明天"),
            ("this weekend", "这个周末"),
            ("on Sunday", "星期天"),
            ("on Saturday", "星期六"),
            ("tonight", "今天晚上"),
        )
    )
    kind, kind_zh, plans = draw((
        ("it rains", "下雨", "inside"), ("it snows", "下雪", "inside"), ("the weather is good", "天气好", "outside"),
        ("it does not rain", "不下雨", "outside"), ("it is too hot", "太热", "inside"), ("it is too cold", "太冷", "inside"),
    ))  # fmt: skip
    plan, plan_zh = draw({
        "inside": (
            ("stay at home", "待在家里"), ("watch TV at home", "在家里看电视"), ("go to the museum", "去博物馆"), ("not go to the park", "不去公园"),
            ("go to the movie theater", "去电影院"), ("read novels at home", "在家里看小说"),
        ),
        "outside": (
            ("go to the park", "去公园"), ("take a walk in the park", "去公园散步"), ("play football", "踢足球"), ("play tennis", "打网球"),
            ("take photos by the river", "去河边拍照片"), ("go swimming", "去游泳"),
        ),
    }[plans])  # fmt: skip
    chinese = f"如果{when_zh}{kind_zh}，{who.zh}就{plan_zh}。"
    if draw.chance(0.5):
        return f"{who.en} will {plan} if {kind} {when}.", chinese
    return f"If {kind} {when}, {who.en} will {plan}.", chinese


@production(140)
def if_one_has(draw: Draw) -> Pair:
    who = draw((*PRONOUNS, *NAMES))
    first, first_zh = draw((
        ("have time", "有时间"), ("have enough money", "有足够的钱"), ("do not come", "不来"), ("are tired", "累了"), ("are hungry", "饿了"),
        ("go to Beijing", "去北京"), ("go to London", "去伦敦"), ("are sick", "病了"), ("are busy", "很忙"),
    ))  # fmt: skip
    second, second_zh = draw({
        "have time": (("will visit {p}", "会去看{p}"), ("will help {p}", "会帮助{p}"), ("will call {p}", "会给{p}打电话")),
        "have enough money": (("will buy a new car", "会买一辆新车"), ("will buy a house", "会买一座房子"), ("will go to Paris", "会去巴黎"), ("will travel to Japan", "会去日本旅行")),
        "do not come": (("will call {p}", "会给{p}打电话"), ("should call {p}", "应该给{p}打电话")),
        "are tired": (("should go to bed early", "应该早点儿睡觉"), ("can rest at home", "可以在家里休息"), ("should not work", "不应该工作")),
        "are hungry": (("can eat some bread", "可以吃点儿面包"), ("can eat a bowl of noodles", "可以吃一碗面条"), ("should eat something", "应该吃点儿东西")),
        "go to Beijing": (("will visit {p}", "会去看{p}"), ("will stay in a hotel", "会住酒店"), ("should take the train", "应该坐火车")),
        "go to London": (("will visit {p}", "会去看{p}"), ("will stay in a hotel", "会住酒店"), ("should take a plane", "应该坐飞机")),
        "are sick": (("should go to the hospital", "应该去医院"), ("should not go to work", "不应该去上班"), ("should stay in bed", "应该躺在床上")),
        "are busy": (("do not have to come", "不用来"), ("can come tomorrow", "可以明天来"), ("do not have to cook dinner", "不用做晚饭")),
    }[first])  # fmt: skip
    first = first.replace("are ", who.be + " ").replace("do not", f"{who.do} not")
    if first.startswith(("have", "go")):
        first = who.verb(first)
    second = second.replace("do not", f"{who.do} not")
    other = draw(
        [
            one
            for one in (*STATED[:3], *NAMES)
            if one.agree != who.agree and not (who.agree == "1p" and one.agree == "1s")
        ]
    )
    return (
        f"If {who.en} {first}, {who.he} {second.format(p=other.him)}.",
        f"如果{who.zh}{first_zh}，{who.he_zh}就{second_zh.format(p=other.zh)}。",
    )


@production(130)
def if_the_price(draw: Draw) -> Pair:
    thing, who = draw((*CLOTHES, *DEVICES, *VEHICLES, *FURNITURE)), draw((*STATED, *NAMES))
    form = draw.number(0, 1)
    quality = draw([q for q in qualities(thing) if q.en in ("expensive", "big", "small", "heavy")])
    if form == 0:
        return (
            f"If the {thing.name} {thing.be} too {quality.en}, {who.en} will not buy {thing.it}.",
            f"如果{thing.zh}太{quality.zh}，{who.zh}就不买了。",
        )
    quality = draw([q for q in qualities(thing) if q.en in ("cheap", "beautiful", "comfortable")])
    return (
        f"If the {thing.name} {thing.be} {quality.en}, {who.en} will buy {thing.it}.",
        f"如果{thing.zh}{quality.zh}，{who.zh}就会买。",
    )
