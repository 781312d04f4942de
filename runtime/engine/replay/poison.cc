#include "runtime/engine/replay/poison.h"

#include <cstdlib>
#include <cstring>

namespace reprise {

bool PoisonIsWanted() {
  const char* const wanted = std::getenv("REPRISE_POISON_ARENAS");
  return wanted != nullptr && absl::string_view(wanted) != "0" && *wanted != '\0';
}

void FillWithPoison(void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  for (; bytes >= sizeof(kPoison); at += sizeof(kPoison), bytes -= sizeof(kPoison)) {
    std::memcpy(at, &kPoison, sizeof(kPoison));
  }
  if (bytes > 0) std::memcpy(at, &kPoison, bytes);
}

bool HoldsPoison(absl::string_view bytes) {
  const auto holds = [&](const auto& pattern) {
    return memmem(bytes.data(), bytes.size(), &pattern, sizeof(pattern)) != nullptr;
  };
  return holds(kPoison) || holds(kPoisonedPadding);
}

}  // namespace reprise
