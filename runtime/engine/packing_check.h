// CheckPacking: a packed model against itself unpadded, before it serves anybody.
//
// Requests of several lengths, with masks of several kinds, run together in one packed replay and
// each alone at its own shape. The pass that packs knows rules; this knows whether they were right.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/base/clock.h"
#include "runtime/certify/draw.h"
#include "runtime/certify/probe.h"
#include "runtime/device/device.h"
#include "runtime/engine/packing.h"
#include "runtime/engine/parameter_store.h"
#include "runtime/engine/stream.h"

namespace reprise {

struct PackingCheck {
  const Drawer* drawer = nullptr;
  std::string sequence;  // symbol of the axis
  std::string batch;     // symbol; empty for a model without
  absl::Span<const std::string> output_names;
  const ProbeRunner* exact = nullptr;
  double tolerance = 1e-5;  // of the largest |element| of the unpadded output
  ParameterStore* parameters = nullptr;
  const Device* device = nullptr;
  const Clock* clock = nullptr;
  Stream* stream = nullptr;
};

// FAILED_PRECONDITION naming output and length where an answer differs; what the runs return.
absl::Status CheckPacking(const Packing& packing, const PackingCheck& check);

}  // namespace reprise
