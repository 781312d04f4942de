// WithinMemory: runs work that may run out of memory, and returns the failure as a status.
// WhereMemoryAllows: runs optional work, which is left out where memory runs out.
//
// Sizes that a file or a request decides are checked against limits before anything is allocated by
// them; the limits do not know how much the system has left. An exception then, from `new`, a
// container or buffers of ours, ends at the nearest net: the work that asked fails with
// RESOURCE_EXHAUSTED, and the process goes on.
//
// Nets stand around the work that one model or one request causes: loading, a capture, tuning, a
// replay and the steps after it, a step of the prepare program, a node that is folded or run
// eagerly. Threads that work on behalf of others hand the exception back to the caller. Code that
// owes an answer gives one that needs no memory: a status without a message does not.
//
// Any other exception is a bug of ours or of a library: INTERNAL with its message, and the process
// goes on as well.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Thrown when memory runs out: with the wanted bytes (0: not known), and the part of the work.
class NoMemory : public std::bad_alloc {
 public:
  explicit NoMemory(size_t bytes, std::string part = "") : bytes_(bytes), part_(std::move(part)) {}
  size_t bytes() const { return bytes_; }
  const std::string& part() const { return part_; }
  const char* what() const noexcept override { return "the system has no memory left"; }

 private:
  size_t bytes_;
  std::string part_;
};

// Counts how often this process had no memory. A step that is left out for that reason (a constant
// that is not folded) looks like a property of the model: code that refuses a model compares the
// number with the one at its beginning.
inline std::atomic<int64_t> times_without_memory = 0;

// Returns RESOURCE_EXHAUSTED that names `who` asked, and for how much where that is known (else 0).
inline absl::Status NoMemoryStatus(absl::string_view who, size_t bytes) {
  ++times_without_memory;
  return absl::ResourceExhaustedError(
      bytes == 0 ? absl::StrCat(who, ": out of memory")
                 : absl::StrCat(who, ": allocation of ", bytes, " bytes failed: out of memory"));
}

// Returns the status that `make()` returns; `code` without a message where there is no memory for
// that.
template <typename Make>
absl::Status StatusWithoutFail(absl::StatusCode code, const Make& make) noexcept {
  try {
    return make();
  } catch (...) {
    return absl::Status(code, "");
  }
}

// Returns the status for the exception that is being handled, in the name of `who()`.
template <typename Who>
absl::Status StatusOfThrown(const Who& who) noexcept {
  const auto no_memory = [&](size_t bytes, absl::string_view part) {
    return StatusWithoutFail(absl::StatusCode::kResourceExhausted, [&] {
      return NoMemoryStatus(part.empty() ? std::string(who()) : absl::StrCat(who(), ": ", part),
                            bytes);
    });
  };
  try {
    throw;
  } catch (const NoMemory& none) {
    return no_memory(none.bytes(), none.part());
  } catch (const std::bad_alloc&) {
    return no_memory(0, "");
  } catch (const std::length_error&) {  // more than any memory holds
    return no_memory(0, "");
  } catch (const std::system_error& thrown) {  // a thread, mostly
    const bool none = thrown.code() == std::errc::resource_unavailable_try_again;
    return StatusWithoutFail(
        none ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInternal, [&] {
          const std::string what = absl::StrCat(who(), ": ", thrown.what());
          if (!none) return absl::InternalError(what);
          return absl::ResourceExhaustedError(absl::StrCat(
              what, " (of threads or memory: see ulimit -u, -v and the pids of the container)"));
        });
  } catch (const std::exception& thrown) {
    return StatusWithoutFail(absl::StatusCode::kInternal, [&] {
      return absl::InternalError(absl::StrCat(who(), ": ", thrown.what()));
    });
  } catch (...) {
    return absl::Status(absl::StatusCode::kInternal, "");
  }
}

// Returns the result of `work()`, an absl::Status or a StatusOr; RESOURCE_EXHAUSTED in the name of
// `who()`, which is called only then, if `work` ran out of memory.
template <typename Who, typename Work>
std::invoke_result_t<Work> WithinMemory(const Who& who, Work&& work) {
  try {
    return work();
  } catch (...) {
    return StatusOfThrown(who);
  }
}

// Runs optional work whose result no caller waits for: a metric, a note in the log, a request for a
// recipe. Returns false where it was left out for want of memory.
template <typename Work>
bool WhereMemoryAllows(Work&& work) noexcept {
  try {
    work();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace reprise
