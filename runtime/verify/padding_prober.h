// PaddingProber: a model as the measurements of its padding certificate see it.
//
// Runs the model at exact shapes, without padding, on one runner, and asks what the ops say.
//
// Ownership: borrows everything that it is made with. Threads: one caller at a time; probers with
// runners of their own work side by side and may share the readings.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/certify/probe.h"
#include "runtime/verify/packing_check.h"
#include "runtime/verify/padding_leak.h"
#include "runtime/verify/proof_runners.h"
#include "runtime/verify/proof_subject.h"

namespace reprise {

class PaddingProber {
 public:
  // `graph`: that of the subject, or another form of it. `readings`: of the same graph. `runner`:
  // null where nothing is run.
  PaddingProber(const ProofSubject& subject, const Graph& graph, const SizeReadings& readings,
                ProofRunner* runner);
  PaddingProber(const PaddingProber&) = delete;
  PaddingProber& operator=(const PaddingProber&) = delete;

  // For the axis at `position` of the graph that a prober of the model is given, or for none (-1).
  // The other lengths are ones that the model takes together, where small ones or powers of two
  // are.
  static ProbeOptions OptionsFor(const ProofSubject& subject, const Graph& graph, int position);

  absl::StatusOr<std::vector<InputRange>> Ranges(const ProbeOptions& options) const;
  absl::StatusOr<AxisCertificate> Probe(absl::Span<const InputRange> ranges,
                                        const ProbeOptions& options) const;
  absl::StatusOr<AxisCertificate> Confirm(const AxisCertificate& certificate,
                                          absl::Span<const InputRange> ranges,
                                          const ProbeOptions& options) const;

  // Returns the verdict of the ops on the axis at `position`, with the guards that were measured;
  // without a certificate, with the inputs that may be masks by their dtype and range. `largest`:
  // bucket.
  AxisFinding FindLeak(size_t position, absl::Span<const InputRange> ranges, int64_t largest,
                       const AxisCertificate& certificate) const;
  // Returns the same where nothing is padded along it, so that it ends where the request does.
  AxisFinding FindLeakUnpadded(size_t position, absl::Span<const InputRange> ranges,
                               int64_t largest, const AxisCertificate& certificate) const;

  // Returns the guards of the certificate that are masks, or that the model makes masks of by
  // comparing them; all of them where none is.
  std::vector<std::string> MaskGuards(absl::Span<const InputRange> ranges,
                                      const AxisCertificate& certificate) const;

  // Those of the certificate's guards that hold nothing but ones and zeros.
  std::vector<std::string> MasksAmong(const std::vector<std::string>& guards,
                                      absl::Span<const InputRange> ranges) const;

  // `guards` and the masks that have the axis: a table of the model may join one whose own padding
  // is free.
  std::vector<std::string> WithMasks(const std::string& symbol, absl::Span<const InputRange> ranges,
                                     const std::vector<std::string>& guards) const;

  // Returns the names of the inputs that have the axis, in whatever form.
  std::set<std::string> MovingInputs(const std::string& symbol) const;

  // Where the axis may be padded if only padding is another number, in a mask in which what does
  // not count is 1 or in ids: which, and the line of config.pbtxt that says so. Else nothing.
  absl::StatusOr<std::string> FillThatHelps(size_t position, absl::Span<const InputRange> ranges,
                                            int64_t largest, const ProbeOptions& options) const;

  // A round of the packed model, against the model unpadded.
  absl::Status Check(PackingCheck& check, absl::Span<const InputRange> ranges,
                     const ProbeOptions& options, const PackingCheck::Rounds& rounds) const;

  const SizeReadings& readings() const { return readings_; }
  const std::string& output(size_t i) const { return outputs_[i]; }
  const Graph& graph() const { return graph_; }

 private:
  AxisFinding FindLeak(size_t position, absl::Span<const InputRange> ranges, int64_t largest,
                       const AxisCertificate& certificate,
                       const std::map<std::string, double>& fills, bool own_end = false) const;

  // Returns the fills other than 0 that padding of the input may have.
  std::vector<int64_t> OtherFills(size_t i, absl::Span<const InputRange> ranges) const;
  bool MayBeMask(size_t i, absl::Span<const InputRange> ranges) const {
    return !ranges[i].limited && !IsFloating(inputs_[i].dtype);
  }
  bool IsMask(size_t i, absl::Span<const InputRange> ranges) const {
    return inputs_[i].is_mask || MayBeMask(i, ranges);
  }

  const ProofSubject& subject_;
  const Graph& graph_;
  const SizeReadings& readings_;
  ProofRunner* const runner_;
  std::vector<ProbeInput> inputs_;
  std::vector<int64_t> hot_depths_;  // one an input: see HotDepth; 0: none
  const std::vector<std::string>& outputs_;
  ProbeRunner run_;
};

}  // namespace reprise
