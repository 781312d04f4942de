// FormatText, AppendText: absl::StrFormat and StrAppendFormat that throw std::bad_alloc where there
// is no memory for the text. The library's own functions are noexcept and allocate, so that they
// end the process then.
//
// Threads: any.
#pragma once

#include <string>

#include "absl/strings/str_format.h"

namespace reprise {

template <typename... Args>
std::string FormatText(const absl::FormatSpec<Args...>& format, const Args&... args) {
  char small[512];
  const int size = absl::SNPrintF(small, sizeof(small), format, args...);
  if (size < 0) return "";
  if (static_cast<size_t>(size) < sizeof(small)) return std::string(small, size);
  std::string text(static_cast<size_t>(size) + 1, '\0');
  absl::SNPrintF(text.data(), text.size(), format, args...);
  text.resize(static_cast<size_t>(size));
  return text;
}

template <typename... Args>
void AppendText(std::string* text, const absl::FormatSpec<Args...>& format, const Args&... args) {
  text->append(FormatText(format, args...));
}

}  // namespace reprise
