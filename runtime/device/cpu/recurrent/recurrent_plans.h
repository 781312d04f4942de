// Plans of LSTM, GRU and RNN.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily RecurrentFamily();

// plan_recurrent.cc
std::vector<Candidate> PlanLstm(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGru(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanRnn(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
