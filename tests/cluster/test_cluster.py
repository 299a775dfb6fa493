"""The pipeline goes through a real SLURM, and through what happens on clusters."""

import re

import yaml
from lab import ROOT, wait_for

ON_THE_CLUSTER = {"prepare", "search_worker", "train", "analyse_hessian", "analyse_activations"}


def jobs_of(project) -> list[dict[str, str]]:
    """Return the project's jobs as the accounting has them."""
    (run,) = re.findall(r"SLURM run ID: (\S+)", project.heads[0].said())
    columns = ["jobid", "jobname", "state", "reqtres", "comment"]
    listed = project.lab.run("sacct", "-X", "-n", "-P", "--name", run, "-o", ",".join(columns)).splitlines()
    return [dict(zip(columns, line.split("|"), strict=True)) for line in listed]


def test_the_whole_pipeline_goes_through_slurm(undisturbed):
    assert all((undisturbed.folder / file).exists() for file in undisturbed.plan.everything("all"))
    jobs = jobs_of(undisturbed)
    assert {job["state"] for job in jobs} == {"COMPLETED"}
    assert {job["comment"].removeprefix("rule_").partition("_wildcards")[0] for job in jobs} == ON_THE_CLUSTER
    assert all(job["jobname"].startswith("dpvision_") for job in jobs)


def test_only_a_rule_that_wants_a_gpu_asks_for_one(undisturbed):
    asked = {job["comment"].partition("_wildcards")[0] for job in jobs_of(undisturbed) if "gres/gpu=1" in job["reqtres"]}
    assert asked == {"rule_train"}


def test_a_jobs_log_is_found_by_rule_and_wildcards(undisturbed):
    (log,) = (undisturbed.folder / f"results/logs/slurm/rule_train/{undisturbed.run}").iterdir()
    assert undisturbed.run in log.read_text()


def test_the_switch_to_gres_is_the_one_in_the_profile(project):
    written = re.findall(r"^# (set-resources:|  (?:train): .*)$", (ROOT / "slurm/config.yaml").read_text(), re.MULTILINE)
    switch = yaml.safe_load("\n".join(written).replace("slurm_partition: gpu", "slurm_partition: main"))
    profile = project.folder / "slurm/config.yaml"
    profile.write_text(profile.read_text() + yaml.safe_dump(switch))
    head = project.snakemake(project.metrics)
    head.reaches("a submission", lambda: bool(head.submitted("train")))
    shown = project.lab.run("scontrol", "show", "job", *head.submitted("train"))
    assert "TresPerNode=gres:gpu:1" in shown
    assert "TresPerJob" not in shown


def test_what_the_cluster_refuses_is_told_in_sbatchs_own_words(project):
    head = project.snakemake(project.metrics, "--retries", "0", "--default-resources", "slurm_partition=nowhere")
    assert head.end() == 1
    assert "SLURM sbatch failed" in head.said()
    assert "Invalid partition name specified" in head.said()


def test_a_training_cancelled_on_a_node_that_is_drained_is_submitted_again_and_goes_on_elsewhere(project, undisturbed):
    head, job = project.training_under_way()
    node = project.node_of(job)
    project.lab.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=repair")
    try:
        project.lab.run("scancel", job)
        head.reaches("a start elsewhere", lambda: project.node_of(head.submitted("train")[-1]) not in ("", node))
        assert head.end() == 0, head.said()
    finally:
        project.lab.run("scontrol", "update", f"nodename={node}", "state=resume")
    assert "SLURM status is: 'CANCELLED'" in head.said()
    assert len(head.submitted("train")) == 2
    assert project.sessions() == 2
    assert project.record() == undisturbed.record()


def test_over_its_time_limit_a_training_goes_on_although_the_accounting_daemon_is_away(project, undisturbed):
    (analysis,) = project.plan.of("activations")
    head, job = project.training_under_way(project.metrics, f"results/lab/activations/{analysis}/histograms.csv")
    project.lab.run("scontrol", "update", f"jobid={job}", "endtime=now")
    project.lab.stop_accounting()
    try:
        assert head.end() == 0, head.said()
        assert not project.lab.succeeds("sacct")
    finally:
        project.lab.start_accounting()
        wait_for("accounting", lambda: project.lab.succeeds("sacct"))
    assert "SLURM status is: 'TIMEOUT'" in head.said()
    assert len(head.submitted("train")) == 2
    assert len(head.submitted("analyse_activations")) == 1
    assert project.sessions() == 2
    assert project.record() == undisturbed.record()


def test_a_preempted_training_is_queued_again_by_slurm_and_goes_on(project, undisturbed):
    head, job = project.training_under_way(project.metrics, "--default-resources", "slurm_partition=spare")
    node = project.node_of(job)
    project.lab.run("sbatch", "-p", "main", "-w", node, "--exclusive", "-o", "/dev/null", "--wrap", "sleep 1")
    assert head.end() == 0, head.said()
    assert head.submitted("train") == [job]
    assert project.states_of(job) == ["PREEMPTED", "COMPLETED"]
    assert project.sessions() == 2
    assert project.record() == undisturbed.record()


def test_a_second_snakemake_is_refused_while_the_first_lives_and_goes_on_where_it_was_killed(project, undisturbed):
    first, orphan = project.training_under_way()
    second = project.snakemake(project.metrics)
    assert second.end() == 1
    assert f"another snakemake works in this folder: process {first.process.pid}" in second.said()
    first.kill()
    second = project.snakemake(project.metrics)
    assert second.end() == 0, second.said()
    assert f"ending {orphan} (a training keeps its state)" in second.said()
    assert project.sessions() == 2
    assert project.record() == undisturbed.record()
