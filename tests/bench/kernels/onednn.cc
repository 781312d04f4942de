#include "tests/bench/kernels/onednn.h"

#ifdef REPRISE_BENCH_ONEDNN
#include <omp.h>

#include <dnnl.hpp>
#include <unordered_map>
#endif

namespace reprise::cpu {

#ifdef REPRISE_BENCH_ONEDNN
std::function<void()> OneDnnProduct(Isa isa, int64_t m, int64_t k, int64_t n, float* a,
                                    const float* b, float* c) {
  using Memory = dnnl::memory;
  static const dnnl::status capped = dnnl::set_max_cpu_isa(
      isa.Covers(Isa::kAvx512) ? dnnl::cpu_isa::avx512_core : dnnl::cpu_isa::avx2);
  (void)capped;  // Later calls may not change it any more.
  omp_set_num_threads(1);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const auto described = [](int64_t rows, int64_t columns, Memory::format_tag tag) {
    return Memory::desc({rows, columns}, Memory::data_type::f32, tag);
  };
  const Memory::desc rows_of_a = described(m, k, Memory::format_tag::ab);
  const Memory::desc plain_b = described(k, n, Memory::format_tag::ab);
  const Memory::desc rows_of_c = described(m, n, Memory::format_tag::ab);
  const dnnl::matmul::primitive_desc chosen(
      dnnl::matmul::desc(rows_of_a, described(k, n, Memory::format_tag::any), rows_of_c), engine);
  dnnl::stream stream(engine);
  Memory packed(chosen.weights_desc(), engine);
  Memory plain(plain_b, engine, const_cast<float*>(b));
  dnnl::reorder(plain, packed).execute(stream, plain, packed);
  stream.wait();
  std::unordered_map<int, Memory> operands = {{DNNL_ARG_SRC, Memory(rows_of_a, engine, a)},
                                              {DNNL_ARG_WEIGHTS, packed},
                                              {DNNL_ARG_DST, Memory(rows_of_c, engine, c)}};
  return [stream, product = dnnl::matmul(chosen), operands]() mutable {
    product.execute(stream, operands);
    stream.wait();
  };
}
#else
std::function<void()> OneDnnProduct(Isa, int64_t, int64_t, int64_t, float*, const float*, float*) {
  return nullptr;
}
#endif

}  // namespace reprise::cpu
