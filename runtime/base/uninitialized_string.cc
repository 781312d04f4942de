#include "runtime/base/uninitialized_string.h"

namespace reprise {

void ResizeUninitialized(std::string& text, size_t size) {
  text.resize_and_overwrite(size, [](char*, size_t wanted) { return wanted; });
}

}  // namespace reprise
