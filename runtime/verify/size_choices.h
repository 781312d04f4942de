// FindSizeChoices: where a model lets the size of an axis decide something.
//
// A number that follows a size evenly (twice the length, one over it) differs between any two
// sizes, so that a walk at two of them (certify/axis_flow.h) sees it. A decision that a size makes
// does not show: a comparison with 100, a remainder, the smaller of two sizes. Specialising folds
// such nodes away, and no measurement at a few sizes finds the one where they change their mind. So
// the model is read (passes/read) with sizes as terms that leave open what not all sizes of the
// question agree about (verify/size_uses.h): a comparison that comes out the same wherever they lie
// (a shape with -1, a length with the largest one) decides nothing.
//
// The result of a node may have another form at another size, too, though no number
// says so: a Squeeze without axes drops the dims that are 1, a Slice ends where its data end if
// that is before it would, a Gather whose place follows a size takes another position at each. Its
// shape rule had to decide then, which the reading has noted. What holds along another axis was
// looked at for one of these forms.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/graph/node.h"
#include "runtime/ops/axis/axis_rule.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/verify/model_axis.h"
#include "runtime/verify/size_tables.h"

namespace reprise {

// A request may have more of an axis than any bucket, up to this many.
inline constexpr int64_t kLargestRequest = 1 << 20;

// A model read for all sizes that requests may have.
//
// Ownership: borrows everything. Threads: all methods from any; the first to ask reads, the others
// wait for it.
class SizeReadings {
 public:
  // `fixed`: symbols of the graph that are no axes here, and their sizes.
  SizeReadings(const Graph& graph, const std::vector<ModelAxis>& axes,
               std::map<std::string, int64_t> fixed = {})
      : graph_(graph), axes_(axes), fixed_(std::move(fixed)), tables_(graph) {}

  const Graph& graph() const { return graph_; }
  const std::vector<ModelAxis>& axes() const { return axes_; }
  const std::map<std::string, int64_t>& fixed() const { return fixed_; }

  // Returns a reading for sizes of the axis at `position` up to `largest` (0: all that a request
  // may have), whose symbols are numbered as the axes. nullptr: it takes none of a few sizes.
  std::shared_ptr<const SizeReading> UpTo(size_t position, int64_t largest) const;

  // Returns the tables that are uneven at `sizes`, or at others that were asked for: see
  // SizeTables.
  UnevenTables UnevenAt(const Binding& sizes) const;

 private:
  std::shared_ptr<const SizeReading> Read(size_t position, int64_t largest) const;

  const Graph& graph_;
  const std::vector<ModelAxis>& axes_;
  const std::map<std::string, int64_t> fixed_;
  mutable std::once_flag read_;
  mutable std::shared_ptr<const SizeReading> of_all_;
  mutable Mutex mutex_;
  mutable SizeTables tables_ GUARDED_BY(mutex_);
};

// Finds what the size of the axis at `position` decides among sizes up to `largest` (0: all that a
// request may have):
//
//   proved     nothing
//   undecided  a shape follows it in steps; with `forms`, what a node makes of its operands hangs
//   on
//              it
//   mixes      numbers that the model computes with, or which branch it takes, hang on a comparison
//              (or may, where the model could not be read)
AxisFinding FindSizeChoices(const SizeReadings& readings, size_t position, int64_t largest = 0,
                            bool forms = false);

}  // namespace reprise
