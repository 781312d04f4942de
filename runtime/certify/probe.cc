#include "runtime/certify/probe.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/certify/draw.h"
#include "runtime/certify/probe_batch.h"
#include "runtime/certify/probe_length.h"

namespace reprise {
namespace {

absl::Status CheckArguments(absl::Span<const ProbeInput> inputs,
                            absl::Span<const InputRange> ranges, const ProbeOptions& options) {
  if (inputs.size() != ranges.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(ranges.size(), " ranges for ", inputs.size(), " inputs"));
  }
  if (!options.dim_size) return absl::InvalidArgumentError("no dim_size to size dims with");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<AxisCertificate> ProbeAxis(absl::Span<const ProbeInput> inputs,
                                          absl::Span<const InputRange> ranges,
                                          absl::Span<const std::string> output_names,
                                          const ProbeRunner& runner, const ProbeOptions& options) {
  RETURN_IF_ERROR(CheckArguments(inputs, ranges, options));
  const Drawer drawer(inputs, ranges, options);
  if (options.is_batch) return BatchProbe(drawer, output_names, runner, options).Run();
  return LengthProbe(drawer, output_names, runner, options).Run();
}

absl::StatusOr<AxisCertificate> ConfirmAxis(const AxisCertificate& certificate,
                                            absl::Span<const ProbeInput> inputs,
                                            absl::Span<const InputRange> ranges,
                                            absl::Span<const std::string> output_names,
                                            const ProbeRunner& runner,
                                            const ProbeOptions& options) {
  RETURN_IF_ERROR(CheckArguments(inputs, ranges, options));
  if (!certificate.certified) return certificate;
  const Drawer drawer(inputs, ranges, options);
  if (options.is_batch) {
    return BatchProbe(drawer, output_names, runner, options).Confirm(certificate);
  }
  return LengthProbe(drawer, output_names, runner, options).Confirm(certificate);
}

}  // namespace reprise
