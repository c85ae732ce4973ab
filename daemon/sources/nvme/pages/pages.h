// SPDX-License-Identifier: Apache-2.0
// All log pages. Each is defined in the file of that name in this folder; page_list.cpp puts them in order. Pages that
// share a layout share a file.
#pragma once

#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

extern const LogPage kSmart;              // 02h
extern const LogPage kFdpConfigurations;  // 20h
extern const LogPage kFdpHandleUsage;     // 21h
extern const LogPage kFdpStatistics;      // 22h
extern const LogPage kFdpHostEvents;      // 23h
extern const LogPage kFdpControllerEvents;
extern const LogPage kOcpSmart;           // C0h
extern const LogPage kBootSsd;            // C0h
extern const LogPage kIntelSmart;         // CAh
extern const LogPage kMemblazeSmart;      // CAh
extern const LogPage kYmtcSmart;          // CAh
extern const LogPage kDapustorSmart;      // CAh
extern const LogPage kScalefluxSmart;     // CAh
extern const LogPage kSsstcSmart;         // CAh
extern const LogPage kSamsungSmart;       // CAh
extern const LogPage kMicronNand;         // FBh
extern const LogPage kMicronSmart;        // D0h
extern const LogPage kMicronClientSmart;  // CAh
extern const LogPage kWdcCustomerSmart;   // CAh
extern const LogPage kWdcNand;            // FBh
extern const LogPage kWdcSmart;           // D0h
extern const LogPage kSeagateSmart;       // C4h
extern const LogPage kInspurSmart;        // C0h
extern const LogPage kEnduranceGroup;     // 09h
extern const LogPage kAmazonVolume;       // D0h

}  // namespace ssdpulse::nvme
