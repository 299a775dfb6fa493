"""Groups of cells that vary more than model and ε: products, points, ladders, splits and seeds of their own."""

import numpy as np
import pytest

from dpvision.data.prepared import split_of

PAPER = "papers/scalenorm/paper.yaml"
GROUP = "    epsilons: [2.89, 7.42, 9.88]\n"
AT = "config/papers/scalenorm/paper.yaml: cells.cifar10"


@pytest.fixture
def configuration(configuration):
    """Return the tests' paper without numbers in print and claims, which do not say which of several cells is meant."""
    (configuration.root / "config/papers/scalenorm/published.yaml").unlink()
    page = "  claims:\n    kind: claims\n    title: What the paper says, and whether it holds\n"
    return configuration.change(PAPER, page, "")


def varied(configuration, text: str, **settings):
    """Return the plan where the group says this, too."""
    return configuration.change(PAPER, GROUP, f"{GROUP}    {text}\n").plan(**settings)


def cells_of(planned, artifact: str = "table4") -> list[dict]:
    return planned.artifacts[artifact]["cells"]


def run_of(planned, cell: dict) -> dict:
    return planned.runs[next(iter(cell["work"]["train"].values()))]


def test_a_product_of_lists_is_a_cell_for_each_combination(configuration):
    text = "vary: {recipe.batch: [512, 1024], recipe.optimizer.learning_rate: [1.0e-3, 2.0e-3, 4.0e-3]}"
    planned = varied(configuration, text)
    cells = [cell for cell in cells_of(planned) if cell["at"]["model"] == "resnet9"]
    assert [(cell["at"]["recipe.batch"], cell["at"]["recipe.optimizer.learning_rate"]) for cell in cells] == [
        (batch, rate) for batch in (512, 1024) for rate in (1e-3, 2e-3, 4e-3)
    ]
    for cell in cells:
        recipe = run_of(planned, cell)["recipe"]
        assert recipe["batch"] == cell["at"]["recipe.batch"]
        assert recipe["optimizer"] == {"name": "nadam", "learning_rate": cell["at"]["recipe.optimizer.learning_rate"]}


def test_a_cell_that_varies_to_what_the_recipe_says_is_the_run_of_that_name(configuration):
    before = set(configuration.plan().runs)
    planned = varied(configuration, "vary: {recipe.clip: [1.5, 3.0]}")
    assert before < set(planned.runs)


def test_points_are_values_that_belong_together(configuration):
    planned = varied(
        configuration, "points: [{recipe.batch: 512, recipe.clip: 1.0}, {recipe.batch: 1024, model.order: activation-norm}]"
    )
    found = [run_of(planned, cell) for cell in cells_of(planned) if cell["at"]["model"] == "resnet9"]
    assert [(run["recipe"]["batch"], run["recipe"]["clip"], run["model"]["order"]) for run in found] == [
        (512, 1.0, "norm-activation"),
        (1024, 1.5, "activation-norm"),
    ]


def test_each_rung_of_a_ladder_adds_to_those_before(configuration):
    ladder = "[{add: nothing}, {add: order, model: {order: activation-norm}}, {add: larger batch, recipe: {batch: 2048}}]"
    planned = varied(configuration, f"ladder: {ladder}")
    cells = [cell for cell in cells_of(planned) if cell["at"]["model"] == "scaleresnet9"]
    assert [cell["at"]["ladder"] for cell in cells] == ["nothing", "order", "larger batch"]
    found = [(run["model"]["order"], run["recipe"]["batch"]) for run in (run_of(planned, cell) for cell in cells)]
    assert found == [("norm-activation", 1024), ("activation-norm", 1024), ("activation-norm", 2048)]


def test_a_search_is_of_its_own_for_every_recipe_that_is_varied(configuration):
    one, several = (
        len(configuration.plan().of("search")),
        len(varied(configuration, "vary: {recipe.batch: [512, 1024]}").of("search")),
    )
    assert several == 2 * one


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "vary: {recipe.optimizer.learning_rat: [1.0]}",
            "with recipe.optimizer.learning_rat: 1.0: recipe.optimizer.learning_rat = 1.0: unknown key. Did you mean",
        ),
        ("vary: {recipe.clip: [1.0, -1.0]}", "with recipe.clip: -1.0: recipe.clip = -1.0: must be a number above 0"),
        ("vary: {recpe.clip: [1.0]}", "with recpe.clip: 1.0: recpe: what is varied begins with model., recipe., split."),
        ("points: [{model.groups: 7}]", "with model.groups: 7: model.groups: 7 groups do not divide 64 channels"),
        (
            "vary: {recipe.batch: [50000]}",
            "with recipe.batch: 50000: recipe.batch: must be at most 45000: cifar10 trains on N = 45000",
        ),
        (
            "ladder: [{add: more, recipe: {epoch: 3}}]",
            'with ladder: more: recipe.epoch = 3: unknown key. Did you mean "epochs"?',
        ),
    ],
)
def test_a_variation_that_cannot_be_is_refused_with_what_is_varied(configuration, text, complaint):
    found = configuration.change(PAPER, GROUP, f"{GROUP}    {text}\n").complaints()
    assert any(line.startswith(f"{AT}: {complaint}") for line in found), found


