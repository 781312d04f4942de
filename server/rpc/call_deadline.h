// A call's deadline by the server's clock.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "runtime/base/clock.h"

namespace reprise {

// kNoDeadline where the client has given none.
inline int64_t DeadlineNs(const grpc::CallbackServerContext& context, const Clock& clock) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) return kNoDeadline;
  const auto left = deadline - std::chrono::system_clock::now();
  const int64_t left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
  int64_t deadline_ns = 0;
  if (__builtin_add_overflow(clock.NowNs(), left_ns, &deadline_ns)) return kNoDeadline;
  return deadline_ns;
}

}  // namespace reprise
