// Whether hints in a config.pbtxt (see config_hints.h) may be there.
#pragma once

namespace reprise {

enum class ConfigStrictness {
  kStrict,  // they are refused by name
  kWarn,    // they are left out with a line each
};

}  // namespace reprise
