// SPDX-License-Identifier: Apache-2.0
// All checks. Each is defined in the file of its subject in one of the two folders; check_list.cpp puts them in order.
#pragma once

#include "daemon/doctor/check.h"

namespace ssdpulse::doctor {

// Of a running daemon.
extern const RunningCheck kDevices;
extern const RunningCheck kSources;
extern const RunningCheck kStatistics;
extern const RunningCheck kLatencyMode;
extern const RunningCheck kCpuLimit;
extern const RunningCheck kLostIos;
extern const RunningCheck kLostBeforeDevices;
extern const RunningCheck kSkippedPrograms;
extern const RunningCheck kLateTicks;
extern const RunningCheck kIoAccounting;
extern const RunningCheck kPressure;
extern const RunningCheck kDiscardSubmitters;
extern const RunningCheck kFreezes;
extern const RunningCheck kWriteClasses;
extern const RunningCheck kWriteHints;
extern const RunningCheck kLogPages;
extern const RunningCheck kWriteAmplification;
extern const RunningCheck kHealth;
extern const RunningCheck kLogReads;
extern const RunningCheck kHistory;
extern const RunningCheck kSharedIdentities;
extern const RunningCheck kNames;

// Of a host without one.
extern const HostCheck kKernelVersion;
extern const HostCheck kKernelTypes;
extern const HostCheck kPrivileges;
extern const HostCheck kLockdown;
extern const HostCheck kBpfCompiler;
extern const HostCheck kLockedMemory;
extern const HostCheck kKernelSymbols;
extern const HostCheck kPerfEvents;
extern const HostCheck kPort;
extern const HostCheck kDriveNodes;
extern const HostCheck kReaderSocket;
extern const HostCheck kHistoryDirectory;
extern const HostCheck kStatisticsOfDisks;

}  // namespace ssdpulse::doctor
