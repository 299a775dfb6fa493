"""The sentences that a ledger may have: those of its format, and of older ledgers those of their time.

Whoever changes a sentence of ledger.py raises FORMAT there, and adds the words of before here.
"""

from dpvision.privacy import ledger

_STEERS_ALL = "their loss steers the learning rate and their accuracy picks the best epoch, both without noise"
_COVERED = (
    "epsilon_covered: the found values and this run, by composition; the search is the best of a geometric number of "
    "independent trials with values drawn at random, and spends what the dearest trial and their mean number say (Papernot "
    "and Steinke 2022, theorem 2). Their number and all trials but the best stay secret: a release must leave out the "
    "search's own records. Accuracies on held-out examples count as public"
)

# Sentences of ledgers of format 1, by the sentence of today that says the same.
OF_FORMAT_1 = {
    ledger.REPEATABLE: [
        ledger.REPEATABLE,
        "the noise comes from a generator that the run's seed starts, so that the run can be repeated: "
        "a research result, not a release under differential privacy",
    ],
    **{
        ledger.describe_choice("validation", steers): [
            ledger.describe_choice("validation", steers),
            f"validation examples: {_STEERS_ALL}",
        ]
        for steers in (True, False)
    },
    **{
        ledger.describe_choice("test", steers): [
            ledger.describe_choice("test", steers),
            f"test examples, none being held out: {_STEERS_ALL}, so that accuracies on them are too high",
        ]
        for steers in (True, False)
    },
    ledger.COVERED: [_COVERED],
    ledger.COVERED + ledger.HOLDS_NOT: [_COVERED, _COVERED + ledger.HOLDS_NOT],
    ledger.COMPOSED.format(holds="") + ledger.HOLDS_NOT: [
        ledger.COMPOSED.format(holds="") + ledger.HOLDS_NOT,
        ledger.COMPOSED.format(holds=ledger.HOLDS),
    ],
}

# Sentences in lists of a ledger that the first ledgers of format 1 did not have yet.
ADDED_TO_FORMAT_1 = {
    ledger.PUBLIC_START,
    ledger.PUBLIC_FEATURES,
    ledger.TRAINED_ON,
    ledger.CHOSEN_BY.format(trained=""),
    ledger.CHOSEN_BY.format(trained=ledger.AND_TRAINED_ON),
}


def is_known(sentence: str, expected: str, written: int) -> bool:
    """Tell whether a ledger may have this sentence.

    Args:
        sentence: The sentence that a ledger has.
        expected: The sentence that it would have if it were written now.
        written: The format of the ledger.
    """
    known = OF_FORMAT_1.get(expected, [expected]) if written == 1 else [expected]
    return sentence in known


def unknown_sentences(sentences: list[str], expected: list[str], written: int) -> list[str]:
    """Return the sentences of a list that a ledger may not have."""
    return [sentence for sentence in sentences if not any(is_known(sentence, each, written) for each in expected)]


def missing_sentences(sentences: list[str], expected: list[str], written: int) -> list[str]:
    """Return the sentences of today that a list in a ledger should have, in words of its time, and has not."""
    optional = ADDED_TO_FORMAT_1 if written == 1 else set()
    required = [each for each in expected if each not in optional]
    return [each for each in required if not any(is_known(sentence, each, written) for sentence in sentences)]
