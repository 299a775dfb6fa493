"""A training makes the steps it is accounted for, steers by its validation examples, and repeats to the bit."""

import math

import pytest
import torch
from torch import nn

from dpvision.data.sampling import PoissonSampler
from dpvision.privacy.accounting import Mechanism, calibrate
from dpvision.training import fit
from dpvision.training.evaluate import evaluate
from dpvision.training.record import metrics

EVERYTHING = {
    "recipe.optimizer": {"name": "sgd", "learning_rate": 1.0, "momentum": 0.5},
    "recipe.augmentation": {"pad": 1, "flip": 0.0, "views": 2, "include_original": True, "rotate": 9.0, "erase": 0.5},
    "recipe.averaging": {"decay": 0.9},
    "recipe.precision": "bfloat16",
}


SGD = {"name": "sgd", "learning_rate": 0.5, "momentum": 0.0}


def weights(training):
    return torch.cat([value.double().flatten() for value in training.network.state_dict().values()])


# --- what is accounted is what is done ---


def test_steps_made_are_steps_planned_are_steps_accounted(trained):
    assert trained.made == trained.planned == 4 * 1000 // 100 == trained.mechanism.steps
    assert [row["step"] for row in trained.history] == [10, 20, 30, 40]


def test_q_is_the_expected_batch_over_n_for_the_sampler_and_the_accountant(training):
    odd = training({"recipe.batch": 103})
    assert odd.q == odd.step.sampler.q == odd.mechanism.q == 103 / 1000
    assert odd.step.sampler.count == len(odd.train) == 1000
    assert odd.step.expected_batch == 103
    assert odd.planned == 38  # floor(4 * 1000 / 103)


def test_no_two_steps_have_the_same_sample(training, monkeypatch):
    samples, sample = [], PoissonSampler.sample
    monkeypatch.setattr(PoissonSampler, "sample", lambda sampler: samples.append(sample(sampler)) or samples[-1])
    begun = training()
    begun.run()
    assert len(begun.history) == 4
    assert len({tuple(joined.tolist()) for joined in samples}) == begun.made == 40


def test_sigma_is_calibrated_to_the_steps_planned_and_used_in_the_step(trained):
    assert trained.step.sigma == trained.sigma == trained.mechanism.sigma == calibrate(7.42, 1e-4, 0.1, 40)
    assert 7.41 <= trained.epsilon <= 7.42


def test_the_history_says_what_was_spent_by_the_end_of_each_epoch(trained):
    expected = [Mechanism(0.1, trained.sigma, steps).epsilon(1e-4) for steps in (10, 20, 30, 40)]
    assert [row["epsilon"] for row in trained.history] == expected


def test_a_simulation_divides_sample_and_noise_and_keeps_steps_and_noise_a_coordinate(trained, training):
    simulated = training({"recipe.simulate": 4})
    assert (simulated.planned, simulated.ends, simulated.sigma) == (trained.planned, trained.ends, trained.sigma)
    ours, theirs = simulated.step, trained.step
    assert (ours.sampler.q, ours.expected_batch) == (trained.q / 4, 25)
    assert ours.sigma * ours.clip / ours.expected_batch == pytest.approx(theirs.sigma * theirs.clip / theirs.expected_batch)


def test_a_simulation_spends_nothing_in_its_own_name(training, advance):
    simulated = training({"recipe.simulate": 4})
    advance(simulated, 10)
    (row,) = simulated.history
    assert row["epsilon"] is None
    assert row["simulated_epsilon"] == Mechanism(0.1, simulated.sigma, 10).epsilon(1e-4)


# --- the authors' protocol ---

AUTHORS = {"data.validation": 0, "protocol": {"name": "paper", "batches": 12, "sigma": 0.9, "steps": 45}}


def test_the_authors_protocol_takes_sigma_steps_and_rate_as_they_are(training):
    theirs = training(AUTHORS)
    assert (theirs.sigma, theirs.planned, theirs.q) == (0.9, 45, 1 / 12)
    assert (theirs.count, theirs.step.sampler.q, theirs.step.expected_batch) == (1437, 1 / 12, 119)
    assert theirs.ends == [11, 22, 33, 45]
    assert theirs.mechanism.sigma == theirs.step.sigma


