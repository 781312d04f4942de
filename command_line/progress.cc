#include "command_line/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace reprise::command_line {

Progress::Progress(std::string label) : label_(std::move(label)), terminal_(isatty(2) != 0) {}

Progress::~Progress() {
  if (terminal_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Show(double fraction, const std::string& text) {
  if (!terminal_) return;
  constexpr int kWidth = 32;
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kWidth);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < full ? "█" : "░";
  std::fprintf(stderr, "\r\033[K%s %s %s", label_.c_str(), bar.c_str(), text.c_str());
  std::fflush(stderr);
}

}  // namespace reprise::command_line
