#include "tools/command.h"

#include <iterator>
#include <vector>

#include "runtime/base/cpu/compiled_tiers.h"
#include "runtime/base/cpu/isa.h"
#include "runtime/ops/kit/precision.h"

namespace reprise::cli {

CLI::Option* AddMaxIsa(CLI::App& command, std::string& name, const std::string& meaning) {
  std::vector<std::string> names;
  for (const NamedIsa& named : kIsas) names.emplace_back(named.name);
  return AddOption(command, "--max-isa", name, "ISA", meaning)
      ->check(CLI::IsMember(names))
      ->check([](const std::string& asked) { return WhyNotIsa(asked); })
      ->capture_default_str();
}

CLI::Option* AddPrecision(CLI::App& command, std::string& name, const std::string& meaning) {
  return command.add_option("--precision", name, meaning)
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kPrecisionNames), std::end(kPrecisionNames))));
}

}  // namespace reprise::cli