def test_the_authors_protocol_steers_and_chooses_by_the_test_split(training):
    theirs = training(AUTHORS)
    theirs.run()
    for row in theirs.history:
        assert all(row[f"validation_{key}"] == row[f"test_{key}"] for key in ("loss", "top1", "top5"))
    assert theirs.best["top1"] == max(row["test_top1"] for row in theirs.history)
    assert theirs.made == theirs.mechanism.steps == 45
    assert metrics(theirs)["best_epoch"]["chosen_by"] == "test top1"


# --- the history ---


def test_the_history_has_one_row_an_epoch_with_everything_the_record_promises(trained):
    columns = {
        "epoch",
        "step",
        "learning_rate",
        "epsilon",
        "train_loss",
        "clipped",
        "norm_q10",
        "norm_q50",
        "norm_q90",
        "seconds",
    }
    columns |= {f"{split}_{value}" for split in ("validation", "test") for value in ("loss", "top1", "top5")}
    assert [row["epoch"] for row in trained.history] == [1, 2, 3, 4]
    for row in trained.history:
        assert set(row) == columns
        assert row["norm_q10"] <= row["norm_q50"] <= row["norm_q90"]
        assert 0 <= row["clipped"] <= 1
        assert 0 <= row["validation_top1"] <= row["validation_top5"] <= 1
        assert row["seconds"] > 0


def test_shares_and_quantiles_are_those_of_the_norms():
    norms = torch.arange(1.0, 12.0)
    assert fit._clipping(norms, 9.5) == {"clipped": 2 / 11, "norm_q10": 2.0, "norm_q50": 6.0, "norm_q90": 10.0}
    assert set(fit._clipping(norms[:0], 9.5).values()) == {None}


def test_evaluation_counts_what_a_reader_would_count(trained):
    images, labels = trained.test.batch(slice(None))
    with torch.no_grad():
        logits = trained.network.eval()(images)
    ranks = (logits > logits.gather(1, labels[:, None])).sum(1)
    loss = torch.nn.functional.cross_entropy(logits.double(), labels).item()
    expected = {"loss": loss, "top1": (ranks == 0).double().mean().item(), "top5": (ranks < 5).double().mean().item()}
    for physical in (1, 7, 10**9):
        assert evaluate(trained.network, trained.test, physical) == pytest.approx(expected, rel=1e-6)


def test_the_digits_are_learned(training):
    better = training({"recipe.epochs": 12, "model.width": 0.125, "budget.epsilon": 50.0})
    better.run()
    assert better.history[-1]["test_top1"] > 0.85


# --- what steers it ---


def test_the_plateau_is_torchs_on_the_validation_loss(training, monkeypatch):
    losses = iter([1.0, 0.9, 0.95, 0.91, 0.92, 0.8, 0.9, 0.9, 0.9, 0.9])
    shown = {"top1": 0.5, "top5": 0.5}
    steered = training({"recipe.epochs": 10, "recipe.schedule": {"name": "plateau", "factor": 0.5, "patience": 1}})
    monkeypatch.setattr(
        steered, "evaluate", lambda examples, _: shown | {"loss": next(losses) if examples is steered.validation else 0.0}
    )
    steered.run()
    # at the start of each epoch; halved after the second epoch in a row without a better loss, at epochs 4, 8 and 10
    assert [row["learning_rate"] for row in steered.history] == [5e-3] * 4 + [2.5e-3] * 4 + [1.25e-3] * 2
    assert steered.optimizer.param_groups[0]["lr"] == 5e-3 / 8


def test_a_constant_rate_stays(training):
    constant = training({"recipe.schedule": {"name": "constant"}})
    constant.run()
    assert {row["learning_rate"] for row in constant.history} == {5e-3}


def test_the_best_epoch_is_the_first_of_the_best_by_validation(training, monkeypatch):
    accuracies = iter([0.3, 0.6, 0.6, 0.5])
    chosen = training()
    monkeypatch.setattr(
        chosen,
        "evaluate",
        lambda examples, _: {"loss": 1.0, "top5": 1.0, "top1": next(accuracies) if examples is chosen.validation else 0.9},
    )
    kept = {}
    chosen.run(after_epoch=lambda t: kept.update({t.history[-1]["epoch"]: weights(t)}))
    assert chosen.best["epoch"] == 2
    chosen.network.load_state_dict(chosen.best["weights"])
    assert torch.equal(weights(chosen), kept[2])


