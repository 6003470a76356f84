"""People: pronouns, names, relatives and roles, with the agreement each one asks of its verb."""

from __future__ import annotations

from dataclasses import dataclass

from .drawing import Draw
from .inflection import third

POSSESSIVE = {"1s": "my", "2": "your", "m": "his", "f": "her", "1p": "our", "3p": "their"}
PRONOUN = {"1s": "I", "2": "you", "m": "he", "f": "she", "1p": "we", "3p": "they"}
OBJECT = {"1s": "me", "2": "you", "m": "him", "f": "her", "1p": "us", "3p": "them"}
CHINESE = {"1s": "我", "2": "你", "m": "他", "f": "她", "1p": "我们", "3p": "他们"}


@dataclass(frozen=True)
class Who:
    """Someone as a subject. `agree` is 1s, 2, m, f, 1p or 3p."""

    en: str
    zh: str
    agree: str

    @property
    def singular(self) -> bool:
        """True where the verb takes its -s."""
        return self.agree in ("m", "f")

    @property
    def be(self) -> str:
        return "am" if self.agree == "1s" else "is" if self.singular else "are"

    @property
    def was(self) -> str:
        return "was" if self.singular or self.agree == "1s" else "were"

    @property
    def do(self) -> str:
        return "does" if self.singular else "do"

    @property
    def have(self) -> str:
        return "has" if self.singular else "have"

    @property
    def his(self) -> str:
        return POSSESSIVE[self.agree]

    @property
    def he(self) -> str:
        return PRONOUN[self.agree]

    @property
    def he_zh(self) -> str:
        return CHINESE[self.agree]

    @property
    def him(self) -> str:
        return OBJECT[self.agree] if self.en == self.he else self.en

    def verb(self, base: str) -> str:
        """The present tense of a verb or verb phrase: he "reads novels"."""
        head, _, rest = base.partition(" ")
        return " ".join(filter(None, ((third(head) if self.singular else head), rest)))


ME, YOU, HE, SHE, WE, THEY = (Who(PRONOUN[k], CHINESE[k], k) for k in ("1s", "2", "m", "f", "1p", "3p"))
PRONOUNS = (ME, YOU, HE, SHE, WE, THEY)
# Of whom one tells something: seldom the person one talks to.
STATED = (ME, HE, SHE, WE, THEY)

NAMES = tuple(
    Who(en, zh, agree)
    for en, zh, agree in (
        ("Tom", "汤姆", "m"), ("Peter", "彼得", "m"), ("David", "大卫", "m"), ("John", "约翰", "m"),
        ("Jack", "杰克", "m"), ("Paul", "保罗", "m"), ("Mike", "迈克", "m"), ("Daniel", "丹尼尔", "m"),
        ("Anna", "安娜", "f"), ("Mary", "玛丽", "f"), ("Lisa", "丽莎", "f"), ("Emma", "艾玛", "f"),
        ("Lucy", "露西", "f"), ("Alice", "爱丽丝", "f"), ("Susan", "苏珊", "f"), ("Helen", "海伦", "f"),
    )
)  # fmt: skip
TITLES = tuple(
    Who(en, zh, agree)
    for en, zh, agree in (
        ("Mr. Wang", "王先生", "m"), ("Mr. Liu", "刘先生", "m"), ("Mrs. Zhao", "赵太太", "f"),
        ("Ms. Li", "李女士", "f"), ("Ms. Chen", "陈女士", "f"), ("Mr. Zhang", "张先生", "m"),
    )
)  # fmt: skip
# Relatives: English, Chinese, gender, grown up.
_RELATIVES = (
    ("mother", "妈妈", "f", True), ("father", "爸爸", "m", True),
    ("older brother", "哥哥", "m", True), ("younger brother", "弟弟", "m", False),
    ("older sister", "姐姐", "f", True), ("younger sister", "妹妹", "f", False),
    ("grandmother", "奶奶", "f", True), ("grandfather", "爷爷", "m", True),
    ("uncle", "叔叔", "m", True), ("aunt", "阿姨", "f", True),
    ("wife", "妻子", "f", True), ("husband", "丈夫", "m", True),
    ("son", "儿子", "m", False), ("daughter", "女儿", "f", False),
)  # fmt: skip


