#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls the compiler for CMake: through ccache where there is one, and with SSDPULSE_EXTRA_FLAGS after the other
# options, so that a sabotage can be built without warnings as errors, and without rebuilding everything else.
# Without -fpch-preprocess, ccache does not cache what g++ compiles with precompiled headers.
command -v ccache >/dev/null && set -- ccache "$@" -fpch-preprocess
# shellcheck disable=SC2086  # several flags
exec "$@" ${SSDPULSE_EXTRA_FLAGS:-}