def test_the_test_split_never_decides_anything(trained, training, garbled):
    blind = training(data=garbled)
    blind.run()
    assert torch.equal(weights(blind), weights(trained))
    assert blind.best["epoch"] == trained.best["epoch"]
    assert blind.state()["schedule"] == trained.state()["schedule"]
    assert [row["test_loss"] for row in blind.history] != [row["test_loss"] for row in trained.history]
    for ours, theirs in zip(blind.history, trained.history, strict=True):
        assert all(ours[key] == theirs[key] for key in ours if not key.startswith("test") and key != "seconds")


def test_validation_examples_are_not_trained_on(trained, prepared):
    together = torch.cat([trained.train.images, trained.validation.images]).flatten(1)
    assert sorted(map(tuple, together.tolist())) == sorted(map(tuple, prepared.train_images.reshape(1437, -1).tolist()))
    assert len(trained.validation) == 437


def test_evaluation_neither_learns_nor_depends_on_its_batches_under_batch_normalisation(training):
    control = training({"budget": None, "model.norm": "batch"})
    control.step()
    before = weights(control)
    outcomes = [evaluate(control.network, control.validation, physical) for physical in (1, 100)]
    assert outcomes[0] == pytest.approx(outcomes[1], rel=1e-6)
    assert torch.equal(weights(control), before)


def same(ours, theirs) -> bool:
    if isinstance(ours, torch.Tensor):
        return torch.equal(ours, theirs)
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return ours == theirs


@pytest.mark.parametrize("changes", [{}, EVERYTHING], ids=["plain", "everything"])
def test_a_training_is_its_state(changes, training, advance, tmp_path):
    first, second, fresh = (training(changes) for _ in range(3))
    advance(first, 13)  # an epoch and a bit
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt"))
    assert same(second.state(), first.state())
    unused = set() if changes else {"average"}
    alike = {key for key in fresh.state() if same(fresh.state()[key], first.state()[key])}
    assert alike - {"choices"} == unused  # which all share


def test_dropout_goes_on_to_the_same_bits(training, tmp_path, monkeypatch):
    build = fit.build
    monkeypatch.setattr(fit, "build", lambda *given: nn.Sequential(nn.Dropout(0.3), build(*given)))
    whole = training({"recipe.epochs": 1})
    whole.run()
    first = training({"recipe.epochs": 1})
    for _ in range(4):
        first._make_step()
    torch.save(first.state(), tmp_path / "state.pt")
    torch.manual_seed(99)
    second = training({"recipe.epochs": 1})
    second.restore(torch.load(tmp_path / "state.pt"))
    second.run()
    assert torch.equal(weights(second), weights(whole))
    assert not torch.equal(weights(second), weights(first))


def test_with_views_average_and_bfloat16_too_it_goes_on_to_the_same_bits(training, advance, tmp_path):
    whole, first, second = (training(EVERYTHING) for _ in range(3))
    whole.run()
    advance(first, 13)
    torch.save(first.state(), tmp_path / "state.pt")
    second.restore(torch.load(tmp_path / "state.pt"))
    second.run()
    ours, theirs = second.state(), whole.state()
    for state in (ours, theirs):
        state.pop("seconds")
        state["history"] = [row | {"seconds": 0} for row in state["history"]]
    assert same(ours, theirs)


# --- secret noise ---

SECRET = {"recipe.noise": "secret"}


def test_two_trainings_with_secret_noise_share_their_start_and_nothing_else(training):
    ours, theirs = (training(SECRET | EVERYTHING) for _ in range(2))
    assert torch.equal(weights(ours), weights(theirs))
    for one in (ours, theirs):
        one._make_step()
    assert not torch.equal(weights(ours), weights(theirs))
    assert not torch.equal(ours.step.sampler.sample(), theirs.step.sampler.sample())


def test_a_checkpoint_of_secret_noise_has_no_state_of_it_and_goes_on_to_other_bits(training, advance, tmp_path):
    first, second, third = (training(SECRET | EVERYTHING) for _ in range(3))
    advance(first, 13)
    torch.save(first.state(), tmp_path / "state.pt")
    kept = torch.load(tmp_path / "state.pt")
    assert not kept.keys() & {"sampling", "noise", "views"}
    for one in (second, third):
        one.restore(torch.load(tmp_path / "state.pt"))
        assert one.made == 13 and torch.equal(weights(one), weights(first))
        one.run()
        assert one.mechanism == one.whole
    assert not torch.equal(weights(second), weights(third))


