"""A group of cells has values found by a search: any key of model and recipe, by choices and ranges."""

import pytest

from dpvision.errors import UserError
from dpvision.plan import specs
from dpvision.plan.resources import cost_of

PAPER = "papers/scalenorm/paper.yaml"
GROUP = "    epsilons: [2.89, 7.42, 9.88]\n"
AT = "config/papers/scalenorm/paper.yaml"
SPACE = (
    "recipe.optimizer.learning_rate: {log_uniform: [1.0e-4, 1.0e-2]}, recipe.clip: {uniform: [0.1, 20]}, "
    "recipe.epochs: {integers: [10, 90]}, recipe.batch: [512, 1024], model.groups: [1, 16]"
)
COVERED = "    sampler: covered\n    split: {validation: 5000}\n"
KEYS = ["model.groups", "recipe.batch", "recipe.clip", "recipe.epochs", "recipe.optimizer.learning_rate"]


@pytest.fixture
def configuration(configuration):
    """Return the tests' paper without numbers in print and claims, which do not say which of several cells is meant."""
    (configuration.root / "config/papers/scalenorm/published.yaml").unlink()
    page = "  claims:\n    kind: claims\n    title: What the paper says, and whether it holds\n"
    return configuration.change(PAPER, page, "")


@pytest.fixture
def tuned(configuration):
    """Return the same where the cells name a search, of this space and with these further lines."""

    def make(space: str = SPACE, search: str = "", group: str = "", trials: int = 20):
        configuration.change(PAPER, GROUP, f"{GROUP}    search: tune\n{group}")
        text = f"searches:\n  tune:\n    space: {{{space}}}\n    trials: {trials}\n{search}"
        return configuration.change(PAPER, "searches:\n", text)

    return make


def test_what_the_search_of_cells_finds_are_the_keys_of_its_space(tuned):
    planned = tuned().plan()
    for name, run in planned.runs.items():
        (study,) = {name for _, name in planned.needs(("train", name)) if name in planned.of("search")}
        assert specs.searched_keys(run) == dict.fromkeys(KEYS, study)
        trained = planned.of("search")[study]["run"]
        assert [specs.value_at(trained, key) for key in KEYS] == [None] * len(KEYS)


def test_each_cell_is_tuned_at_its_own_level_unless_the_search_names_one(tuned):
    planned = tuned(search="    prune_below: 0.1\n").plan()
    found = {study["run"]["budget"]["epsilon"] for study in planned.of("search").values()}
    assert (len(planned.of("search")), found) == (6, {2.89, 7.42, 9.88})
    assert {cell["at"]["search"] for cell in planned.artifacts["table1"]["cells"]} == {"tune"}


def test_a_search_that_names_a_level_serves_the_cells_of_all(tuned):
    planned = tuned(search="    epsilon: 7.42\n").plan()
    assert [study["run"]["budget"]["epsilon"] for study in planned.of("search").values()] == [7.42, 7.42]


def test_a_spec_says_ranges_as_the_configuration_does_and_no_objective_that_is_the_default(tuned):
    study = next(iter(tuned().plan().of("search").values()))
    assert study["space"] == {
        "model.groups": [1, 16],
        "recipe.batch": [512, 1024],
        "recipe.clip": {"uniform": [0.1, 20.0]},
        "recipe.epochs": {"integers": [10, 90]},
        "recipe.optimizer.learning_rate": {"log_uniform": [1e-4, 1e-2]},
    }
    assert "objective" not in study


def test_an_objective_that_is_not_the_default_is_another_search(tuned):
    studies = tuned(search="    objective: validation_loss\n").plan().of("search")
    assert {study["objective"] for study in studies.values()} == {"validation_loss"}


def test_the_average_of_weights_decides_only_where_trainings_keep_one(tuned):
    with pytest.raises(UserError, match="objective.*keep no average of the weights; give their recipe `averaging`"):
        tuned(search="    objective: averaged_validation_top1\n").plan()