@pytest.mark.parametrize(
    ("text", "value"),
    [("vary: {recipe: [{clip: 1.0}]}", 'vary.recipe = [{"clip": 1.0}]'), ("points: [{recipe: 5}]", "points[0].recipe = 5")],
)
def test_a_key_that_is_not_dotted_cannot_be_varied(configuration, text, value):
    found = configuration.change(PAPER, GROUP, f"{GROUP}    {text}\n").complaints()
    assert found == [f"{AT}.{value}: must be a dotted key, as in recipe.clip"]


def test_a_value_that_stands_twice_is_refused(configuration):
    found = configuration.change(PAPER, GROUP, f"{GROUP}    vary: {{recipe.clip: [1.0, 1.0]}}\n").complaints()
    assert found == [f"{AT}.vary.recipe.clip = [1.0, 1.0]: 1.0 is listed more than once"]


def test_a_number_in_print_is_of_the_cell_that_its_varied_keys_select(configuration):
    number = "- {artifact: table1, dataset: cifar10, model: resnet9, epsilon: 2.89, metric: top1, statistic: median, value: 65}"
    published = configuration.root / "config/papers/scalenorm/published.yaml"
    published.write_text(number)
    configuration.change(PAPER, GROUP, f"{GROUP}    vary: {{recipe.clip: [1.0, 1.5]}}\n")
    (complaint,) = configuration.complaints()
    assert "entry 1: is of two cells of table1" in complaint and "recipe.clip: 1.0; and" in complaint
    published.write_text(number.replace("metric:", "varied: {recipe.clip: 1.5}, metric:"))
    (row,) = configuration.plan().artifacts["table1"]["published"]
    assert row["at"] == {"dataset": "cifar10", "model": "resnet9", "epsilon": 2.89, "recipe.clip": 1.5}


# --- split and seeds ---


def test_splits_of_one_data_set_stand_side_by_side_on_data_prepared_once(configuration):
    text = "split: {validation: 0}\n    vary: {split.validation: [0, 5000, 10000], recipe.schedule: [{name: constant}]}"
    configuration.change(PAPER, "groups: {search: groups}", "groups: 32").change(
        PAPER, "groups: {search: groups}", "groups: 32"
    )
    configuration.change(PAPER, "  groups:\n    kind: search", "  trials:\n    kind: curves")
    planned = varied(configuration, text)
    held_out = {cell["at"]["held_out"]: run_of(planned, cell)["data"] for cell in cells_of(planned)}
    assert {held: data["validation"] for held, data in held_out.items()} == {0: 0, 5000: 5000, 10000: 10000}
    assert len(planned.of("data")) == 1


@pytest.mark.parametrize(("by", "held"), [("permutation", None), ("first", range(3)), ("last", range(17, 20))])
def test_a_split_holds_out_the_examples_that_it_names(by, held):
    data = {"train": 20, "validation": 3, "split_seed": 0} | ({} if by == "permutation" else {"by": by})
    train, out = split_of(data)
    assert sorted([*train, *out]) == list(range(20)) and len(out) == 3
    assert np.array_equal(train, np.sort(train))
    if held:
        assert list(out) == list(held)


def test_a_spec_says_how_a_split_is_made_where_it_is_no_permutation(configuration):
    planned = varied(configuration, "split: {validation: 5000, by: last}")
    runs = [run_of(planned, cell) for cell in cells_of(planned)]
    assert {run["data"]["by"] for run in runs} == {"last"}
    assert all("by" not in run["data"] for run in configuration.change(PAPER, ", by: last", "").plan().runs.values())


def test_a_split_as_the_data_set_says_is_the_run_of_that_name(configuration):
    before = set(configuration.plan().runs)
    assert set(varied(configuration, "split: {validation: 5000}").runs) == before


def test_nothing_chooses_where_nothing_is_held_out(configuration):
    found = configuration.change(PAPER, GROUP, f"{GROUP}    split: {{validation: 0}}\n").complaints()
    at = "config/papers/scalenorm/paper.yaml"
    assert f"{AT}.split: leaves its search no held-out examples to choose by" in found
    assert any(line.startswith(f"{at}: recipes.resnet9.schedule") and "holds none out" in line for line in found)


def test_all_examples_cannot_be_held_out(configuration):
    found = configuration.change(PAPER, GROUP, f"{GROUP}    split: {{validation: 50000}}\n").complaints()
    assert found == [f"{AT}.split.validation = 50000: must be below 50000, the training examples it is taken from"]


def test_a_group_has_seeds_of_its_own(configuration):
    planned = varied(configuration, "seeds: [1, 2]")
    assert all(list(cell["work"]["train"]) == ["1", "2"] for cell in cells_of(planned))


def test_an_early_end_wants_held_out_examples_and_renames_nothing(configuration):
    before = set(configuration.plan().runs)
    configuration.change(PAPER, "    clip: 1.5\n", "    clip: 1.5\n    stop: {patience: 15, above: 1000.0}\n")
    planned = configuration.plan()
    assert not before & set(planned.runs)
    assert all(run["recipe"]["stop"] == {"patience": 15, "above": 1000.0} for run in planned.runs.values())
    found = configuration.change(PAPER, GROUP, f"{GROUP}    split: {{validation: 0}}\n").complaints()
    assert any("recipes.resnet9.stop" in line and "asks for the loss of held-out examples" in line for line in found)
