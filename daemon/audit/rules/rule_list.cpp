// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "daemon/audit/audit.h"
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {

std::span<const Rule> rules() {
  static const std::array list{
      kQ1,  kQ2,  kQ3,  kQ5,  kQ6, kQ7, kQ8, kQ9, kQ10, kQ11, kQ13, kQ14, kN1, kN2,  kN3,  kN4,  kN7,  kN9,  kN10, kN11,
      kN12, kN13, kN14, kN16, kF1, kF2, kF3, kF4, kF5,  kF6,  kF7,  kF8,  kF9, kF12, kF13, kF14, kF15, kF17, kF18, kF21,
  };
  return list;
}

}  // namespace ssdpulse::audit