def test_a_budget_whose_length_is_solved_is_that_of_the_trials(tuned, configuration):
    tuned("recipe.clip: {uniform: [0.1, 20]}, model.groups: [1, 16]").change(PAPER, "    epochs: 50\n", "")
    configuration.change(PAPER, GROUP, "    budget: {epsilon: 8.0, sigma: 3.0, steps: solve}\n")
    text = (configuration.root / "config" / PAPER).read_text().replace("    epsilons: [7.42] # left open\n", "")
    (configuration.root / "config" / PAPER).write_text(text.replace("    epsilons: [7.42]\n", ""))
    for study in configuration.plan().of("search").values():
        assert study["run"]["budget"] == {"epsilon": 8.0, "sigma": 3.0, "delta": 1e-5, "accountant": "rdp"}


def test_costs_are_counted_with_the_greatest_values(tuned):
    planned = tuned().plan()
    train, search = planned.dearest_run_of(("train", next(iter(planned.runs)))), next(iter(planned.of("search")))
    values = {key: specs.value_at(train, key) for key in KEYS}
    assert values == dict(zip(KEYS, [16, 1024, 20.0, 90, 1e-2], strict=True))
    epochs, trials = 90, 20
    cost = cost_of(planned, ("train", next(iter(planned.runs))))
    assert cost.steps == specs.step_count(train) == epochs * 45000 // 1024
    assert cost_of(planned, ("search", search), workers=1).work == trials * cost.work


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        (
            "recipe.optimizer.learning_rat: [0.1, 0.2]",
            'recipe.optimizer.learning_rat = 0.1: unknown key. Did you mean "learning_rate"?',
        ),
        ("recipe.clip: {uniform: [-1, 20]}", "recipe.clip = -1.0: must be a number above 0"),
        ("recipe.epochs: {integers: [0, 90]}", "recipe.epochs = 0: must be a whole number above 0"),
        ("recipe.batch: {uniform: [512, 1024]}", "recipe.batch = 512.0: must be a whole number above 0"),
        ("recipe.batch: [512, 60000]", "with recipe.batch: 60000: recipe.batch: must be at most 45000"),
        (
            "recipe.batch: [all, 4096]",
            "recipe.batch: all is no number to try; write the number, or vary it in the cells, "
            "and each has a search of its own",
        ),
        ("recipe.steps: [100, 200]", "with recipe.steps: 100: the recipe has both epochs and steps"),
        ("model.width: [1.0, 0.3]", "with model.width: 0.3: model.width: must be a multiple of 1/64"),
        ("recipe.optimizer.name: [sgd, nadam]", "recipe.optimizer.name: says what has which keys; vary it in the cells"),
        ("recpe.clip: [1.0, 2.0]", "recpe.clip: what is searched begins with model. or recipe."),
    ],
)
def test_a_value_that_no_cell_could_have_is_refused_with_its_key(tuned, space, complaint):
    found = tuned(f"model.groups: [1, 16], {space}", trials=2).complaints()
    assert any(line.startswith(f"{AT}: searches.tune.space: {complaint}") for line in found), found


def test_cells_that_vary_the_batch_may_have_all_examples_in_it(tuned):
    planned = tuned(
        "recipe.clip: [1.0, 2.0], model.groups: [1, 16]", group="    vary: {recipe.batch: [all, 1024]}\n", trials=4
    ).plan()
    assert {study["run"]["recipe"]["batch"] for study in planned.of("search").values()} == {45_000, 1024}


