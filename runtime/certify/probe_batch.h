// BatchProbe: requests alone against the same requests among hostile batch-mates.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/certify/draw.h"
#include "runtime/certify/told_outputs.h"

namespace reprise {

class BatchProbe {
 public:
  // Borrows all arguments.
  BatchProbe(const Drawer& drawer, absl::Span<const std::string> output_names,
             const ProbeRunner& runner, const ProbeOptions& options);

  // INVALID_ARGUMENT when no input has the axis.
  absl::StatusOr<AxisCertificate> Run();
  // Tries once more: after a brief first look what that left out, and batches of
  // `options.padded_sizes` rows. With `options.sweeps` that many contents more, and then every
  // output of floats must have told some of them apart: one that is the same whatever was drawn, or
  // never a number, would not have shown what another row did to it.
  absl::StatusOr<AxisCertificate> Confirm(const AxisCertificate& certificate);

 private:
  // A request: its rows, their inputs, and the answer that it gets alone.
  struct Request {
    int64_t rows = 0;
    std::vector<Numbers> inputs;
    std::vector<Tensor> expected;
  };

  struct Round {
    std::vector<MaskPattern> patterns;
    bool float_masks = false;
    std::vector<Hostile> hostile;
  };

  // The rounds of a brief first look, and of any other.
  static std::vector<Round> BriefRounds();
  static std::vector<Round> AllRounds();

  absl::Status Prepare();
  absl::StatusOr<Request> Alone(int64_t rows, const Drawer::Content& content);
  // Runs a batch of `total` rows with `requests` at `offsets`, every other row hostile (or, without
  // `hostile`, filled with fill values) and returns what is wrong with an answer.
  absl::StatusOr<std::optional<std::string>> TryBatch(int64_t total,
                                                      const std::vector<const Request*>& requests,
                                                      const std::vector<int64_t>& offsets,
                                                      std::optional<Hostile> hostile,
                                                      uint64_t seed);
  // How large output `o` of a request of one row usually is.
  double UsualSizeOf(size_t o);
  // Returns the dims of output `o` that are one per row; the error says what else moves.
  absl::StatusOr<std::vector<size_t>> RowDims(size_t o, const Request& request, const Tensor& batch,
                                              int64_t total) const;
  absl::StatusOr<std::optional<std::string>> TryRound(const Round& round, uint64_t seed);
  absl::StatusOr<std::optional<std::string>> TryRounds(absl::Span<const Round> rounds);
  // Batches of the same two requests with other contents, all of them random numbers around 0,
  // below it or above it.
  absl::StatusOr<std::optional<std::string>> TrySweeps();
  absl::StatusOr<std::vector<Tensor>> Execute(const std::vector<Numbers>& inputs);

  const Drawer& drawer_;
  absl::Span<const std::string> output_names_;
  const ProbeRunner& runner_;
  const ProbeOptions& options_;
  std::vector<std::vector<size_t>> row_dims_;  // per input: the dims that move with the batch
  bool saw_finite_ = false;
  ToldOutputs told_;  // notes requests of one row
  AxisCertificate certificate_;
};

}  // namespace reprise
