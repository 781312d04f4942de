// Inflater: undoes the compression that a client gave its body on the way.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace reprise {

// Undoes gzip or deflate a part at a time: a few bytes may become very many, and other work of
// the same thread waits for a part alone. Several members of gzip, one after the other, are one
// text.
//
// Threads: one at a time.
class Inflater {
 public:
  // `body` as it is with `encoding`, a value of Content-Encoding. Errors: UNIMPLEMENTED for another
  // encoding than gzip and deflate; RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<Inflater>> Make(absl::string_view encoding,
                                                        std::string body, int64_t max_bytes);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Makes about `bytes` more. True: that was all. INVALID_ARGUMENT for bytes that are not of the
  // encoding, RESOURCE_EXHAUSTED for more than `max_bytes`, of which no more are made.
  absl::StatusOr<bool> Step(int64_t bytes);
  // Bytes that the body and the text occupy.
  int64_t bytes_taken() const;
  // Returns the text, once it is whole.
  std::string Take();

 private:
  struct Stream;
  Inflater(absl::string_view encoding, std::string body, int64_t max_bytes,
           std::unique_ptr<Stream> stream);

  absl::Status TooMany() const;

  const std::string encoding_;
  const std::string body_;
  const int64_t max_bytes_;
  const std::unique_ptr<Stream> stream_;
  size_t read_ = 0;   // bytes of the body
  int64_t size_ = 0;  // the part of `made_` that is written
  std::string made_;
};

}  // namespace reprise
