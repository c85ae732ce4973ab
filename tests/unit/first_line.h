// SPDX-License-Identifier: Apache-2.0
// Does the first line of the page, `top` and `why --at` say what was done to a simulated disk?
#pragma once

#include "daemon/spikes/why.h"
#include "tests/unit/spike_simulation.h"

namespace ssdpulse::test {

/// The first line about a second of the simulation, as answered at its end by a host whose only disk this is.
spikes::Why first_line(const Simulation& simulation, double at);

/// The line names the disk, how much slower it was and `cause`, in the words of this test.
void expect_first_line(const Simulation& simulation, double at, model::SpikeCause cause);

/// The line says that nothing was slower than usual.
void expect_usual_first_line(const Simulation& simulation, double at);

}  // namespace ssdpulse::test
