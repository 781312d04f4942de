// AxisCertificate: the finding, for one axis of a model, how padding cannot change an answer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/ops/axis/axis_rule.h"

namespace reprise {

struct AxisCertificate {
  std::string axis;
  // False: never pad along this axis; a batch axis never carries two requests.
  bool certified = false;
  // Inputs whose padding must hold their fill value; the padding of every other input is free. A
  // batch axis has none: batch-mates are requests, and hold what their clients sent.
  std::vector<std::string> guards;
  // Those of the guards that hold nothing but ones and zeros.
  std::vector<std::string> masks;
  // Guards of which every line along the axis must hold something other than the fill value (other
  // than 0, where none is configured) at these places, or the request runs exact: a row that masks
  // everything out spreads its attention over the padding as well; where a causal mask is joined
  // with that of the request, a row that masks its first position does. What is not here may hold
  // anything.
  std::map<std::string, CountingPlaces> must_count;
  // Inputs that hide keys of one softmax together, guards or floats that are added to scores: in a
  // request that is padded at most one of them hides any, and what that one leaves counts at these
  // places of every line. Floats hide with what is as low as the weakest mask.
  std::map<std::string, CountingPlaces> together;
  // The ops alone show it: what was measured at a few sizes holds at any.
  bool proved = false;
  // The first node that lets one position see another, and how: "node '/pool/ReduceMean'
  // (ReduceMean) averages over sequence without a mask". Empty where it is proved that none does,
  // and where the ops were not looked at.
  std::string mixing;
  // The first node that passes over padding by numbers that those of a request may reach, and how
  // (AxisFinding::shallow). Empty: there is none. Requests of an axis that is certified all the
  // same are packed or run exact, and none is padded.
  std::string shallow;
  // Words for a person: what was measured; or which output, at which lengths, with which fill, was
  // off by how much.
  std::string reason;
  // Runs of the model that it took.
  int runs = 0;

  bool only_packed() const { return certified && !shallow.empty(); }
  // Some masks forbid padding.
  bool asks_of_masks() const { return !must_count.empty() || !together.empty(); }

  friend bool operator==(const AxisCertificate&, const AxisCertificate&) = default;
};

}  // namespace reprise
