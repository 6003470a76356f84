"""Languages: which side a line looks like it belongs to, learnt from the corpus itself; no table of languages decides.

Words that are common on one side and rare on the other have a weight, the logarithm of how much likelier they are on
the source side. The mean weight of a line's words is far above zero for a source line and far below for a target line.
Only where a whole file may be exchanged does the corpus say nothing about itself; a few words of the commonest
languages do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

# A line is of the other side if its words weigh this much in all, and this much in the mean (natural logarithms).
LEAST_WEIGHT = 9.0
LEAST_MEAN = 1.5
_RARE = 4  # occurrences in the sample; rarer words have no weight
_STRONGEST = 5.0

_COMMON_WORDS = {
    "en": "the of and to is that it with his you they are this was for a in on an at by from be not he she we have",
    "de": "der die und das den mit ein eine einem nicht ist auf ich sie zu in im dem einer einen von für sich wir es",
    "fr": "le la les des et un une est dans pour qui pas sur avec je de il que en du au ce elle à nous vous son",
    "es": "el la los las de y que en un una por con para se es del al su lo no más este hombre como está",
    "it": "il di che la e un una per non sono con gli della nel mi in le i del si ha da è al come",
    "pt": "o de que e do da em um uma para com não os as se a no na por mais ele ela está como",
    "nl": "de het een en van is op met dat niet zijn te voor ik die in aan er hij ze naar bij ook",
    "sv": "och att det som en på är av för med den till inte jag ett i de han hon sig har vid",
    "da": "og at det som en på er af for med den til ikke jeg et i de han hun sig har ved",
    "no": "og å det som en på er av for med den til ikke jeg et i de han hun seg har ved",
    "fi": "ja on ei se että hän oli mutta kun ovat minä joka niin sen tai en ole olen mitä hänen",
    "pl": "i w nie na się z do że to jest jak ale po o co od dla jego tym mnie czy za ma",
    "cs": "a se na je v že to s z do ne jsem si ale jako po pro byl jeho tak od když",
    "hu": "a az és hogy nem egy is van ez de meg volt csak mint már el ki azt mi ha vagy",
    "ro": "și de a în la cu nu este un o pe că din să mai se al lui pentru sunt ce",
    "tr": "bir ve bu da de için ne o ile çok ben var mi gibi daha değil her kadar sonra olarak",
    "id": "yang dan di itu dengan untuk tidak dari ini dalam akan pada saya ke ada dia seorang sebuah",
    "ru": "и в не на я что он с как это по но она к у из за его от мы так же вы",
    "uk": "і в не на я що він з як це та до але у за від його вони був для ми ти",
    "bg": "и в не на да се е за от с че по как това са аз той си ще го беше до",
}
_ALIAS = {"nb": "no", "nn": "no"}


def word_weights(sources: Iterable[str], targets: Iterable[str]) -> dict[str, float]:
    """The weight of every word (in small letters) of the sample that has one; positive: a source word."""
    counts = [Counter(word for line in side for word in line.lower().split()) for side in (sources, targets)]
    totals = [sum(side.values()) + 1 for side in counts]
    weights = {}
    for word in counts[0].keys() | counts[1].keys():
        ours, theirs = counts[0][word], counts[1][word]
        if ours + theirs >= _RARE:
            weight = math.log((ours + 0.5) / totals[0]) - math.log((theirs + 0.5) / totals[1])
            if abs(weight) > 1:
                weights[word] = max(-_STRONGEST, min(_STRONGEST, weight))
    return weights


def weight_of(line: str, weights: Mapping[str, float]) -> float:
    """Of a line in small letters: the sum of its words' weights, or 0 where it is too weak to say anything."""
    words = line.split()
    total = sum([weights.get(word, 0.0) for word in words])
    return total if abs(total) >= LEAST_WEIGHT and abs(total) >= LEAST_MEAN * len(words) else 0.0


def likeliest_language(lines: Sequence[str]) -> tuple[str | None, dict[str, float]]:
    """The language whose common words are most frequent, if it is clear, and the share of words for each language."""
    words = Counter(word.strip(".,!?\"'„“”»«()") for line in lines for word in line.lower().split())
    total = sum(words.values())
    if total < 200:
        return None, {}
    shares = {code: sum(words[word] for word in set(text.split())) / total for code, text in _COMMON_WORDS.items()}
    best, second = sorted(shares.values(), reverse=True)[:2]
    clear = best > 0.1 and best > 1.5 * second
    return (max(shares, key=lambda code: shares[code]) if clear else None), shares


def known_code(language: str | None) -> str | None:
    """The code under which the common words of a language stand, or None."""
    code = (language or "").lower().replace("-", "_").split("_")[0]
    code = _ALIAS.get(code, code)
    return code if code in _COMMON_WORDS else None
