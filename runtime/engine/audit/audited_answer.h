// AuditedAnswer: a request and its answer, copied, until they are computed again.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/engine/audit/difference.h"
#include "runtime/engine/model/model.h"
#include "runtime/engine/types/request.h"

namespace reprise {

class AuditedAnswer {
 public:
  // Copies the data of `request` and the outputs of `response`. `served`: how it was answered, in
  // words ("bucket b4_s64, with 2 other requests").
  AuditedAnswer(const Model& model, const RequestShape& shape, const Request& request,
                const Response& response, std::string served);
  AuditedAnswer(const AuditedAnswer&) = delete;
  AuditedAnswer& operator=(const AuditedAnswer&) = delete;

  // Returns the bytes that a copy of them takes.
  static int64_t BytesOf(const Model& model, const Request& request, const Response& response);

  const RequestShape& shape() const { return shape_; }
  const Request& request() const { return request_; }
  const std::string& served() const { return served_; }

  // Returns the sizes of the request: "batch=1,sequence=9".
  std::string SizesText(const Model& model) const;
  // Compares the answer with `exact`, output by output of `model`.
  Difference DifferenceTo(const Model& model, const Response& exact) const;
  // Returns the request as JSON of the REST protocol, which `infer`, `audit` and `bisect` read.
  // UNIMPLEMENTED where an input has no elements that JSON can hold.
  absl::StatusOr<std::string> RequestJson(const Model& model) const;

 private:
  const RequestShape shape_;
  const std::string served_;
  std::vector<std::string> bytes_;  // one an input
  Request request_;                 // points into `bytes_`
  const std::vector<OutputTensor> outputs_;
};

}  // namespace reprise
