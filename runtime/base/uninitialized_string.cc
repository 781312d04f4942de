#include "runtime/base/uninitialized_string.h"

#include "runtime/base/heap.h"

namespace reprise {

void ResizeUninitialized(std::string& text, size_t size) {
  const size_t before = text.capacity();
  // libstdc++ 12 passes the capacity to the function, not `size`.
  text.resize_and_overwrite(size, [size](char*, size_t) { return size; });
  if (text.capacity() != before) AskForHugePages(text.data(), text.capacity());
}

}  // namespace reprise
