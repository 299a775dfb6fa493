"""The benchmark of secret noise measures the same step twice. No time is asked for."""

import secret_noise
from dpvision.secret import Secret


def test_both_steps_are_the_same_but_for_their_source():
    steps = secret_noise.steps_of("lenet", 4)
    assert isinstance(steps["secret"].noise, Secret) and isinstance(steps["secret"].sampler.generator, Secret)
    assert not isinstance(steps["repeatable"].noise, Secret)
    alike = ("examples", "expected_batch", "physical_batch", "clip", "sigma", "network")
    assert all(getattr(steps["secret"], name) is getattr(steps["repeatable"], name) for name in alike)
    assert steps["secret"].gradients is not steps["repeatable"].gradients


def test_a_run_writes_its_files(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(secret_noise, "OUT", tmp_path)
    monkeypatch.setattr(secret_noise, "CASES", [("lenet", 4)])
    secret_noise.main()
    assert "| 10,650 | 4 |" in (tmp_path / "secret_noise.md").read_text()
    assert (tmp_path / "secret_noise.json").exists() and capsys.readouterr().out
