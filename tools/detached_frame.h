// A recipe from a file of the recipe store, with operands, where the model itself is not at hand.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/base/clock.h"
#include "runtime/device/device.h"
#include "runtime/engine/profile.h"
#include "runtime/engine/replay/stream.h"

namespace reprise::cli {

struct DetachedFrame {
  FilledFrame filled;
  std::string origin;   // "minilm version 1, t512", for people
  std::string warning;  // the recipe was made elsewhere: how that differs; empty: it was not
};

// Binds the recipe of the record at `path` and fills a frame of it on `stream`: its inputs with
// small numbers, its weights from the model file `weights`, or with made-up ones where that is
// empty. DATA_LOSS where the file is no recipe or names a kernel that `device` does not have,
// INVALID_ARGUMENT where the weights are not the recipe's.
absl::StatusOr<DetachedFrame> FillDetached(const std::string& path, const std::string& weights,
                                           const Device& device, const Clock& clock,
                                           Stream& stream);

}  // namespace reprise::cli
