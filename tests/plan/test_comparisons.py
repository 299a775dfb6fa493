"""Comparisons along a key: which cells they select, and what each scale has of these."""

import sys

import pytest

PAPER = "papers/scalenorm/paper.yaml"
DEMO = "papers/scalenorm/demo.yaml"
SIMULATE = "papers/scalenorm/simulate.yaml"
CLAIMS = "papers/scalenorm/claims.yaml"
AT = "one.comparisons[0]"
CLAIM = """
one:
  text: "It grows."
  section: "1"
  artifacts: [table1]
  comparisons:
    - {{kind: {}}}
"""
OF = "dataset: cifar10, model: resnet9, epsilon: 7.42"
BATCHES = "along: recipe.batch, over: [256, 1024, 4096]"
CLAIMED = "claimed: {above: 0}"
RATE = "key: recipe.optimizer.learning_rate"


@pytest.fixture
def sweep(configuration):
    """The tests' paper, its cells over three batches and two rates, without its numbers in print, with one claim."""
    (configuration.root / "config/papers/scalenorm/published.yaml").unlink()
    vary = "vary: {recipe.batch: [256, 1024, 4096], recipe.optimizer.learning_rate: [0.001, 0.002]}"
    configuration.change(PAPER, "    recipe: resnet9\n", f"    recipe: resnet9\n    {vary}\n")

    def claims(text: str):
        (configuration.root / "config" / CLAIMS).write_text(CLAIM.format(text))
        return configuration

    return claims


def comparisons(configuration, **settings) -> list[dict]:
    (claim,) = configuration.plan(**settings).artifacts["claims"]["claims"]
    return claim["comparisons"]


def at(comparison: dict, *keys: str) -> list[tuple]:
    return [tuple(side["at"][key] for key in keys) for side in comparison["sides"]]


SLOW = "where: {varied: {recipe.optimizer.learning_rate: 0.001}}"


def test_steps_compare_each_value_with_the_one_before(sweep):
    found = comparisons(sweep(f"steps, {OF}, {BATCHES}, {SLOW}, {CLAIMED}"))
    assert [at(one, "recipe.batch") for one in found] == [[(1024,), (256,)], [(4096,), (1024,)]]
    assert all(side["work"]["train"] for one in found for side in one["sides"])


def test_a_trend_has_a_side_for_each_value(sweep):
    (found,) = comparisons(sweep(f"trend, {OF}, {BATCHES}, {SLOW}, split: train, less: validation, {CLAIMED}"))
    assert at(found, "recipe.batch") == [(256,), (1024,), (4096,)]
    assert (found["split"], found["less"]) == ("train", "validation")


def test_a_trend_may_be_along_the_privacy_level_or_the_model(sweep):
    along = "along: epsilon, over: [2.89, 7.42, 9.88]"
    varied = "where: {varied: {recipe.batch: 256, recipe.optimizer.learning_rate: 0.001}}"
    (found,) = comparisons(sweep(f"trend, dataset: cifar10, model: resnet9, {along}, {varied}, {CLAIMED}"))
    assert at(found, "epsilon") == [(2.89,), (7.42,), (9.88,)]
    along = "along: model, over: [resnet9, scaleresnet9]"
    (found,) = comparisons(sweep(f"steps, dataset: cifar10, epsilon: 7.42, {along}, {varied}, {CLAIMED}"))
    assert at(found, "model") == [("scaleresnet9",), ("resnet9",)]


def test_a_best_value_is_looked_for_among_all_that_vary_it_at_each_coordinate(sweep):
    among = f"{RATE}, among: [0.001, 0.002]"
    (found,) = comparisons(sweep(f"best_trend, {OF}, {BATCHES}, {among}, {CLAIMED}"))
    pairs = [(batch, rate) for batch in (256, 1024, 4096) for rate in (0.001, 0.002)]
    assert at(found, "recipe.batch", "recipe.optimizer.learning_rate") == pairs
    assert (found["reads"], found["split"]) == ("train/metrics.json", "validation")


def test_a_best_value_may_be_what_each_search_found(sweep):
    tune = "  tune: {space: {recipe.clip: {uniform: [0.1, 20]}, model.groups: [1, 16]}, trials: 9}\n"
    configuration = sweep(f"best_trend, {OF}, {BATCHES}, {SLOW}, key: recipe.clip, {CLAIMED}")
    configuration.change(PAPER, "searches:\n", f"searches:\n{tune}")
    configuration.change(PAPER, "    recipe: resnet9\n", "    recipe: resnet9\n    search: tune\n")
    (found,) = comparisons(configuration)
    planned = configuration.plan()
    studies = [side["work"]["search"]["0"] for side in found["sides"]]
    assert len(set(studies)) == 3 and set(studies) <= set(planned.of("search"))
    files = planned.inputs_of("claims")["records"]
    assert [file for file in files if file.endswith("best.json")] == [f"results/studies/{name}/best.json" for name in studies]


