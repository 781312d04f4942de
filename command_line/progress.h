// A progress bar on stderr, where that is a terminal; nothing elsewhere.
#pragma once

#include <cstdint>
#include <string>

namespace reprise::command_line {

class Progress {
 public:
  explicit Progress(std::string label);
  // Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `fraction` of 0 to 1, and the text after the bar.
  void Show(double fraction, const std::string& text);

 private:
  const std::string label_;
  const bool terminal_;
};

}  // namespace reprise::command_line
