// Seeds of the fuzzers: ordinary requests, and attacks that servers have fallen to.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace reprise {

struct Seed {
  std::string name;
  std::string bytes;
  bool is_attack = false;  // the server cuts the client off
  bool varies = false;     // how it is answered depends on the parts in which it arrives
};

std::vector<Seed> Http2Seeds();
std::vector<Seed> Http1Seeds();

}  // namespace reprise
