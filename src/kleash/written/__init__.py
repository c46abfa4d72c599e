"""Reports that people wrote by hand, gone back to: filled, checked, turned into a study.

`page` knows their bytes, `logs` what was measured, `fill` puts the one into the other. `check`
holds every number and claim against both. `ask` writes the study that would settle a report.
"""

from __future__ import annotations
