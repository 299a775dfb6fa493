"""Records that must not leave: what covered searches and runs with secret noise wrote down without noise.

The ledger of such a run says so in `release.needs`: its weights may be released with ledger and spec, nothing else of it may,
and nothing of the search that chose for it.
"""

from dpvision.errors import UserError
from dpvision.looking.text import counted
from dpvision.plan import specs
from dpvision.plan.plan import Plan
from dpvision.plan.specs import Spec
from dpvision.plan.stages import STAGES, Key

OWN_LEAVES = "models_losses_and_classes"
"""Value of the setting `own_leaves` that lets papers on the user's own pictures into an archive."""
RELEASED = ("spec.json", "ledger.json", "weights.safetensors", "averaged.safetensors")
"""Files of a training with secret noise that may leave."""


def withheld_files(plan: Plan, key: Key) -> list[str]:
    """Return the files of a piece of work's record that must not leave; none if all of them may."""
    if not is_withheld(plan, key):
        return []
    released = RELEASED if key[0] == "train" else ()
    return [file for file in plan.record(key) if file.rpartition("/")[2] not in released]


def is_withheld(plan: Plan, key: Key) -> bool:
    """Tell whether a piece of work is a covered search, or a training with secret noise or work on such a training."""
    if STAGES[key[0]].shared:
        return False
    if key[0] == "search" and specs.is_covered(plan.work[key]):
        return True
    training = _training_below(plan, key)
    return training is not None and not specs.is_repeatable(training)


def _training_below(plan: Plan, key: Key) -> Spec | None:
    """Return the spec of the training that a piece of work is or works on, or None: an audit of the engine has none."""
    spec = plan.work[key]
    if "recipe" in spec:
        return spec
    run: Spec | str | None = spec.get("run")
    return plan.work.get(("train", run)) if isinstance(run, str) else run


def withheld_artifacts(plan: Plan) -> list[str]:
    """Return the artifacts that show what must not leave."""
    withheld = {file for key in plan.work for file in withheld_files(plan, key)}
    if not withheld:
        return []
    return [name for name in plan.artifacts if any(withheld.intersection(files) for files in plan.inputs_of(name).values())]


def all_withheld_files(plan: Plan) -> list[str]:
    """Return all files of records and artifacts that must not leave."""
    of_records = [file for key in plan.work for file in withheld_files(plan, key)]
    return of_records + [file for name in withheld_artifacts(plan) for file in plan.targets(name)]


def refuse_own_pictures(plan: Plan, what: str) -> None:
    """Raise if a plan has papers on the user's own pictures, unless the settings say that results of them may leave.

    Args:
        plan: The plan of what is to be packed.
        what: What would be made of it, for the message: "an archive".
    """
    papers = sorted(plan.own & plan.papers.keys())
    if not papers or plan.own_leaves == OWN_LEAVES:
        return
    keys = plan.with_needs(key for paper in papers for name in plan.papers[paper] for key in plan.work_of(name))
    runs = [plan.work[key] for key in keys if key[0] == "train"]
    open_runs = [run for run in runs if run["budget"] is None or specs.simulated(run) > 1]
    known_noise = sum(specs.is_repeatable(run) for run in runs) - len(open_runs)
    searches = sum(key[0] == "search" for key in keys)
    raise UserError(
        f"{', '.join(papers)}: on pictures of your own, and {what} is for others. It would have "
        f"{counted('model', 'models', len(open_runs))} trained without privacy, and {known_noise} whose noise anybody can draw "
        f"again from the seed; losses and accuracies of each epoch of {counted('training', 'trainings', len(runs))} and "
        f"{counted('search', 'searches', searches)}, written without noise; the names of the classes, and how many pictures "
        f"each has. If all of that may leave, say so: --config scale={plan.scale} own_leaves={OWN_LEAVES} (or in "
        "config/config.yaml)"
    )
