"""How Homeostat handles the experiment source."""

from __future__ import annotations

import math
import subprocess
import sys

from homeostat.lab.load_profile import Profile
from homeostat.lab.source_registration import FORMAT
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.sense.source_formats import SourceOptions, SourcePosition, latest_row

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=5)


def test_arrived_rows_follow_the_profile_once_its_start_is_known() -> None:
    source = SourceOptions(FORMAT, {"profile": PROFILE.to_json()})
    assert latest_row(source, SourcePosition({"row": 5, "started_s": 1000.0}), 1010.0) == 1000.0
    for offset in (None, {"row": 5}, {"started_s": True}):
        assert math.isnan(latest_row(source, SourcePosition(offset), 1010.0))


def test_the_product_works_without_the_laboratory_and_the_laboratory_starts_without_pyspark() -> None:
    code = (
        "import sys; import homeostat.spark.application; "
        "assert not [name for name in sys.modules if name.startswith('homeostat.lab')]; "
        "import homeostat.lab.wordcount; assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
