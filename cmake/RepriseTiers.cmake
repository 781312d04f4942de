# Sets reprise_tier_options: compile options for the kernels and for the code that chooses among their tiers. None
# with REPRISE_TIERS=all; with native the one tier next to the baseline that this machine runs, as
# runtime/base/cpu/cpu_x86.cc finds it.
set(reprise_tier_options)
if(REPRISE_TIERS STREQUAL "native")
  set(tier 0)
  set(flags "")
  if(EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo flags REGEX "^flags[ \t]*:" LIMIT_COUNT 1)
  endif()
  if("${flags} " MATCHES " avx2 " AND "${flags} " MATCHES " fma " AND "${flags} " MATCHES " f16c ")
    set(tier 2)
    if("${flags} " MATCHES " avx512f " AND "${flags} " MATCHES " avx512bw " AND "${flags} " MATCHES " avx512dq "
        AND "${flags} " MATCHES " avx512vl ")
      set(tier 512)
    endif()
  endif()
  set(reprise_tier_options -DREPRISE_NATIVE_TIER=${tier})
elseif(NOT REPRISE_TIERS STREQUAL "all")
  message(FATAL_ERROR "REPRISE_TIERS is '${REPRISE_TIERS}': it may be all or native")
endif()
