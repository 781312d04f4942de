#include "runtime/verify/axis_proof.h"

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/padding_leak.h"

namespace reprise {
namespace {

bool LiesAlong(const ProofInput& input, const std::string& symbol) {
  return absl::c_any_of(input.dims, [&](const Dim& dim) {
    return dim.symbol == symbol ||
           (input.live && absl::c_linear_search(ExpressionSymbols(dim.symbol), symbol));
  });
}

// Returns the inputs whose padding along the axis holds their fill values.
std::vector<const ProofInput*> Filled(const ProofSubject& subject, const ModelAxis& axis) {
  std::vector<const ProofInput*> filled;
  bool is_live = false;
  for (const ProofInput& input : subject.inputs) {
    if (axis.is_batch || !LiesAlong(input, axis.symbol)) continue;
    is_live = is_live || input.live;
    if (input.live || IsFloating(input.dtype)) filled.push_back(&input);
  }
  if (!is_live) filled.clear();
  return filled;
}

}  // namespace

AxisFinding FindLeak(const ProofSubject& subject, const SizeReadings& readings, size_t position,
                     int64_t largest) {
  PaddingLeakQuestion question = {.readings = readings, .position = position, .largest = largest};
  for (const ProofInput* input : Filled(subject, readings.axes()[position])) {
    const auto fill = subject.fills.find(input->name);
    question.fills[input->name] = fill == subject.fills.end() ? 0 : fill->second;
    if (input->live) question.live.insert(input->name);
  }
  return FindPaddingLeak(question);
}

AxisCertificate CertificateOf(const ProofSubject& subject, size_t position,
                              const AxisFinding& finding) {
  const ModelAxis& axis = subject.axes[position];
  AxisCertificate certificate = {.axis = axis.label, .certified = finding.proved()};
  for (const ProofInput* input : Filled(subject, axis)) {
    if (!input->live) certificate.guards.push_back(input->name);
  }
  if (finding.proved()) {
    certificate.reason = "no node lets a position see the padding after it";
    if (axis.step > 1) {
      absl::StrAppend(&certificate.reason, "; sizes that are no multiples of ", axis.step,
                      " are not padded");
    }
  } else {
    certificate.mixing = certificate.reason = MixingWords(finding);
  }
  return certificate;
}

}  // namespace reprise
