// Calls of the library in tokenizer_ffi: their texts, their errors, and their limits.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "runtime/base/go_on.h"
#include "runtime/base/memory_net.h"
#include "server/text/tokenizer_ffi.h"

namespace reprise {

// A text of the library, freed at the end.
struct LibraryText {
  LibraryText() = default;
  LibraryText(const LibraryText&) = delete;
  LibraryText& operator=(const LibraryText&) = delete;
  ~LibraryText() { reprise_text_free(&text); }

  std::string ToString() const {
    return text.size == 0 ? std::string() : std::string(text.data, text.size);
  }
  reprise_text text = {nullptr, 0};
};

// The library's side of a question whether work goes on, and of the memory that it may take.
class LibraryWatch {
 public:
  LibraryWatch(int64_t max_bytes, const std::function<absl::Status()>& go_on)
      : go_on_(go_on),
        watch_{.max_bytes = static_cast<size_t>(max_bytes), .ends = Ends, .context = this} {}
  LibraryWatch(const LibraryWatch&) = delete;
  LibraryWatch& operator=(const LibraryWatch&) = delete;

  const reprise_watch* get() const { return &watch_; }
  // Returns the code of the library as a status.
  absl::Status StatusOf(int32_t code, const LibraryText& error) const {
    if (code == 0) return absl::OkStatus();
    if (!ended_.ok()) return ended_;
    if (error.text.size == 0) return NoMemoryStatus("the tokenizer", 0);
    return absl::Status(static_cast<absl::StatusCode>(code), error.ToString());
  }

 private:
  static int32_t Ends(void* context) noexcept {
    auto& self = *static_cast<LibraryWatch*>(context);
    self.ended_ = WithinMemory([] { return "the tokenizer"; }, [&] { return GoesOn(self.go_on_); });
    return static_cast<int32_t>(self.ended_.code());
  }

  const std::function<absl::Status()>& go_on_;
  absl::Status ended_;
  const reprise_watch watch_;
};

}  // namespace reprise