# --- views, the average, precision, the optimiser ---


def test_the_average_follows_the_parameters_by_the_formula_and_leaves_them_alone(trained, training):
    """The average is a sum over all parameters that ever were: 40 steps at a decay that the first steps are below."""
    averaged = training({"recipe.averaging": {"decay": 0.7}})
    seen, averages = [weights(averaged)], []

    def look(t):
        seen.append(weights(t))
        averages.append(torch.cat([p.detach().double().flatten() for p in t.average.network.parameters()]))

    averaged.run(look)
    decays = [min(0.7, (1 + t) / (10 + t)) for t in range(40)]
    assert decays[0] == 0.1
    assert decays[19] < 0.7 == decays[20]
    for made in (1, 2, 5, 19, 40):
        shares = [math.prod(decays[:made]), *((1 - decays[t]) * math.prod(decays[t + 1 : made]) for t in range(made))]
        assert sum(shares) == pytest.approx(1)
        expected = sum(share * at for share, at in zip(shares, seen, strict=False))
        torch.testing.assert_close(averages[made - 1], expected, rtol=0, atol=1e-6)
    assert (averages[-1] - seen[-1]).abs().max() > 1e-3
    assert trained.average is None
    assert not any(key.startswith("averaged") for key in trained.history[0])


def test_the_history_has_the_average_s_numbers_beside_the_live_network_s(training):
    averaged = training({"recipe.averaging": {"decay": 0.7}, "recipe.epochs": 2})
    averaged.run()
    row = averaged.history[-1]
    for split in ("validation", "test"):
        for prefix, network in (("", averaged.network), ("averaged_", averaged.average.network)):
            for key, value in evaluate(network, getattr(averaged, split), 64).items():
                assert row[f"{prefix}{split}_{key}"] == value
    assert row["averaged_test_loss"] != row["test_loss"]


def test_the_average_under_batch_normalisation_has_the_live_network_s_statistics(training):
    control = training({"budget": None, "model.norm": "batch", "recipe.averaging": {"decay": 0.9}})
    control.run()
    live, average = dict(control.network.named_buffers()), dict(control.average.network.named_buffers())
    assert all(torch.equal(live[name], average[name]) for name in live)
    assert control.history[-1]["averaged_validation_top1"] > 0.5


def test_views_are_those_of_the_recipe_from_a_stream_of_their_own(training):
    recipe = {"pad": 3, "flip": 0.25, "views": 5, "include_original": False}
    ours, theirs = (training({"recipe.augmentation": recipe, "seed": seed}) for seed in (34, 35))
    drawn = ours.views.draw(4000)
    assert drawn.shape == (4000, 5, 8)
    assert (drawn[..., :2].min(), drawn[..., :2].max()) == (-3, 3)
    assert abs(drawn[..., 2].double().mean() - 0.25) < 0.02
    assert not torch.equal(theirs.views.draw(4000), drawn)
    assert len({generator.initial_seed() for generator in (ours.sampling, ours.noise, ours.views.generator)}) == 3
    ours.step()
    assert ours.step.views is ours.views


def test_black_beside_an_image_is_black_among_the_normalised_pixels(training):
    recipe = {"pad": 8, "flip": 0.0, "views": 1, "include_original": False, "border": "black", "rotate": 15.0, "erase": 1.0}
    run = training({"recipe.augmentation": recipe})
    images, _ = run.train.batch(slice(0, 200))
    made = run.views.make(images, run.views.draw(200))
    black = -0.305 / 0.376
    assert made.min().item() == pytest.approx(black)
    assert (made == made.min()).double().mean() > 0.5
    assert 0.02 < (made == 0).double().mean() < 0.33


def test_sgd_follows_the_formula_of_momentum(training):
    """Three steps move the weights by the formula of momentum, from the gradients that the optimiser got."""
    run = training({"recipe.optimizer": {"name": "sgd", "learning_rate": 0.5, "momentum": 0.9}})
    group = run.optimizer.param_groups[0]
    assert {key: group[key] for key in ("lr", "momentum", "dampening", "weight_decay", "nesterov")} == {
        "lr": 0.5,
        "momentum": 0.9,
        "dampening": 0,
        "weight_decay": 0,
        "nesterov": False,
    }
    gradients, step = [], run.optimizer.step
    run.optimizer.step = lambda: gradients.append(torch.cat([p.grad.flatten() for p in run.network.parameters()])) or step()
    before = weights(run)
    for _ in range(3):
        run.step()
    first, second, third = gradients
    moved = first + (second + 0.9 * first) + (third + 0.9 * second + 0.81 * first)
    torch.testing.assert_close(before - weights(run), 0.5 * moved.double(), rtol=1e-4, atol=1e-6)