def relatives(owner: Who, grown: bool | None = None, spouse: bool = True) -> tuple[Who, ...]:
    """The relatives of someone: "my mother" 我妈妈; `his` never has a husband, nor `her` a wife."""
    kept = []
    for en, zh, gender, adult in _RELATIVES:
        if grown is not None and adult != grown:
            continue
        if en in ("wife", "husband") and (not spouse or owner.agree == gender or owner.agree in ("1p", "3p")):
            continue
        if owner.agree in ("1p", "3p") and not en.startswith(("son", "daughter", "mother", "father")):
            continue
        kept.append(Who(f"{owner.his} {en}", owner.he_zh + zh, gender))
    return tuple(kept)


MY = relatives(ME)
MY_GROWN = relatives(ME, grown=True)
YOUR = relatives(YOU)
YOUR_GROWN = relatives(YOU, grown=True)
CHILDREN = (
    *relatives(ME, grown=False), Who("our son", "我们儿子", "m"), Who("our daughter", "我们女儿", "f"),
)  # fmt: skip
GROUPS = (
    Who("the children", "孩子们", "3p"), Who("the students", "学生们", "3p"),
    Who("my parents", "我父母", "3p"), Who("my friends", "我的朋友们", "3p"),
)  # fmt: skip
GROWN = (*STATED * 3, *NAMES, *TITLES, *MY_GROWN)
# Who goes to work, who goes to school.
WORKING = tuple(who for who in GROWN if not who.en.endswith(("grandmother", "grandfather")))
PUPILS = (*STATED * 2, *NAMES, *CHILDREN, *GROUPS[:2])
SINGLE = (*NAMES, *TITLES, *MY)  # one person, third person
ANYONE = (*STATED * 3, *NAMES, *MY, *GROUPS)
# Whom one asks about: not oneself.
ASKED = (YOU, YOU, YOU, HE, SHE, THEY, *NAMES, *YOUR)
ASKED_GROWN = (YOU, YOU, YOU, HE, SHE, THEY, *NAMES, *TITLES, *YOUR_GROWN)

JOBS = (
    ("doctor", "医生"), ("nurse", "护士"), ("teacher", "老师"), ("lawyer", "律师"), ("engineer", "工程师"),
    ("driver", "司机"), ("cook", "厨师"), ("farmer", "农民"), ("writer", "作家"), ("policeman", "警察"),
    ("journalist", "记者"), ("accountant", "会计"), ("actor", "演员"), ("student", "学生"), ("artist", "画家"),
)  # fmt: skip
NEUTRAL_JOBS = tuple(job for job in JOBS if job[0] not in ("policeman", "actor"))


def job_for(draw: Draw, who: Who) -> tuple[str, str]:
    """A job that fits: the English words policeman and actor are kept for men."""
    return draw(JOBS if who.agree == "m" else NEUTRAL_JOBS)


COUNTRIES = (
    ("China", "中国", "Chinese"), ("Japan", "日本", "Japanese"), ("France", "法国", "French"),
    ("England", "英国", "English"), ("Germany", "德国", "German"), ("America", "美国", "American"),
    ("Italy", "意大利", "Italian"),
)  # fmt: skip
LANGUAGES = (
    ("Chinese", "中文"), ("English", "英语"), ("French", "法语"), ("German", "德语"), ("Japanese", "日语"),
    ("Italian", "意大利语"),
)  # fmt: skip
CITIES = (
    ("Beijing", "北京"), ("Shanghai", "上海"), ("Guangzhou", "广州"), ("Hangzhou", "杭州"), ("Nanjing", "南京"),
    ("London", "伦敦"), ("Paris", "巴黎"), ("Berlin", "柏林"), ("Tokyo", "东京"), ("New York", "纽约"),
    ("Rome", "罗马"),
)  # fmt: skip
CHINESE_CITIES = CITIES[:5]
NEIGHBOURS = {"Shanghai", "Hangzhou", "Nanjing"}  # too near to fly
