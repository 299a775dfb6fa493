"""What captions say of the scale that an artifact was made at."""

from dpvision.plan.specs import Spec


def simulation(spec: Spec) -> str:
    """Of the cells that are simulated; nothing where none is."""
    divisors = sorted({cell["simulated"] for cell in spec["cells"] if "simulated" in cell})
    if not divisors:
        return ""
    return f"simulated, not private: batch and noise divided by {' or '.join(map(str, divisors))}, steps kept"
