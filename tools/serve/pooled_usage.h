// PoolUsage: joins the knowledge of several servers about one model's traffic, as if one had served
// it all.
#pragma once

#include <string>
#include <vector>

namespace reprise::cli {

// Joins payloads of usage records (proto/recipe.proto, StoredUsage) of one graph: uses of recipes
// add up, and so do the sizes, batches and times of replays that buckets are learnt from. The
// buckets in force are those of the server that saw most; the next look at the traffic judges them
// by all of it. Parts that cannot be joined (axes or first buckets of another configuration, times
// of another device) are left out, as are payloads that are no message.
std::string PoolUsage(const std::vector<std::string>& payloads);

}  // namespace reprise::cli
