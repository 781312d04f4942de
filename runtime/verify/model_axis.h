// ModelAxis: one axis of a model, with what is known of padding along it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/certify/certificate.h"
#include "runtime/graph/extent.h"
#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

// A decision by the size of an axis, and the sizes for which it is one and the same.
struct SizeDecision {
  // "node 'if' (If) takes a branch that node 'gt' (Greater) decides by the size of sequence".
  // Empty: nothing.
  std::string words;
  int64_t alike_up_to = 0;  // all sizes up to this one decide alike; 0: no two need to
};

struct ModelAxis {
  std::string label;   // "batch", "sequence", else the symbol
  std::string symbol;  // its name in the graph
  bool is_batch = false;
  bool counts_rows = false;     // like a batch, but of some inputs only: the pictures beside texts
  AxisCertificate certificate;  // certified: may be padded (and batched, for the batch axis)
  int64_t smallest = 1;  // that the model takes: smaller requests run exact, and are refused there
  SizeDecision decision;
  // The positions that strides leave of it in values of the model (passes/live), where known.
  std::vector<Extent> extents;
  int64_t whole_from = 1;  // the size from which on values have these extents
  // All findings about the axis hold for multiples of it: a neck that doubles maps and joins them
  // with finer ones takes no other sizes. A request of another size runs exact, or is refused
  // there.
  int64_t step = 1;
  // The size up to which the certificate holds beyond its buckets, so that larger requests
  // may open further ones; 0: it ends at the largest bucket.
  int64_t opens_to = 0;

  // Returns the smallest size no less than `length` that the axis may be looked at with.
  int64_t Fitting(int64_t length) const {
    return RoundUpTo(length < smallest ? smallest : length, step);
  }
};

// Takes the certificate of `axis` away, for `reason`.
void Refuse(ModelAxis& axis, std::string reason);

// Makes requests packed or exact along `axis`, which is not certified: packing proves them apart.
void PackOnly(ModelAxis& axis);

}  // namespace reprise
