"""Word forms: English verbs, articles and number words; Chinese numerals."""

from __future__ import annotations

# base: (third person, past, participle, -ing); whatever is not here is regular.
IRREGULAR = {
    "be": ("is", "was", "been", "being"),
    "begin": ("begins", "began", "begun", "beginning"),
    "borrow": ("borrows", "borrowed", "borrowed", "borrowing"),
    "break": ("breaks", "broke", "broken", "breaking"),
    "bring": ("brings", "brought", "brought", "bringing"),
    "buy": ("buys", "bought", "bought", "buying"),
    "chat": ("chats", "chatted", "chatted", "chatting"),
    "come": ("comes", "came", "come", "coming"),
    "do": ("does", "did", "done", "doing"),
    "draw": ("draws", "drew", "drawn", "drawing"),
    "drink": ("drinks", "drank", "drunk", "drinking"),
    "drive": ("drives", "drove", "driven", "driving"),
    "eat": ("eats", "ate", "eaten", "eating"),
    "find": ("finds", "found", "found", "finding"),
    "fly": ("flies", "flew", "flown", "flying"),
    "forget": ("forgets", "forgot", "forgotten", "forgetting"),
    "get": ("gets", "got", "got", "getting"),
    "give": ("gives", "gave", "given", "giving"),
    "go": ("goes", "went", "gone", "going"),
    "have": ("has", "had", "had", "having"),
    "leave": ("leaves", "left", "left", "leaving"),
    "lend": ("lends", "lent", "lent", "lending"),
    "listen": ("listens", "listened", "listened", "listening"),
    "lose": ("loses", "lost", "lost", "losing"),
    "make": ("makes", "made", "made", "making"),
    "meet": ("meets", "met", "met", "meeting"),
    "put": ("puts", "put", "put", "putting"),
    "read": ("reads", "read", "read", "reading"),
    "run": ("runs", "ran", "run", "running"),
    "see": ("sees", "saw", "seen", "seeing"),
    "sell": ("sells", "sold", "sold", "selling"),
    "send": ("sends", "sent", "sent", "sending"),
    "sing": ("sings", "sang", "sung", "singing"),
    "sleep": ("sleeps", "slept", "slept", "sleeping"),
    "speak": ("speaks", "spoke", "spoken", "speaking"),
    "spend": ("spends", "spent", "spent", "spending"),
    "swim": ("swims", "swam", "swum", "swimming"),
    "take": ("takes", "took", "taken", "taking"),
    "teach": ("teaches", "taught", "taught", "teaching"),
    "wear": ("wears", "wore", "worn", "wearing"),
    "write": ("writes", "wrote", "written", "writing"),
}


def third(verb: str) -> str:
    if verb in IRREGULAR:
        return IRREGULAR[verb][0]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "o")) else "s")


def past(verb: str) -> str:
    if verb in IRREGULAR:
        return IRREGULAR[verb][1]
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


def participle(verb: str) -> str:
    return IRREGULAR[verb][2] if verb in IRREGULAR else past(verb)


def ing(verb: str) -> str:
    if verb in IRREGULAR:
        return IRREGULAR[verb][3]
    return (verb[:-1] if verb.endswith("e") else verb) + "ing"


def a(phrase: str) -> str:
    """The phrase with its indefinite article: "a cat", "an hour", "a university"."""
    vowel = phrase[0] in "aeiouAEIOU"
    if phrase.startswith(("university", "used")):
        vowel = False
    if phrase.startswith("hour"):
        vowel = True
    return ("an " if vowel else "a ") + phrase


UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
DIGITS = "零一二三四五六七八九"


def english_number(number: int) -> str:
    """1 to 99,999 in words: "two hundred and five"."""
    if number < 20:
        return UNITS[number]
    if number < 100:
        return TENS[number // 10] + ("-" + UNITS[number % 10] if number % 10 else "")
    if number < 1000:
        rest = number % 100
        return UNITS[number // 100] + " hundred" + (" and " + english_number(rest) if rest else "")
    rest = number % 1000
    joint = " and " if 0 < rest < 100 else " "
    return english_number(number // 1000) + " thousand" + (joint + english_number(rest) if rest else "")


def chinese_number(number: int, counting: bool = True) -> str:
    """1 to 99,999 in numerals; with `counting`, two of something is 两 (两个, 两百, but 十二, 二十)."""
    if number == 2 and counting:
        return "两"
    if number < 10:
        return DIGITS[number]
    if number < 20:
        return "十" + (DIGITS[number % 10] if number % 10 else "")
    if number < 100:
        return DIGITS[number // 10] + "十" + (DIGITS[number % 10] if number % 10 else "")
    size, name = (10000, "万") if number >= 10000 else (1000, "千") if number >= 1000 else (100, "百")
    head, rest = divmod(number, size)
    if not rest:
        return chinese_number(head) + name
    zero = "零" if rest < size // 10 else ""
    tail = chinese_number(rest, counting=False)
    # Inside a longer number ten is 一十: 三百一十五.
    return chinese_number(head) + name + zero + ("一" if 10 <= rest < 20 else "") + tail
