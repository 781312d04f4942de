#include "runtime/verify/packed_trial.h"

#include "runtime/verify/packing_check.h"

namespace reprise {

absl::Status PackedTrial::Run(const PaddingProber& prober) {
  if (given_up_) return absl::OkStatus();
  const absl::StatusOr<PackedForm> form = runners_.Pack();
  if (!form.ok()) {
    result_ = form.status();
    return absl::OkStatus();
  }
  PackingCheck check(*form);
  result_ = prober.Check(
      check, ranges_, PaddingProber::OptionsFor(subject_, prober.graph(), form->sequence_axis), {});
  return absl::OkStatus();
}

}  // namespace reprise