ONE = "where: {varied: {recipe.batch: 256, recipe.optimizer.learning_rate: 0.001}}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"trend, {OF}, along: recipe.batch, over: [256, 999], {SLOW}", f'{AT}.over[1] = 999: there is no recipe.batch "999" '),
        ("trend, dataset: cifar10, model: resnet9, along: recipe.batch, over: [256, 1024]", f"{AT}: epsilon is missing"),
        (f"trend, {OF}, along: model, over: [a, b]", f"{AT}: leave out model: it is compared along"),
        (f"trend, {OF}, along: recipe.batch, over: [256]", f"{AT}.over = [256]: must be a list of at least 2 values"),
        (f"trend, {OF}, along: recipe.batch, over: [0, 1]", f"{AT}: over must be numbers above 0"),
        (f"best_value, {OF}, {RATE}, than: 2, {ONE}", f'{AT}.key = "recipe.optimizer.learning_rate": no search finds '),
        (f"best_value, {OF}, {RATE}, among: [-1, 1], than: 2", f"{AT}: among must be numbers above 0"),
        (
            f"level, {OF}, than: 2, weights: averaged, {ONE}",
            f'{AT}.weights = "averaged": the recipe of cifar10 has no averaging; allowed there: last_step, best_epoch',
        ),
        (f"level, {OF}, than: 2, spent: 8.0, {ONE}", f"{AT}.spent = 8.0: the trainings of cifar10 do not come to this ε"),
        (f"level, {OF}, than: 2, spent: 2.0, split: train, {ONE}", f'{AT}.split = "train": no history has train, and spent '),
    ],
)
def test_what_cannot_be_compared_is_refused(sweep, text, says):
    (complaint,) = sweep(f"{text}, {CLAIMED}").complaints()
    assert complaint.startswith(f"config/{CLAIMS}: {says}")


def test_of_what_is_not_held_out_nothing_is_compared(sweep):
    configuration = sweep(f"trend, {OF}, {BATCHES}, {SLOW}, split: validation, {CLAIMED}")
    configuration.change(PAPER, "    recipe: resnet9\n", "    recipe: resnet9\n    split: {validation: 0}\n")
    for _ in range(2):
        configuration.change(PAPER, "groups: {search: groups}", "groups: 32")
    shows = "  groups:\n    kind: search\n    title: Search over the number of groups\n    cells: [cifar10]\n"
    configuration.change(PAPER, shows, "").change(
        PAPER, "schedule: {name: plateau, factor: 0.5, patience: 3}", "schedule: {name: constant}"
    )
    complaints = configuration.complaints()
    assert (
        f'config/{CLAIMS}: {AT}.split = "validation": nothing is held out in cifar10; allowed there: train, test' in complaints
    )


def stand_ins(comparison: dict) -> list[dict]:
    return [side.get("instead", {}) for side in comparison["sides"]]


def test_a_scale_may_train_otherwise_but_not_change_what_tells_the_sides_apart(sweep):
    ladder = "ladder: [{add: short}, {add: long, recipe: {epochs: 90}}]"
    configuration = sweep(f"steps, {OF}, along: ladder, over: [short, long], {CLAIMED}")
    configuration.change(
        PAPER, "vary: {recipe.batch: [256, 1024, 4096], recipe.optimizer.learning_rate: [0.001, 0.002]}", ladder
    )
    configuration.change(SIMULATE, "simulate: 8,", "simulate: 8, clip: 3.0,")
    (found,) = comparisons(configuration, scale="simulate")
    assert stand_ins(found) == [{}, {}]
    short = "cells:\n  cifar10: {ladder: [{add: short}, {add: long, recipe: {epochs: 60}}]}\nartifacts:\n"
    (found,) = comparisons(configuration.change(SIMULATE, "artifacts:\n", short), scale="simulate")
    assert stand_ins(found) == [{"recipe.epochs": [90, 60]}, {}]


def test_an_interaction_may_be_between_two_values_of_a_key(sweep):
    minus = "minus: {where: {varied: {recipe.batch: 256}}}"
    where = "where: {varied: {recipe.batch: 4096, recipe.optimizer.learning_rate: 0.001}}"
    models = "models: [scaleresnet9, resnet9], epsilons: [7.42]"
    (found,) = comparisons(sweep(f"interaction, dataset: cifar10, {models}, {where}, {minus}, {CLAIMED}"))
    expected = [(model, batch) for batch in (4096, 256) for model in ("scaleresnet9", "resnet9")]
    assert at(found, "model", "recipe.batch") == expected


def test_one_model_may_be_compared_with_itself_in_an_interaction_where_something_differs(sweep):
    rates = ("where: {{varied: {{recipe.batch: 4096, recipe.optimizer.learning_rate: {}}}}}").format
    against = "against: {varied: {recipe.optimizer.learning_rate: 0.002}}"
    text = f"interaction, dataset: cifar10, models: [resnet9, resnet9], epsilons: [7.42], {CLAIMED}, {rates(0.001)}"
    (found,) = comparisons(sweep(f"{text}, {against}, minus: {{where: {{varied: {{recipe.batch: 256}}}}}}"))
    assert at(found, "recipe.batch", "recipe.optimizer.learning_rate") == [
        *((4096, 0.001), (4096, 0.002)),
        *((256, 0.001), (256, 0.002)),
    ]
    (complaint,) = sweep(f"{text}, {against}, minus: {{epsilon: 7.42}}").complaints()
    assert "compares resnet9 with itself" in complaint


def test_a_model_may_be_compared_with_itself_without_privacy(sweep):
    configuration = sweep(
        f"times, dataset: cifar10, models: [resnet9, resnet9], epsilons: [7.42], other_epsilon: null, {CLAIMED}, "
        "where: {varied: {recipe.batch: 256, recipe.optimizer.learning_rate: 0.001}}"
    )
    configuration.change(PAPER, "epsilons: [2.89, 7.42, 9.88]", "epsilons: [2.89, 7.42, 9.88, null]")
    (found,) = comparisons(configuration)
    assert at(found, "epsilon") == [(7.42,), (None,)]


def test_the_code_of_a_page_is_that_of_its_comparisons_too(sweep, monkeypatch):
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(sys.modules["dpvision.plan.load"], "code_digest", lambda *modules: asked.append(modules) or "0")
    sweep(f"steps, {OF}, {BATCHES}, {SLOW}, {CLAIMED}").plan()
    assert ("dpvision.reporting.claims", "dpvision.reporting.kinds.claims", "dpvision.reporting.comparisons.steps") in asked
