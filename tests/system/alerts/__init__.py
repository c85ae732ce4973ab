# SPDX-License-Identifier: Apache-2.0
"""What must each alert do? The cases in which it fires, and those closest to them in which it does not."""
from alerts import drive_cases, self_cases, tail_cases

CASES = [*tail_cases.CASES, *drive_cases.CASES, *self_cases.CASES]
