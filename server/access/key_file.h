// The file of keys: the rights and the limits of each key.
//
//   # name    key                               rights           limits
//   team-a    7Yc0Q2mKx3v9TzqLr8sWbN1e           infer            rate=100 burst=200 concurrent=16
//   team-b    Zq8mT4vB1nC6xL3kJ9hG5fD7           infer            weight=3 pages=teams
//   ops       pV5dG8hJk2LmN4bQ7rT9wXyZ           infer,observe,admin
//   scraper   a1S2d3F4g5H6j7K8l9Q0w1E2           metrics
//
// A line is a key. Fields are separated by spaces or tabs; a line that is empty or begins with #
// is none. A key has at least 16 printable characters of ASCII. `rate` is requests a second,
// `burst` how many may come at once (by default one second's), `concurrent` how many may be under
// way; `weight` its share of the server relative to others, `pages` a name: keys that have the
// same one share the pages of prompts that begin alike.
//
// Threads: pure.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/right_table.h"

namespace reprise {

struct KeyLimits {
  double rate = 0;         // requests a second; 0: no limit
  int64_t burst = 0;       // at least 1 where there is a rate
  int64_t concurrent = 0;  // 0: no limit
  double weight = 1;       // above 0
  std::string pages;       // empty: it shares no pages with other keys

  bool operator==(const KeyLimits&) const = default;
};

struct Key {
  std::string name;
  std::string secret;
  std::set<Right> rights;
  KeyLimits limits;
};

// Errors: INVALID_ARGUMENT naming the line and the fault, and never a key.
absl::StatusOr<std::vector<Key>> ParseKeys(absl::string_view text);

}  // namespace reprise