def test_in_bfloat16_layers_compute_coarsely_and_everything_else_in_float32(training):
    coarse, fine = training({"recipe.precision": "bfloat16"}), training()
    assert coarse.evaluate(coarse.test) != fine.evaluate(fine.test)
    assert coarse.evaluate(coarse.test)["loss"] == pytest.approx(fine.evaluate(fine.test)["loss"], rel=0.02)
    seen = []
    coarse.network.conv1[0].register_forward_hook(lambda layer, given, made: seen.append(made.dtype))
    result = coarse.step()
    assert set(seen) == {torch.bfloat16}
    kept = [*coarse.network.state_dict().values(), result.losses]
    kept += [value for state in coarse.optimizer.state.values() for value in state.values()]
    assert {tensor.dtype for tensor in kept} == {torch.float32}
    assert result.norms.dtype == torch.float64


@pytest.mark.parametrize("budget", [None, {"epsilon": 50.0, "delta": 1e-4, "accountant": "rdp"}], ids=["public", "private"])
def test_with_everything_the_digits_are_learned(budget, training):
    control = training(EVERYTHING | {"budget": budget, "recipe.epochs": 8, "recipe.optimizer": SGD})
    control.run()
    assert control.history[-1]["validation_top1"] > 0.5
    assert control.history[-1]["averaged_validation_top1"] > 0.5


# --- randomness ---


def test_a_run_repeats_to_the_bit(trained, training):
    again = training()
    again.run()
    assert torch.equal(weights(again), weights(trained))


def test_random_numbers_drawn_elsewhere_neither_change_a_run_nor_are_changed_by_it(trained, training):
    torch.manual_seed(1)
    other = training()
    other.run(after_step=lambda _: torch.rand(1))
    after = torch.rand(1)
    assert torch.equal(weights(other), weights(trained))
    torch.manual_seed(1)
    assert torch.equal([torch.rand(1) for _ in range(41)][-1], after)


def test_seeds_start_from_other_weights_and_runs_of_a_seed_from_the_same(training):
    first, other_seed, other_budget = training(), training({"seed": 35}), training({"budget.epsilon": 3.0})
    assert torch.equal(weights(first), weights(other_budget))
    assert not torch.equal(weights(first), weights(other_seed))


@pytest.mark.parametrize("change", [{"seed": 35}, {"budget.epsilon": 3.0}, {"model.groups": 1}], ids=str)
def test_no_two_runs_share_noise_or_samples(training, change):
    """Runs of one seed differ too: two releases with the same noise on different gradients would give both away."""
    ours, theirs = training(), training(change)
    noise = [torch.randn(10_000, generator=t.noise) for t in (ours, theirs)]
    assert abs(torch.corrcoef(torch.stack(noise))[0, 1]) < 0.04
    assert ours.step.sampler.sample().tolist() != theirs.step.sampler.sample().tolist()


@pytest.mark.parametrize("physical", [1, 10**9])
def test_physical_batches_change_no_more_than_the_last_digits_of_a_step(training, physical):
    outcomes = []
    for size in (physical, 64):
        run = training(physical=size)
        for _ in range(2):
            run.step()
        outcomes.append(weights(run))
    torch.testing.assert_close(*outcomes, rtol=0, atol=2e-4)


# --- without a budget, and when it goes wrong ---


@pytest.mark.parametrize("norm", ["group", "batch"])
def test_without_a_budget_it_trains_too_with_any_normalisation(training, norm):
    control = training({"budget": None, "model.norm": norm})
    control.run()
    assert control.sigma is control.mechanism is control.epsilon is None
    assert control.history[-1]["epsilon"] is None
    assert control.history[-1]["clipped"] is None
    assert control.history[-1]["validation_top1"] > 0.5


def test_a_training_that_diverges_ends_all_the_same(training):
    lost = training({"recipe.optimizer": {"name": "nadam", "learning_rate": 1e30}})
    lost.run()
    assert not math.isfinite(lost.history[-1]["validation_loss"])
    assert lost.made == lost.planned
    assert lost.best["weights"]