@pytest.mark.parametrize(
    ("space", "complaint"),
    [
        ("{unifrom: [1, 2]}", '.unifrom = [1, 2]: unknown key. Did you mean "uniform"?'),
        ("{uniform: [2, 1]}", ".uniform = [2, 1]: must be two numbers, the smaller one first"),
        ("{uniform: [1, 2, 3]}", ".uniform = [1, 2, 3]: must be a list of 2 values"),
        ("{log_uniform: [0, 1]}", ".log_uniform[0] = 0: must be a number above 0"),
        ("{integers: [1.5, 3]}", ".integers[0] = 1.5: must be a whole number"),
        ("{uniform: [1, 2], integers: [1, 2]}", ": must have one of uniform, log_uniform and integers"),
    ],
)
def test_a_range_that_cannot_be_is_refused(tuned, space, complaint):
    found = tuned(f"model.groups: [1, 16], recipe.clip: {space}").complaints()
    assert any(line.startswith(f"{AT}: searches.tune.space.recipe.clip{complaint}") for line in found), found


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"space": "recipe.clip: {uniform: [1, 2]}, model.groups: [1, 16]", "search": "    sampler: grid\n"},
            "searches.tune.space.recipe.clip: is a range, and a grid tries every value of a list",
        ),
        (
            {"space": "recipe.epochs: {integers: [1, 3]}, model.groups: [1, 16]", "trials": 7},
            "searches.tune.trials = 7: must be at most 6: no combination is tried twice",
        ),
        (
            {"space": "recipe.clip: [1.0, 2.0]", "trials": 2},
            'cells.cifar10.search = "tune": its space has no model.groups, which scaleresnet9 leaves to a search',
        ),
        ({"group": "    searches: {groups: groups}\n"}, 'cells.cifar10.search = "tune": cannot stand beside searches'),
        (
            {"group": "    vary: {recipe.clip: [1.0, 2.0]}\n"},
            "searches.tune.space: recipe.clip: is varied by cifar10; leave it out of one of them",
        ),
        ({"group": "    split: {validation: 0}\n"}, "cells.cifar10.split: leaves its search no held-out examples"),
    ],
)
def test_a_search_that_its_cells_cannot_have_is_refused(tuned, given, complaint):
    found = tuned(**given).complaints()
    assert any(line.startswith(f"{AT}: {complaint}") for line in found), found


def of_trials(configuration, **recipe: object):
    """Return the configuration with a recipe `trials` for trials: that of the cells, and these keys."""
    keys = "".join(f", {key}: {value}" for key, value in recipe.items())
    text = "{optimizer: {name: sgd, learning_rate: 0.1}, schedule: {name: constant}, batch: 1024, epochs: 50, clip: 1.5"
    return configuration.change(PAPER, "recipes:\n", f"recipes:\n  trials: {text}{keys}}}\n")


def test_trials_of_a_private_cell_are_not_simulated_unless_the_cell_is(tuned):
    simulating = of_trials(tuned(search="    recipe: trials\n"), simulate=8)
    (found,) = simulating.complaints()
    assert found == (
        f'{AT}: searches.tune.recipe = "trials": simulates trials, which spend far more than their ε, and cifar10 is private; '
        "leave `simulate` out of them, or simulate cifar10 too"
    )
    planned = simulating.change(PAPER, "    epochs: 50\n", "    epochs: 50\n    simulate: 4\n").plan()
    assert {study["run"]["recipe"]["simulate"] for study in planned.of("search").values()} == {8}


def test_a_private_cell_has_no_search_over_simulations(tuned):
    (found,) = tuned("model.groups: [1, 16], recipe.simulate: [2, 4]", trials=4).complaints()
    assert found.startswith(f"{AT}: searches.tune.space.recipe.simulate = [2, 4]: simulates trials, which spend far more")


def test_trials_of_a_cell_whose_noise_is_secret_have_secret_noise(tuned):
    secret = tuned(search="    recipe: trials\n").change(PAPER, "    epochs: 50\n", "    epochs: 50\n    noise: secret\n")
    (found,) = of_trials(secret).complaints()
    assert found == (
        f'{AT}: searches.tune.recipe = "trials": all trials need `noise: secret` where trainings of cifar10 have it: the seed '
        "repeats other noise; say it in the recipe of the trials"
    )
    planned = secret.change(PAPER, "epochs: 50, clip: 1.5}", "epochs: 50, clip: 1.5, noise: secret}").plan()
    assert {study["run"]["recipe"]["noise"] for study in planned.of("search").values()} == {"secret"}


