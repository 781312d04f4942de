#include "runtime/device/roofline.h"

namespace reprise {

LaunchFloor FloorOf(const LaunchWork& work, const Roofline& roofline) {
  const auto over = [](double amount, double rate) { return amount > 0 ? amount / rate : 0; };
  return {.compute_ns = over(work.flops, roofline.gflops) + over(work.exps, roofline.gexps) +
                        over(work.erfs, roofline.gerfs),
          .memory_ns = over(work.weight_bytes, roofline.weight_gbytes) +
                       over(work.bytes - work.weight_bytes, roofline.other_gbytes)};
}

}  // namespace reprise
