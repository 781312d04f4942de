// Inputs and other data that hide positions in the values that an op makes.
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/op_facts.h"

namespace reprise {
namespace {

using Source = AxisFlowValue::Source;

bool LiesLow(const Positions& positions) {
  const std::optional<double> depth = positions.padding.Depth();
  return depth.has_value() && *depth <= ops::kWeakestMask;
}

// Some number of a small table of floats is as far from zero as masks are.
bool HoldsNumbersOfMasks(const Tensor* tensor) {
  constexpr int64_t kSmall = 4096;
  return tensor != nullptr && IsFloating(tensor->dtype()) && tensor->num_elements() <= kSmall &&
         !AllElements(*tensor, [](double one) { return std::abs(one) < -ops::kWeakestMask; });
}

}  // namespace

std::set<std::string> AxisContext::JointHiders() const {
  std::set<std::string> joint;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (Carries(i)) joint.insert(input(i).hiders.begin(), input(i).hiders.end());
    if (makes_mask_ && !input(i).ids.empty()) joint.insert(input(i).ids);
  }
  return joint;
}

std::string AxisContext::JointIds() const {
  const bool moves = FactsOf(node_.op).HoldsAllOfFirst() || node_.op == CastOp::kName;
  return moves ? input(0).ids : "";
}

std::string AxisContext::JointPlaces() const {
  const auto is_wide = [](DType dtype) { return dtype == DType::kInt32 || dtype == DType::kInt64; };
  const bool widens = node_.op == CastOp::kName && is_wide(graph_.value(node_.outputs[0]).dtype);
  return FactsOf(node_.op).HoldsFirst() || widens ? input(0).places : "";
}

bool AxisContext::JointByData() const {
  const OpRow* row = FindOp(node_.op);
  const OpFacts& facts = FactsOf(*row);
  // Results made of floats that lie as masks do are low where the floats are low, or zeros.
  const bool keeps_floats = !row->Has(kElementwise) || facts.Is(kKeepsApart) ||
                            facts.elements == Elements::kChosen || facts.sizes == Sizes::kSum;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (!has_input(i) || row->IsValueInput(i)) continue;
    const AxisFlowValue& flow = input(i);
    if (makes_mask_) {
      if (flow.by_data && flow.ids.empty()) return true;
    } else if (flow.by_data) {
      return true;
    } else if (flow.source == Source::kData) {
      // Integers tell where padding is.
      if (!Carries(i) || (!keeps_floats && IsFloating(dtype(i)))) return true;
    }
  }
  return false;
}

bool AxisContext::MayHideByData(const AxisFlowValue& result) const {
  const OpRow* row = FindOp(node_.op);
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (Carries(i) && input(i).hidden_by_data) return true;
  }
  const auto by_data = [&](size_t i) { return has_input(i) && input(i).by_data; };
  const auto may_be_low = [&](size_t i) {
    if (HoldsNumbersOfMasks(constant(i))) return true;
    return absl::c_any_of(input(i).along, LiesLow);
  };
  if (node_.op == WhereOp::kName) return by_data(0) && (may_be_low(1) || may_be_low(2));
  if (node_.op == MulOp::kName) {
    return (by_data(0) && HoldsNumbersOfMasks(constant(1))) ||
           (by_data(1) && HoldsNumbersOfMasks(constant(0)));
  }
  bool any_by_data = false, any_low = false;
  for (size_t i = 0; i < num_inputs(); ++i) {
    any_by_data = any_by_data || (by_data(i) && !row->IsValueInput(i));
    any_low = any_low || absl::c_any_of(input(i).along, LiesLow);
  }
  // Looked up among numbers some of which are low.
  if (FactsOf(*row).Is(kLooksUp) && any_by_data) return HoldsNumbersOfMasks(constant(0));
  return row->Has(kElementwise) && any_by_data && !any_low && absl::c_any_of(result.along, LiesLow);
}

}  // namespace reprise