def test_trials_that_train_by_the_recipe_of_their_cells_have_its_secret_noise(tuned):
    planned = tuned().change(PAPER, "    epochs: 50\n", "    epochs: 50\n    noise: secret\n").plan()
    assert {study["run"]["recipe"]["noise"] for study in planned.of("search").values()} == {"secret"}


def test_a_search_does_not_try_both_kinds_of_noise(tuned):
    (found,) = tuned("model.groups: [1, 16], recipe.noise: [repeatable, secret]", trials=4).complaints()
    assert found.startswith(f'{AT}: searches.tune.space.recipe.noise = ["repeatable", "secret"]: all trials need')


@pytest.mark.parametrize("kept", ["{validation: 0}", "{validation: 4999}", "{validation: 5000, by: last}"])
def test_a_covered_search_holds_out_no_example_that_its_cells_train_on(tuned, kept):
    here = tuned("model.groups: [1, 16]", COVERED, f"    split: {kept}\n")
    (found,) = here.change(PAPER, "{name: plateau, factor: 0.5, patience: 3}", "{name: constant}").complaints()
    assert found == (
        f'{AT}: searches.tune.sampler = "covered": cifar10 trains on examples that the trials hold out, and no theorem covers '
        "what was read of those; hold them out of both, or say another sampler"
    )


@pytest.mark.parametrize("kept", ["{validation: 5000}", "{validation: 6000}"])
def test_a_covered_search_may_hold_out_what_its_cells_hold_out_too(tuned, kept):
    assert tuned("model.groups: [1, 16]", COVERED, f"    split: {kept}\n").plan().of("search")


def test_training_without_a_budget_may_use_what_its_covered_search_held_out(tuned):
    here = tuned("model.groups: [1, 16]", COVERED, "    split: {validation: 0}\n")
    here.change(PAPER, "{name: plateau, factor: 0.5, patience: 3}", "{name: constant}")
    text = (here.root / "config" / PAPER).read_text().replace(GROUP, "    epsilons: [null]\n")
    (here.root / "config" / PAPER).write_text(
        text.replace("    epsilons: [7.42] # left open\n", "").replace("    epsilons: [7.42]\n", "")
    )
    assert here.plan().of("search")


def test_the_authors_protocol_trains_on_what_a_covered_search_holds_out(configuration):
    protocol = "    protocol: {targets: [3.0, 7.5, 10.0], sigmas: [2.0, 1.5, 1.0], physical_batch: 128}\n"
    configuration.change(PAPER, GROUP, GROUP + protocol)
    configuration.change(PAPER, "    prune_below: 0.15", "    sampler: covered\n    prune_below: 0.15")
    (found,) = configuration.complaints()
    assert found.startswith(f'{AT}: searches.groups.sampler = "covered": cifar10 trains on examples that the trials hold out')


def test_a_search_that_models_name_is_held_to_the_same(configuration):
    configuration.change(PAPER, "    epsilon: 7.42 # left", "    recipe: trials\n    epsilon: 7.42 # left")
    (found,) = of_trials(configuration, simulate=8).complaints()
    assert found.startswith(f'{AT}: searches.groups.recipe = "trials": simulates trials')


def test_training_without_a_budget_is_tuned_without_one(tuned):
    changed = tuned().change(PAPER, "    epsilons: [2.89, 7.42, 9.88]\n", "    epsilons: [2.89, 7.42, null]\n")
    budgets = [spec["run"]["budget"] for spec in changed.plan().of("search").values()]
    assert budgets.count(None) == 2  # of each model


def test_a_search_that_there_is_not_is_refused(configuration):
    (found,) = configuration.change(PAPER, GROUP, f"{GROUP}    search: group\n").complaints()
    assert found.startswith(f'{AT}: cells.cifar10.search = "group": there is no search "group". Did you mean "groups"?')
