// Plans of LSTM, GRU and RNN.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily RecurrentFamily();

// plan_recurrent.cc
Plan PlanLstm, PlanGru, PlanRnn;

}  // namespace reprise::cpu
