# SPDX-License-Identifier: Apache-2.0
"""faults"""
def run(vm, check, service):
    pass
