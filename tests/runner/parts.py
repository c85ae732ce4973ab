# SPDX-License-Identifier: Apache-2.0
"""How is the long tier divided? Each part is one run of at most an hour: `tests/run.sh --long --part NAME`.

A part is a list of levels and tests as the command line takes them, or of areas of sabotages (mutate.AREA); -TEST leaves
one out. Together
they contain every test of the long tier: `missing` lists those that no part has.
"""

PARTS = {
    "static": ["static", "build.gcc", "build.clang"],
    "unit": ["unit"],
    "decisions": ["unit.comparison_coverage_test", "unit.audit_hosts_test"],  # the unit tests that take longest here
    "address": ["sanitize.address"],
    "thread": ["sanitize.thread"],
    "fuzz": ["fuzz"],
    "kernel": ["kernel"],
    "system": ["system", "-system.test_postgresql_incidents"],
    "incidents": ["system.test_postgresql_incidents"],  # twenty, minutes apart: an hour and a half
    "install": ["package.test_install", "package.test_quickstart", "package.test_release_parts", "package.test_manual", "package.test_alert_names", "package.test_dashboards"],
    "debian-12": ["package.test_debian_12"],
    "debian-13": ["package.test_debian_13"],
    "release": ["package.test_release"],
    "flash-table": ["flash.test_error_table"],
    "flash-seeds": ["flash.test_seeds", "flash.test_cost"],
    "vm-5.10": ["vm.5.10"],
    "vm-6.1": ["vm.6.1"],
    "vm-6.12": ["vm.6.12"],
    "vm-6.12-modular": ["vm.6.12-modular"],
    "vm-newest": ["vm.newest"],
    "vm-stories": ["vm.stories"],
    "vm-incidents": ["vm.incidents"],
    "vm-spikes": ["vm.spikes"],
    "vm-alarms": ["vm.alarms"],
    "vm-soak": ["vm.soak"],
    "vm-stacks": ["vm.stacks"],
    "vm-volumes": ["vm.volumes"],
    "vm-flash": ["vm.flash"],
    "vm-decisions": ["vm.decisions"],
    "sabotages-kernel": ["mutate.bpf"],
    "sabotages-service": ["mutate.service"],
    "sabotages-people": ["mutate.alerts", "mutate.page", "mutate.package"],
    "operators": ["mutate.operators"],
}


def missing(names):
    """The tests of these that no part runs."""
    asked = [name for part in PARTS.values() for name in part]
    return [name for name in names if not any(name == want or name.startswith(want + ".") for want in asked)]
